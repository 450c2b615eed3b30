"""The flush: what is left to deliver when all domains stand still, and in which order.

The servers that go on report what they have delivered and what they have sent. Whatever one of
them has delivered, and whatever one of them has sent, every destination among them has to deliver;
so a message of a server that goes on is delivered in the configuration in which it was sent.

The order has to fit what each of them did already. A server's own sequence goes on with what it
lacks, so everything that it has delivered precedes that. These precedences are acyclic if the
stack gives a total order, since the stack's order contains them: then any order that respects them
all extends what every server did to one order of all. Where a stack gives less, servers may
contradict each other, and only what the stack promises about senders has to be respected.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

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
    """It is empty where the message is stable, and only stands for its place in the order."""
    is_stable: bool = False


class DomainReport(Struct, frozen=True, array_like=True):
    """What one server has delivered in one domain."""

    stack: str
    delivered: list[Unstable]
    """What was delivered, in this order, beginning with the first message that is not known to be
    delivered everywhere. So what is missing here, and yet delivered, was delivered before."""
    low: tuple[tuple[int, int, int], ...]
    """Groups and origins, with how many messages are delivered here without a gap."""
    own: list[Unstable] = []
    """Sent from here and not delivered here, in the order sent."""
    before_own: list[int] = []
    """How much of `delivered` had been delivered when each of `own` was sent."""
    broadcasts: bool = False
    """The stack sends every message to every server, whatever its groups."""
    promises: tuple[str, ...] = ()
    """The properties that the stack promises."""


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
        server: {identity_of(message) for message in report.delivered}
        for server, report in reports.items()
    }
    broadcasts = any(report.broadcasts for report in reports.values())

    def is_destination(server: int, message: Unstable) -> bool:
        return broadcasts or any(
            server in servers_of.get(group, ()) for group, _position in message.groups
        )

    def counts(server: int, message: Unstable) -> bool:
        """Whether the server has counted it among what it has delivered."""
        low = lows.get(server, {})
        return any(
            position < low.get((group, message.origin), 0) for group, position in message.groups
        )

    def lacks(server: int, message: Unstable) -> bool:
        return (
            is_destination(server, message)
            and identity_of(message) not in has.get(server, ())
            and not counts(server, message)
        )

    everything = {identity for identities in has.values() for identity in identities}

    def is_undelivered(message: Unstable) -> bool:
        """Whether none of the servers that go on has delivered it."""
        return identity_of(message) not in everything and not any(
            counts(server, message) for server in reports
        )

    messages: dict[Identity, Unstable] = {}
    for report in reports.values():
        for message in report.delivered:
            known = messages.get(identity_of(message))
            if known is None or known.is_stable:  # another has the payload
                messages[identity_of(message)] = message
    for report in reports.values():
        messages |= {identity_of(m): m for m in report.own if is_undelivered(m)}

    precedence = Precedence(messages.values(), reports, reporters, is_destination, lacks)
    return DomainFlush(
        stack,
        [
            message
            for message in precedence.linear_extension()
            if not message.is_stable and any(lacks(server, message) for server in reporters)
        ],
    )


def identity_of(message: Unstable) -> Identity:
    return message.origin, message.seq


class Precedence:
    """Which message has to be delivered before which, wherever both are.

    Nodes are messages, and for each server the end of what it had delivered before its report
    begins and the end of its report: everything that it lacks comes after that.
    """

    def __init__(
        self,
        messages: Iterable[Unstable],
        reports: Mapping[int, DomainReport],
        reporters: Sequence[int],
        is_destination: Callable[[int, Unstable], bool],
        lacks: Callable[[int, Unstable], bool],
    ) -> None:
        self.messages: list[Unstable | None] = [*messages]
        self._place = {identity_of(m): at for at, m in enumerate(self.messages) if m is not None}
        self._followers: list[list[int]] = [[] for _ in self.messages]
        self._preceding = [0] * len(self.messages)
        """How many messages that precede each one are not taken yet."""
        self._binding: list[list[int]] = [[] for _ in self.messages]
        self._bound_by = [0] * len(self.messages)
        """The same, of precedences that hold even where servers contradict each other."""
        for server in reporters:
            self._extend(server, reports.get(server), is_destination, lacks)
        promised = {name for report in reports.values() for name in report.promises}
        if "fifo order" in promised or "causal order" in promised:
            for server in reporters:
                self._keep_order_of_senders(server, is_destination)
        if "causal order" in promised:
            for report in reports.values():
                self._keep_what_senders_knew(report)

    def _extend(
        self,
        server: int,
        report: DomainReport | None,
        is_destination: Callable[[int, Unstable], bool],
        lacks: Callable[[int, Unstable], bool],
    ) -> None:
        """What a server has delivered precedes what it lacks."""
        delivered = [self._place[identity_of(m)] for m in report.delivered] if report else []
        begin, end = self._new_node(), self._new_node()
        for first, second in zip([begin, *delivered], [*delivered, end], strict=True):
            self._precedes(first, second)
        reported = set(delivered)
        for place, message in enumerate(self.messages):
            if message is None or place in reported or not is_destination(server, message):
                continue
            if lacks(server, message):
                self._precedes(end, place)
            else:
                self._precedes(place, begin)

    def _keep_order_of_senders(
        self, server: int, is_destination: Callable[[int, Unstable], bool]
    ) -> None:
        """An earlier message of a sender to this server precedes a later one of that sender."""
        of_sender: dict[int, list[tuple[int, int]]] = {}
        for place, message in enumerate(self.messages):
            if message is not None and is_destination(server, message):
                of_sender.setdefault(message.origin, []).append((message.seq, place))
        for sent in of_sender.values():
            sent.sort()
            for (_, first), (_, second) in pairwise(sent):
                self._binds(first, second)

    def _keep_what_senders_knew(self, report: DomainReport) -> None:
        """What had been delivered at a sender precedes what it sent then."""
        for message, count in zip(report.own, report.before_own, strict=False):
            place = self._place.get(identity_of(message))
            if place is not None and count:
                last = report.delivered[count - 1]
                self._precedes(self._place[identity_of(last)], place)

    def _new_node(self) -> int:
        self.messages.append(None)
        self._followers.append([])
        self._preceding.append(0)
        self._binding.append([])
        self._bound_by.append(0)
        return len(self.messages) - 1

    def _precedes(self, first: int, second: int) -> None:
        self._followers[first].append(second)
        self._preceding[second] += 1

    def _binds(self, first: int, second: int) -> None:
        self._binding[first].append(second)
        self._bound_by[second] += 1

    def linear_extension(self) -> list[Unstable]:
        """All messages, in an order that respects every precedence.

        Where they contradict each other, as they may without total order, the first message goes
        on that is not bound to follow another.
        """
        nodes = range(len(self.messages))
        free = [node for node in nodes if not self._preceding[node] and not self._bound_by[node]]
        unbound = [node for node in nodes if not self._bound_by[node]]
        taken = [False] * len(self.messages)
        order: list[Unstable] = []
        while free or unbound:
            node = heapq.heappop(free or unbound)
            if taken[node]:
                continue
            taken[node] = True
            message = self.messages[node]
            if message is not None:
                order.append(message)
            for follower in self._followers[node]:
                self._preceding[follower] -= 1
            for follower in self._binding[node]:
                self._bound_by[follower] -= 1
                if not self._bound_by[follower]:
                    heapq.heappush(unbound, follower)
            for follower in (*self._followers[node], *self._binding[node]):
                if not self._preceding[follower] and not self._bound_by[follower]:
                    heapq.heappush(free, follower)
        return order
