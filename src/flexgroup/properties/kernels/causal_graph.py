"""What precedes what within a slice of a run, between the clocks that enter and those that leave.

See `causal_slices`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from flexgroup.properties.kernels.grouping import distinct, lookup, scattered
from flexgroup.properties.kernels.layered_clocks import LayeredClocks, Table
from flexgroup.trace.history import Ints, by_pairs, no_ints

NOTHING = -1
"""Less than any position."""

Flags = NDArray[np.bool_]


class _Columns:
    """Arrays of equal length."""

    def chosen(self, which: Flags | Ints) -> Self:
        return type(self)(*(column[which] for column in vars(self).values()))

    def and_then(self, more: Self) -> Self:
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return type(self)(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class Sent(_Columns):
    """Messages as they were multicast; `until` is the last slice in which someone hears of each,
    `came` the slice in which the row came."""

    process: Ints = field(default_factory=no_ints)
    step: Ints = field(default_factory=no_ints)
    message: Ints = field(default_factory=no_ints)
    until: Ints = field(default_factory=no_ints)
    came: Ints = field(default_factory=no_ints)

    def __len__(self) -> int:
        return len(self.message)


@dataclass(frozen=True)
class Copies(_Columns):
    """Messages at their destinations: their positions there, or NEVER, and when that was; and the
    largest position there of what the same process multicast before, where that is known."""

    message: Ints = field(default_factory=no_ints)
    process: Ints = field(default_factory=no_ints)
    position: Ints = field(default_factory=no_ints)
    time: Ints = field(default_factory=no_ints)
    before: Ints = field(default_factory=no_ints)

    def __len__(self) -> int:
        return len(self.message)


@dataclass(frozen=True)
class Heard(_Columns):
    """Deliveries by processes that multicast something afterwards; `came` is the slice in which
    the row came."""

    process: Ints = field(default_factory=no_ints)
    step: Ints = field(default_factory=no_ints)
    message: Ints = field(default_factory=no_ints)
    came: Ints = field(default_factory=no_ints)

    def __len__(self) -> int:
        return len(self.message)


class CausalGraph:
    """The messages that were multicast in a slice, sorted by process and step, and what precedes
    them.

    Nodes are, in turn: the clocks with which processes enter the slice; those of messages from
    elsewhere that are heard of; the messages themselves; and the clocks with which processes leave.
    """

    def __init__(self, sent: Sent, heard: Heard, elsewhere: Ints, faulty: Ints) -> None:
        self.processes = distinct(np.concatenate([sent.process, heard.process]))
        self._sender = np.searchsorted(self.processes, sent.process)
        # What a process that is faulty by design multicast says nothing of what it multicast then.
        self._bound = ~np.isin(sent.process, faulty)
        self._number = np.argsort(sent.message)
        self._identities = sent.message[self._number]
        self.elsewhere = distinct(heard.message[lookup(elsewhere, heard.message)[1]])
        active = len(self.processes)
        self._first = active + len(self.elsewhere)
        self._leaving = self._first + len(sent)
        next_ = self._next(heard, sent)
        edges = np.concatenate(
            [self._within_processes(), np.stack([self._sources(heard, next_), next_])], axis=1
        )
        self._clocks = LayeredClocks(edges[0], edges[1], self._leaving + active)
        row = self._clocks.row
        self.has_left = row[self._first : self._leaving] >= 0
        """Whether each message depends on nothing that still waits."""
        self.was_heard = row[next_] >= 0
        """Whether each delivery has been taken into account."""

    def number(self, messages: Ints) -> Ints:
        """Return the numbers of messages of this slice."""
        return self._number[np.searchsorted(self._identities, messages)]

    def grow(
        self, entering: Table, elsewhere: Table, number: Ints, place: Ints, position: Ints
    ) -> Table:
        """Return the clocks of everything that has left.

        Given are the clocks that enter, and copies of messages: their numbers, their places in
        a clock, and their positions.
        """
        clocks = np.full((len(self._clocks.order), entering.shape[1]), NOTHING, dtype=np.int64)
        row = self._clocks.row
        clocks[row[: len(entering)]] = entering
        clocks[row[len(entering) : self._first]] = elsewhere
        clocks[row[self._first + number], place] = position
        self._clocks.grow(clocks)
        return clocks

    def row(self, number: Ints) -> Ints:
        """Return where the clocks of messages are that have left."""
        return self._clocks.row[self._first + number]

    @cached_property
    def last_rows(self) -> Ints:
        """Where the clocks are with which processes go on."""
        row = self._clocks.row
        last = np.arange(len(self.processes))
        chosen = np.flatnonzero(self.has_left & self._bound)
        last[self._sender[chosen]] = self._first + chosen
        leaving = self._leaving + np.arange(len(self.processes))
        return row[np.where(row[leaving] >= 0, leaving, last)]

    def _next(self, heard: Heard, sent: Sent) -> Ints:
        """Return, per delivery, what the same process multicast next, or the clock with which it
        leaves."""
        hearer = np.searchsorted(self.processes, heard.process)
        order = by_pairs(
            np.concatenate([hearer, self._sender]), np.concatenate([heard.step, sent.step])
        )
        is_sent = order >= len(heard)
        before = scattered(len(order), order, np.cumsum(is_sent))[: len(heard)]
        beyond = np.append(self._sender, NOTHING)
        return np.where(beyond[before] == hearer, self._first + before, self._leaving + hearer)

    def _sources(self, heard: Heard, next_: Ints) -> Ints:
        """Return the node of the message of each delivery; where it is not known yet, what comes
        next waits for itself."""
        if len(heard) == 0:
            return no_ints()
        place, is_elsewhere = lookup(self.elsewhere, heard.message)
        within, is_here = lookup(self._identities, heard.message)
        sources = next_.copy()
        sources[is_here] = self._first + self._number[within[is_here]]
        sources[is_elsewhere] = len(self.processes) + place[is_elsewhere]
        return sources

    def _within_processes(self) -> NDArray[np.int64]:
        """Return edges from the clock with which a process enters through what it multicast to
        that with which it leaves."""
        active, count = len(self.processes), len(self._sender)
        nodes = self._first + np.arange(count)
        bound = np.flatnonzero(self._bound)
        before = np.arange(active)[self._sender]
        follows = self._sender[1:] == self._sender[:-1]
        before[1:][follows] = nodes[:-1][follows]
        last = np.arange(active)
        last[self._sender[bound]] = nodes[bound]
        leaving = self._leaving + np.arange(active)
        return np.stack(
            [np.concatenate([before[bound], last]), np.concatenate([nodes[bound], leaving])]
        )
