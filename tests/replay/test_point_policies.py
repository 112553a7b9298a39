"""What policies over points promise: asking, telling, growing logs, cells as people see them, relations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driving import STARTS
from point_kit import BASES, SEVERAL, SINGLE, log_for, narrow, play, seen

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidAction, InvalidHistory

bases = pytest.mark.parametrize("name", BASES)
starts = pytest.mark.parametrize("start", STARTS)
singles = pytest.mark.parametrize("name", SINGLE)
severals = pytest.mark.parametrize("name", SEVERAL)


def make(start, name, rows=60):
    base = BASES[name]()
    return STARTS[start](base, log_for(base, rows))


def middle(base):
    return tuple((low + high) / 2 for low, high in base.edges())


# -- asking and telling ---------------------------------------------------------------------------------------


@bases
def test_an_action_is_made_of_points_of_the_space_as_plain_floats(name):
    policy = make("replay", name)
    for action in play(policy, 20):
        for unit in action if isinstance(action, list) else [action]:
            point = unit.point if isinstance(unit, ar.Allocation) else unit
            assert type(point) is tuple
            assert {type(x) for x in point} == {float}
            assert all(low <= x <= high for (low, high), x in zip(policy.base.edges(), point, strict=True))
            if isinstance(unit, ar.Allocation):
                assert unit.level in policy.base.levels[1:]


@singles
@pytest.mark.parametrize("form", [tuple, list, np.array, lambda p: np.array(p, np.float64)[:, None]])
def test_a_point_may_be_told_in_any_form_and_counts_where_it_lies(name, form):
    policy, twin = make("ignorant", name), make("ignorant", name)
    for number, (point, *_) in enumerate([(policy.ask(),), (middle(policy.base),)] * 3):
        policy.tell(form(point), number % 2)
        twin.tell(point, float(number % 2))
    assert seen(policy) == seen(twin)


def test_a_point_of_one_coordinate_may_be_told_as_a_number():
    policy, twin = (ar.Ignorant(ar.TreeUCB(1, 100)) for _ in range(2))
    for x in (0.25, 1, np.float64(0.5), np.float32(0.75), 0, True, (np.float64(0.5),)):
        policy.tell(x, 0.5)
        twin.tell((float(np.ravel(x)[0]),), 0.5)
    assert seen(policy) == seen(twin)


@severals
def test_allocations_may_be_told_in_any_form(name):
    policy, twin = make("replay", name), make("replay", name)
    for form in (list, tuple, lambda action: [(list(unit.point), np.float64(unit.level)) for unit in action]):
        action = policy.ask()
        assert twin.ask() == action
        policy.tell(form(action), np.full(len(action), 0.5))
        twin.tell(action, [0.5] * len(action))
    assert seen(policy) == seen(twin)


@starts
@bases
def test_any_point_may_be_told_whatever_was_asked(start, name):
    policy = make(start, name)
    log = log_for(policy.base, 30, seed=5)
    before = sum(policy.base.state()["count"]) if "Tree" in name else None
    for row in range(30):
        if row % 3 == 0:
            policy.ask()
        unit = log.unit(row)
        policy.tell([unit] if policy.base.proposes_list else unit, [0.5] if policy.base.proposes_list else 0.5)
        if row % 10 == 9:
            box = cell_of(policy.base, unit)
            [cell] = [cell for cell in policy.cells() if cell.unit == box]
            assert cell.count > 0
    assert policy.rounds == 30
    assert before is None or sum(policy.base.state()["count"]) > before


def cell_of(base, unit):
    """The box of the cell a unit lies in, seen to lie in it but for the last digits of its edges."""
    box = base.box_of(base.algorithm.cells.unit(base.algorithm.cell_of(base.checked_number(unit))))
    point = unit.point if isinstance(unit, ar.Allocation) else unit
    assert all(low - 1e-12 <= x <= high + 1e-12 for low, x, high in zip(box.low, point, box.high, strict=True))
    assert box.level == (unit.level if isinstance(unit, ar.Allocation) else None)
    return box


BAD_POINTS = [(0.5, 0.5, 0.5, 0.5), (), None, "ab", 1j]
BAD_REWARDS = [math.nan, math.inf, -9.0, 9.0, "1", None, [0.5], 1j]


@starts
@bases
def test_a_tell_that_is_refused_leaves_everything_as_it_was(start, name):
    policy = make(start, name)
    for asked in (False, True):
        pending = policy.ask() if asked else None
        before = seen(policy)
        good = middle(policy.base)
        wrong = [*BAD_POINTS, *([x] * policy.base.dim for x in (math.nan, math.inf, 99.0, "a"))]
        calls = [(point, 0.5) for point in wrong] + [(good, reward) for reward in BAD_REWARDS]
        if policy.base.proposes_list:
            unit = ar.Allocation(good, 1)
            calls = [([unit, ar.Allocation(point, 1)], [0.5, 0.5]) for point in wrong]
            calls += [([unit, unit], [0.5, reward]) for reward in BAD_REWARDS]
            calls += [([unit, ar.Allocation(good, level)], [0.5, 0.5]) for level in (0.7, -1, None, "1", math.nan)]
            calls += [([unit], 0.5), ([unit], [0.5, 0.5]), ([], []), (unit, 0.5), (unit, [0.5, 0.5]), ([good], [0.5])]
        for action, reward in calls:
            with pytest.raises(InvalidAction) as refused:
                policy.tell(action, reward)
            assert "\n" not in str(refused.value)
        assert seen(policy) == before
        assert not asked or policy.ask() == pending
        assert seen(policy) == before


# -- logs that grow -------------------------------------------------------------------------------------------


@bases
@pytest.mark.parametrize("start", ["full start", "replay"])
def test_a_log_with_rows_appended_goes_on_where_it_was(start, name):
    policy = make(start, name, rows=20)
    play(policy, 4)
    shown = set(range(20)) - set(policy.unused_rows())
    count = policy.used
    policy.extend(log_for(policy.base, 45))
    assert policy.used == count
    assert set(policy.unused_rows()) == set(range(45)) - shown
    play(policy, 30)
    assert policy.used + policy.unused == 45
    if start == "full start":
        assert policy.unused_rows() == []


@bases
def test_appended_rows_are_served_like_those_that_were_there(name):
    """As long as nothing of the longer log was out of reach before, it makes no difference when it came."""
    base = BASES[name]()
    early, late = ar.ArtificialReplay(base, log_for(base, 50)), ar.ArtificialReplay(base, log_for(base, 20))
    late.extend(log_for(base, 50))
    assert play(early, 30) == play(late, 30)
    assert seen(early) == seen(late)


@bases
def test_a_pending_action_survives_an_extension(name):
    policy = make("replay", name, rows=20)
    pending = policy.ask()
    used = policy.used
    policy.extend(log_for(policy.base, 60))
    assert policy.ask() == pending
    assert policy.used == used


@bases
def test_another_log_is_refused_and_so_are_rows_that_do_not_fit(name):
    policy = make("replay", name, rows=20)
    policy.ask()
    before = seen(policy)
    good = log_for(policy.base, 25)
    points, rewards = good.points.copy(), good.rewards.copy()
    points[22] = 99.0
    with pytest.raises(InvalidHistory, match="point in row 22"):
        policy.extend(ar.History(points, rewards, levels=good.levels))
    points, rewards[7] = good.points.copy(), (rewards[7] + 0.125) / 2
    with pytest.raises(ChangedHistory, match="row 7"):
        policy.extend(ar.History(points, rewards, levels=good.levels))
    assert seen(policy) == before


@bases
def test_rows_that_do_not_fit_can_be_left_out(name):
    base = BASES[name]()
    good = log_for(base, 40)
    points, levels = good.points.copy(), None if good.levels is None else good.levels.copy()
    points[3], points[11, 0], points[20, -1] = 99.0, -1e300, 1.7e308
    if levels is not None:
        levels[30] = 77.0
    skipped = {3, 11, 20} | ({30} if levels is not None else set())
    log = ar.History(points, good.rewards, levels=levels)
    for start in (ar.FullStart, ar.ArtificialReplay):
        with pytest.raises(InvalidHistory, match="row 3"):
            start(base, log)
        policy = start(base, log, unknown="skip")
        kept = np.array([row for row in range(40) if row not in skipped])
        twin = start(base, good.rows(kept))
        assert policy.skipped == len(skipped)
        assert play(policy, 20) == play(twin, 20)
        assert policy.unused_rows() == [int(kept[row]) for row in twin.unused_rows()]
        assert repr(policy.cells()) == repr(twin.cells())


# -- cells as people see them ---------------------------------------------------------------------------------


@starts
@bases
def test_cells_add_up(start, name):
    policy = make(start, name)
    log = log_for(policy.base)
    play(policy, 15)
    cells = policy.cells()
    assert sum(cell.logged for cell in cells) == (0 if start == "ignorant" else 60)
    assert sum(cell.used for cell in cells) == policy.used == sum(policy.used_by_cell().values())
    assert policy.used_by_cell() == {cell.unit: cell.used for cell in cells}
    found = [cell_of(policy.base, log.unit(row)) for row in range(60)]
    unused = policy.unused_rows()
    for cell in cells:
        if start != "ignorant":
            rows = [row for row in range(60) if found[row] == cell.unit]
            assert cell.logged == len(rows)
            assert cell.used == len(set(rows) - set(unused))
        assert (cell.low, cell.high, cell.level) == (cell.unit.low, cell.unit.high, cell.unit.level)
        assert all(low < high for low, high in zip(cell.low, cell.high, strict=True))
    edges = policy.base.edges()
    for level in policy.base.levels or [None]:
        mine = [cell for cell in cells if cell.level == level]
        volume = sum(math.prod(np.subtract(cell.high, cell.low)) for cell in mine)
        assert volume == pytest.approx(math.prod(high - low for low, high in edges))
        for axis, (low, high) in enumerate(edges):
            assert min(cell.low[axis] for cell in mine) == low
            assert max(cell.high[axis] for cell in mine) == high


def test_a_cell_of_an_arm_has_no_edges():
    cell = ar.Ignorant(ar.MonUCB(2, 10)).cells()[0]
    assert (cell.low, cell.high, cell.level) == (None, None, None)


# -- copies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BASES if "uniform" in name])
def test_another_seed_for_one_policy_is_not_one_for_the_base_or_for_others(name):
    base = BASES[name]()
    policy, other = ar.Ignorant(base), ar.Ignorant(base)
    action = other.ask()
    policy.base.reseed(12345)
    assert policy.ask() != action
    assert other.ask() == action
    assert ar.Ignorant(base).ask() == action
    assert ar.Ignorant(policy.base).ask() == policy.ask()


# -- relations ------------------------------------------------------------------------------------------------


@bases
def test_the_cells_given_as_a_relation_are_the_same(name):
    def same_cell(logged, proposed, base):
        one, other = (base.algorithm.cell_of(base.checked_number(unit)) for unit in (logged, proposed))
        return one == other

    base = BASES[name]()
    policy = ar.ArtificialReplay(base, log_for(base), relation=same_cell)
    other = ar.ArtificialReplay(base, log_for(base))
    assert play(policy, 15) == play(other, 15)
    assert seen(policy) == seen(other)


def test_a_relation_by_distance_speaks_of_points_as_they_were_logged_and_of_centres():
    calls = []

    def close(logged, proposed, base):
        calls.append((logged, proposed))
        return max(abs(a - b) for a, b in zip(logged, proposed, strict=True)) <= 0.2

    log = ar.History([(0.31, 0.33), (0.9, 0.9), (0.17, 0.17)], [1.0, 0.5, 0.0])
    policy = ar.ArtificialReplay(ar.GridUCB(2, 100, 3, bonus=narrow), log, relation=close)
    policy.ask()
    assert {logged for logged, _ in calls} == {(0.31, 0.33), (0.9, 0.9), (0.17, 0.17)}
    assert (0.5 / 3, 0.5 / 3) in {proposed for _, proposed in calls}
    assert policy.unused_rows() in ([1], [])
