"""Comparisons are between the same worlds and rounds, their bands are what they say, and their labels are right."""

from __future__ import annotations

import math
import re
import statistics
import sys
from statistics import NormalDist
from typing import Any, cast

import numpy as np
import pytest

import artreplay as ar
from artreplay.engine.runs import rounded
from artreplay.errors import InvalidParameter

ENV = ar.environments.KArmed(3)
POLICIES: dict[str, Any] = {
    "full start": {"base": ar.MonUCB(3, 40), "start": "full-start"},
    "replay": ar.MonUCB(3, 40),
    "no_log": {"base": ar.MonUCB(3, 40), "start": "ignorant"},
}


def compared(**options: Any) -> ar.Comparison:
    sizes = {"history": 50, "horizon": 40, "replications": 12, "seed": 1}
    with ar.compiling.using("interpreted"):
        return ar.compare(POLICIES, ENV, **(sizes | options))


RESULT = compared()


class Coins:
    """A world of one's own."""

    n_arms = 2

    def __init__(self, chance: float) -> None:
        self.chance = chance

    def mean(self, arm: int, round: int) -> float:
        return self.chance if arm else 0.5

    def reward(self, arm: int, round: int, u: float) -> float:
        return float(u < self.mean(arm, round))


def test_replay_of_an_exact_base_differs_in_nothing_from_full_start() -> None:
    assert RESULT.baseline == "full start"
    assert list(RESULT.runs) == list(POLICIES)
    assert (RESULT.difference("replay") == 0.0).all()
    lost = RESULT.runs["no_log"].regret - RESULT.runs["full start"].regret
    assert (RESULT.difference("no_log") == lost).all()
    assert (compared(baseline="no_log").difference("replay") == -lost).all()


def test_the_figure_of_a_comparison_is_drawn(tmp_path) -> None:
    figure = ar.plots.comparison(RESULT, tmp_path / "comparison.png")
    assert (tmp_path / "comparison.png").stat().st_size > 10_000
    last = RESULT.to_frame().to_pylist()[-1]
    edges = figure.axes[0].collections[-1].get_paths()[0].vertices[:, 1]
    assert last["regret_low"] in edges
    assert last["regret_high"] in edges


def test_the_figure_shows_names_as_they_are(tmp_path) -> None:
    """matplotlib would read formulas between dollars, and leave out what begins with an underscore."""
    names = ["_hidden", "$x_$", "a$b"]
    result = ar.Comparison(dict.fromkeys(names, compared(replications=1).runs["replay"]), "$x_$")
    figure = ar.plots.comparison(result, tmp_path / "comparison.png")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == names
    assert figure.get_supxlabel() == "one simulated world"


def test_a_frame_has_means_and_bands_of_every_policy_and_round() -> None:
    """They are computed here in another way, with the quantile of the normal distribution."""
    rows = RESULT.to_frame().to_pylist()
    assert [(row["policy"], row["round"]) for row in rows] == [(name, t) for name in POLICIES for t in range(40)]
    width = NormalDist().inv_cdf(0.975)
    for row in rows:
        runs, at = RESULT.runs[row["policy"]], row["round"]
        mine, base = runs.regret[:, at].tolist(), RESULT.runs["full start"].regret[:, at].tolist()
        columns = {"regret": mine, "difference": [one - other for one, other in zip(mine, base, strict=True)]}
        for kind, values in columns.items():
            mean, half = statistics.fmean(values), width * statistics.stdev(values) / math.sqrt(12)
            assert row[kind] == pytest.approx(mean, abs=1e-12)
            assert mean - row[f"{kind}_low"] == pytest.approx(half, rel=1e-3, abs=1e-12)
            assert row[f"{kind}_high"] - mean == pytest.approx(half, rel=1e-3, abs=1e-12)
        assert row["used"] == pytest.approx(runs.used[:, at].mean())


def test_one_world_has_no_band() -> None:
    result = compared(replications=1)
    frame = result.to_frame().to_pylist()
    assert all(
        math.isnan(row[f"{kind}_{end}"])
        for row in frame
        for kind in ("regret", "difference")
        for end in ("low", "high")
    )
    assert str(result).startswith("after 40 rounds, in 1 world:")
    assert "nan" not in str(result) + result.to_latex()


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({"seed": 2}, "seed must be the same for all policies, got 1 for 'full start' and 2 for 'other'"),
        ({"replications": 3}, "replications must be the same for all policies, got 12 for"),
        ({"horizon": 7}, "horizon must be the same for all policies, got 40 for"),
        ({"keep": "final"}, "keep must be the same for all policies, got 'all' for"),
        (
            {"env": ar.environments.KArmed(3)},
            "env must be the same for all policies, got <KArmed: 3 arms, 1 a round, bernoulli rewards> for "
            "'full start' and another that looks the same for 'other'. Give both the same object",
        ),
    ],
)
def test_policies_of_other_worlds_or_rounds_are_refused_before_anything_is_played(own, sentence, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules["artreplay.engine.simulate"], "checked_setting", None)  # nothing can be played
    policies = {**POLICIES, "other": {"base": ar.UCB1(3), **own}}
    with pytest.raises(InvalidParameter, match=re.escape(sentence)):
        ar.compare(policies, ENV, history=50, horizon=40, replications=12, seed=1)


@pytest.mark.parametrize("keep", [(3, 9), range(3, 10, 6), np.array([3, 9])], ids=str)
def test_policies_that_say_the_same_themselves_are_compared(keep) -> None:
    seed = np.int64(1)
    own = {"base": ar.MonUCB(3, 40), "env": ENV, "seed": seed, "keep": keep, "replications": 12, "horizon": 40}
    result = ar.compare(
        {"a": own, "b": ar.MonUCB(3, 40)}, ENV, history=50, horizon=40, replications=12, seed=1, keep=[3, 9]
    )
    assert (result.difference("b") == 0.0).all()


def test_worlds_that_call_themselves_equal_are_still_two() -> None:
    class Equal(Coins):
        def __eq__(self, other: object) -> bool:
            return True

    with pytest.raises(InvalidParameter, match=r"env must be the same for all policies, got <.*Equal"):
        ar.compare({"a": ar.UCB1(2), "b": {"base": ar.UCB1(2), "env": Equal(0.1)}}, cast(Any, Equal(0.9)), horizon=5)


def test_worlds_of_ones_own_are_told_apart_by_their_means() -> None:
    """They have no repr, and attributes that change while they are played say nothing."""
    with ar.compiling.using("interpreted"):
        low, high, again = (
            ar.simulate(ar.UCB1(2), Coins(chance), history=5, horizon=6, replications=3) for chance in (0.1, 0.9, 0.1)
        )
    assert (ar.Comparison({"a": low, "b": again}, "a").difference("b") == 0.0).all()
    with pytest.raises(InvalidParameter, match="env must be the same for all policies"):
        ar.Comparison({"a": low, "b": high}, "a")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"replications": 3}, "replications must be the same for all policies, got 12 for 'a' and 3 for 'b'"),
        ({"horizon": 39}, "horizon must be the same for all policies, got 40 for 'a' and 39 for 'b'"),
        ({"keep": [3, 9]}, r"keep must be the same for all policies, got \[0, 1, 2, 3, 4, 5, \.\.\.\] for 'a'"),
    ],
)
def test_runs_of_other_worlds_or_rounds_are_not_put_together(change, sentence) -> None:
    with pytest.raises(InvalidParameter, match=sentence):
        ar.Comparison({"a": RESULT.runs["replay"], "b": compared(**change).runs["replay"]}, "a")


def test_two_worlds_have_a_band() -> None:
    result = compared(replications=2)
    for row in result.to_frame().to_pylist():
        assert row["regret_low"] <= row["regret"] <= row["regret_high"]
    assert str(result).startswith("after 40 rounds, in 2 worlds, ± one standard error:\n")


def test_numbers_stand_below_each_other() -> None:
    lines = str(RESULT).splitlines()[1:]
    assert {line.index("  regret ") for line in lines} == {len("full start")}


def test_what_is_compared_must_be_there() -> None:
    with pytest.raises(InvalidParameter, match="baseline must be one of a, got 'b'"):
        ar.Comparison({"a": RESULT.runs["replay"]}, "b")
    with pytest.raises(InvalidParameter, match="baseline must be one of full start, replay, no_log, got 'best'"):
        ar.compare(POLICIES, ENV, baseline="best", horizon=0)  # with which nothing can be played
    for odd in (None, [], 3):
        with pytest.raises(InvalidParameter, match=re.escape(f"baseline must be one of a, got {odd!r}")):
            ar.Comparison({"a": RESULT.runs["replay"]}, cast(Any, odd))
    with pytest.raises(InvalidParameter, match="name must be one of full start, replay, no_log, got 'best'"):
        RESULT.difference("best")
    with pytest.raises(InvalidParameter, match=r"the runs of 'a' must be what ar\.simulate returns, got 3"):
        ar.Comparison(cast(Any, {"a": 3}), "a")
    with pytest.raises(InvalidParameter, match="the policy 'x' must have a base, got start"):
        ar.compare({"x": {"start": "ignorant"}}, ENV)
    with pytest.raises(InvalidParameter, match="the policy 'x' must have a base, got nothing"):
        ar.compare({"x": {}}, ENV)
    for odd in ([ar.UCB1(3)], {1: ar.UCB1(3)}, None):
        for compare in (ar.compare, ar.Comparison):
            with pytest.raises(InvalidParameter, match="policies must be a dict such as"):
                compare(cast(Any, odd), cast(Any, ENV))
    for compare in (ar.compare, ar.Comparison):
        with pytest.raises(InvalidParameter, match="at least one policy"):
            compare({}, cast(Any, ENV))


def test_numbers_say_of_which_round_they_are() -> None:
    """Those of the last round that was kept are not those of the last round."""
    early, final = compared(keep=[3, 9]), compared(keep="final")
    at_9 = rounded(*RESULT.runs["no_log"].final_regret())
    assert rounded(*early.runs["no_log"].final_regret()) != at_9
    assert str(RESULT) == str(final)
    assert str(RESULT).startswith("after 40 rounds, in 12 worlds, ± one standard error:\n")
    assert str(early).startswith("after 10 of 40 rounds, in 12 worlds")
    assert "policy & regret after 10 of 40 rounds & difference to full start & rows read" in early.to_latex()
    assert "policy & regret after 40 rounds &" in RESULT.to_latex()
    kept = [row for row in RESULT.to_frame().to_pylist() if row["round"] in (3, 9)]
    assert early.to_frame().to_pylist() == kept


def test_print_and_latex_have_the_numbers_of_the_runs() -> None:
    runs = RESULT.runs["no_log"]
    last, more = runs.regret[:, -1].tolist(), RESULT.difference("no_log")[:, -1].tolist()
    regret, error, difference, doubt = (
        f(values) for values in (last, more) for f in (statistics.fmean, lambda v: statistics.stdev(v) / math.sqrt(12))
    )
    found = re.search(r"no_log +regret ([\d.]+) ± ([\d.]+), \+([\d.]+) ± ([\d.]+) to full start", str(RESULT))
    assert found is not None
    printed = [float(number) for number in found.groups()]
    assert printed == pytest.approx([regret, error, difference, doubt], abs=0.5 * 10**-1)
    row = r"no\_log & $" + f"{found[1]} \\pm {found[2]}$ & ${found[3]} \\pm {found[4]}$ & 0" + r" \\"
    assert row in RESULT.to_latex().splitlines()
    used = RESULT.runs["replay"].used[:, -1].mean()
    assert f"& $0 \\pm 0$ & {used:.0f} \\\\" in RESULT.to_latex()
    assert r" & -- & 50 \\" in RESULT.to_latex()
    assert str(RESULT).splitlines()[1] == "full start  regret " + " ± ".join(
        rounded(*RESULT.runs["replay"].final_regret())
    )


def test_names_with_special_characters_are_escaped() -> None:
    runs = RESULT.runs["replay"]
    name = "a&b%c$d#e_f{g}h~i^j\\k<l>m|n"
    lines = ar.Comparison({name: runs, "other": runs}, name).to_latex().splitlines()
    escaped = r"a\&b\%c\$d\#e\_f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
    escaped += r"\textless{}l\textgreater{}m\textbar{}n"
    assert lines[0] == r"\begin{tabular}{lrrr}"
    assert f"difference to {escaped} & rows read" in lines[1]
    assert lines[3].startswith(f"{escaped} & $")
    assert lines[-1] == r"\end{tabular}"


@pytest.mark.parametrize(
    ("mean", "error", "written"),
    [
        (14.0382, 0.2137, ["14.04", "0.21"]),
        (14.0382, 2.137, ["14.0", "2.1"]),
        (14.0382, 21.37, ["14", "21"]),
        (140382.0, 2137.0, ["140382", "2137"]),
        (0.00123456, 0.0000456, ["0.001235", "0.000046"]),
        (0.0, 0.0, ["0", "0"]),
        (-1e-16, 1e-16, ["0", "0"]),
        (3.25, math.nan, ["3.25"]),
    ],
)
def test_a_mean_has_the_digits_that_its_error_makes_meaningful(mean, error, written) -> None:
    assert rounded(mean, error) == written
    assert rounded(2.0, 0.5, sign="+") == ["+2.00", "0.50"]
