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
from flexgroup.pipeline.in_memory.event_rows import CODES, EVENT_ROWS, integers
from flexgroup.pipeline.watch.message_intervals import MessageIntervals
from flexgroup.pipeline.watch.pending import PendingHistory, removals
from flexgroup.pipeline.watch.reassembly import Reassembly, RefusedError
from flexgroup.pipeline.watch.view_window import EVERYTHING, Passed, ViewWindow
from flexgroup.pipeline.watch.violation_counts import (
    ACYCLIC,
    CAUSAL,
    ORDERS,
    REAL_TIME,
    VIEWS,
    WATCHED,
    ViolationCounts,
)
from flexgroup.properties.explanations import checked
from flexgroup.properties.indexed_history import NONE, Flags
from flexgroup.properties.opposite_orders import LOCAL, PAIRWISE
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace import schema
from flexgroup.trace.history import Deliveries, Ints, Lost, RunFacts, lost_since, no_ints
from flexgroup.trace.names import Names

HOLD = 200_000
"""How many deliveries are kept, at most, because some process delivered them after a message that
others have yet to deliver. A message to a process that crashed may wait for ever."""

IN_DOUBT = (
    "a message that was no longer waited for was delivered after all: there may be more"
    " violations than were found, and flexgroup verify counts them"
)

CONTRADICTION = (
    "the trace contradicts itself: following causes back from a message leads to one that was"
    " delivered before it was multicast"
)


class Follower:
    """Follows one run, and knows what has to be known of it."""

    def __init__(self, run: str, hold: int = HOLD) -> None:
        self.run = run
        self.hold = hold
        self.faulty: tuple[int, ...] = ()
        """The processes that are faulty by design, to be told before anything is taken."""
        self.nodes: tuple[str, ...] = ()
        """What processes and clients are called where the run comes from, if that is known."""
        self.processes: int | None = None
        """How many processes there are, if that is known: the others are clients."""
        self.judged: set[str] = set(WATCHED)
        """What is to be judged: the causes of messages are kept only if they matter."""
        self.multicasts = 0
        self.deliveries = 0
        self.in_doubt: set[str] = set()
        """Properties that may be violated in ways that cannot be seen any more."""
        self._reassembly = Reassembly()
        self._kept: pa.Table = EVENT_ROWS.empty_table()
        self._forgotten = MessageIntervals()
        self._released: Ints = no_ints()
        self._counts = ViolationCounts()
        self._views = ViewWindow()
        self._known: dict[str, int] = {}
        """The last delivery of each process, as the last batch left it."""
        self._looked_at: dict[str, int] = {}
        """The same as the batch before it left it, which is what views were judged by."""

    def take(self, arrived: pa.Table) -> list[Verdict]:
        """Return the violations that show now that these rows have come.

        A verdict gives the number of violations known so far, and evidence of a new one.
        """
        rows = self._without_views(self._reassembly.in_order(arrived))
        _refuse_foreign_rows(rows)
        if self.faulty:
            rows = self._without_the_faulty(rows)
        found, rows = self._without_forgotten(rows)
        self._notice_late_news(rows)
        self._kept = pa.concat_tables([self._kept, rows])
        run = self._pending(complete=False)
        found += self._counts.look(run, over=False, judged=self.judged)
        found += self._look_at_views(run, self._known_then)
        self._forget(run)
        self._looked_at, self._known = self._known, self._last_deliveries()
        return found

    def _without_views(self, rows: pa.Table) -> pa.Table:
        """Hand views and crashes on to where they are kept, and return the rows without views."""
        event = integers(rows, "event")
        is_view = event == CODES[schema.VIEW]
        is_change = is_view | (event == CODES[schema.CRASH])
        if VIEWS in self.judged and is_change.any():
            changes = rows.filter(pa.array(is_change))
            self._views.take(changes, lambda process: self._looked_at.get(str(process), -1))
        return rows.filter(pa.array(~is_view)) if is_view.any() else rows

    def _look_at_views(self, run: PendingHistory, passed: Passed) -> list[Verdict]:
        verdict = self._views.look(run, passed) if VIEWS in self.judged else None
        if self._views.is_cut:
            self.in_doubt.add(VIEWS)
        return [] if verdict is None else [self._counts.tell(verdict)]

    def _known_then(self, process: int) -> int:
        """Return the last step of a process that was known before this batch."""
        return self._known.get(str(process), -1)

    def _last_deliveries(self) -> dict[str, int]:
        begin = f"{schema.DELIVER} at "
        last = self._reassembly.last_step.items()
        return {name.removeprefix(begin): step for name, step in last if name.startswith(begin)}

    def finish(
        self, complete: bool, lost: Sequence[int] = ()
    ) -> tuple[list[Verdict], list[Verdict]]:
        """Return, at the end of the run, what was not told before, and the verdicts on everything.

        The last events of some processes may be lost.
        """
        self._reassembly.refuse_gaps()
        run = self._pending(complete, self._lost_since(lost))
        new = self._counts.look(run, over=True, judged=self.judged)
        new += self._look_at_views(run, lambda process: EVERYTHING)
        unknown = {
            verdict.property: verdict for verdict in new if verdict.outcome is Outcome.UNKNOWN
        }
        new = [verdict for verdict in new if verdict.outcome is Outcome.VIOLATED]
        seen = checked(self.deliveries, self.multicasts)
        held = Verdict("", Outcome.HOLDS, 0, None, seen)
        doubt = Verdict("", Outcome.UNKNOWN, 0, None, IN_DOUBT)
        unknown |= {name: replace(doubt, property=name) for name in self.in_doubt}
        if self._counts.contradicts_itself:
            self.in_doubt.add(CAUSAL)
            unknown[CAUSAL] = Verdict(CAUSAL, Outcome.UNKNOWN, 0, None, CONTRADICTION)
        without_views = self._views.outcome_without_violations()
        if without_views is not None:
            unknown[VIEWS] = without_views
        counts = self._counts.told
        final = [
            Verdict(name, Outcome.VIOLATED, counts[name], None, seen)
            if counts.get(name)
            else unknown.get(name, replace(held, property=name))
            for name in WATCHED
        ]
        return new, final

    def _pending(self, complete: bool, lost: Lost = ()) -> PendingHistory:
        about = RunFacts(self.run, 0, complete, lost=lost, faulty=self.faulty, nodes=self.nodes)
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
            # orders give its delivery a place, and it counts in its view.
            self.in_doubt.update((CAUSAL, LOCAL, PAIRWISE, ACYCLIC, REAL_TIME, VIEWS))
            names = ("process", "step", "time", "message")
            found.append(
                self._counts.delivered_again(
                    Deliveries(*(integers(rows, name)[again] for name in names)),
                    Names(nodes=self.nodes),
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
        uncertain = self._views.unsettled(run, self._known_then) if VIEWS in self.judged else None
        if CAUSAL in self.judged:
            causes = self._uncertain(run)
            uncertain = causes if uncertain is None else uncertain | causes
        going = removals(run, self.hold, uncertain, has_causes=CAUSAL in self.judged)
        if going.gave_up:
            # What was waited for may be the cause of messages to come, stands before them, and may
            # be missing in a view that is still to be heard of.
            self.in_doubt.update((CAUSAL, REAL_TIME, VIEWS))
        self._counts.components += going.components
        if REAL_TIME in self.judged:
            self._counts.real_time.forget(run, going.leaving)
        leaving = run.identities[going.leaving]
        self._forgotten.add(leaving)
        self._released = run.identities[going.released]
        if len(leaving):
            gone = np.isin(integers(self._kept, "message"), leaving)
            self._kept = self._kept.filter(pa.array(~gone)).combine_chunks()
        if VIEWS in self.judged:
            seen = self._last_deliveries()
            kept = self._pending(complete=False)
            self._views.forget(kept, lambda process: seen.get(str(process), -1))

    def _uncertain(self, run: PendingHistory) -> Flags:
        """Tell of which messages the sender may have delivered more before it multicast them."""
        known = np.flatnonzero(run.multicast_row != NONE)
        rows, sent = run.multicast_row[known], run.history.multicasts
        processes, place = np.unique(sent.process[rows], return_inverse=True)
        passed = np.array([self._passed(process) for process in processes.tolist()], dtype=np.int64)
        uncertain = np.zeros(run.message_count, dtype=np.bool_)
        uncertain[known] = sent.step[rows] > passed[place] if len(known) else False
        return uncertain

    def _passed(self, process: int) -> int:
        """Return the step up to which all deliveries of a process are known."""
        last = self._reassembly.last_step.get(f"{schema.DELIVER} at {process}")
        is_client = self.processes is not None and process >= self.processes and last is None
        if is_client or process in self.faulty:
            return int(np.iinfo(np.int64).max)
        return -1 if last is None else last

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
        self.nodes = tuple(self.nodes)
        self.judged = set(self.judged)
        self._reassembly = Reassembly(**state["_reassembly"])
        self._forgotten = MessageIntervals(**state["_forgotten"])
        self._counts = ViolationCounts.restored(state["_counts"])
        if "_views" in state:
            self._views = ViewWindow(**state["_views"])
        else:  # it was followed by a version that did not keep what these need
            self._views = ViewWindow()
            self.in_doubt |= {CAUSAL, REAL_TIME, VIEWS}
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
