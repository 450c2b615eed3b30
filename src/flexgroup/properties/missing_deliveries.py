"""Validity, agreement and uniform agreement: deliveries that should follow.

- Validity (Hadzilacos & Toueg 1994, in the form of Schiper & Pedone 2008): if a correct process
  multicasts a message, every correct destination delivers it.
- Agreement (Hadzilacos & Toueg 1994): if a correct process delivers a message, every correct
  destination of it does.
- Uniform agreement (Hadzilacos & Toueg 1994): if any process delivers a message, even one that
  crashes later, every correct destination does.

A process is correct in a run if it never crashes in it; one that crashes and recovers is faulty.
Clients, which are processes that only multicast, are correct unless they crash. Violations are
counted in missing deliveries (message, destination). In a run that was cut short, missing
deliveries leave the verdict unknown. A message that was never multicast has no destinations:
integrity is violated then, agreement is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flexgroup.properties.explanations import Letters, at, describe, holds, plural, violated
from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.kernels.grouping import marked
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


def _by_multicasts_of_correct(run: IndexedHistory) -> Missing:
    senders = run.history.multicasts.process[run.multicast_row[run.copies.message]]
    missing = _missing_at_correct(run) & ~np.isin(senders, run.faulty)
    multicast_is_the_cause = np.full(run.message_count, NONE, dtype=np.int64)
    return Missing(np.flatnonzero(missing), multicast_is_the_cause)


def _by_deliveries_of_correct(run: IndexedHistory) -> Missing:
    return _by_deliveries(run, ~np.isin(run.history.deliveries.process, run.faulty))


def _by_deliveries_of_anybody(run: IndexedHistory) -> Missing:
    return _by_deliveries(run, np.ones(len(run.delivered), dtype=np.bool_))


FIND: dict[str, Callable[[IndexedHistory], Missing]] = {
    "validity": _by_multicasts_of_correct,
    "agreement": _by_deliveries_of_correct,
    "uniform agreement": _by_deliveries_of_anybody,
}
"""What is missing, for each property."""


def check(run: IndexedHistory, name: str, total: int | None = None) -> Verdict:
    """Return the verdict on the property of this name; if the history is only a part of a run,
    `total` is how many deliveries are missing in the whole."""
    missing = FIND[name](run)
    if len(missing.copies) == 0:
        return holds(run, name)
    count = len(missing.copies) if total is None else total
    rows = run.multicast_row[run.copies.message[missing.copies]]
    copy = int(missing.copies[np.argmin(run.history.multicasts.time[rows])])
    message, process = int(run.copies.message[copy]), int(run.copies.process[copy])
    if not run.history.complete:
        explanation = (
            f"the run was cut short while {_pending(count)} missing, the first of"
            f" {describe(run, message)} at {run.node(process)}"
        )
        return Verdict(name, Outcome.UNKNOWN, 0, None, explanation)
    cause = run.multicast(message)
    if missing.causes[message] != NONE:
        cause = run.delivery(int(missing.causes[message]))
    lines = [
        Letters(run, [message]).let(),
        f"{run.node(cause.process)}{_standing(run, cause)} {_verb(cause)} a {at(cause)}",
        f"{run.node(process)}, which never crashed, did not deliver a",
    ]
    return violated(run, name, count, [cause], lines)


def _missing_at_correct(run: IndexedHistory) -> Flags:
    """Tell, per copy, whether its destination is correct and did not deliver it."""
    missing: Flags = run.copies.row == NONE
    return missing & ~np.isin(run.copies.process, run.faulty)


def _by_deliveries(run: IndexedHistory, binding: Flags) -> Missing:
    """Return what is missing of messages with a binding delivery."""
    missing = _missing_at_correct(run)
    incomplete = marked(run.message_count, run.copies.message[missing])
    earliest_binding = run.earliest(np.flatnonzero(binding & incomplete[run.delivered]))
    missing &= earliest_binding[run.copies.message] != NONE
    return Missing(np.flatnonzero(missing), earliest_binding)


def _pending(deliveries: int) -> str:
    return plural(deliveries, "delivery") + (" was" if deliveries == 1 else " were")


def _standing(run: IndexedHistory, step: Step) -> str:
    return "" if step.process in run.faulty else ", which never crashed,"


def _verb(step: Step) -> str:
    return "multicast" if step.event == MULTICAST else "delivered"
