"""The flush: what is left to deliver when all domains stand still, and in which order.

The servers that go on report what they delivered lately. Whatever one of them delivered, every
one of them that is a destination has to deliver, in an order that fits what the others did:
their sequences are merged by taking a message when it heads every sequence that still holds it.
Then follows what they have sent and none has delivered: so a message of a server that goes on is
delivered in the configuration in which it was sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from msgspec import Struct

from flexgroup.membership.configuration import Configuration

Identity = tuple[int, int]
"""The identity of an envelope: its origin and its sequence number."""


class Unstable(Struct, frozen=True, array_like=True):
    """A message that is not known to be delivered everywhere."""

    origin: int
    """The number of the server that cast it."""
    seq: int
    groups: tuple[tuple[int, int], ...]
    """Each group's number, with the place among the messages of that origin to it."""
    payload: bytes


class DomainReport(Struct, frozen=True, array_like=True):
    """What one server has delivered in one domain."""

    stack: str
    delivered: list[Unstable]
    """The messages that are not known to be delivered everywhere, in the order of delivery."""
    low: tuple[tuple[int, int, int], ...]
    """Groups and origins, with how many messages are delivered here without a gap."""
    own: list[Unstable] = []
    """Sent from here and not delivered here, in the order sent."""
    broadcasts: bool = False
    """The stack sends every message to every server, whatever its groups."""


class DomainFlush(Struct, frozen=True, array_like=True):
    """What is still to be delivered in one domain before the next configuration."""

    stack: str
    messages: list[Unstable]
    """They stand in the order in which those who lack them deliver them."""


def merge_reports(
    before: Configuration, reports: Mapping[int, Sequence[DomainReport]]
) -> list[DomainFlush]:
    """What the servers that reported still have to deliver, per domain.

    `before` is the configuration that the messages were sent in, `reports` are those of its
    servers that go on. Messages that no destination lacks are left out.
    """
    servers_of = {group.number: group.servers() for group in before.groups}
    reported = {report.stack for server in reports for report in reports[server]}
    stacks = sorted(reported.intersection(group.stack for group in before.groups))
    return [
        _merge_domain(
            stack,
            servers_of,
            {
                server: report
                for server in sorted(reports)
                for report in reports[server]
                if report.stack == stack
            },
            tuple(sorted(reports)),
        )
        for stack in stacks
    ]


def _merge_domain(
    stack: str,
    servers_of: Mapping[int, tuple[int, ...]],
    reports: Mapping[int, DomainReport],
    reporters: tuple[int, ...],
) -> DomainFlush:
    lows = {
        server: {(group, origin): low for group, origin, low in report.low}
        for server, report in reports.items()
    }
    has = {
        server: {(message.origin, message.seq) for message in report.delivered}
        for server, report in reports.items()
    }

    broadcasts = any(report.broadcasts for report in reports.values())

    def is_destination(server: int, message: Unstable) -> bool:
        return broadcasts or any(
            server in servers_of.get(group, ()) for group, _position in message.groups
        )

    def lacks(server: int, message: Unstable) -> bool:
        if (message.origin, message.seq) in has.get(server, ()):
            return False
        if not is_destination(server, message):
            return False
        low = lows.get(server, {})
        return not any(
            position < low.get((group, message.origin), 0) for group, position in message.groups
        )

    everything = {identity for identities in has.values() for identity in identities}

    def is_undelivered(message: Unstable) -> bool:
        """Whether none of the servers that go on has delivered it."""
        if (message.origin, message.seq) in everything:
            return False
        return not any(
            position < low.get((group, message.origin), 0)
            for group, position in message.groups
            for low in lows.values()
        )

    messages = [
        message
        for message in head_merge([report.delivered for report in reports.values()])
        if any(lacks(server, message) for server in reporters)
    ]
    # No sender had delivered any of these when it sent its own, so only a sender's order binds.
    for report in reports.values():
        messages += filter(is_undelivered, report.own)
    return DomainFlush(stack, messages)


def head_merge(sequences: Sequence[Sequence[Unstable]]) -> list[Unstable]:
    """All messages once, each two in the order of every sequence that has both.

    Where the sequences contradict each other, as they may without total order, the first
    sequence that is not used up gives the next message.
    """
    queues = [deque(_once(sequence)) for sequence in sequences]
    holders: dict[Identity, int] = {}
    for queue in queues:
        for message in queue:
            identity = message.origin, message.seq
            holders[identity] = holders.get(identity, 0) + 1
    heads: dict[Identity, int] = {}
    """How many queues each message heads."""
    taken: set[Identity] = set()
    merged: list[Unstable] = []
    ready: deque[Unstable] = deque()

    def show_head(queue: deque[Unstable]) -> None:
        while queue and (queue[0].origin, queue[0].seq) in taken:
            queue.popleft()
        if queue:
            identity = queue[0].origin, queue[0].seq
            heads[identity] = heads.get(identity, 0) + 1
            if heads[identity] == holders[identity]:
                ready.append(queue[0])

    for queue in queues:
        show_head(queue)
    while True:
        if ready:
            message = ready.popleft()
        else:
            blocked = next((queue for queue in queues if queue), None)
            if blocked is None:
                return merged
            message = blocked[0]
        identity = message.origin, message.seq
        taken.add(identity)
        merged.append(message)
        for queue in queues:
            if queue and (queue[0].origin, queue[0].seq) == identity:
                show_head(queue)


def _once(sequence: Sequence[Unstable]) -> list[Unstable]:
    return list({(message.origin, message.seq): message for message in sequence}.values())
