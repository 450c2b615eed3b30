"""What the causal past of messages requires of their destinations, in a run that comes in slices.

A slice holds, of every process, the events between two of its steps: what it multicast, and what
it delivered before it multicast something else. From slice to slice goes a *clock* for each
process and for each message that someone has yet to hear of: for every destination d, the largest
position at d of the messages to d in the causal past. Nothing else of the past matters.

Events wait for what they need: a delivery for the multicast of its message, a multicast for what
its process did before. What cannot leave in one slice waits for the next. So in the end everything
has left except what lies on loops of causes and behind them, however a run is cut; only how much
waits at a time depends on the cuts. If it becomes too much, processes that have waited for longer
than a slice are given up: of what they multicast only FIFO order is asked, as of what lies behind
loops. That is right if no message that they waited for ever leaves, since nothing that depends on
it does. Otherwise the run must be gone through again, with the clocks of those messages known from
the beginning: they are `found`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from flexgroup.properties.kernels.causal_graph import (
    NOTHING,
    CausalGraph,
    Copies,
    Flags,
    Heard,
    Sent,
)
from flexgroup.properties.kernels.grouping import distinct, largest_before, lookup, numbered
from flexgroup.properties.kernels.layered_clocks import Table
from flexgroup.trace.history import Ints, by_pairs, no_ints

NEVER = int(np.iinfo(np.int64).max)
"""The position of a message at a destination that did not deliver it."""

CLOCK_BYTES = 1 << 28
"""The clocks of a slice may take so many bytes at a time; if they would take more, one block of
destinations is handled after the other."""

MOST_WAITING = 1_000_000
"""How many events may wait before processes are given up."""


@dataclass(frozen=True)
class CausalSlice:
    """The events of a slice, in any order."""

    sent: Sent = field(default_factory=Sent)
    copies: Copies = field(default_factory=Copies)
    """Those of the messages of `sent`."""
    heard: Heard = field(default_factory=Heard)

    def __len__(self) -> int:
        return len(self.sent) + len(self.copies) + len(self.heard)

    def and_then(self, more: CausalSlice) -> CausalSlice:
        return CausalSlice(
            self.sent.and_then(more.sent),
            self.copies.and_then(more.copies),
            self.heard.and_then(more.heard),
        )

    def part(self, sent: Flags, heard: Flags) -> CausalSlice:
        """Return what was chosen of what was multicast, and of what was heard."""
        if sent.all() and heard.all():
            return self
        messages = np.sort(self.sent.message[sent])
        copies = lookup(messages, self.copies.message)[1]
        return CausalSlice(
            self.sent.chosen(sent), self.copies.chosen(copies), self.heard.chosen(heard)
        )


@dataclass
class CausalFindings:
    """What is wrong with the slices so far."""

    wrong: int = 0
    """Deliveries that came too early."""
    earliest: tuple[int, int, int, int] | None = None
    """The time of the first of them, the message, the destination, and the position there."""
    unordered: int = 0
    """Messages on loops of causes and behind them."""
    least: int = NEVER
    """The smallest of those."""

    def add(self, copies: Copies, required: Ints) -> None:
        """Count the copies that were delivered before the position that is required."""
        wrong = copies.chosen((copies.position != NEVER) & (required > copies.position))
        if len(wrong) == 0:
            return
        self.wrong += len(wrong)
        first = np.lexsort((wrong.process, wrong.message, wrong.time))[0]
        columns = (wrong.time, wrong.message, wrong.process, wrong.position)
        time, message, process, position = (int(column[first]) for column in columns)
        found = (time, message, process, position)
        self.earliest = min(self.earliest or found, found)

    def take(self, more: CausalFindings) -> None:
        """Add what other slices of the run have shown."""
        self.wrong += more.wrong
        self.unordered += more.unordered
        self.least = min(self.least, more.least)
        if more.earliest:
            self.earliest = min(self.earliest or more.earliest, more.earliest)


class CausalScan:
    """Goes through the slices of a run, in their order.

    `known` has the clocks of messages that a scan of the same run has found before.
    """

    def __init__(
        self,
        faulty: tuple[int, ...] = (),
        known: Mapping[int, Ints] | None = None,
        *,
        most_waiting: int = MOST_WAITING,
        clock_bytes: int = CLOCK_BYTES,
    ) -> None:
        self.findings = CausalFindings()
        self.found: dict[int, Ints] = {}
        self._faulty = np.array(faulty, dtype=np.int64)
        self._known = dict(known or {})
        self._most_waiting = most_waiting
        self._clock_bytes = clock_bytes
        self._width = max((len(clock) for clock in self._known.values()), default=1)
        self._processes = no_ints()
        """Those that multicast or heard anything, sorted; the rows of two tables."""
        self._clocks = self._table(0)
        self._own = self._table(0)
        """The largest positions of what the process itself multicast."""
        self._under_way = Sent()
        """The messages that someone has yet to hear of, sorted; and their clocks."""
        self._under_way_clocks = self._table(0)
        self._waiting = CausalSlice()
        self._given_up = no_ints()
        self._awaited = no_ints()

    @property
    def waits(self) -> bool:
        """Whether anything could not leave yet, or was given up."""
        return bool(len(self._waiting.sent) or len(self._given_up))

    @property
    def state_bytes(self) -> int:
        """How much goes from slice to slice, besides what waits."""
        return self._clocks.nbytes + self._own.nbytes + self._under_way_clocks.nbytes

    def advance(self, number: int, rows: CausalSlice) -> None:
        """Take the slice of this number; those without rows may be left out."""
        self._make_room(rows)
        row = self._rows_of_senders(rows)
        is_given_up = np.isin(rows.sent.process, self._given_up)
        every = self._waiting.and_then(rows)
        every = every.part(
            ~np.isin(every.sent.process, self._given_up),
            ~np.isin(every.heard.process, self._given_up),
        )
        every = replace(
            every, sent=every.sent.chosen(by_pairs(every.sent.process, every.sent.step))
        )
        graph = CausalGraph(every.sent, every.heard, self._elsewhere(), self._faulty)
        if is_given_up.any() or not graph.has_left.all():
            before = self._own_before(rows, row)
            rows = replace(rows, copies=replace(rows.copies, before=before))
            known = self._waiting.and_then(rows).copies
            # `every` has the same copies in the same order, less those of who was given up.
            kept = lookup(np.sort(every.sent.message), known.message)[1]
            every = replace(every, copies=known.chosen(kept))
        np.maximum.at(self._own, (row, rows.copies.process), rows.copies.position)
        self._judge_alone(rows.part(is_given_up, np.zeros(len(rows.heard), dtype=np.bool_)))
        self._waiting = every.part(~graph.has_left, ~graph.was_heard)
        self._fill_in(number, graph, every)
        if len(self._waiting) > self._most_waiting:
            self._give_up(number)

    def finish(self) -> None:
        """Tell that there are no more slices: what still waits lies on loops or behind them."""
        self._judge_alone(self._waiting)
        self._waiting = CausalSlice()

    def _fill_in(self, number: int, graph: CausalGraph, every: CausalSlice) -> None:
        """Find the clocks of all that has left, and what they require; keep those that matter."""
        left = every.copies.chosen(graph.has_left[graph.number(every.copies.message)])
        numbers = graph.number(left.message)
        wanted = self._still_wanted(every.sent, number) & graph.has_left
        kept = np.flatnonzero(wanted)
        awaited = np.flatnonzero(np.isin(every.sent.message, self._awaited) & graph.has_left)
        processes = np.searchsorted(self._processes, graph.processes)
        elsewhere = self._clocks_from_elsewhere(graph.elsewhere)
        required = np.empty(len(left), dtype=np.int64)
        kept_clocks, awaited_clocks = self._table(len(kept)), self._table(len(awaited))
        size = len(every.sent) + len(elsewhere) + 2 * len(processes)
        block = max(1, min(self._width, self._clock_bytes // (8 * max(1, size))))
        for first in range(0, self._width, block):
            columns = slice(first, min(self._width, first + block))
            chosen = np.flatnonzero((left.process >= first) & (left.process < first + block))
            place = left.process[chosen] - first
            clocks = graph.grow(
                self._clocks[processes, columns],
                elsewhere[:, columns],
                numbers[chosen],
                place,
                left.position[chosen],
            )
            required[chosen] = clocks[graph.row(numbers[chosen]), place]
            self._clocks[processes, columns] = clocks[graph.last_rows]
            kept_clocks[:, columns] = clocks[graph.row(kept)]
            awaited_clocks[:, columns] = clocks[graph.row(awaited)]
        self.findings.add(left, required)
        self.found.update(zip(every.sent.message[awaited].tolist(), awaited_clocks, strict=True))
        self._keep(number, every.sent.chosen(kept), kept_clocks)

    def _keep(self, number: int, more: Sent, clocks: Table) -> None:
        old = self._still_wanted(self._under_way, number)
        under_way = self._under_way.chosen(old).and_then(more)
        order = np.argsort(under_way.message)
        self._under_way = under_way.chosen(order)
        self._under_way_clocks = np.concatenate([self._under_way_clocks[old], clocks])[order]

    def _still_wanted(self, sent: Sent, number: int) -> Flags:
        """Tell of which messages someone has yet to hear."""
        return (sent.until > number) | np.isin(sent.message, self._waiting.heard.message)

    def _elsewhere(self) -> Ints:
        """Return the messages whose clocks are known though they are not of this slice."""
        known = np.array(list(self._known), dtype=np.int64)
        return distinct(np.concatenate([self._under_way.message, known]))

    def _clocks_from_elsewhere(self, messages: Ints) -> Table:
        place, is_under_way = lookup(self._under_way.message, messages)
        clocks = self._table(len(messages))
        clocks[is_under_way] = self._under_way_clocks[place[is_under_way]]
        for row in np.flatnonzero(~is_under_way).tolist():
            clock = self._known[int(messages[row])]
            clocks[row, : len(clock)] = clock
        return clocks

    def _give_up(self, number: int) -> None:
        """Let those wait no longer who have waited for longer than this slice."""
        waiting = self._waiting
        ends = np.concatenate([waiting.sent.process, waiting.heard.process])
        came = np.concatenate([waiting.sent.came, waiting.heard.came])
        stopped = distinct(ends[came < number])
        sent, heard = (np.isin(rows.process, stopped) for rows in (waiting.sent, waiting.heard))
        first = np.full(len(stopped), NEVER, dtype=np.int64)
        place = np.searchsorted(stopped, waiting.sent.process[sent])
        np.minimum.at(first, place, waiting.sent.step[sent])
        asked = waiting.heard.chosen(heard)
        needed = asked.step < first[np.searchsorted(stopped, asked.process)]
        # Those whose clocks are known did not keep anybody waiting.
        awaited = np.setdiff1d(asked.message[needed], self._elsewhere())
        self._awaited = distinct(np.concatenate([self._awaited, awaited]))
        self._given_up = distinct(np.concatenate([self._given_up, stopped]))
        self._judge_alone(waiting.part(sent, np.zeros(len(heard), dtype=np.bool_)))
        self._waiting = waiting.part(~sent, ~heard)

    def _judge_alone(self, rows: CausalSlice) -> None:
        """Ask for FIFO order only."""
        if len(rows.sent) == 0:
            return
        self.findings.unordered += len(rows.sent)
        self.findings.least = min(self.findings.least, int(rows.sent.message.min()))
        self.findings.add(rows.copies, rows.copies.before)

    def _own_before(self, rows: CausalSlice, row: Ints) -> Ints:
        """Return, per copy, the largest position of what the same process multicast before."""
        sent, copies = rows.sent, rows.copies
        order = np.argsort(sent.message)
        step = sent.step[order[np.searchsorted(sent.message[order], copies.message)]]
        values, _, rank = numbered(copies.position)
        turn = np.lexsort((step, copies.process, row))
        group = np.zeros(len(turn), dtype=np.int64)
        sender, process = row[turn], copies.process[turn]
        np.cumsum((sender[1:] != sender[:-1]) | (process[1:] != process[:-1]), out=group[1:])
        largest = largest_before(group, rank[turn])
        before = np.empty(len(turn), dtype=np.int64)
        before[turn] = np.where(largest < 0, NOTHING, values[largest]) if len(turn) else largest
        before = np.maximum(before, self._own[row, copies.process])
        before[np.isin(self._processes[row], self._faulty)] = NOTHING
        return before

    def _rows_of_senders(self, rows: CausalSlice) -> Ints:
        """Return, per copy, the row in which tables have the process that multicast it."""
        order = np.argsort(rows.sent.message)
        place = order[np.searchsorted(rows.sent.message[order], rows.copies.message)]
        return np.searchsorted(self._processes, rows.sent.process[place])

    def _make_room(self, rows: CausalSlice) -> None:
        """Let tables have a row for each process, and a column for each destination."""
        width = max(self._width, 1 + int(rows.copies.process.max(initial=0)))
        if width > self._width:
            self._clocks, self._own, self._under_way_clocks = (
                np.pad(table, ((0, 0), (0, width - self._width)), constant_values=NOTHING)
                for table in (self._clocks, self._own, self._under_way_clocks)
            )
            self._width = width
        more = np.concatenate([self._processes, rows.sent.process, rows.heard.process])
        processes = distinct(more)
        if len(processes) > len(self._processes):
            place = np.searchsorted(processes, self._processes)
            clocks, own = self._table(len(processes)), self._table(len(processes))
            clocks[place], own[place] = self._clocks, self._own
            self._processes, self._clocks, self._own = processes, clocks, own

    def _table(self, rows: int) -> Table:
        return np.full((rows, self._width), NOTHING, dtype=np.int64)
