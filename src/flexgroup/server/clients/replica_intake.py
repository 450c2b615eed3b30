"""What clients send to groups of replicas, until it is multicast, and what they want confirmed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, final

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.message import MessageId
from flexgroup.membership.configuration import Configuration, GroupEntry
from flexgroup.membership.next_configuration import not_here
from flexgroup.server.clients.contents import packed_one_by_one
from flexgroup.server.clients.refused_messages import refuse_message
from flexgroup.server.clients.session import Session
from flexgroup.server.hosting.replica import Replica
from flexgroup.server.hosting.replicas import Replicas
from flexgroup.server.settings import Limits
from flexgroup.wire import refusals
from flexgroup.wire.requests import Confirm, Done

PACK_BYTES: Final = 64 << 10


class Waiting(NamedTuple):
    """A message of a client that is not multicast yet."""

    ticket: int
    session: Session
    sender: str
    groups: tuple[int, ...]
    body: bytes


class Unconfirmed(NamedTuple):
    """A request that waits until all before this ticket is delivered."""

    ticket: int
    session: Session
    request: Confirm


@final
class Line:
    """What clients of this server have sent to one replica."""

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self.unconfirmed: list[Unconfirmed] = []
        self.tickets = 0
        """How many messages have come."""
        self.under_way: dict[MessageId, int] = {}
        """The first ticket in each envelope that is not delivered yet."""

    def settled(self) -> int:
        """All messages before this ticket are delivered."""
        first = self.waiting[0].ticket if self.waiting else self.tickets
        return min([first, *self.under_way.values()])


@final
class ReplicaIntake:
    def __init__(self, replicas: Replicas, limits: Limits) -> None:
        self._replicas = replicas
        self._limits = limits
        self._lines: dict[int, Line] = {}
        """What waits for each replica, by the number of its domain."""
        replicas.cast_waiting = self._cast_waiting
        replicas.delivered = self._look

    def takes(self, groups: tuple[int, ...]) -> bool:
        """Whether messages to these groups are multicast by a replica here."""
        of_group = self._replicas.of_group
        return bool(of_group) and groups[0] in of_group

    @property
    def is_holding(self) -> bool:
        return any(line.waiting or line.under_way for line in self._lines.values())

    def send(
        self, session: Session, sender: str, groups: tuple[int, ...], bodies: list[bytes]
    ) -> None:
        replica = self._replicas.of_group[groups[0]]
        if replica.group.number not in groups:
            others = [group for group in replica.entry.groups if group.number in groups]
            refuse_message(
                session,
                groups,
                refusals.NOT_HERE,
                f"this server has a replica of '{replica.group.name}', and a message that does not "
                f"go there; send it over one of {', '.join(others[0].servers)}",
            )
            session.taken(len(bodies))
            return
        line = self._lines.setdefault(replica.entry.number, Line())
        for body in bodies:
            line.waiting.append(Waiting(line.tickets, session, sender, groups, body))
            line.tickets += 1

    def _cast_waiting(self, replica: Replica, now: int) -> None:
        """Multicast what waits, in packs, as long as not too much is under way."""
        line = self._lines.get(replica.entry.number)
        limits = self._limits
        while (
            line is not None
            and line.waiting
            and replica.under_way < limits.under_way
            and replica.under_way_bytes < limits.under_way_bytes
        ):
            waiting = line.waiting
            pack = [waiting.popleft()]
            size = len(pack[0].body)
            while (
                waiting
                and waiting[0].groups == pack[0].groups
                and len(pack) < limits.pack
                and size < PACK_BYTES
            ):
                size += len(waiting[0].body)
                pack.append(waiting.popleft())
            self._cast(replica, line, now, pack)

    def _cast(self, replica: Replica, line: Line, now: int, pack: list[Waiting]) -> None:
        groups = pack[0].groups
        for one in pack:
            one.session.taken(1)
        try:
            m = replica.cast(
                now, groups, len(pack), packed_one_by_one([(one.sender, one.body) for one in pack])
            )
        except UsageError as error:
            for session in dict.fromkeys([one.session for one in pack]):
                refuse_message(session, groups, refusals.BAD_STACK, str(error))
            return
        line.under_way[m] = pack[0].ticket
        for one in pack:
            one.session.sent += 1

    # Confirmations.

    def confirms(self, session: Session, request: Confirm) -> bool:
        """Whether it is about what a replica here delivers; then the answer comes when all that was
        sent before is delivered."""
        replica = self._replicas.of_group.get(request.handle)
        if replica is None or request.handle not in session.seats:
            return False
        if session.unconfirmed >= self._limits.requests:
            raise PeerError(f"more than {session.unconfirmed} confirmations without an answer")
        session.unconfirmed += 1
        line = self._lines.setdefault(replica.entry.number, Line())
        line.unconfirmed.append(Unconfirmed(line.tickets, session, request))
        self._look(replica, ())
        return True

    def _look(self, replica: Replica, delivered: Iterable[MessageId]) -> None:
        """Answer those who wait for what is delivered now."""
        line = self._lines.get(replica.entry.number)
        if line is None:
            return
        for m in delivered:
            line.under_way.pop(m, None)
        if not line.unconfirmed:
            return
        settled = line.settled()
        left: list[Unconfirmed] = []
        for one in line.unconfirmed:
            if one.ticket > settled:
                left.append(one)
            elif one.session.connection.is_open:
                one.session.unconfirmed -= 1
                one.session.say(Done(one.request.request))
        line.unconfirmed = left

    # Who may be here.

    def why_not_here(
        self, configuration: Configuration, group: GroupEntry | None, sends_only: bool = False
    ) -> str:
        """Why this server lets nobody into a group of replicas. Who only sends to it may do so
        where the domain has another replica, with messages that go there as well."""
        domain = configuration.replicated_numbered.get(group.replicated) if group else None
        if group is None or domain is None:
            return ""
        here = domain.group(group.number)
        server = self._replicas.server
        error = not_here(here, server)
        if error is not None and not (sends_only and server in domain.servers):
            return error[1]
        if group.number in self._replicas.of_group:
            return ""
        return (
            f"this server has lost its replica of {group.name!r}: it was started again, or left "
            "out for a while, and has not kept (--data), or the stack does not store, what that "
            f"knew; connect to another of {', '.join(here.servers)}"
        )
