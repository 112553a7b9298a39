"""Decisions that last: a journal in a database, many open decisions, arms that come and go."""

from artreplay.studies.arms_and_log import ArmState
from artreplay.studies.decisions import Decision
from artreplay.studies.decisions_protocol import Decisions
from artreplay.studies.judging import ControlComparison, GroupState, Stopping
from artreplay.studies.study import Study

__all__ = ["ArmState", "ControlComparison", "Decision", "Decisions", "GroupState", "Stopping", "Study"]
