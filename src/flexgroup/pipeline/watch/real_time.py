"""Real-time order while a run goes on: what has to be known of messages that were forgotten.

All that a process delivered before a message that is kept is ordered before that message. So of
what was forgotten one multicast for each process is enough: the latest of all messages that it
delivered and of those that were ordered before them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from flexgroup.pipeline.watch.pending import PendingHistory
from flexgroup.properties import real_time_order
from flexgroup.properties.explanations import Letters, at, violated
from flexgroup.properties.indexed_history import NONE, Flags
from flexgroup.properties.kernels.grouping import places, scattered
from flexgroup.properties.kernels.head_merge import latest_ancestor
from flexgroup.properties.verdict import Step, Verdict
from flexgroup.trace.history import Ints, no_ints
from flexgroup.trace.schema import MULTICAST


@dataclass(frozen=True)
class _Latest:
    """The latest multicast among each message and all that are ordered before it.

    Multicasts are numbered: first those of messages that are kept, then those that stand for what
    was forgotten.
    """

    of_message: Ints
    """The number of that multicast, or NONE."""
    time: Ints
    kept: Ints
    """The messages that are kept, by the numbers of their multicasts."""
    forgotten: list[list[int]]


@dataclass
class RealTimeOrder:
    """The violations of real-time order in one run that were counted, and what was forgotten."""

    forgotten: dict[str, list[int]] = field(default_factory=dict)
    """Time, process, step and message of the latest multicast, by process."""
    violations: int = 0
    counted: Ints = field(default_factory=no_ints)
    """The messages that are kept and were counted already."""

    def look(self, run: PendingHistory) -> Verdict | None:
        """Return the verdict if more messages were delivered too early than were counted."""
        latest = self._latest(run)
        times = run.history.deliveries.time
        first = run.earliest(run.queues.row)
        suspects = np.flatnonzero((first != NONE) & (latest.of_message != NONE))
        sent = latest.time[latest.of_message[suspects]]
        wrong = suspects[sent > times[first[suspects]]]
        new = wrong[~np.isin(run.identities[wrong], self.counted)]
        self.counted = run.identities[wrong]
        self.violations += len(new)
        if len(new) == 0:
            return None
        early = int(new[np.argmin(times[first[new]])])
        number, row = int(latest.of_message[early]), int(first[early])
        if number < len(latest.kept):
            ancestor = int(latest.kept[number])
            return real_time_order.violation(run, self.violations, ancestor, early, row)
        return self._after_forgotten(run, early, row, latest.forgotten[number - len(latest.kept)])

    def forget(self, run: PendingHistory, leaving: Flags) -> None:
        """Keep what has to be known of the messages that leave."""
        latest, queues = self._latest(run), run.queues
        gone = np.flatnonzero(leaving[queues.message] & (latest.of_message[queues.message] != NONE))
        process, number = queues.process[gone], latest.of_message[queues.message[gone]]
        order = np.lexsort((latest.time[number], process))
        ends = np.flatnonzero(np.append(process[order][1:] != process[order][:-1], True))
        for last in order[ends[: len(order)]].tolist():
            self._remember(run, str(process[last]), latest, int(number[last]))

    def _remember(self, run: PendingHistory, process: str, latest: _Latest, number: int) -> None:
        if number >= len(latest.kept):
            multicast = latest.forgotten[number - len(latest.kept)]
        else:
            step = run.multicast(int(latest.kept[number]))
            multicast = [int(latest.time[number]), step.process, step.step, step.message]
        self.forgotten[process] = max(self.forgotten.get(process, multicast), multicast)

    def _latest(self, run: PendingHistory) -> _Latest:
        sent, queues = run.history.multicasts, run.queues
        kept = np.flatnonzero((run.multicast_row != NONE) & ~run.of_faulty)
        processes = np.array([*map(int, self.forgotten)], dtype=np.int64)
        forgotten = list(self.forgotten.values())
        late = np.array([multicast[0] for multicast in forgotten], dtype=np.int64)
        time = np.concatenate([sent.time[run.multicast_row[kept]], late])
        by_time = np.argsort(time, kind="stable")
        rank = places(by_time)
        own = scattered(run.message_count, kept, rank[: len(kept)])
        # Whatever a process delivers next comes behind all that it delivered and that is forgotten.
        head = np.searchsorted(queues.process, processes)
        there = np.append(queues.process, NONE)[head] == processes
        np.maximum.at(own, queues.message[head[there]], rank[len(kept) :][there])
        highest = latest_ancestor(run.merge, queues.process, queues.message, own)
        of_message = np.where(highest == NONE, NONE, np.append(by_time, NONE)[highest])
        return _Latest(of_message, time, kept, forgotten)

    def _after_forgotten(
        self, run: PendingHistory, early: int, row: int, multicast: list[int]
    ) -> Verdict:
        time, process, step, message = multicast
        sent = Step(process, step, MULTICAST, message)
        letter = Letters(run, [early])
        a, delivery = letter[early], run.delivery(row)
        lines = [
            letter.let() + f", b = message {run.name_of_identity(message)}",
            "b is ordered before a, through messages that all their destinations have delivered and"
            " that are not kept any more",
            f"but {run.node(delivery.process)} delivered {a} {at(delivery)} at time"
            f" {int(run.history.deliveries.time[row])}, before {run.node(process)} multicast b"
            f" {at(sent)} at time {time}",
        ]
        return violated(run, real_time_order.NAME, self.violations, [delivery, sent], lines)
