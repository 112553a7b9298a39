"""What is not exact is found out: the counterexamples, given as they are and found again by the checks."""

from __future__ import annotations

from typing import Any

import pytest
from bases import small

import artreplay as ar
from artreplay.replay import as_base
from artreplay.testing import CheckFailed, check_coupling, check_irrelevant_data

SKEWED = [[1, 0], [0.6, 0.8], [0.8, 0.6]]


def equality(logged: Any, proposed: Any, base: Any) -> bool:
    return logged == proposed


def batch(base: Any, history: ar.History) -> ar.FullStart:
    return ar.FullStart(base, ar.Totals.of(history))


class SlowReplay:
    """Artificial Replay written out, so that it can be written wrongly."""

    last_in_first_out = False
    needs_all = False  # go online as soon as some unit of the proposal has no sample

    def __init__(self, base: Any, history: ar.History) -> None:
        self.base = as_base(base).thing
        self.left = [(history.unit(row), float(history.rewards[row])) for row in range(len(history))]
        self.size = len(history)

    @property
    def used(self) -> int:
        return self.size - len(self.left)

    def ask(self) -> Any:
        while True:
            action = self.base.propose()
            units = action if isinstance(action, list) else [action]
            found = [self.find(unit) for unit in units]
            if all(row is None for row in found) or (self.needs_all and any(row is None for row in found)):
                return action
            for row in found:
                if row is not None:
                    self.base.update(*self.left[row])
            self.left = [sample for row, sample in enumerate(self.left) if row not in found]

    def find(self, unit: Any) -> int | None:
        rows = [row for row, (logged, _) in enumerate(self.left) if logged == unit]
        if not rows:
            return None
        return rows[-1] if self.last_in_first_out else rows[0]

    def tell(self, action: Any, reward: Any) -> None:
        pairs = zip(action, reward, strict=True) if isinstance(action, list) else [(action, reward)]
        for unit, value in pairs:
            self.base.update(unit, value)


class LastInFirstOut(SlowReplay):
    last_in_first_out = True


class OnlineTooSoon(SlowReplay):
    needs_all = True


def test_replay_written_out_is_exact() -> None:
    """The slow replay is right when it is not made wrong: what is found below is the fault put in."""
    check_coupling(lambda: ar.MonUCB(3, 20, bonus=small), replay=SlowReplay)
    check_coupling(lambda: ar.TopUCB(5, 3, 20, bonus=small), replay=SlowReplay)


def test_batch_loading_is_another_algorithm() -> None:
    history = ar.History([0, 0], [0.0, 0.25])
    make = lambda: ar.MonUCB(2, 20, bonus=small)  # noqa: E731
    replay, loaded = ar.ArtificialReplay(make(), history, relation=lambda *_: True), batch(make(), history)
    replay.ask(), loaded.ask()
    assert round(replay.cells()[0].index, 3) == 0.300
    assert round(loaded.cells()[0].index, 3) == 0.337
    with pytest.raises(CheckFailed) as found:
        check_coupling(make, full_start=batch)
    assert len(found.value.history) <= 6


def test_last_in_first_out_is_wrong_although_irrelevant_data_do_not_matter() -> None:
    """Independence of irrelevant data alone is not enough: a cell must be served from the front."""
    check_irrelevant_data(lambda: ar.MonUCB(2, 20, bonus=small))
    with pytest.raises(CheckFailed) as found:
        check_coupling(lambda: ar.MonUCB(2, 20, bonus=small), replay=LastInFirstOut)
    assert len(found.value.history) <= 6


def test_going_online_when_some_arm_lacks_data_is_wrong() -> None:
    with pytest.raises(CheckFailed) as found:
        check_coupling(lambda: ar.TopUCB(3, 2, 20, bonus=small), replay=OnlineTooSoon)
    assert len(found.value.history) <= 3


def test_a_relation_per_arm_is_wrong_for_linucb() -> None:
    make = lambda: ar.LinUCB(SKEWED, 20, alpha=0.2)  # noqa: E731
    history = ar.History([1], [0.5])
    full, wrong = ar.FullStart(make(), history), ar.ArtificialReplay(make(), history, relation=equality)
    assert full.ask() != wrong.ask()
    for check in (check_coupling, check_irrelevant_data):
        with pytest.raises(CheckFailed) as found:
            check(make, relation=equality)
        assert len(found.value.history) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: ar.RandomChoice(3),
        lambda: ar.LUCB(3),
        pytest.param(lambda: ar.IDS(2), marks=pytest.mark.long),
    ],
    ids=["RandomChoice", "LUCB", "IDS"],
)
def test_those_that_claim_nothing_are_not_exact(make) -> None:
    assert not make().exact
    with pytest.raises(CheckFailed):
        check_coupling(make, cases=30, max_history=8, horizon=8)


def test_a_failure_reads_well() -> None:
    with pytest.raises(CheckFailed) as found:
        check_coupling(lambda: ar.RandomChoice(arms=["left", "right"]))
    text = str(found.value)
    assert "coupling fails: round" in text
    assert "reward" in text
    assert "full start:" in text
    assert "replay:" in text
    assert {unit for unit, _ in found.value.history} <= {"left", "right"}


def test_the_same_seed_finds_the_same_counterexample() -> None:
    texts = []
    for _ in range(2):
        with pytest.raises(CheckFailed) as found:
            check_coupling(lambda: ar.RandomChoice(3), seed=5)
        texts.append(str(found.value))
    assert texts[0] == texts[1]


def test_checks_refuse_bad_parameters() -> None:
    for bad in ({"cases": 0}, {"horizon": 0}, {"rewards": ()}, {"seed": -1}, {"units": 0}, {"units": []}):
        with pytest.raises(ar.errors.InvalidParameter):
            check_coupling(lambda: ar.MonUCB(2, 2), **bad)

    class Unknown:
        def propose(self) -> int:
            return 0

        def update(self, unit: int, reward: float) -> None:
            pass

    with pytest.raises(ar.errors.InvalidParameter, match="units must be given"):
        check_coupling(Unknown)
