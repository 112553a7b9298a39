"""What boxes are worth by the surfaces that are fitted to them; Python sees to it when it is asked for.

Only the fit of a surface is compiled, once for all sizes and uses: it is much code. Everything else here is sums and
maxima over arrays.
"""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.bounds import GRAINS
from artreplay.algorithms.surface_layout import EVIDENCE, LEVEL, MEAN, NOISE, PRIORS, VARIANCE, WEIGHT
from artreplay.algorithms.surfaces import learn, look_above, predict, take
from artreplay.compiling import Floats, Ints, Loop, compiled, current_mode, views

WAITING = 16  # the most rows of a cell that wait before they enter its sums together
STRIDE = 20  # ... or as many as this part of those that were there before
PASSES = 1  # how often the noise is estimated from residuals; more makes no difference to regret
AT_LAST, AT_FIRST, FEW = 0.5, 2.0, 100  # standard deviations above the mean: with many rows, with none; halfway there
SLACK = 6.0  # nats of evidence that a hypothesis may lack; the roughest of four is doubted by as many from the start
PATIENCE = 4.0  # seconds of interpretation after which compiling is worth its cost

# Columns of what is kept for each cell, in one row each; and what is kept for all of them, in the last row.
SIZE = 0  # rows that are in the sums
DUE = 1  # the next of the fixed sizes at which rows enter them
QUEUED = 2  # rows that wait
STALE = 3  # 1 if it is among those to do; in the last row, 1 if they are waited for
TODO = 4  # the cells to do, one in each row; in the last row, how many
COLUMNS = 5

# Rows of what is kept for each slot, a box at a level.
TOTAL, SQUARE = range(2)

# Rows of what is kept for each box, whatever the level.
RANK = 0  # of each box
BOX_AT = 1  # the box with each rank
INSIDE = 2  # 1 if the box can be chosen


@compiled
def plan(cell: Ints, at: int) -> None:
    """Something is to be computed for a cell."""
    if cell[at, STALE] == 0:
        cell[at, STALE] = 1
        last = len(cell) - 1
        cell[cell[last, TODO], TODO] = at
        cell[last, TODO] += 1


@compiled
def advance(index: Any, at: int) -> None:
    """Let rows that wait enter the sums at the fixed sizes of their cell."""
    cell, counts, sums = index.cell, index.counts, index.sums
    while cell[at, SIZE] + cell[at, QUEUED] >= cell[at, DUE]:
        entering = cell[at, DUE] - cell[at, SIZE]
        for row in range(entering):
            entry = index.wait_slot[at, row]
            value = index.wait_reward[at, row]
            counts[entry] += 1
            sums[TOTAL, entry] += value
            sums[SQUARE, entry] += value * value
        for row in range(entering, cell[at, QUEUED]):
            index.wait_slot[at, row - entering] = index.wait_slot[at, row]
            index.wait_reward[at, row - entering] = index.wait_reward[at, row]
        cell[at, QUEUED] -= entering
        size = cell[at, DUE]
        cell[at, SIZE] = size
        cell[at, DUE] = size + max(1, min(size // STRIDE, WAITING))
        plan(cell, at)


def catch_up(component: Any) -> None:
    """Compute what a component has to do: what the regression thinks of cells that rows have come to."""
    index, cells, cell = component.index, component.cells, component.index.cell
    while cell[-1, TODO] > 0:
        at = int(cell[cell[-1, TODO] - 1, TODO])
        size = int(cell[at, SIZE])
        appraise(index, cells, at, AT_LAST + (AT_FIRST - AT_LAST) * FEW / (FEW + size), SLACK, PASSES)
        np.minimum(index.result, 1.0, out=index.result)
        cell[at, STALE] = 0
        cell[-1, TODO] -= 1
        for level, upper in enumerate(index.result, start=at):
            value = index.value[level * len(upper) : (level + 1) * len(upper)]
            _run(rank_boxes, component.selector.ranking, upper, value, level)
            component.selector.mark(level)
        component.chosen[-1] = 0
    cell[-1, STALE] = 0


def boxes_of(slots: Any, cells: Any, at: int, levels: int) -> Any:
    """The boxes of a cell, (level, box), of something that is kept for every slot; one row where levels are apart."""
    boxes = len(cells.code)
    return slots[None, at * boxes : (at + 1) * boxes] if cells.apart else slots.reshape(levels, boxes)


class BoxSums(NamedTuple):
    """Sums of the boxes of a cell, as one surface sees them: what their samples count for, and their weighted rewards.

    `samples`, `total` and `square` are of all samples as they are.
    """

    weight: Any
    weighted: Floats
    samples: int
    total: float
    square: float


def appraise(index: Any, cells: Any, at: int, width: float, slack: float, passes: int) -> None:
    """The upper values of the boxes of a cell, from its sums: `width` standard deviations above the mean.

    They come from a surface for each level, or from one surface times a power of effort for all levels. Of these
    hypotheses, and of the priors, every one counts whose evidence is within `slack` of the best.
    """
    sums = index.sums
    if len(index.share) == 0:
        boxes = slice(at * len(cells.code), (at + 1) * len(cells.code))
        seen = (index.counts[boxes], sums[TOTAL, boxes], sums[SQUARE, boxes])
        _run(appraise_boxes, index.model, *seen, width, slack, passes, index.result[0])
    else:
        parts = [boxes_of(array, cells, at, len(index.result)) for array in (index.counts, sums[TOTAL], sums[SQUARE])]
        index.result[:] = 1.0
        active = [part[index.active] for part in parts]
        if active[0].any():
            index.result[index.active] = jointly(index.model, index.share, active, width, slack, passes)


def jointly(model: Any, share: Floats, parts: list[Any], width: float, slack: float, passes: int) -> Floats:
    """Upper values of the boxes of a cell at several levels; `share` has the scale of each level, for each power.

    Rewards of one level can be much noisier than those of another: in a surface for all levels they count by the noise
    that the surface of their own level leaves.
    """
    priors, powers, levels = int(model.shape[PRIORS]), len(share), len(parts[0])
    alone = [sums_of([1.0], *(part[level : level + 1] for part in parts)) for level in range(levels)]
    for level, sums in enumerate(alone):
        if sums.samples:
            fit(model, (powers + level) * priors, passes, sums)
    noise = part_of(model, NOISE, (powers + levels) * priors).reshape(-1, priors)[powers:, 0]
    samples = np.array([sums.samples for sums in alone], np.float64)
    common = _added_up(noise * samples) / _added_up(samples)
    trust = np.where(samples > 0, common / np.where(samples > 0, noise, 1.0), 1.0)
    weighed = [parts[0] * trust[:, None], parts[1] * trust[:, None], parts[2] * trust[:, None]]
    n_samples, total = int(parts[0].sum()), _added_up(parts[1])
    together = [sums_of(scales, *weighed)._replace(samples=n_samples, total=total) for scales in share.tolist()]
    for power, sums in enumerate(together):
        fit(model, power * priors, passes, sums)
    evidence = part_of(model, EVIDENCE, (powers + levels) * priors).reshape(-1, priors).copy()
    evidence[:powers] += 0.5 * math.fsum(n * math.log(k) for n, k in zip(samples.tolist(), trust.tolist(), strict=True))
    apart = math.fsum(float(evidence[powers + level].max()) for level in range(levels) if alone[level].samples)
    best = max(float(evidence[:powers].max()), apart)
    found = np.zeros(parts[0].shape)
    for power, sums in enumerate(together):
        for prior in np.flatnonzero(evidence[power] >= best - slack).tolist():
            give(model, sums)
            upper = upper_value(model, power * priors + prior, width)
            found = np.maximum(found, share[power][:, None] * upper)
    if apart >= best - slack:
        for level, sums in enumerate(alone):
            upper = np.ones(found.shape[1])
            if sums.samples:
                give(model, sums)
                upper = upper_values(model, (powers + level) * priors, width, slack)
            found[level] = np.maximum(found[level], upper)
    return np.clip(found, 0.0, 1.0)


def sums_of(scales: list[float], counts: Ints, totals: Floats, squares: Floats) -> BoxSums:
    """Sums at several levels as those of one surface that each level scales."""
    weight, weighted = np.zeros(counts.shape[1]), np.zeros(counts.shape[1])
    for level, scale in enumerate(scales):
        weight = weight + scale * scale * counts[level]
        weighted = weighted + scale * totals[level]
    return BoxSums(weight, weighted, int(counts.sum()), _added_up(totals), _added_up(squares))


def _added_up(values: Floats) -> float:
    """A sum in a fixed order."""
    return float(np.cumsum(values)[-1])


def part_of(model: Any, what: int, size: int) -> Any:
    """A part of what a model works with."""
    start = int(model.shape[what])
    return model.work[start : start + size]


def give(model: Any, sums: BoxSums) -> None:
    """Let a model know the weight and the mean of each box."""
    seen = sums.weight > 0.0
    part_of(model, WEIGHT, len(seen))[:] = sums.weight
    part_of(model, MEAN, len(seen))[:] = np.where(seen, sums.weighted / np.where(seen, sums.weight, 1.0), 0.0)


def fit(model: Any, slot: int, passes: int, sums: BoxSums) -> None:
    """Fit surfaces to sums, one for each prior, into slots from this one on."""
    give(model, sums)
    _run(learn_surfaces, model, slot, passes, sums.samples, sums.square, sums.total)


def upper_values(model: Any, slot: int, width: float, slack: float) -> Floats:
    """The highest values that fits from a slot on allow, of those whose evidence is within the slack; in [0, 1]."""
    priors = int(model.shape[PRIORS])
    evidence = part_of(model, EVIDENCE, slot + priors)[slot:].copy()
    kept = np.flatnonzero(evidence >= evidence.max() - slack).tolist()
    found: Floats = np.clip(np.max([upper_value(model, slot + prior, width) for prior in kept], axis=0), 0.0, 1.0)
    return found


def upper_value(model: Any, slot: int, width: float) -> Floats:
    """What a fit expects of each box, and so many standard deviations above that."""
    boxes = int(model.shape[MEAN] - model.shape[WEIGHT])
    noise = float(part_of(model, NOISE, slot + 1)[slot])
    _run(predict_boxes, model, slot, slot % int(model.shape[PRIORS]), noise)
    upper: Floats = part_of(model, LEVEL, boxes) + width * np.sqrt(part_of(model, VARIANCE, boxes))
    return upper


@Loop
def appraise_boxes(
    model: Any, counts: Ints, totals: Floats, squares: Floats, width: float, slack: float, passes: int, upper: Floats
) -> int:
    """The upper values of boxes by one surface, from their sums."""
    samples, total, square = take(model, counts, totals, squares)
    learn(model, 0, passes, samples, square, total)
    look_above(model, 0, width, slack, upper)
    return 0


@Loop
def learn_surfaces(model: Any, slot: int, passes: int, samples: int, square: float, total: float) -> int:
    """`learn`, called from Python."""
    learn(model, slot, passes, samples, square, total)
    return 0


@Loop
def predict_boxes(model: Any, slot: int, prior: int, noise: float) -> int:
    """`predict`, called from Python."""
    predict(model, slot, prior, noise)
    return 0


@Loop
def rank_boxes(ranking: Any, upper: Floats, value: Floats, level: int) -> int:
    """Take over the values of a level, `grained`, and find its best boxes by (−value, rank), as many as are chosen."""
    leading, key, most, found = ranking.leading, ranking.key, ranking.key.shape[1], 0
    for box in range(len(value)):
        value[box] = math.floor(upper[box] * GRAINS) / GRAINS
    for rank in range(len(value)):
        box = ranking.boxes[BOX_AT, rank]
        worth = value[box]
        if ranking.boxes[INSIDE, box] == 1 and (found < most or worth > key[level, most - 1]):
            to = min(found, most - 1)
            found = to + 1
            while to > 0 and key[level, to - 1] < worth:
                key[level, to] = key[level, to - 1]
                leading[level, to] = leading[level, to - 1]
                to -= 1
            key[level, to] = worth
            leading[level, to] = level * len(value) + box
    leading[level, most] = found
    return 0


_spent = [0.0]  # seconds of interpretation in this process
_compiled_forms: dict[Loop[Any, int], Any] = {}  # of each loop: its components are always of the same types


def _run(loop: Loop[Any, int], model: Any, *numbers: Any) -> None:
    """Run a loop, compiled once interpretation has cost so much that it is worth it; both ways give the same."""
    if current_mode() == "compiled" or (current_mode() == "auto" and _spent[0] > PATIENCE):
        if loop not in _compiled_forms:
            _compiled_forms[loop] = loop.bound_to(model, *numbers)
        _compiled_forms[loop](model, *numbers)
        return
    began = perf_counter()
    loop.interpreted(views(model), *numbers)
    _spent[0] += perf_counter() - began
