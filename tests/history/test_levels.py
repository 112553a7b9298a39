"""Levels: an amount of effort beside every point, a finite number of at least 0, which is part of the sample."""

from __future__ import annotations

import copy
import decimal
import fractions
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidHistory

MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "table": pa.table,
    "batch": lambda columns: pa.RecordBatch.from_pydict(columns),
    "chunked": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 1), pa.table(columns).slice(1)]),
}
every_frame = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)

numbers = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0]) | st.floats(-1e9, 1e9)
amounts = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, 5e-324, 1e300]) | st.floats(0, 1e9)
rows = st.tuples(numbers, numbers, amounts, numbers)  # two coordinates, a level, a reward


def log_of(samples: list[tuple]) -> ar.History:
    table = np.array(samples, np.float64).reshape(-1, 4)
    return ar.History(table[:, :2], table[:, 3], levels=table[:, 2])


def samples_of(log: ar.History) -> list[tuple]:
    units = [log.unit(row) for row in range(len(log))]
    return [(*point, level, reward) for (point, level), reward in zip(units, log.rewards.tolist(), strict=True)]


def levels_of(levels) -> np.ndarray:
    """The levels as a log keeps them, beside points that play no part."""
    log = ar.History(np.zeros((len(levels), 2)), np.zeros(len(levels)), levels=levels)
    assert log.levels is not None
    assert log.levels.dtype == np.float64
    assert log.levels.flags.c_contiguous
    return log.levels


def changed_row(known: ar.History, log: ar.History, old: ar.History | None = None) -> int:
    """The row an error names."""
    with pytest.raises(ChangedHistory, match=r": row \d+ changed$") as refused:
        log.check_continues(known.fingerprint, old)
    return int(re.findall(r"row (\d+) changed", str(refused.value))[0])


def same(one: ar.History, other: ar.History) -> bool:
    return one.fingerprint.digests.tolist() == other.fingerprint.digests.tolist()


# -- what may stand for levels --------------------------------------------------------------------------------


@given(st.lists(amounts, max_size=20))
def test_levels_are_kept_bit_for_bit(values):
    array = np.array(values, np.float64)
    for levels in (values, tuple(values), array, array.astype(object), pd.Series(array), pl.Series(array)):
        assert levels_of(levels).tobytes() == array.tobytes()
    assert levels_of(pa.array(array)).tobytes() == array.tobytes()
    assert levels_of(pa.chunked_array([array[:3], array[3:]])).tobytes() == array.tobytes()
    assert levels_of(np.repeat(array, 2)[::2]).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "levels",
    [
        [3, 0],
        range(3, -1, -3),
        np.array([3, 0], np.uint8),
        np.array([3, 0], np.float16),
        np.array([3, 0], ">f8"),
        [np.float32(3), np.int64(0)],
        [decimal.Decimal(3), fractions.Fraction(0)],
        pd.Series([3, 0], dtype="Int64"),
        pd.Series([3, 0], index=["x", "y"]),
        pl.Series([3, 0]),
        pa.array([3, 0], pa.int8()),
    ],
    ids=lambda levels: f"{type(levels).__module__.split('.')[0]}-{getattr(levels, 'dtype', levels)}",
)
def test_any_number_of_at_least_0_is_a_level(levels):
    assert levels_of(levels).tolist() == [3.0, 0.0]


@pytest.mark.parametrize(
    "points", [[(0, 1), (2, 3)], [[0.0, 1.0], [2.0, 3.0]], np.arange(4).reshape(2, 2), pd.DataFrame([[0, 1], [2, 3]])]
)
def test_the_unit_of_a_row_is_its_point_and_its_level(points):
    log = ar.History(points, [1.0, 0.0], levels=[3, 0.5])
    assert [log.unit(row) for row in range(2)] == [
        ar.Allocation((0.0, 1.0), 3.0),
        ar.Allocation(point=(2.0, 3.0), level=0.5),
    ]
    for row in (0, 1, -1, np.int64(1)):
        unit = log.unit(row)
        assert type(unit) is ar.Allocation
        assert type(unit.point) is tuple
        assert all(type(number) is float for number in (*unit.point, unit.level))
        assert unit in {unit}
    assert log.labels == []


def test_without_levels_the_unit_of_a_row_is_its_point():
    for log in (ar.History([(0, 1)], [1.0]), ar.History([(0, 1)], [1.0], levels=None)):
        assert log.levels is None
        assert type(log.unit(0)) is tuple
        assert log.unit(0) == (0.0, 1.0)
        assert "level" not in repr(log)
    assert ar.History(["a"], [1.0]).levels is None


def test_the_log_does_not_change_with_the_levels_it_came_from():
    levels, column = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    logs = [ar.History([[0.0], [1.0]], [0.0, 1.0], levels=given) for given in (levels, pa.array(column), levels[:])]
    levels[:] = column[:] = 9.0
    assert all(log.levels.tolist() == [1.0, 2.0] for log in logs)


@pytest.mark.parametrize(("levels", "count"), [([1, 2, 1, 0.5], 3), ([1, 1, 1, 1], 1), ([0.0, -0.0, 1, 1], 2)])
def test_how_it_prints_says_how_many_levels_there_are(levels, count):
    assert repr(ar.History(np.zeros((4, 2)), np.zeros(4), levels=levels)) == (
        f"<History of 4 samples at points of dimension 2, at {count} levels>"
    )


# -- what may not ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), -0.5, -5e-324])
@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array, lambda r: pa.chunked_array([r])])
def test_a_level_out_of_range_is_named_by_its_row(make, bad):
    with pytest.raises(InvalidHistory, match=f"^level in row 3 is {bad}, expected a finite number of at least 0$"):
        levels_of(make([0.0, 1.0, 2.0, bad, bad]))


@pytest.mark.parametrize(
    "levels",
    [
        [0.0, None, 1.0],
        [0, pd.NA, 1],
        np.array([0, None, 1], object),
        np.ma.masked_array([0.0, 5.0, 1.0], mask=[False, True, False]),
        pd.Series([0, None, 1]),
        pd.Series([0, None, 1], dtype="Int64"),
        pl.Series([0, None, 1]),
        pa.array([0, None, 1]),
        pa.chunked_array([[0.0], [None, 1.0]]),
    ],
    ids=lambda levels: (
        f"{type(levels).__module__.split('.')[0]}-{getattr(levels, 'dtype', getattr(levels, 'type', levels))}"
    ),
)
def test_a_missing_level_is_named_by_its_row(levels):
    with pytest.raises(InvalidHistory, match=r"^level in row 1 is nan, expected a finite number of at least 0$"):
        levels_of(levels)


@pytest.mark.parametrize("bad", ["0.5", "x", b"1", 1j, [1.0], {"a": 1}, pd.Timestamp(0)], ids=repr)
def test_what_is_not_a_number_is_named_by_its_row(bad):
    with pytest.raises(InvalidHistory, match=r"^level in row 2 is .*, expected a number$"):
        levels_of([0.0, 1, bad, 0.5])


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_texts_are_no_levels_even_if_they_look_like_numbers(make):
    with pytest.raises(InvalidHistory, match=r"^level in row 0 is .*'1'.*, expected a number$"):
        levels_of(make(["1", "0.5"]))


def test_a_number_too_large_for_a_float_is_refused_by_its_row():
    with pytest.raises(InvalidHistory, match=r"^level in row 1"):
        levels_of([0, 10**400])


@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (2, 0), (1, 2), ()])
def test_levels_of_other_dimensions_are_refused_with_their_shape(shape):
    for levels in (np.ones(shape), np.ones(shape).tolist() if shape else np.float64(1.0)):
        with pytest.raises(InvalidHistory, match=r"^level must be one number per row"):
            ar.History([[0.0], [1.0]], [0.0, 1.0], levels=levels)
    with pytest.raises(InvalidHistory, match=re.escape(str(shape))):
        ar.History([[0.0], [1.0]], [0.0, 1.0], levels=np.ones(shape))


@pytest.mark.parametrize("levels", [0.5, 1, "ab", b"ab", {0.0: 1, 1.0: 2}, {0.0, 1.0}, object], ids=repr)
def test_what_is_not_a_row_of_numbers_is_refused(levels):
    with pytest.raises(InvalidHistory, match=r"^level must be one number per row"):
        ar.History([[0.0], [1.0]], [0.0, 1.0], levels=levels)


@pytest.mark.parametrize("levels", [[], [1.0], [1.0, 2.0, 3.0], np.ones(7)], ids=len)
def test_unequal_lengths_are_refused_with_both(levels):
    with pytest.raises(InvalidHistory, match=f"equally long, got {len(levels)} and 2$"):
        ar.History([[0.0], [1.0]], [0.0, 1.0], levels=levels)


@pytest.mark.parametrize(
    "units",
    [["a", "b"], [0, 1], np.array([0, 1]), pa.array(["a", "b"]), pd.Series(["a", "b"]), [("a", 1), ("b", 2)]],
    ids=lambda units: type(units).__module__ + str(units[0]),
)
def test_levels_beside_labels_are_refused_in_one_sentence(units):
    with pytest.raises(InvalidHistory, match=r"^levels must stand beside points of shape \(H, d\), got") as refused:
        ar.History(units, [0.0, 1.0], levels=[1.0, 2.0])
    assert "\n" not in str(refused.value)


def test_points_on_a_line_are_told_their_shape_with_levels_too():
    with pytest.raises(InvalidHistory, match=r"\(H, 1\)"):
        ar.History([0.25, 0.5], [0.0, 1.0], levels=[1.0, 2.0])


# -- frames ---------------------------------------------------------------------------------------------------


@every_frame
@pytest.mark.parametrize("efforts", [[2.0, 0.0, 0.5], [2, 0, 1]], ids=["floats", "ints"])
def test_every_frame_gives_the_same_log(make, efforts):
    frame = make({"x": [0.25, 0.5, 0.25], "y": [1, 2, 1], "effort": efforts, "r": [0.0, 1.0, 0.5]})
    log = ar.History.from_frame(frame, ["x", "y"], "r", level="effort")
    plain = ar.History([(0.25, 1), (0.5, 2), (0.25, 1)], [0.0, 1.0, 0.5], levels=efforts)
    assert samples_of(log) == samples_of(plain)
    assert log.levels.tolist() == efforts
    plain.check_continues(log.fingerprint)
    log.check_continues(plain.fingerprint)
    assert ar.History.from_frame(frame, ["x", "y"], "r").levels is None
    assert ar.History.from_frame(frame, ["x", "y"], "r", level="effort", until=2).levels.tolist() == efforts[:2]


@every_frame
def test_a_missing_level_in_a_frame_is_named_by_its_row(make):
    frame = make({"x": [0.25, 0.5, 0.75], "effort": [1.0, None, 2.0], "r": [0.0, 1.0, 0.5]})
    with pytest.raises(InvalidHistory, match=r"^level in row 1 is nan, expected a finite number of at least 0$"):
        ar.History.from_frame(frame, ["x"], "r", level="effort")


@every_frame
def test_a_column_of_texts_holds_no_levels(make):
    frame = make({"x": [0.25, 0.5], "effort": ["1", "2"], "r": [0.0, 1.0]})
    with pytest.raises(InvalidHistory, match="'effort' must hold numbers"):
        ar.History.from_frame(frame, ["x"], "r", level="effort")


@every_frame
@pytest.mark.parametrize("level", ["Effort", "", 0, 1.5])
def test_a_column_of_levels_that_is_not_there_is_an_error_that_lists_those_that_are(make, level):
    frame = make({"x": [0.25, 0.5], "effort": [1, 2], "r": [0.0, 1.0]})
    with pytest.raises(InvalidHistory, match=f"must have a column {level!r}.*'x', 'effort', 'r'"):
        ar.History.from_frame(frame, ["x"], "r", level=level)


@every_frame
def test_levels_beside_a_column_of_labels_are_refused(make):
    frame = make({"arm": ["a", "b"], "effort": [1, 2], "r": [0.0, 1.0]})
    with pytest.raises(InvalidHistory, match="levels must stand beside points"):
        ar.History.from_frame(frame, "arm", "r", level="effort")


# -- logs without rows, and the first rows of a log -----------------------------------------------------------


@pytest.mark.parametrize(
    "levels", [[], (), np.array([]), pd.Series([], dtype="float64"), pl.Series([]), pa.array([], pa.null())], ids=type
)
def test_a_log_of_points_without_rows_may_have_levels(levels):
    log = ar.History(np.empty((0, 2)), [], levels=levels)
    assert len(log) == 0
    assert log.levels.tolist() == []
    assert len(log.shuffled(1)) == 0
    assert repr(log) == "<History of 0 samples at points of dimension 2, at 0 levels>"
    assert log.fingerprint.rows == 0
    log_of([(0.0, 0.0, 1.0, 0.5)]).check_continues(log.fingerprint)


@every_frame
def test_a_frame_without_rows_is_a_history(make):
    columns = {name: np.empty(0) for name in ("x", "effort", "r")}
    frame = make(columns) if make is not MAKERS["chunked"] else pa.table(columns)
    log = ar.History.from_frame(frame, ["x"], "r", level="effort")
    assert (len(log), log.levels.tolist()) == (0, [])


@given(st.lists(rows, max_size=12), st.integers(0, 15))
def test_until_keeps_the_levels_of_the_first_rows(samples, until):
    table = np.array(samples).reshape(-1, 4)
    part = ar.History(table[:, :2], table[:, 3], levels=table[:, 2], until=until)
    assert samples_of(part) == samples[:until]
    log_of(samples).check_continues(part.fingerprint)


def test_levels_behind_until_are_not_part_of_the_log():
    """Nothing is asked of them but that there is one per row."""
    for bad in (float("nan"), -1.0, None):
        assert ar.History([[0.0], [1.0]], [0.0, 1.0], levels=[2.0, bad], until=1).levels.tolist() == [2.0]
    with pytest.raises(InvalidHistory, match="equally long, got 1 and 2"):
        ar.History([[0.0], [1.0]], [0.0, 1.0], levels=[2.0], until=1)


# -- other orders, copies -------------------------------------------------------------------------------------


@given(st.lists(rows, max_size=20), st.integers(0, 2**70))
def test_a_level_stays_with_its_point_when_a_log_is_shuffled(samples, seed):
    log = log_of(samples)
    shuffled = log.shuffled(seed)
    assert sorted(samples_of(shuffled)) == sorted(samples)
    assert samples_of(log.shuffled(seed)) == samples_of(shuffled)
    assert samples_of(log) == samples
    again = log_of(samples_of(shuffled))
    assert same(again, shuffled)


def test_levels_do_not_change_the_order_of_a_shuffle():
    points, rewards = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    plain, levelled = ar.History(points, rewards), ar.History(points, rewards, levels=rewards + 1)
    shuffled = levelled.shuffled(5)
    assert shuffled.points.tolist() == plain.shuffled(5).points.tolist()
    assert (shuffled.levels == shuffled.rewards + 1).all()


@given(st.lists(st.integers(0, 9), max_size=15))
def test_chosen_rows_come_with_their_levels(chosen):
    samples = [(row / 10, 0.0, float(row), row / 100) for row in range(10)]
    part = log_of(samples).rows(np.array(chosen, np.int64))
    assert samples_of(part) == [samples[row] for row in chosen]


@given(st.lists(rows, max_size=10), st.booleans())
def test_a_copy_has_the_same_levels(samples, read_before):
    log = log_of(samples)
    if read_before:
        _ = log.fingerprint
    for again in (pickle.loads(pickle.dumps(log)), copy.deepcopy(log), copy.copy(log)):
        assert samples_of(again) == samples
        assert again.levels.tobytes() == log.levels.tobytes()
        assert same(again, log)
        again.check_continues(log.fingerprint, log)


def test_an_allocation_is_a_value():
    unit = ar.Allocation((0.25, 0.5), 2.0)
    assert pickle.loads(pickle.dumps(unit)) == unit
    assert unit != ar.Allocation((0.25, 0.5), 1.0)
    assert len({unit, ar.Allocation((0.25, 0.5), 2.0), ar.Allocation((0.25, 0.5), 1.0)}) == 2
    assert repr(unit) == "Allocation(point=(0.25, 0.5), level=2.0)"


# -- fingerprints ---------------------------------------------------------------------------------------------


@given(st.lists(rows, max_size=12), st.lists(rows, max_size=12))
def test_appended_rows_are_accepted_and_a_shorter_log_is_not(samples, more):
    log, longer = log_of(samples), log_of(samples + more)
    longer.check_continues(log.fingerprint)
    longer.check_continues(log.fingerprint, log)
    if more:
        with pytest.raises(ChangedHistory, match=rf"{len(longer)} rows.* got {len(log)}"):
            log.check_continues(longer.fingerprint)


@given(st.lists(rows, min_size=1, max_size=12), amounts, st.data())
@example([(0.0, 0.0, 0.0, 0.0)], 5e-324, None)
def test_a_changed_level_is_a_changed_row(samples, level, data):
    place = data.draw(st.integers(0, len(samples) - 1)) if data else 0
    x, y, old_level, reward = samples[place]
    assume(level != old_level)
    log, other = log_of(samples), log_of([*samples[:place], (x, y, level, reward), *samples[place + 1 :]])
    assert changed_row(log, other) == place
    assert changed_row(log, other, log) == place


def test_swapped_levels_are_noticed_at_the_first_of_them():
    points, rewards = np.zeros((4, 1)), np.zeros(4)
    one, other = (ar.History(points, rewards, levels=levels) for levels in ([1, 2, 3, 4], [1, 3, 2, 4]))
    assert changed_row(one, other) == 1


def test_a_level_that_changes_place_with_its_reward_or_its_coordinate_is_noticed():
    known = log_of([(0.25, 0.5, 1.0, 2.0)])
    for sample in ((0.25, 0.5, 2.0, 1.0), (0.25, 1.0, 0.5, 2.0), (1.0, 0.5, 0.25, 2.0)):
        assert changed_row(known, log_of([sample])) == 0


@given(numbers, amounts, numbers)
@example(0.0, 0.0, 0.0)
@example(0.0, 0.0, 1.0)
@example(0.5, 0.0, 0.0)
def test_a_log_that_gains_or_loses_levels_is_another_log(x, level, reward):
    """Also one whose levels used to be a coordinate, and one where everything is 0."""
    levelled = ar.History([[x]], [reward], levels=[level])
    for other in (ar.History([[x]], [reward]), ar.History([[x, level]], [reward])):
        assert changed_row(levelled, other) == 0
        assert changed_row(other, levelled) == 0


def test_a_coordinate_of_0_counts_beside_a_level():
    logs = [ar.History(np.zeros((1, dimension)), [0.5], levels=[1.0]) for dimension in (1, 2, 3)]
    for one in logs:
        for other in logs:
            assert same(one, other) == (one is other)


def test_minus_zero_is_zero():
    one, other = log_of([(0.5, 0.5, 0.0, 1.0)]), log_of([(0.5, 0.5, -0.0, 1.0)])
    assert same(one, other)
    one.check_continues(other.fingerprint, other)
    assert one.unit(0) == other.unit(0)


# -- what a policy makes of them ------------------------------------------------------------------------------


class Constant:
    """Always the same allocation; takes nothing else."""

    def propose(self) -> ar.Allocation:
        return ar.Allocation((0.5,), 2.0)

    def update(self, unit: ar.Allocation, reward: float) -> None:
        assert type(unit) is ar.Allocation
        assert (unit.point, unit.level) == ((0.5,), 2.0)
        assert reward in (0.1, 0.4)


def test_an_algorithm_of_a_users_own_is_shown_allocations_and_only_those_of_the_level_it_asks_for():
    log = ar.History([[0.5], [0.5], [0.25], [0.5]], [0.1, 0.2, 0.3, 0.4], levels=[2, 1, 2, 2])
    policy = ar.ArtificialReplay(Constant(), log)
    assert policy.ask() == ar.Allocation((0.5,), 2.0)
    assert (policy.used, policy.unused) == (2, 2)


def test_arms_have_no_levels():
    log = ar.History([[0.5]], [0.5], levels=[1.0])
    with pytest.raises(InvalidHistory, match="needs a log of arms"):
        ar.FullStart(ar.MonUCB(2, 10), log)


def test_a_log_of_other_dimension_is_another_log() -> None:
    flat, deep = ar.History([[0.0]], [0.5]), ar.History([[0.0, 0.0]], [0.5])
    with pytest.raises(ar.errors.ChangedHistory):
        deep.check_continues(flat.fingerprint)
