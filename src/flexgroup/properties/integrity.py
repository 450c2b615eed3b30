"""Uniform integrity (Hadzilacos & Toueg 1994).

Every process delivers a message at most once, and only if it is a destination of the message
and the message was multicast.

"Was multicast" means anywhere in the run: a trace has no order between the steps of different
processes. Violations are counted in deliveries.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.indexed import NONE, IndexedHistory
from flexgroup.properties.verdict import Verdict
from flexgroup.properties.wording import Cast, at, holds, violated

NAME = "integrity"


def check(run: IndexedHistory) -> Verdict:
    deliveries = run.history.deliveries
    never_multicast = run.multicast_row[run.delivered] == NONE
    duplicate = run.repeated & ~never_multicast
    stray = ~(run.expected | run.repeated | never_multicast)
    wrong = np.flatnonzero(duplicate | stray | never_multicast)
    if len(wrong) == 0:
        return holds(run, NAME)
    row = int(wrong[np.argmin(deliveries.time[wrong])])
    message = int(run.delivered[row])
    delivery = run.delivery(row)
    if never_multicast[row]:
        witness = [delivery]
        reason = f"process {delivery.process} delivered a {at(delivery)}, which nobody multicast"
    elif duplicate[row]:
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
    kinds = [
        f"{np.count_nonzero(which)} {kind}"
        for which, kind in (
            (duplicate, "duplicate"),
            (never_multicast, "never multicast"),
            (stray, "at no destination"),
        )
        if which.any()
    ]
    lines = ["wrong deliveries: " + ", ".join(kinds), Cast(run, [message]).let(), reason]
    return violated(NAME, len(wrong), witness, lines)
