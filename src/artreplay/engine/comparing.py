"""`compare`: plays several policies in the same worlds, and says how much their regret differs."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.engine.runs import Runs, mean_and_error, rounded
from artreplay.engine.simulate import simulate
from artreplay.environments import ArmEnvironment, PointEnvironment
from artreplay.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

BAND_95 = 1.96  # standard errors on either side of a mean
# Arguments of `simulate` that say which worlds are played, and which of their rounds are kept.
OF_THE_WORLDS = ("env", "seed", "first_replication", "replications", "horizon", "keep")
_SHORT = reprlib.Repr()  # a list of rounds may be long
_SHORT.maxother = _SHORT.maxstring = 200
_LATEX = str.maketrans(
    {sign: "\\" + sign for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Holds the runs of several policies in the same worlds. Differences are to `baseline`, world by world.

    Numbers of `print`, and of the LaTeX table, are of the last round that was kept, and say which round that is.

    >>> import artreplay as ar
    >>> result = ar.compare({"UCB1": ar.UCB1(3), "greedy": ar.Greedy(3)}, ar.environments.KArmed(3), horizon=5)
    >>> result.baseline, list(result.runs)
    ('UCB1', ['UCB1', 'greedy'])
    """

    runs: dict[str, Runs]
    baseline: str

    def __post_init__(self) -> None:
        _check_names(self.runs)
        _check_name("baseline", self.baseline, self.runs)
        for policy, runs in self.runs.items():
            if not isinstance(runs, Runs):
                raise InvalidParameter(f"the runs of {policy!r} must be what ar.simulate returns, got {runs!r}")
        for name in OF_THE_WORLDS:
            _check_same(name, {policy: _argument(runs, name) for policy, runs in self.runs.items()})

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
        _check_name("name", name, self.runs)
        return self.runs[name].regret - self.runs[self.baseline].regret

    def to_frame(self) -> pa.Table:
        """Make a pyarrow table: for each policy and round, mean regret, its difference to the baseline, and 95 % bands.

        Rounds are counted from 0, and there are those that were kept.

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
                mean, low, high = mean_and_band(values)
                columns |= {kind: mean, f"{kind}_low": low, f"{kind}_high": high}
            columns["used"] = runs.used.mean(axis=0)
            parts.append(pa.table(columns))
        return pa.concat_tables(parts)

    def to_latex(self) -> str:
        """Write a LaTeX table of the last round that was kept: regret, difference to the baseline, and rows read.

        >>> import artreplay as ar
        >>> policies = {"UCB1": ar.UCB1(3), "greedy": ar.Greedy(3)}
        >>> result = ar.compare(policies, ar.environments.KArmed(3), horizon=5, replications=3)
        >>> "greedy" in result.to_latex()
        True
        """
        lines = [
            r"\begin{tabular}{lrrr}",
            rf"policy & regret after {self._rounds()} & difference to {_escaped(self.baseline)} & rows read \\",
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
        count = self.runs[self.baseline].replications
        worlds = "1 world" if count == 1 else f"{count:,} worlds, ± one standard error"
        lines = [f"after {self._rounds()}, in {worlds}:"]
        for name, runs in self.runs.items():
            line = f"{name:{width}}  regret {' ± '.join(rounded(*runs.final_regret()))}"
            if name != self.baseline:
                more = rounded(*mean_and_error(self.difference(name)[:, -1]), sign="+")
                line += f", {' ± '.join(more)} to {self.baseline}"
            lines.append(line)
        return "\n".join(lines)

    def _rounds(self) -> str:
        """Say after how many rounds the last one is that was kept."""
        runs = self.runs[self.baseline]
        played = int(runs.rounds_kept[-1]) + 1
        return f"{played:,} rounds" if played == runs.horizon else f"{played:,} of {runs.horizon:,} rounds"


def compare(
    policies: Mapping[str, Any], env: ArmEnvironment | PointEnvironment, *, baseline: str | None = None, **options: Any
) -> Comparison:
    """Play several policies in the same worlds, and compare them world by world.

    The worlds are the same for all policies, so their differences are known far more precisely than the regret itself.
    Policies that would play in other worlds, or other rounds, are refused.

    Parameters
    ----------
    policies
            For each name a base, which starts by Artificial Replay, or a dict of arguments for `simulate`, such as
            `{"base": base, "start": "full-start"}`. The environment, the seed, the replications, the horizon and the
            rounds to keep must be the same for all.
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
    _check_names(policies)
    chosen = next(iter(policies)) if baseline is None else baseline
    _check_name("baseline", chosen, policies)
    arguments = {}
    for name, policy in policies.items():
        own = policy if isinstance(policy, Mapping) else {"base": policy}
        if "base" not in own:
            raise InvalidParameter(f"the policy {name!r} must have a base, got {', '.join(own) or 'nothing'}")
        arguments[name] = {"env": env, **options, **own}
    for shared in OF_THE_WORLDS:
        default = inspect.signature(simulate).parameters[shared].default
        _check_same(shared, {name: given.get(shared, default) for name, given in arguments.items()})
    return Comparison({name: simulate(**given) for name, given in arguments.items()}, chosen)


def mean_and_band(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean of each column, and the ends of its 95 % band, which are nan with a single row."""
    mean: Floats = values.mean(axis=0)
    if len(values) < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return mean, mean - BAND_95 * error, mean + BAND_95 * error


def _check_names(policies: Mapping[str, Any]) -> None:
    if not isinstance(policies, Mapping) or not all(isinstance(name, str) for name in policies):
        raise InvalidParameter(f'policies must be a dict such as {{"UCB1": ar.UCB1(3)}}, got {policies!r}')
    if len(policies) == 0:
        raise InvalidParameter("policies must hold at least one policy, got none")


def _check_name(what: str, name: object, policies: Mapping[str, Any]) -> None:
    if name not in list(policies):  # a list, in which what has no hash can be looked for
        raise InvalidParameter(f"{what} must be one of {', '.join(policies)}, got {name!r}")


def _argument(runs: Runs, name: str) -> Any:
    """Return an argument of `simulate` that runs were made with."""
    if name == "keep":
        return runs.rounds_kept.tolist()
    return runs.settings.get(name) if name in ("env", "seed") else getattr(runs, name)


def _check_same(argument: str, values: Mapping[str, Any]) -> None:
    """Refuse policies with different values of an argument, because they would not play the same rounds."""
    lists = (list, tuple, range, np.ndarray)  # of rounds to keep
    plain = {name: list(value) if isinstance(value, lists) else value for name, value in values.items()}
    first, expected = next(iter(plain.items()))
    for name, value in plain.items():
        # Two environments may play other worlds although they look the same.
        if value is not expected and not (isinstance(value, (str, Integral, list)) and value == expected):
            mine, theirs, cure = _SHORT.repr(expected), _SHORT.repr(value), ""
            if mine == theirs:
                theirs, cure = "another that looks the same", ". Give both the same object"
            got = f"{mine} for {first!r} and {theirs} for {name!r}{cure}"
            raise InvalidParameter(f"must be the same for all policies, got {got}", parameter=argument)


def _latex(mean: float, error: float) -> str:
    return "$" + r" \pm ".join(rounded(mean, error)) + "$"


def _escaped(text: str) -> str:
    return text.translate(_LATEX)
