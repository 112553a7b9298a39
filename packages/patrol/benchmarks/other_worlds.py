"""A second simulator, written without a look at the first: other ground, other records, other finds, other poachers.

`worlds.py` has hills, patrols that walk out from posts, and places that go quiet by themselves. Here the ground is a
random field, past patrols went by habit to where rangers had been lucky, a find needs a snare that is there and that
somebody sees, whoever finds a snare takes it away, and poachers set new ones, each in his own ground: one who meets
rangers moves to a neighbouring box for some weeks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely
from rivals import Planner

from artreplay_patrol import Area, Site
from artreplay_patrol.forecast import WEEK, Visits

SIDE, WEEKS, YEARS = 32, 52, 3
FIRST = 17_532  # the first day of the year that is planned
KINDS = (
    "still",
    "moving",
    "moving, rare",
)  # whether poachers move when they meet rangers, and how many snares there are
_TRAILS_KM = 3.0  # in a box
_SEEN = 0.7  # chance that somebody who walks past a snare sees it, at most: in dense ground it is half of that


@dataclass(frozen=True, eq=False)
class OtherWorld:
    """A park, with the records of its past: what planners may know of a `World`."""

    kind: str
    seed: int
    site: Site
    mask: np.ndarray
    visits: Visits
    first: int
    ground: Ground


class Ground:
    """Snares, how well they are seen, and the poachers who set them. Its state moves on week by week."""

    def __init__(self, kind: str, seed: int, mask: np.ndarray) -> None:
        self.rng = np.random.default_rng([seed, 7])
        self.kind, self.mask = kind, mask
        wished = field(self.rng, 2.5) + 0.5 * field(self.rng, 1.2)
        self.liking = np.where(mask, np.exp(1.6 * (wished - wished.mean()) / wished.std()), 0.0)
        dense = field(self.rng, 5.0)
        self.seen = _SEEN * np.where(dense > np.median(dense), 0.5, 1.0)
        poachers = 12 if kind == "moving, rare" else 60
        self.home = self.rng.choice(SIDE * SIDE, poachers, p=(self.liking / self.liking.sum()).ravel())
        self.away = np.zeros(poachers, np.int64)  # weeks that he stays where he moved to
        self.place = self.home.copy()
        self.snares = np.zeros((SIDE, SIDE))
        for _ in range(30):
            self.week(np.empty(0, np.int64))

    def chance(self, effort: float) -> np.ndarray:
        """The chance to see a snare in each box with an effort: snares lie beside the trails of a box."""
        return 1.0 - (1.0 - self.seen * (1.0 - np.exp(-effort / _TRAILS_KM))) ** self.snares

    def visit(self, boxes: np.ndarray, efforts: np.ndarray, luck: np.ndarray) -> np.ndarray:
        """What is found in boxes; what is found is taken away."""
        taken = self.seen.reshape(-1)[boxes] * (1.0 - np.exp(-efforts / _TRAILS_KM))
        found = luck < 1.0 - (1.0 - taken) ** self.snares.reshape(-1)[boxes]
        self.snares.reshape(-1)[boxes] *= np.where(found, 1.0 - taken, 1.0)
        return found.astype(np.float64)

    def week(self, visited: np.ndarray) -> None:
        """Poachers set snares where they are, snares rot, and those who met rangers move."""
        if self.kind != "still":
            met = np.isin(self.place, visited) & (self.rng.random(len(self.place)) < 0.8)
            for poacher in np.flatnonzero(met):
                x, y = divmod(int(self.place[poacher]), SIDE)
                step = self.rng.integers(-2, 3, 2)
                to = np.clip([x + step[0], y + step[1]], 0, SIDE - 1)
                if self.mask[tuple(to)]:
                    self.place[poacher] = to[0] * SIDE + to[1]
                    self.away[poacher] = self.rng.integers(3, 12)
            self.away = np.maximum(self.away - 1, 0)
            self.place = np.where(self.away == 0, self.home, self.place)
        around = self.place[:, None] + np.array([0, 0, 0, 1, -1, SIDE, -SIDE])
        around = around[(around >= 0) & (around < SIDE * SIDE)]
        set_now = np.bincount(around, minlength=SIDE * SIDE).reshape(SIDE, SIDE)
        self.snares = np.where(self.mask, 0.85 * self.snares + 0.12 * set_now, 0.0)


def field(rng: np.random.Generator, steepness: float) -> np.ndarray:
    """A random field whose waves are the weaker the shorter they are."""
    waves = np.fft.fftfreq(SIDE)
    size = np.hypot(waves[:, None], waves)
    size[0, 0] = np.inf
    made = np.fft.ifft2(np.fft.fft2(rng.normal(size=(SIDE, SIDE))) * size ** (-steepness / 2.0)).real
    return made / made.std()


def invent(kind: str, seed: int) -> OtherWorld:
    """A park and three years of records: rangers go where they know the way, and back to where they were lucky."""
    rng = np.random.default_rng([seed, 11])
    angle = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    radius = 0.16 * rng.uniform(0.7, 1.2, 24)
    outline = np.stack([-15.0 + radius * np.cos(angle), 12.5 + radius * np.sin(angle)], axis=1)
    area = Area.around(shapely.Polygon(outline).buffer(0.01))
    site = Site("Elsewhere", levels=(1.0, 2.0, 4.0), box_km=area.side_km / SIDE).with_area(area)
    mask = area.mask(SIDE, least=0.5)
    ground = Ground(kind, seed, mask)
    boxes = np.flatnonzero(mask.ravel())
    x, y = np.divmod(boxes, SIDE)
    camps = rng.choice(len(boxes), 3)
    away = np.min([np.hypot(x - x[camp], y - y[camp]) for camp in camps], axis=0)
    habit = np.exp(-away / 4.0) * np.exp(0.8 * field(rng, 2.0).ravel()[boxes])
    columns: list[list[float]] = [[], [], [], [], []]
    for week in range(-WEEKS * YEARS, 0):
        chosen = rng.choice(len(boxes), 25, replace=False, p=habit / habit.sum())
        efforts = np.round(rng.gamma(2.0, 0.5, 25) + 0.1, 2)
        found = ground.visit(boxes[chosen], efforts, rng.random(25))
        habit[chosen] *= np.where(found > 0.0, 1.05, 0.995)
        day = FIRST + WEEK * week + rng.integers(0, 7, 25)
        patrol = rng.integers(0, 4, 25)
        for column, values in zip(columns, (boxes[chosen], day, efforts, found, patrol), strict=True):
            column += values.tolist()
        ground.week(boxes[chosen])
    order = np.lexsort((columns[0], columns[1]))
    box, day, effort, found, part = (np.array(column)[order] for column in columns)
    visits = Visits(box.astype(np.int64), day.astype(np.int64), effort, found, part.astype(np.int64))
    return OtherWorld(kind, seed, site, mask, visits, FIRST, ground)


def rate_now(world: OtherWorld) -> np.ndarray:
    """The rate of finds per km that a visit of 2 km would meet in each box."""
    made: np.ndarray = -np.log1p(-np.clip(world.ground.chance(2.0), 0.0, 0.999)) / 2.0
    return made


def year_elsewhere(world: OtherWorld, planner: Planner, missed: float = 0.1) -> int:
    """Places at which a planner found something in a year; everybody has the same park and the same luck.

    The world moves on with the year, so that every planner needs one of its own.
    """
    luck, reached = (np.random.default_rng([world.seed, use]).random((WEEKS, SIDE * SIDE)) for use in (21, 22))
    levels, finds = np.array(world.site.levels), 0.0
    for week in range(WEEKS):
        action = np.array(planner.ask(week, rate_now(world)), np.int64).reshape(-1, 2)
        boxes, numbers = action[reached[week, action[:, 0]] >= missed].T
        found = world.ground.visit(boxes, levels[numbers], luck[week, boxes])
        planner.tell(week, boxes, numbers, found)
        world.ground.week(boxes)
        finds += found.sum()
    return int(finds)
