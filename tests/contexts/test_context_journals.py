"""Every decision in a context is the one after reading the whole journal in order, each entry with its context."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import artreplay as ar
from contexts.context_journals import (
    ARMS,
    Counts,
    Fold,
    FreshFold,
    Logs,
    ModelFold,
    differing,
    log_of,
    play,
    random_rows,
    regression,
    table_of,
    through_a_file,
)
from contexts.context_kit import random_context

# Of logs of a few rows, some of whose values are new.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the log has .* rows for each of:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* of the values of:UserWarning"),
]
CONTEXTS = ar.Contexts(
    {"age": ar.Numeric(0, 2, missing=True)},
    {"country": ["NL", "DE"], "device": ["phone", "desk"]},
    segments=["country"],
    cosines=3,
)
SEGMENTS: dict[str, Callable[..., Any]] = {
    "KLUCB": lambda **options: ar.KLUCB(ARMS, horizon=40, **options),
    "KLUCB, log": lambda **options: ar.KLUCB(ARMS, horizon=9, level="log", **options),
    "MonUCB": lambda **options: ar.MonUCB(ARMS, horizon=40, bonus=ar.bonus.practical(0.5), **options),
    "PsiUCB": lambda **options: ar.PsiUCB(ARMS, horizon=20, psi=ar.psi.bernoulli_kl, **options),
    "TopUCB": lambda **options: ar.TopUCB(ARMS, budget=2, horizon=40, bonus=ar.bonus.kl(), **options),
    "Greedy": lambda **options: ar.Greedy(ARMS, **options),
    "UCB1": lambda **options: ar.UCB1(ARMS, **options),
    "BayesUCB": lambda **options: ar.BayesUCB(ARMS, horizon=40, power=2.0, **options),
    "ThompsonSampling": lambda **options: ar.ThompsonSampling(ARMS, seed=3, **options),
    "AnchorThompson": lambda **options: ar.AnchorThompson(ARMS, seed=3, **options),
}
DRAWS = ("ThompsonSampling", "AnchorThompson")


def segmented(name: str) -> Callable[[], Any]:
    return lambda: SEGMENTS[name](contexts=CONTEXTS)


def counts(seed: int) -> Callable[[], Any]:
    return Counts


# -- the promise ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_a_regression_decides_as_after_the_whole_journal(part: int, tmp_path: Path) -> None:
    for seed in range(45 * part, 45 * part + 45):
        play(regression(seed), random.Random(seed), tmp_path, FreshFold if seed % 15 == 0 else Fold)


def test_so_it_does_from_a_folder(tmp_path: Path) -> None:
    logs = Logs(tmp_path, stores=4)
    for seed in range(20):
        play(regression(seed), random.Random(seed), tmp_path, logs=logs)


def test_so_does_a_model_of_ones_own(tmp_path: Path) -> None:
    logs = Logs(tmp_path, stores=2)
    for seed in range(100):
        play(Counts, random.Random(seed), tmp_path, ModelFold, logs=logs if seed % 10 == 0 else None)


@pytest.mark.parametrize("name", SEGMENTS)
def test_so_does_an_algorithm_in_segments(name: str, tmp_path: Path) -> None:
    logs = Logs(tmp_path, stores=2, segments=("country",))
    for seed in range(30):
        policy_type = ar.FullStart if seed % 3 == 0 else ar.ArtificialReplay
        from_store = logs if seed % 10 == 5 else None
        play(segmented(name), random.Random(seed), tmp_path, logs=from_store, policy_type=policy_type)


@pytest.mark.parametrize("name", ["KLUCB", "TopUCB", "UCB1", "ContextRegression"])
def test_a_folder_by_segments_is_the_log_it_was_made_of(name: str, tmp_path: Path) -> None:
    rows = random_rows(random.Random(3), 400)
    logs = Logs(tmp_path, stores=0)
    folder = logs.add(rows[:300], tmp_path / "log", ["country"])
    assert folder.fingerprint.digests.tolist() == log_of(rows[:300]).fingerprint.digests.tolist()
    assert folder.first(123).fingerprint.digests.tolist() == log_of(rows[:123]).fingerprint.digests.tolist()
    make = regression(1) if name == "ContextRegression" else segmented(name)
    one, other = ar.ArtificialReplay(make(), folder), ar.ArtificialReplay(make(), log_of(rows[:300]))
    g = random.Random(4)
    for step in range(40):
        if step == 20:
            ar.append_history(table_of(rows[300:]), tmp_path / "log")
            one.extend(ar.open_history(tmp_path / "log"))
            other.extend(log_of(rows))
        context = random_context(g) | {"country": "NL"}
        action = one.ask(context)
        assert action == other.ask(context)
        for policy in (one, other):
            policy.tell(action, [1.0, 0.0] if isinstance(action, list) else 1.0)
    assert repr(one.cells()) == repr(other.cells())
    assert one.unused_rows() == other.unused_rows()
    if name != "ContextRegression":
        in_segment = sum(row.context["country"] == "NL" for row in rows)
        assert one.reading.rows <= in_segment  # nobody asked about the other segments
    one.save(tmp_path / "policy")
    assert ar.load(tmp_path / "policy", log_of(rows)).ask(context) == one.ask(context)  # wherever the log lies
    with pytest.warns(UserWarning, match="the log has contexts"):
        plain = ar.ArtificialReplay(ar.Greedy(ARMS), folder)  # the rows of an arm lie apart: they are read into memory
    assert (
        plain.ask()
        == ar.FullStart(ar.Greedy(ARMS), ar.History(*zip(*[row[:2] for row in rows[:300]], strict=True))).ask()
    )


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_so_they_all_do_in_thousands_of_journals(part: int, tmp_path: Path) -> None:
    logs = Logs(tmp_path, stores=6, segments=("country",) if part % 2 else ())
    for seed in range(1000 + 60 * part, 1060 + 60 * part):
        from_store = logs if seed % 5 == 0 else None
        play(regression(seed), random.Random(seed), tmp_path, FreshFold, logs=from_store, events=16)
        play(Counts, random.Random(seed), tmp_path, ModelFold, logs=from_store, events=16)
        for name in SEGMENTS:
            play(segmented(name), random.Random(seed), tmp_path, FreshFold, logs=from_store, events=16)


@pytest.mark.long
@pytest.mark.parametrize("name", ["ContextRegression", "KLUCB", "TopUCB", "BayesUCB", "AnchorThompson"])
def test_the_same_holds_compiled(name: str, tmp_path: Path) -> None:
    with ar.compiling.using("compiled"):
        for seed in range(40):
            make = regression(seed) if name == "ContextRegression" else segmented(name)
            play(make, random.Random(seed), tmp_path)


# -- one policy for each segment --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SEGMENTS if name not in DRAWS])
def test_segments_are_separate_policies_bit_for_bit(name: str) -> None:
    for seed in range(12):
        g = random.Random(seed)
        rows = random_rows(g, g.choice([0, 20, 60]))
        joint = ar.ArtificialReplay(segmented(name)(), log_of(rows))
        apart = {}
        for country in ("NL", "DE", "FR"):
            mine = [row for row in rows if row.context["country"] == country]
            log = ar.History([row.arm for row in mine], [row.reward for row in mine])
            apart[country] = ar.ArtificialReplay(SEGMENTS[name](), log)
        for _ in range(25):
            context = {"age": None, "country": g.choice(["NL", "NL", "DE"]), "device": "desk"}
            one = apart[str(context["country"])]
            action = joint.ask(context)
            assert action == one.ask()
            rewards = [g.choice([0.0, 1.0]) for _ in action] if isinstance(action, list) else g.choice([0.0, 1.0])
            joint.tell(action, rewards)
            one.tell(action, rewards)
        for number, country in enumerate(("NL", "DE", "FR")):
            cells = joint.cells()[number::3]
            assert [cell.unit[1] for cell in cells] == [country if number < 2 else "other"] * ARMS
            expected = [(cell.count, cell.mean, cell.index, cell.used) for cell in apart[country].cells()]
            assert repr([(cell.count, cell.mean, cell.index, cell.used) for cell in cells]) == repr(expected)
        assert sum(cell.used for cell in joint.cells()[2::3]) == 0  # a segment that nobody asked about


@pytest.mark.parametrize("drift", [0.1, {0: 0.3, 2: 0.05}])
def test_allowances_hold_in_every_segment(drift: Any) -> None:
    g = random.Random(2)
    rows = random_rows(g, 60)
    joint = ar.ArtificialReplay(segmented("KLUCB")(), log_of(rows), drift=drift)
    mine = [row for row in rows if row.context["country"] == "DE"]
    log = ar.History([row.arm for row in mine], [row.reward for row in mine])
    apart = ar.ArtificialReplay(SEGMENTS["KLUCB"](), log, drift=drift)
    for _ in range(40):
        action = joint.ask({"age": 1.0, "country": "DE", "device": "desk"})
        assert action == apart.ask()
        reward = g.choice([0.0, 1.0])
        joint.tell(action, reward)
        apart.tell(action, reward)
    assert [cell.index for cell in joint.cells()[1::3]] == [cell.index for cell in apart.cells()]


def test_an_unseen_segment_is_learnt_like_any_other() -> None:
    g = random.Random(1)
    policy = ar.ArtificialReplay(segmented("KLUCB")(), log_of(random_rows(g, 30)))
    played = []
    for _ in range(60):
        context = {"age": 1.0, "country": "a country that is new", "device": "desk"}
        arm = policy.ask(context)
        policy.tell(arm, float(g.random() < (0.9 if arm == 2 else 0.2)))
        played.append(arm)
    assert played[-20:].count(2) > 15


# -- what must differ -------------------------------------------------------------------------------------------------


class TellsFirst(ar.ArtificialReplay):
    """What is told is taken in before rows that were appended earlier."""

    def show_before(self, units: list[int]) -> None:
        pass


class LastFirst(ar.ArtificialReplay):
    """The last row of the log is shown first."""

    def show_first(self) -> None:
        log, whole = self.log, self.log.whole
        assert whole is not None
        log.whole = whole._replace(units=whole.units[::-1], rewards=whole.rewards[::-1], contexts=whole.contexts[::-1])
        super().show_first()
        log.whole = whole


class AcrossSegments(ar.KLUCB):
    """Rows of the log count in another segment than their own."""

    def units_of_rows(self, units: Any, contexts: Any) -> Any:
        return super().units_of_rows(units, (contexts + 1) % self.n_segments)


def thompson(seed: int) -> Callable[[], Any]:
    return lambda: ar.ContextRegression(ARMS, CONTEXTS, explore="thompson", seed=seed)


def doubting(seed: int) -> Callable[[], Any]:
    contexts = ar.Contexts(CONTEXTS.numeric, CONTEXTS.categories, cosines=0)
    return lambda: ar.ContextRegression(ARMS, contexts, explore="greedy", seed=seed)


def with_new_scales(policy: Any, path: Path, log: Any, base: Any) -> Any:
    loaded = through_a_file(policy, path, log, base)
    if len(log) and len({row for row in log.contexts.column("age").to_pylist() if row is not None}) > 1:
        old, new = CONTEXTS, ar.Contexts.from_history(log, categories=CONTEXTS.categories, segments=["country"])
        scale = new.numeric["age"]._replace(missing=True)
        loaded.base.contexts = ar.Contexts({"age": scale}, old.categories, segments=["country"], cosines=3)
    return loaded


def test_a_reward_that_comes_before_appended_rows_would_make_other_decisions(tmp_path: Path) -> None:
    assert differing(60, tmp_path, regression, policy_type=TellsFirst) > 0


def test_the_last_row_first_would_make_other_decisions(tmp_path: Path) -> None:
    assert differing(60, tmp_path, regression, policy_type=LastFirst) > 0


def test_draws_by_the_number_of_questions_would_make_other_decisions(tmp_path: Path) -> None:
    assert differing(40, tmp_path, thompson, rounds_of=lambda told, asked: asked) > 5


def test_scales_taken_anew_at_every_load_would_make_other_decisions(tmp_path: Path) -> None:
    assert differing(60, tmp_path, thompson, load=with_new_scales) > 0


def test_rows_across_segments_would_make_other_decisions(tmp_path: Path) -> None:
    def make(seed: int) -> Callable[[], Any]:
        return lambda: AcrossSegments(ARMS, horizon=40, contexts=CONTEXTS)

    assert differing(40, tmp_path, make, load=lambda policy, *_: policy) > 5


def test_a_snapshot_without_trial_sums_would_make_other_decisions(tmp_path: Path) -> None:
    """A log that contradicts what is played: once it is doubted, only the trial sums say so."""
    found = 0
    for seed in range(3):
        g = random.Random(seed)
        context = {"age": 1.0, "country": "NL", "device": "desk"}
        table = {name: [value] * 600 for name, value in context.items()}
        log = ar.History([0, 1] * 300, [float(g.random() < (0.8, 0.2)[row % 2]) for row in range(600)], contexts=table)
        policy = ar.ArtificialReplay(doubting(seed)(), log)
        for _ in range(60):
            policy.tell(0, float(g.random() < 0.2), context)
            policy.tell(1, float(g.random() < 0.6), context)
        kept, lost = (through_a_file(policy, tmp_path / "policy", log, None) for _ in range(2))
        lost.base.component.fits.trial[:] = 0.0
        asked = policy.ask(context, among=[0, 1])
        assert [unit for unit, *_ in kept.base.contradicted()] == [0, 1]
        assert kept.ask(context, among=[0, 1]) == asked
        found += lost.ask(context, among=[0, 1]) != asked
    assert found > 0
