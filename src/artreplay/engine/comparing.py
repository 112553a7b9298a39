"""`compare`: plays several policies in the same worlds, and says how much their regret differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.engine.runs import Runs, mean_and_error
from artreplay.engine.simulate import simulate
from artreplay.environments import ArmEnvironment, PointEnvironment
from artreplay.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

BAND_95 = 1.96  # standard errors on either side of a mean


@dataclass(frozen=True, eq=False)
class Comparison:
    """Holds the runs of several policies in the same worlds. Differences are to `baseline`, world by world.

    >>> import artreplay as ar
    >>> result = ar.compare({"UCB1": ar.UCB1(3), "greedy": ar.Greedy(3)}, ar.environments.KArmed(3), horizon=5)
    >>> result.baseline, list(result.runs)
    ('UCB1', ['UCB1', 'greedy'])
    """

    runs: dict[str, Runs]
    baseline: str

    def difference(self, name: str) -> Floats:
        """Subtract the regret of the baseline from that of a policy. A row is a world, and a column is a round.

        Parameters
        ----------
        name
            The name of the policy.

        >>> import artreplay as ar
        >>> policies = {"UCB1": ar.UCB1(3), "greedy": ar.Greedy(3)}
        >>> result = ar.compare(policies, ar.environments.KArmed(3), horizon=5, replications=3)
        >>> result.difference("greedy").shape
        (3, 5)
        """
        return self.runs[name].regret - self.runs[self.baseline].regret

    def to_frame(self) -> pa.Table:
        """Make a pyarrow table: for each policy and round, mean regret, its difference to the baseline, and 95 % bands.

        >>> import artreplay as ar
        >>> policies = {"UCB1": ar.UCB1(3), "greedy": ar.Greedy(3)}
        >>> result = ar.compare(policies, ar.environments.KArmed(3), horizon=5, replications=3)
        >>> result.to_frame().column_names[:5]
        ['policy', 'round', 'regret', 'regret_low', 'regret_high']
        """
        import pyarrow as pa  # importing it takes longer than a short comparison

        parts = []
        for name, runs in self.runs.items():
            columns: dict[str, Any] = {"policy": [name] * len(runs.rounds_kept), "round": runs.rounds_kept}
            for kind, values in (("regret", runs.regret), ("difference", self.difference(name))):
                mean, error = values.mean(axis=0), _errors(values)
                columns |= {kind: mean, f"{kind}_low": mean - BAND_95 * error, f"{kind}_high": mean + BAND_95 * error}
            columns["used"] = runs.used.mean(axis=0)
            parts.append(pa.table(columns))
        return pa.concat_tables(parts)

    def to_latex(self) -> str:
        """Write the last round as a LaTeX table: regret, difference to the baseline, and rows read.

        >>> import artreplay as ar
        >>> policies = {"UCB1": ar.UCB1(3), "greedy": ar.Greedy(3)}
        >>> result = ar.compare(policies, ar.environments.KArmed(3), horizon=5, replications=3)
        >>> "greedy" in result.to_latex()
        True
        """
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


def compare(
    policies: Mapping[str, Any], env: ArmEnvironment | PointEnvironment, *, baseline: str | None = None, **options: Any
) -> Comparison:
    """Play several policies in the same worlds, and compare them world by world.

    The worlds are the same for all policies, so their differences are known far more precisely than the regret itself.

    Parameters
    ----------
    policies
            For each name a base, which starts by Artificial Replay, or a dict of arguments for `simulate`, such as
            `{"base": base, "start": "full-start"}`.
    env
        The environment, as for `simulate`.
    baseline
        The name of the policy that the others are compared with; the first by default.
    options
        Other arguments for `simulate`, which hold for all policies.

    >>> import artreplay as ar
    >>> result = ar.compare(
    ...     {"Full Start": {"base": ar.UCB1(3), "start": "full-start"}, "replay": ar.UCB1(3)},
    ...     ar.environments.KArmed(3), history=50, horizon=20, replications=4,
    ... )
    >>> float(abs(result.difference("replay")).max())
    0.0
    """
    if len(policies) == 0:
        raise InvalidParameter("policies must hold at least one policy, got none")
    names = list(policies)
    chosen = names[0] if baseline is None else baseline
    if chosen not in policies:
        raise InvalidParameter(f"baseline must be one of {', '.join(names)}, got {baseline!r}")
    runs = {}
    for name, policy in policies.items():
        arguments = dict(policy) if isinstance(policy, Mapping) else {"base": policy}
        if "base" not in arguments:
            raise InvalidParameter(f"the policy {name!r} must have a base, got {', '.join(arguments) or 'nothing'}")
        runs[name] = simulate(env=env, **{**options, **arguments})
    return Comparison(runs, chosen)


def _errors(values: Floats) -> Floats:
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    errors: Floats = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return errors


def _latex(mean: float, error: float) -> str:
    return f"${mean:.1f} \\pm {error:.1f}$"


def _escaped(text: str) -> str:
    for sign in "\\&%$#_{}":
        text = text.replace(sign, "\\" + sign if sign != "\\" else r"\textbackslash ")
    return text
