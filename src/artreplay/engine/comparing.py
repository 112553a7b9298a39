"""`compare`: several policies in the same worlds, by what each costs more or less than another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.engine.runs import Runs, mean_and_error
from artreplay.engine.simulate import simulate
from artreplay.errors import InvalidParameter

_BAND = 1.96  # standard errors on either side: 95 % of a normal distribution


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs of several policies in the same worlds; differences are to `baseline`, world by world."""

    runs: dict[str, Runs]
    baseline: str

    def difference(self, name: str) -> Floats:
        """How much more regret a policy has than the baseline: one row per world, one column per round kept."""
        return self.runs[name].regret - self.runs[self.baseline].regret

    def to_frame(self) -> Any:
        """One row per policy and round: mean regret, its difference to the baseline, and 95 % bands, as pyarrow.

        >>> import artreplay as ar
        >>> policies = {"UCB1": ar.UCB1(3), "greedy": ar.Greedy(3)}
        >>> result = ar.compare(policies, ar.environments.KArmed(3), horizon=5, replications=3)
        >>> result.to_frame().column_names[:5]
        ['policy', 'round', 'regret', 'regret_low', 'regret_high']
        """
        import pyarrow as pa

        parts = []
        for name, runs in self.runs.items():
            columns: dict[str, Any] = {"policy": [name] * len(runs.rounds_kept), "round": runs.rounds_kept}
            for kind, values in (("regret", runs.regret), ("difference", self.difference(name))):
                mean, error = values.mean(axis=0), _errors(values)
                columns |= {kind: mean, f"{kind}_low": mean - _BAND * error, f"{kind}_high": mean + _BAND * error}
            columns["used"] = runs.used.mean(axis=0)
            parts.append(pa.table(columns))
        return pa.concat_tables(parts)

    def to_latex(self) -> str:
        """The last round as a table for a paper: regret, the paired difference, and the share of the log read."""
        lines = [
            r"\begin{tabular}{lrrr}",
            rf"policy & regret & difference to {_escaped(self.baseline)} & rows read \\",
            r"\hline",
        ]
        for name, runs in self.runs.items():
            cells = [_escaped(name), _latex(*runs.final_regret())]
            cells.append("--" if name == self.baseline else _latex(*mean_and_error(self.difference(name)[:, -1])))
            cells.append(f"{runs.used[:, -1].mean():.0f}")
            lines.append(" & ".join(cells) + r" \\")
        return "\n".join([*lines, r"\end{tabular}"])

    def __str__(self) -> str:
        width = max(len(name) for name in self.runs)
        lines = []
        for name, runs in self.runs.items():
            mean, error = runs.final_regret()
            more, doubt = mean_and_error(self.difference(name)[:, -1])
            against = "" if name == self.baseline else f", {more:+.1f} ± {doubt:.1f} to {self.baseline}"
            lines.append(f"{name:{width}}  regret {mean:.1f} ± {error:.1f}{against}")
        return "\n".join(lines)


def compare(policies: Mapping[str, Any], env: Any, *, baseline: str | None = None, **options: Any) -> Comparison:
    """Play several policies in the same worlds, and compare them world by world.

    `policies` has a base for each name, which starts by Artificial Replay, or a dict of what `simulate` takes for it,
    such as `{"base": base, "start": "full-start"}`. `options` are those of `simulate`, for all. Differences are to
    `baseline`, the first policy by default: because the worlds are the same, they are known far better than the
    regret itself.

    >>> import artreplay as ar
    >>> result = ar.compare(
    ...     {"Full Start": {"base": ar.UCB1(3), "start": "full-start"}, "replay": ar.UCB1(3)},
    ...     ar.environments.KArmed(3), history=50, horizon=20, replications=4,
    ... )
    >>> float(abs(result.difference("replay")).max())
    0.0
    """
    if len(policies) == 0:
        raise InvalidParameter("policies must have at least one policy, got none")
    names = list(policies)
    chosen = names[0] if baseline is None else baseline
    if chosen not in policies:
        raise InvalidParameter(f"baseline must be one of {', '.join(names)}, got {baseline!r}")
    runs = {}
    for name, policy in policies.items():
        own = dict(policy) if isinstance(policy, Mapping) else {"base": policy}
        if "base" not in own:
            raise InvalidParameter(f"the policy {name!r} must have a base, it has {', '.join(own) or 'nothing'}")
        runs[name] = simulate(own.pop("base"), env, **{**options, **own})
    return Comparison(runs, chosen)


def _errors(values: Floats) -> Floats:
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    errors: Floats = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return errors


def _latex(mean: float, error: float) -> str:
    return f"${mean:.1f} \\pm {error:.1f}$"


def _escaped(text: str) -> str:
    """Text in LaTeX."""
    for sign in "\\&%$#_{}":
        text = text.replace(sign, "\\" + sign if sign != "\\" else r"\textbackslash ")
    return text
