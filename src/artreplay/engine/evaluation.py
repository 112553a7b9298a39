"""What an evaluation on a log says of each policy, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artreplay.inspecting import Estimate

ENOUGH = 100  # rows that an evaluation must rest on


@dataclass(frozen=True)
class PolicyValue:
    """What a policy would have earned a round on the rows of a log.

    Parameters
    ----------
    name
        The name it was given.
    kind
        "learning" or "fixed".
    value
        The mean reward of a round with its interval: by weighted rows for a fixed policy, else by accepted ones.
    rows
        How many rows of the log this rests on.
    by_rejection, accepted
        The mean reward over the rows that were accepted, with its interval, and how many there were.
    by_weights
        For a fixed policy, the mean over all rows in which it agrees with the log, by self-normalised weights.
    """

    name: str
    kind: str
    value: Estimate
    rows: int
    by_rejection: Estimate
    accepted: int
    by_weights: Estimate | None

    @property
    def can_tell(self) -> bool:
        """Whether there are enough rows for it to mean anything."""
        return self.rows >= ENOUGH


@dataclass(frozen=True)
class Evaluation:
    """What policies would have earned on a log, see `ar.evaluate`.

    Parameters
    ----------
    policies
        A `PolicyValue` for each.
    logged
        What was played earned this much a round, in the same rows.
    start
        The first rows, which were the log that policies started from.
    rows
        The rows after them, on which policies were played.
    by_shares
        Whether the shares of the arms stood in for propensities.
    least_chance
        The chance of the rarest choice, which is the share of the rows that a learning policy can be told of.
    """

    policies: list[PolicyValue]
    logged: Estimate
    start: int
    rows: int
    by_shares: bool
    least_chance: float

    def __getitem__(self, name: str) -> PolicyValue:
        """Return one policy by its name."""
        for policy in self.policies:
            if policy.name == name:
                return policy
        raise KeyError(name)

    def sentences(self) -> list[str]:
        """Say in sentences what follows."""
        sentences = []
        if self.by_shares:
            sentences.append(
                "If the old policy chose by chance, with the shares of the log (no propensities were given, and if it "
                "chose by what moves the reward, all of this is wrong):"
            )
        reliable = [policy for policy in self.policies if policy.can_tell]
        if reliable:
            best = max(reliable, key=lambda policy: policy.value.value)
            order = "more" if best.value.value > self.logged.value else "less"
            beyond = "by no more than chance explains" if best.value.overlaps(self.logged) else "beyond chance"
            sentences.append(
                f"{best.name} would have earned {_shown(best.value)} a round over {best.rows:,} rows, and what was "
                f"played earned {_shown(self.logged)}: {order}, {beyond}."
            )
        few = [f"{policy.name} ({policy.rows:,})" for policy in self.policies if not policy.can_tell]
        if few:
            sentences.append(
                f"Fewer than {ENOUGH} rows cannot tell what these would earn: {', '.join(few)}. The rarest choice was "
                f"made with the chance {self.least_chance:.2g}: a learning policy can be told that share of the rows."
            )
        return sentences

    def to_frame(self) -> Any:
        """Return an Arrow table with one row for each policy."""
        import pyarrow as pa

        rows = [
            {
                "policy": policy.name,
                "kind": policy.kind,
                "value": policy.value.value,
                "low": policy.value.low,
                "high": policy.value.high,
                "rows": policy.rows,
                "accepted": policy.accepted,
                "can_tell": policy.can_tell,
            }
            for policy in self.policies
        ]
        return pa.Table.from_pylist(rows)


def _shown(one: Estimate) -> str:
    return f"{one.value:.4g} [{one.low:.4g}, {one.high:.4g}]"
