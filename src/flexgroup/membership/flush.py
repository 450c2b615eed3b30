"""The flush: what is left to deliver when a domain stands still, and in which order.

A change that nobody fails in needs none: messages are delivered by the stack before it.

The servers that go on report what they have delivered and what they have sent. Whatever one of
them has delivered, and whatever one of them has sent, every destination among them has to deliver;
so a message of a server that goes on is delivered in the configuration in which it was sent.

The order has to fit what each of them did already. A server's own sequence goes on with what it
lacks, so everything that it has delivered precedes that. These precedences are acyclic if the
stack gives a total order, since the stack's order contains them: then any order that respects them
all extends what every server did to one order of all. Where a stack gives less, servers may
contradict each other, and only what the stack promises about senders has to be respected. A sender
that has failed reports nothing; so every message tells itself what it has to follow.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from flexgroup.membership.configuration import Configuration, GroupEntry

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
    past: tuple[int, ...] = ()
    """How many messages of each server of the domain causally precede it, if the stack promises
    causal order and the message is not stable."""


class DomainReport(Struct, frozen=True, array_like=True):
    """What one server has delivered in one domain."""

    domain: int
    delivered: list[Unstable]
    """What was delivered, in this order, beginning with the first message that is not known to be
    delivered everywhere. So what is missing here, and yet delivered, was delivered before."""
    low: tuple[tuple[int, int, int], ...]
    """Groups and origins, with how many messages are delivered here without a gap."""
    own: list[Unstable] = []
    """Sent from here and not delivered here, in the order sent."""
    held_back: int = 0
    """How many at the end of `delivered` only the stack has delivered, and not the server: it is
    not known yet that all destinations have them."""
    broadcasts: bool = False
    """The stack sends every message to every server, whatever its groups."""
    promises: tuple[str, ...] = ()
    """The properties that the stack promises."""


class Report(Struct, frozen=True, array_like=True):
    """What a server tells when it has stopped what a change concerns."""

    domains: list[DomainReport] = []
    """The reports of all domains that are frozen there, whether they were to be frozen for this
    attempt or for another one."""
    casts: tuple[tuple[int, int], ...] = ()
    """The groups that are held, with how many messages the server has multicast to each."""
    restarted: int = 0
    """How often the server has come back, if it has lost what its domains had; otherwise 0."""
    left: tuple[int, ...] = ()
    """The domains of partitionable groups that the server has left for a side."""


class DomainFlush(Struct, frozen=True, array_like=True):
    """What is still to be delivered in one domain before it begins anew."""

    domain: int
    messages: list[Unstable]
    """They stand in the order in which those who lack them deliver them."""
    dropped: tuple[Identity, ...] = ()
    """What was held back and is delivered nowhere: it came from a server that failed, and one of
    the others does not have it, or something before it, so nobody can have delivered it."""
    together: tuple[int, ...] = ()
    """The servers that come to the end of the domain together; if empty, all that go on do."""


def merge_reports(
    before: Configuration, reports: Mapping[int, Report], frozen: Collection[int]
) -> list[DomainFlush]:
    """What the servers that reported still have to deliver in these domains.

    `before` is the configuration that the messages were sent in, `reports` are those of its
    servers that go on. Messages that no destination lacks are left out.
    """
    if not frozen:
        return []  # as a rule; and there may be many groups
    return [
        _merge_domain(
            domain.number,
            before.group_numbered,
            {
                server: report
                for server in sorted(reports)
                for report in reports[server].domains
                if report.domain == domain.number
            },
            tuple(
                server
                for server in domain.servers
                if server in reports and domain.number not in reports[server].left
            ),
            domain.servers,
        )
        for domain in before.domains
        if domain.number in frozen
    ]


def _merge_domain(
    domain: int,
    groups: Mapping[int, GroupEntry],
    reports: Mapping[int, DomainReport],
    reporters: tuple[int, ...],
    servers: tuple[int, ...],
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

    def is_served(group: int, server: int) -> bool:
        return group in groups and server in groups[group].servers

    def is_destination(server: int, message: Unstable) -> bool:
        return broadcasts or any(is_served(group, server) for group, _position in message.groups)

    def counts(server: int, message: Unstable) -> bool:
        """Whether the server has counted it among what it has delivered.

        It has done so for each of the groups, unless it came to one of them afterwards: then it
        began to count there with what had been delivered to the others.
        """
        low = lows.get(server, {})
        counted = [
            position < low.get((group, message.origin), 0)
            for group, position in message.groups
            if broadcasts or is_served(group, server)
        ]
        return bool(counted) and all(counted)

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

    precedence = Precedence(messages.values(), reports, reporters, servers, is_destination, lacks)
    order = [message for message in precedence.linear_extension() if not message.is_stable]
    incomplete = {
        identity_of(message)
        for message in order
        if any(lacks(server, message) for server in reporters)
    }
    held_back = _only_held_back(reports)
    in_doubt = [m for m in order if m.origin not in reporters and identity_of(m) in held_back]

    def destinations(message: Unstable) -> set[int]:
        return {server for server in servers if is_destination(server, message)}

    dropped = _dropped(in_doubt, incomplete, destinations, precedence.keeps_order_of_senders)
    return DomainFlush(
        domain,
        [m for m in order if identity_of(m) in incomplete and identity_of(m) not in dropped],
        tuple(dropped),
    )


def _dropped(
    in_doubt: Iterable[Unstable],
    incomplete: Collection[Identity],
    destinations: Callable[[Unstable], set[int]],
    keeps_order_of_senders: bool,
) -> list[Identity]:
    """What is delivered nowhere, of the messages of servers that failed which are only held back.

    Nobody has delivered one that some destination lacks. That one may lack something earlier as
    well, which is lost. If the stack keeps the order of a sender, nobody has delivered anything
    later of it either where it is held back behind that; delivered now, it would leave a gap.
    """
    dropped: list[Identity] = []
    behind: dict[int, set[int]] = {}
    """The servers that deliver nothing later of each sender."""
    for message in in_doubt:
        waiting = behind.setdefault(message.origin, set())
        if identity_of(message) in incomplete or destinations(message) <= waiting:
            dropped.append(identity_of(message))
            if keeps_order_of_senders:
                waiting |= destinations(message)
    return dropped


def _only_held_back(reports: Mapping[int, DomainReport]) -> set[Identity]:
    """What no server that reported has delivered, although the stack of some has."""
    held_back: set[Identity] = set()
    delivered: set[Identity] = set()
    for report in reports.values():
        count = len(report.delivered) - report.held_back
        delivered.update(identity_of(message) for message in report.delivered[:count])
        held_back.update(identity_of(message) for message in report.delivered[count:])
    return held_back - delivered


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
        servers: Sequence[int],
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
        promised = {name for report in reports.values() for name in report.promises}
        self.keeps_order_of_senders = not promised.isdisjoint(("fifo order", "causal order"))
        for server in reporters:
            lacking = self._extend(server, reports.get(server), is_destination, lacks)
            if self.keeps_order_of_senders:
                sent = self._sent_to(server, is_destination)
                self._keep_order_of_senders(sent)
                if "causal order" in promised:
                    self._keep_what_senders_knew(sent, lacking, servers)

    def _extend(
        self,
        server: int,
        report: DomainReport | None,
        is_destination: Callable[[int, Unstable], bool],
        lacks: Callable[[int, Unstable], bool],
    ) -> set[int]:
        """What a server has delivered precedes what it lacks; the places of that."""
        delivered = [self._place[identity_of(m)] for m in report.delivered] if report else []
        begin, end = self._new_node(), self._new_node()
        for first, second in zip([begin, *delivered], [*delivered, end], strict=True):
            self._precedes(first, second)
        reported = set(delivered)
        lacking: set[int] = set()
        for place, message in enumerate(self.messages):
            if message is None or place in reported or not is_destination(server, message):
                continue
            if lacks(server, message):
                self._precedes(end, place)
                lacking.add(place)
            else:
                self._precedes(place, begin)
        return lacking

    def _sent_to(
        self, server: int, is_destination: Callable[[int, Unstable], bool]
    ) -> dict[int, list[tuple[int, int]]]:
        """The messages to a server, in the order of each sender: their numbers and places."""
        of_sender: dict[int, list[tuple[int, int]]] = {}
        for place, message in enumerate(self.messages):
            if message is not None and is_destination(server, message):
                of_sender.setdefault(message.origin, []).append((message.seq, place))
        for sent in of_sender.values():
            sent.sort()
        return of_sender

    def _keep_order_of_senders(self, of_sender: Mapping[int, list[tuple[int, int]]]) -> None:
        """An earlier message of a sender to a server precedes a later one of that sender."""
        for sent in of_sender.values():
            for (_, first), (_, second) in pairwise(sent):
                self._binds(first, second)

    def _keep_what_senders_knew(
        self,
        of_sender: Mapping[int, list[tuple[int, int]]],
        lacking: Collection[int],
        servers: Sequence[int],
    ) -> None:
        """What precedes a message causally precedes it at a server that lacks it.

        The last one of each sender is enough, since that sender's others precede it; and so is
        what the message's own sender has learnt since its last message to the server.
        """
        for origin, sent in of_sender.items():
            known: tuple[int, ...] = (0,) * len(servers)
            for _, place in sent:
                message = self.messages[place]
                if message is None or not message.past or place not in lacking:
                    continue
                for sender, count, before in zip(servers, message.past, known, strict=False):
                    if count == before or sender == origin or sender not in of_sender:
                        continue
                    earlier = of_sender[sender]
                    last = bisect_left(earlier, (count, 0)) - 1
                    if last >= 0:
                        self._binds(earlier[last][1], place)
                known = message.past

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
        # Only reports that are wrong leave anything; nobody should lack it for that.
        left = [m for m, is_taken in zip(self.messages, taken, strict=True) if not is_taken]
        return order + [message for message in left if message is not None]
