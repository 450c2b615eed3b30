"""Following one run: events in, in any batches; verdicts on violations out; state to bytes.

A follower is free of Spark, files and clocks: equal batches give equal verdicts, so a batch may be
repeated from the state before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from flexgroup.core.message import NO_MESSAGE, ORIGIN_MASK, name_of
from flexgroup.pipeline.verify.event_rows import CODES, EVENT_ROWS, integers
from flexgroup.pipeline.watch.message_intervals import MessageIntervals
from flexgroup.pipeline.watch.pending import PendingHistory, removals
from flexgroup.pipeline.watch.reassembly import Reassembly, RefusedError
from flexgroup.pipeline.watch.violation_counts import (
    ACYCLIC,
    ORDERS,
    WATCHED,
    ViolationCounts,
)
from flexgroup.properties.explanations import checked
from flexgroup.properties.indexed_history import Flags
from flexgroup.properties.opposite_orders import LOCAL, PAIRWISE
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace import schema
from flexgroup.trace.history import Deliveries, Ints, Lost, RunFacts, lost_since, no_ints

HOLD = 200_000
"""How many deliveries are kept, at most, because some process delivered them after a message that
others have yet to deliver. A message to a process that crashed may wait for ever."""

IN_DOUBT = (
    "a message that was no longer waited for was delivered after all: there may be more"
    " violations than were found, and flexgroup verify counts them"
)


class Follower:
    """Follows one run, and knows what has to be known of it."""

    def __init__(self, run: str, hold: int = HOLD) -> None:
        self.run = run
        self.hold = hold
        self.faulty: tuple[int, ...] = ()
        """The processes that are faulty by design, to be told before anything is taken."""
        self.multicasts = 0
        self.deliveries = 0
        self.in_doubt: set[str] = set()
        """Properties that may be violated in ways that cannot be seen any more."""
        self._reassembly = Reassembly()
        self._kept: pa.Table = EVENT_ROWS.empty_table()
        self._forgotten = MessageIntervals()
        self._released: Ints = no_ints()
        self._counts = ViolationCounts()

    def take(self, arrived: pa.Table) -> list[Verdict]:
        """Return the violations that show now that these rows have come.

        A verdict gives the number of violations known so far, and evidence of a new one.
        """
        rows = self._reassembly.in_order(arrived)
        _refuse_foreign_rows(rows)
        if self.faulty:
            rows = self._without_the_faulty(rows)
        found, rows = self._without_forgotten(rows)
        self._notice_late_news(rows)
        self._kept = pa.concat_tables([self._kept, rows])
        run = self._pending(complete=False)
        found += self._counts.look(run, over=False)
        self._forget(run)
        return found

    def finish(
        self, complete: bool, lost: Sequence[int] = ()
    ) -> tuple[list[Verdict], list[Verdict]]:
        """Return, at the end of the run, what was not told before, and the verdicts on everything.

        The last events of some processes may be lost.
        """
        self._reassembly.refuse_gaps()
        new = self._counts.look(self._pending(complete, self._lost_since(lost)), over=True)
        unknown = {
            verdict.property: verdict for verdict in new if verdict.outcome is Outcome.UNKNOWN
        }
        new = [verdict for verdict in new if verdict.outcome is Outcome.VIOLATED]
        seen = checked(self.deliveries, self.multicasts)
        held = Verdict("", Outcome.HOLDS, 0, None, seen)
        doubt = Verdict("", Outcome.UNKNOWN, 0, None, IN_DOUBT)
        unknown |= {name: replace(doubt, property=name) for name in self.in_doubt}
        counts = self._counts.told
        final = [
            Verdict(name, Outcome.VIOLATED, counts[name], None, seen)
            if counts.get(name)
            else unknown.get(name, replace(held, property=name))
            for name in WATCHED
        ]
        return new, final

    def _pending(self, complete: bool, lost: Lost = ()) -> PendingHistory:
        about = RunFacts(self.run, 0, complete, lost=lost, faulty=self.faulty)
        return PendingHistory(self._kept, about, self._released)

    def _without_the_faulty(self, rows: pa.Table) -> pa.Table:
        of_faulty = np.isin(integers(rows, "process"), self.faulty)
        delivered = of_faulty & (integers(rows, "event") == CODES[schema.DELIVER])
        return rows.filter(pa.array(~delivered))

    def _lost_since(self, processes: Sequence[int]) -> Lost:
        event, message = integers(self._kept, "event"), integers(self._kept, "message")
        kept = lost_since(processes, message[event == CODES[schema.MULTICAST]])
        return tuple(
            (process, max(first, self._forgotten.following(process))) for process, first in kept
        )

    def _without_forgotten(self, rows: pa.Table) -> tuple[list[Verdict], pa.Table]:
        """Return the rows about messages that are not over, and the verdict on deliveries of
        others."""
        event, message = integers(rows, "event"), integers(rows, "message")
        is_delivery = event == CODES[schema.DELIVER]
        is_multicast = event == CODES[schema.MULTICAST]
        self.deliveries += int(np.count_nonzero(is_delivery))
        self.multicasts += int(np.count_nonzero(is_multicast))
        over = (is_delivery | is_multicast) & self._forgotten.holds(message)
        over |= self._crashed_before(rows)
        if not over.any():
            return [], rows
        again = np.flatnonzero(over & is_delivery)
        found = []
        if len(again):
            # Whether the process was a destination is forgotten, too. If it was not, these
            # orders give its delivery a place.
            self.in_doubt.update((LOCAL, PAIRWISE, ACYCLIC))
            names = ("process", "step", "time", "message")
            found.append(
                self._counts.delivered_again(
                    Deliveries(*(integers(rows, name)[again] for name in names))
                )
            )
        return found, rows.filter(pa.array(~over))

    def _crashed_before(self, rows: pa.Table) -> Flags:
        """Tell which rows are crashes of processes that are known to be faulty."""
        crash = CODES[schema.CRASH]
        faulty = integers(self._kept, "process")[integers(self._kept, "event") == crash]
        again: Flags = np.isin(integers(rows, "process"), faulty)
        again &= integers(rows, "event") == crash
        return again

    def _notice_late_news(self, rows: pa.Table) -> None:
        if len(self._released) and np.isin(integers(rows, "message"), self._released).any():
            self.in_doubt.update(ORDERS)

    def _forget(self, run: PendingHistory) -> None:
        going = removals(run, self.hold)
        self._counts.components += going.components
        leaving = run.identities[going.leaving]
        self._forgotten.add(leaving)
        self._released = run.identities[going.released]
        if len(leaving):
            gone = np.isin(integers(self._kept, "message"), leaving)
            self._kept = self._kept.filter(pa.array(~gone)).combine_chunks()

    @property
    def kept(self) -> int:
        """How many events are kept."""
        return int(self._kept.num_rows) + int(self._reassembly.early.num_rows)

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Follower:
        """Return the follower of these attributes, as a snapshot gives them."""
        self = cls(state["run"])
        vars(self).update(state)
        self.faulty, self.in_doubt = tuple(self.faulty), set(self.in_doubt)
        self._reassembly = Reassembly(**state["_reassembly"])
        self._forgotten = MessageIntervals(**state["_forgotten"])
        self._counts = ViolationCounts(**state["_counts"])
        return self


def _refuse_foreign_rows(rows: pa.Table) -> None:
    event, message = integers(rows, "event"), integers(rows, "message")
    is_multicast = event == CODES[schema.MULTICAST]
    named = is_multicast | (event == CODES[schema.DELIVER])
    if (message[named] == NO_MESSAGE).any():
        raise RefusedError(
            "it has multicasts or deliveries without origin and seq, or with others than can be"
        )
    process = integers(rows, "process")
    wrong = np.flatnonzero(is_multicast & (message & ORIGIN_MASK != process))
    for row in wrong[:1]:
        raise RefusedError(
            f"process {process[row]} multicast message {name_of(int(message[row]))}, whose origin"
            " is another process"
        )
