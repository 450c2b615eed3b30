"""One run prepared for checking: what several properties need is worked out once.

Messages are numbered 0, 1, ... in the order of their identities. A *copy* is a message at one
of its destinations, whether delivered there or not. Deliveries are named by their row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK, name_of
from flexgroup.properties.kernels.disagreement import Disagreements, disagreements
from flexgroup.properties.kernels.grouping import (
    distinct,
    lookup,
    marked,
    numbered,
    runs,
    scattered,
)
from flexgroup.properties.kernels.head_merge import Merge, head_merge
from flexgroup.properties.verdict import Step
from flexgroup.trace.history import (
    History,
    Ints,
    in_order,
    may_be_lost,
    no_ints,
    of_correct,
)
from flexgroup.trace.schema import DELIVER, MULTICAST

Flags = NDArray[np.bool_]

NONE = -1
"""Stands in place of a row for what was never multicast, or not delivered."""


@dataclass(frozen=True)
class Copies:
    """Messages at their destinations, sorted; `row` is the first delivery or NONE."""

    message: Ints
    process: Ints
    row: Ints


@dataclass(frozen=True)
class DeliveryQueues:
    """First deliveries of a message at a process: their rows, where, and of which message."""

    row: Ints
    process: Ints
    message: Ints

    def chosen(self, which: Flags) -> DeliveryQueues:
        return DeliveryQueues(self.row[which], self.process[which], self.message[which])


class IndexedHistory:
    """A history with its messages numbered and its deliveries matched with their multicasts.

    If a message was multicast twice, the first multicast row counts: it is the validator of
    traces, not a property, that objects.
    """

    def __init__(self, history: History) -> None:
        self.history = without_the_faulty(history)

    @cached_property
    def _numbering(self) -> tuple[Ints, Ints]:
        """The identities of all messages, and per multicast row, and then per delivery row, the
        number of its message."""
        named = np.concatenate([self.history.multicasts.message, self.history.deliveries.message])
        _, rows, number = numbered(_narrowed(named))
        return named[rows], number

    @property
    def identities(self) -> Ints:
        """The packed identity of each message that was multicast or delivered."""
        return self._numbering[0]

    @property
    def message_count(self) -> int:
        return len(self.identities)

    @cached_property
    def multicast_row(self) -> Ints:
        """The multicast row of each message, or NONE."""
        multicast = self._numbering[1][: len(self.history.multicasts.message)]
        # The last one that is written stays, and the first is to count.
        rows = np.arange(len(multicast))[::-1]
        return scattered(self.message_count, multicast[::-1], rows)

    @cached_property
    def unrecorded(self) -> Flags:
        """Whether the multicast of each message is missing and may be among lost events."""
        unrecorded: Flags = self.multicast_row == NONE
        return unrecorded & may_be_lost(self.history.lost, self.identities)

    @property
    def delivered(self) -> Ints:
        """The number of the message of each delivery row."""
        return self._numbering[1][len(self.history.multicasts.message) :]

    @cached_property
    def copies(self) -> Copies:
        multicasts = self.history.multicasts
        messages = np.flatnonzero(self.multicast_row != NONE)
        rows = self.multicast_row[messages]
        at, owner = runs(multicasts.offsets[rows], multicasts.offsets[rows + 1])
        keys = self.keys(messages[owner], multicasts.targets[at])
        if (keys[1:] <= keys[:-1]).any():  # otherwise destinations ascend, as they should
            keys = distinct(keys)
        message, process = np.divmod(keys, self._width)
        place, found = lookup(self._delivery_keys, keys)
        row = scattered(len(keys), np.flatnonzero(found), self._rows_by_key[place[found]])
        return Copies(message, process, row)

    @cached_property
    def copy_keys(self) -> Ints:
        return self.keys(self.copies.message, self.copies.process)

    def row_at(self, message: Ints, process: Ints) -> Ints:
        """Return the rows in which destinations delivered messages, pair by pair."""
        return self.copies.row[np.searchsorted(self.copy_keys, self.keys(message, process))]

    @cached_property
    def expected(self) -> Flags:
        """Whether each delivery row is the first delivery of a message at a destination."""
        return marked(len(self.delivered), self.copies.row[self.copies.row != NONE])

    @cached_property
    def repeated(self) -> Flags:
        """Whether the process of each delivery row had delivered the message before."""
        keys = self._delivery_keys
        repeated = np.zeros(len(keys), dtype=np.bool_)
        repeated[self._rows_by_key[1:]] = keys[1:] == keys[:-1]
        return repeated

    @cached_property
    def _rows_by_key(self) -> Ints:
        """Delivery rows sorted by message and process; repetitions follow the first."""
        return in_order(self.keys(self.delivered, self.history.deliveries.process))

    @cached_property
    def _delivery_keys(self) -> Ints:
        rows = self._rows_by_key
        return self.keys(self.delivered[rows], self.history.deliveries.process[rows])

    @cached_property
    def queues(self) -> DeliveryQueues:
        row = np.flatnonzero(~self.repeated)
        return DeliveryQueues(row, self.history.deliveries.process[row], self.delivered[row])

    def earliest(self, rows: Ints) -> Ints:
        """Return, per message, which of these delivery rows has the smallest time, or NONE."""
        latest_first = rows[np.argsort(-self.history.deliveries.time[rows], kind="stable")]
        return scattered(self.message_count, self.delivered[latest_first], latest_first)

    @cached_property
    def merge(self) -> Merge:
        return head_merge(self.queues.process, self.queues.message, self.message_count)

    @cached_property
    def cyclic(self) -> DeliveryQueues:
        """The deliveries of messages in cyclic components: two messages that any two processes
        deliver in opposite orders are in one component."""
        members = np.concatenate([no_ints(), *self.merge.components])
        in_component = marked(self.message_count, members)
        return self.queues.chosen(in_component[self.queues.message])

    @cached_property
    def opposed(self) -> Disagreements:
        """Pairs of processes that delivered any two messages in opposite orders."""
        return self.opposed_among(self.cyclic, np.zeros(self.message_count, dtype=np.int64))

    def opposed_among(self, queues: DeliveryQueues, label: Ints) -> Disagreements:
        """Return the same for chosen deliveries and messages of the same label, as delivery
        rows."""
        found = disagreements(queues.process, queues.message, label)
        return Disagreements(
            queues.row[found.first],
            queues.row[found.then],
            queues.row[found.other_first],
            queues.row[found.other_then],
        )

    @cached_property
    def faulty(self) -> Ints:
        """The processes that are not correct: faulty by design, or crashed, whether they recovered
        or not."""
        crashed = self.history.crashes.process
        return np.unique(np.concatenate([crashed, np.array(self.history.faulty, dtype=np.int64)]))

    def faulty_by_design(self, processes: Ints) -> Flags:
        """Tell for each of these processes whether it is faulty by design."""
        return np.isin(processes, self.history.faulty)

    @cached_property
    def of_faulty(self) -> Flags:
        """Whether each message is of a process faulty by design: nobody knows what it multicast."""
        return self.faulty_by_design(self.identities & ORIGIN_MASK)

    @cached_property
    def _width(self) -> int:
        history = self.history
        parts = (
            history.multicasts.targets,
            history.deliveries.process,
            history.sends.process,
            history.receives.process,
        )
        return 1 + max(int(part.max(initial=0)) for part in parts)

    def keys(self, message: Ints, process: Ints) -> Ints:
        """Return one integer per (message, process), sorted as the pairs are."""
        return message * self._width + process

    def destinations(self, message: int) -> list[int]:
        start, end = np.searchsorted(self.copies.message, [message, message + 1])
        processes: list[int] = self.copies.process[start:end].tolist()
        return processes

    def identity(self, message: int) -> int:
        return int(self.identities[message])

    def node(self, process: int) -> str:
        """Return what explanations call a process."""
        return self.history.called.process(process)

    def name(self, message: int) -> str:
        """Return what a message is called where the run comes from, or its number."""
        return self.name_of_identity(self.identity(message))

    def name_of_identity(self, identity: int) -> str:
        return self.history.message_name(identity) or name_of(identity)

    def delivery(self, row: int) -> Step:
        rows = self.history.deliveries
        return Step(int(rows.process[row]), int(rows.step[row]), DELIVER, int(rows.message[row]))

    def multicast(self, message: int) -> Step:
        rows, row = self.history.multicasts, self.multicast_row[message]
        return Step(int(rows.process[row]), int(rows.step[row]), MULTICAST, int(rows.message[row]))


def without_the_faulty(history: History) -> History:
    """The history without what processes that are faulty by design did, or got from others, and
    without packets about their messages.

    Their multicasts stay: whoever delivers the message needs to know where else it was to go.
    """
    if not history.faulty:
        return history
    return replace(
        history,
        deliveries=of_correct(history.deliveries, history.faulty),
        sends=of_correct(history.sends, history.faulty),
        receives=of_correct(history.receives, history.faulty),
        views=of_correct(history.views, history.faulty),
    )


def _narrowed(identities: Ints) -> Ints:
    """Return integers in the same order that are as small as the largest origin allows: they sort
    faster."""
    origin = identities & ORIGIN_MASK
    bits = int(origin.max(initial=0)).bit_length()
    return ((identities >> ORIGIN_BITS) << bits) | origin
