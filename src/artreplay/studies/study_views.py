"""What people look at: a study's decisions, arms, groups and settings."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidParameter, checked_count
from artreplay.replay import Cell, Contradiction, Policy
from artreplay.studies import arms_and_log, deciding
from artreplay.studies.arms_and_log import ArmState
from artreplay.studies.decisions import DECISION_STATES, Decision, decision_of, decisions_in
from artreplay.studies.drawing import drawing_rule
from artreplay.studies.judging import (
    ControlComparison,
    GroupState,
    Stopping,
    comparison_of,
    groups_of,
    stoppings_of,
    warnings_of,
)
from artreplay.studies.settings import AnyDrift, Arm, drift_from_json
from artreplay.studies.study_connection import StudyConnection
from artreplay.studies.study_state import StudyState

MAX_NUMBER = 1 << 62  # no study has as many decisions, and a column of a database can hold it


class StudyViews(StudyConnection):
    """What a study says of itself. Nothing here changes it."""

    def open_decisions(self) -> list[Decision]:
        """List the decisions that wait for a reward, in order.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide()
        >>> [one.id for one in study.open_decisions()] == [decision.id]
        True
        >>> study.close()
        """
        return self._read(lambda state: [decision_of(entry, state.arms, "open") for entry in state.open.values()])

    def decision(self, decision_id: str) -> Decision:
        """Find a decision by its id, in its current state.

        Parameters
        ----------
        decision_id
            The `id` of the decision.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide()
        >>> study.decision(decision.id) == decision
        True
        >>> study.close()
        """
        return self._read(lambda state: deciding.find_decision(state, decision_id)[0])

    def decisions(self, after: int = 0, state: str | None = None, limit: int | None = None) -> list[Decision]:
        """List decisions in order.

        Parameters
        ----------
        after
            The number of the last decision not to list.
        state
            Only those that are "open", "deferred", "rewarded", "expired" or "void".
        limit
            How many to list at most.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> _ = study.decide(count=3)
        >>> [one.number for one in study.decisions(after=1)]
        [2, 3]
        >>> study.close()
        """
        first = min(checked_count("after", after, 0), MAX_NUMBER)
        most = None if limit is None else min(checked_count("limit", limit), MAX_NUMBER)
        if state is not None and state not in DECISION_STATES:
            words = ", ".join(f'"{one}"' for one in DECISION_STATES)
            raise InvalidParameter(f"must be one of {words}, got {state!r}", parameter="state")
        return self._look(lambda journal, arms, until: decisions_in(journal, arms, until, first, state, most))

    def arms(self) -> list[ArmState]:
        """List the arms in order, retired ones as well. See `ArmState`.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.retire_arm("red")
        >>> [(arm.label, arm.retired) for arm in study.arms()]
        [('red', True), ('blue', False)]
        >>> study.close()
        """
        return self._read(arms_and_log.arms_of)

    def cells(self) -> list[Cell]:
        """List what is known of every arm or box, from the whole journal. See `Policy.cells`.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.observe("red", 1.0)
        >>> [(cell.unit, cell.count) for cell in study.cells()]
        [('red', 1), ('blue', 0)]
        >>> study.close()
        """
        return self._read(lambda state: state.settled().cells())

    def facts(self) -> dict[str, Any]:
        """Collect a few numbers: decisions by state, observations, late rewards, and how much of the log was read.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide()
        >>> study.facts()["decisions"]["open"]
        1
        >>> study.close()
        """
        return self._read(arms_and_log.facts_of)

    def counts(self) -> dict[str, int]:
        """Count decisions, in all and by state, observations and late rewards. This never reads the log.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide()
        >>> study.counts()["decisions"], study.counts()["rewarded"]
        (1, 0)
        >>> study.close()
        """
        return self._read(arms_and_log.counts_of)

    def settings(self) -> dict[str, Any]:
        """Collect the settings that can change, and the number of decisions after which the horizon ends.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.settings()["holdout"], study.settings()["ends_after"]
        (0.0, 100)
        >>> study.close()
        """
        return self._read(arms_and_log.settings_in)

    def ping(self) -> None:
        """Ask the database whether it still holds this study, and raise an error if it cannot be reached.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.ping()
        >>> study.close()
        """
        self._read(lambda state: self._journal.check())

    @property
    def late_rewards(self) -> int:
        """The number of rewards that came after their decision had expired, and were refused."""
        return self._read(lambda state: state.counts["late"])

    def contradictions(self) -> list[Contradiction]:
        """List the arms whose rewards contradict the log. See `Policy.contradictions`.

        As long as rewards seem to be missing (see `warnings`), nothing is blamed on the log.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.contradictions()
        []
        >>> study.close()
        """
        return self._read(
            lambda state: (
                state.fold().policy.contradictions()
                if state.can_decide and not warnings_of(state, self._clock())
                else []
            )
        )

    def warnings(self) -> list[str]:
        """Say in a sentence each what seems to be wrong with the rewards that come, if anything.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.warnings()
        []
        >>> study.close()
        """
        return self._read(lambda state: warnings_of(state, self._clock()))

    def groups(self) -> list[GroupState]:
        """List what the policy and control have earned, from decisions whose window is over. See `GroupState`."""
        return self._read(lambda state: groups_of(state, self._clock()))

    def comparison(self) -> ControlComparison | None:
        """Compare the policy with control. None before both have rewards. See `ControlComparison`."""
        return self._read(lambda state: comparison_of(state, self._clock()))

    def stopping(self) -> Stopping | None:
        """Say what stopping now would risk. None if nothing honest can be said of single arms. See `Stopping`.

        That is so if decisions are lists or points, if rewards have no range, or if the arms of a regression have
        different audiences. Compare the policy with control then.
        """
        found = self._read(lambda state: stoppings_of(state, self._clock()))
        return found[0] if len(found) == 1 and not found[0].segment else None

    def stopping_by_segment(self) -> list[Stopping]:
        """Say the same of each segment of which something is known, for an algorithm with segments."""
        return [one for one in self._read(lambda state: stoppings_of(state, self._clock())) if one.segment]

    @property
    def rounds(self) -> int:
        """The number of rewards and observations, without those of decisions that were taken out."""
        return self._read(lambda state: state.counts["reward"] + state.counts["observation"])

    @property
    def policy_kind(self) -> str:
        """How the log is shown: "artificial-replay", or "full-start"."""
        return self._read(lambda state: state.settings.policy)

    @property
    def drift(self) -> AnyDrift:
        """How far the means of the log may lie from today's: a number, or numbers by arm; 0 if its rows say it."""
        return drift_from_json(self._read(lambda state: state.settings.drift))

    @property
    def wait(self) -> timedelta | None:
        """How long the decisions to come wait for a reward. None waits for ever."""
        seconds = self._read(lambda state: state.terms.wait)
        return None if seconds is None else timedelta(seconds=seconds)

    @property
    def note(self) -> dict[str, Any]:
        """The latest note of the study."""
        return self._read(lambda state: dict(state.terms.note))

    @property
    def policy(self) -> Policy:
        """The policy after the whole journal, for reading only."""
        return self._read(lambda state: state.fold().policy)

    @property
    def base(self) -> Any:
        """The base algorithm over the current arms, without what it has learnt."""
        return self._read(lambda state: state.base.thing)

    @property
    def place(self) -> str:
        """Where the study lies, without a password."""
        return self._journal.name

    def rows(self) -> list[dict[str, Any]]:
        """List a row for each unit that was decided or observed, with its reward. See `export`.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide()
        >>> len(study.rows())
        1
        >>> study.close()
        """
        from artreplay.studies.exporting import unit_rows

        rule = self._read(drawing_rule)
        return self._look(lambda journal, arms, until: list(unit_rows(journal, arms, until, rule)))

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write decisions and observations to a Parquet file, one row for each unit.

        Parameters
        ----------
        path
            The file to write. An existing file is replaced.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide()
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.export(pathlib.Path(folder) / "decisions.parquet")
        >>> study.close()
        """
        from artreplay.studies.exporting import export

        rule = self._read(drawing_rule)
        contexts = self._read(lambda state: state.base.contexts if state.can_decide else None)
        self._look(lambda journal, arms, until: export(journal, arms, until, rule, contexts, Path(path)))

    def check(self) -> int:
        """Read the whole study, and return how many entries it has. Raise an error if anything is damaged.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.check()
        2
        >>> study.close()
        """
        return self._look(lambda journal, _, until: journal.check_entries(until))


def arms_and_decision(study: StudyViews, request: str) -> tuple[list[Arm], Decision | None]:
    """Return the arms, without what is known of them, and the decision that was made for a request, if there is one."""

    def look(state: StudyState) -> tuple[list[Arm], Decision | None]:
        number = state.journal.decision_for(request)
        made = state.journal.read(kinds=("decision",), decision=number) if number else iter(())
        return list(state.arms), next((decision_of(entry, state.arms) for entry in made), None)

    return study._read(look)
