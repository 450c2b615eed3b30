"""Verdicts on deliveries that should follow: violated at the end of a run, unknown before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexgroup.properties.explanations import Letters, at, describe, holds, plural, violated
from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import MULTICAST


@dataclass(frozen=True)
class Missing:
    """The copies that should have been delivered and were not.

    `causes` is, per message, the delivery row that makes its delivery due, or NONE if that is
    its multicast.
    """

    copies: Ints
    causes: Ints


def missing_at_correct(run: IndexedHistory) -> Flags:
    """Tell, per copy, whether its destination is correct and did not deliver it."""
    missing: Flags = run.copies.row == NONE
    return missing & ~np.isin(run.copies.process, run.faulty)


def earliest(run: IndexedHistory, copies: Ints) -> int:
    """Return, of the given copies, the one that was multicast first."""
    rows = run.multicast_row[run.copies.message[copies]]
    return int(copies[np.argmin(run.history.multicasts.time[rows])])


def judge(run: IndexedHistory, name: str, missing: Missing, total: int | None = None) -> Verdict:
    """Return the verdict on copies that are missing; if the history is only a part of a run,
    `total` is how many are missing in the whole."""
    if len(missing.copies) == 0:
        return holds(run, name)
    count = len(missing.copies) if total is None else total
    copy = earliest(run, missing.copies)
    message, process = int(run.copies.message[copy]), int(run.copies.process[copy])
    if not run.history.complete:
        explanation = (
            f"the run was cut short while {_pending(count)} missing, the first of"
            f" {describe(run, message)} at process {process}"
        )
        return Verdict(name, Outcome.UNKNOWN, 0, None, explanation)
    cause = run.multicast(message)
    if missing.causes[message] != NONE:
        cause = run.delivery(int(missing.causes[message]))
    lines = [
        Letters(run, [message]).let(),
        f"process {cause.process}{_standing(run, cause)} {_verb(cause)} a {at(cause)}",
        f"process {process}, which never crashed, did not deliver a",
    ]
    return violated(name, count, [cause], lines)


def _pending(deliveries: int) -> str:
    return plural(deliveries, "delivery") + (" was" if deliveries == 1 else " were")


def _standing(run: IndexedHistory, step: Step) -> str:
    return "" if step.process in run.faulty else ", which never crashed,"


def _verb(step: Step) -> str:
    return "multicast" if step.event == MULTICAST else "delivered"
