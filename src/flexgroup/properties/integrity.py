"""Uniform integrity (Hadzilacos & Toueg 1994).

Every process delivers a message at most once, and only if it is a destination of the message
and the message was multicast.

"Was multicast" means anywhere in the run: a trace has no order between the steps of different
processes. Violations are counted in deliveries.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flexgroup.properties.indexed import NONE, Flags, IndexedHistory
from flexgroup.properties.verdict import Verdict
from flexgroup.properties.wording import Cast, at, holds, violated

NAME = "integrity"

DUPLICATE = "duplicate"
NEVER_MULTICAST = "never multicast"
STRAY = "at no destination"
KINDS = (DUPLICATE, NEVER_MULTICAST, STRAY)


def wrong_deliveries(run: IndexedHistory) -> dict[str, Flags]:
    """Per kind of error, which delivery rows are wrong in that way."""
    never_multicast = run.multicast_row[run.delivered] == NONE
    return {
        DUPLICATE: run.repeated & ~never_multicast,
        NEVER_MULTICAST: never_multicast,
        STRAY: ~(run.expected | run.repeated | never_multicast),
    }


def check(run: IndexedHistory, totals: Mapping[str, int] | None = None) -> Verdict:
    """If the history is only a part of a run, `totals` are the errors of the whole, by kind."""
    deliveries = run.history.deliveries
    flags = wrong_deliveries(run)
    wrong = np.flatnonzero(flags[DUPLICATE] | flags[NEVER_MULTICAST] | flags[STRAY])
    if len(wrong) == 0:
        return holds(run, NAME)
    row = int(wrong[np.argmin(deliveries.time[wrong])])
    message = int(run.delivered[row])
    delivery = run.delivery(row)
    if flags[NEVER_MULTICAST][row]:
        witness = [delivery]
        reason = f"process {delivery.process} delivered a {at(delivery)}, which nobody multicast"
    elif flags[DUPLICATE][row]:
        same = (run.delivered[:row] == message) & (deliveries.process[:row] == delivery.process)
        before = run.delivery(int(np.flatnonzero(same)[0]))
        witness = [before, delivery]
        reason = f"process {delivery.process} delivered a {at(before)} and again {at(delivery)}"
    else:
        multicast = run.multicast(message)
        witness = [multicast, delivery]
        reason = (
            f"process {delivery.process} delivered a {at(delivery)} and is not a destination"
            f" of it: process {multicast.process} multicast it {at(multicast)}"
        )
    counts = totals or {kind: int(np.count_nonzero(flags[kind])) for kind in KINDS}
    told = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts.get(kind))
    lines = ["wrong deliveries: " + told, Cast(run, [message]).let(), reason]
    return violated(NAME, sum(counts.values()), witness, lines)
