"""Required parameters are required, and every default is a value that works."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

import pytest

import artreplay as ar
from artreplay.errors import InvalidParameter
from artreplay.parameters import REQUIRED, Count, Share, check_of, checked, required

PUBLIC = {
    **{name: getattr(ar, name) for name in ar.__all__ if callable(getattr(ar, name))},
    **{name: getattr(ar.environments, name) for name in ar.environments.__all__ if name != "logs"},
    **{name: getattr(ar.bonus, name) for name in ("practical", "anytime")},
}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_default_is_a_value_that_works(name: str) -> None:
    for parameter in inspect.signature(PUBLIC[name], eval_str=True).parameters.values():
        check = check_of(parameter.annotation)
        if check is not None and parameter.default not in (parameter.empty, REQUIRED):
            check(parameter.name, parameter.default)
        if parameter.name in ("horizon", "budget", "max_units", "cells_per_side", "epsilon"):
            assert parameter.default != 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ar.MonUCB(3), "MonUCB needs horizon, which is missing"),
        (lambda: ar.MonUCB(arms=["red"]), "MonUCB needs horizon, which is missing"),
        (lambda: ar.TopUCB(3), "TopUCB needs budget and horizon, which are missing"),
        (lambda: ar.LinUCB([[1.0]]), "LinUCB needs horizon, which is missing"),
        (
            lambda: ar.TreeAllocation(2, levels=(1,)),
            "TreeAllocation needs budget, max_units, horizon and epsilon, which are missing",
        ),
        (lambda: ar.FullStart(ar.MonUCB(3, 9)), "FullStart needs history, which is missing"),
        (lambda: ar.ArtificialReplay(), "ArtificialReplay needs base and history, which are missing"),
        (lambda: ar.Ignorant(), "Ignorant needs base, which is missing"),
        (lambda: ar.environments.KArmed(), "KArmed needs n_arms, which is missing"),
        (lambda: ar.simulate(ar.MonUCB(3, 9)), "simulate needs env, which is missing"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        call()
    assert str(refused.value) == sentence


def test_parameters_that_do_not_exist_are_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'horizont'"):
        ar.MonUCB(3, horizont=9)


def test_what_is_declared_is_checked_and_made_plain() -> None:
    @checked
    def call(count: Count, share: Share | None = None, kind: Literal["a", "b", "c"] = "a") -> Any:
        return count, share, kind

    assert required(call) == ["count"]
    assert call(True, 1) == (1, 1.0, "a")
    assert type(call(3, share=1)[1]) is float
    for wrong, sentence in [
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"count": 1.5}, "count must be an integer of at least 1, got 1.5"),
        ({"count": 1, "share": math.nan}, "share must lie in [0, 1], got nan"),
        ({"count": 1, "share": "half"}, "share must be a number, got 'half'"),
        ({"count": 1, "kind": "d"}, 'kind must be "a", "b" or "c", got \'d\''),
    ]:
        with pytest.raises(InvalidParameter) as refused:
            call(**wrong)  # type: ignore[arg-type]
        assert str(refused.value) == sentence


@pytest.mark.parametrize("reward_range", [(-1e308, 1e308), (-math.inf, 1), (1, 1), (0, math.nan)])
def test_a_reward_range_that_cannot_be_scaled_is_refused(reward_range: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"^reward_range must be "):
        ar.MonUCB(2, 10, reward_range=reward_range)
    ar.MonUCB(2, 10, reward_range=(0.0, 1e308)).update(0, 5e307)
