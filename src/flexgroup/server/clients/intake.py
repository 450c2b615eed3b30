"""The intake: what clients send, until it is multicast.

Messages of clients to the same groups travel in one envelope, as a pack: most of the cost of a
message is the stack's, and the stack then has one to order instead of many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, final

from flexgroup.core.errors import UsageError
from flexgroup.membership.configuration import DomainKey
from flexgroup.server.clients.contents import packed
from flexgroup.server.clients.refused_messages import refuse_message
from flexgroup.server.clients.replica_intake import ReplicaIntake
from flexgroup.server.clients.session import Session
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.hosting.hosted_domain import HostedDomain
from flexgroup.server.hosting.round import Round
from flexgroup.server.settings import Limits
from flexgroup.wire import refusals
from flexgroup.wire.requests import Send, Sent

PACK_BYTES: Final = 64 << 10

Turn = tuple[DomainKey, int]
"""A place among what the intake has held of a client in a domain."""

Waiting = tuple[Session, str, tuple[int, ...], bytes]
"""A message that its sender was entitled to send when it came: from whom, to which groups."""


@final
class Pack:
    """What has come to be sent to these groups since the event loop was last at leisure."""

    def __init__(self, domain: HostedDomain, groups: tuple[int, ...]) -> None:
        self.domain = domain
        self.groups = groups
        self.sent: list[Sent] = []
        self.count = 0
        """How many messages are in it."""
        self.sessions: list[Session] = []
        """The sessions that the messages came from."""
        self.size = 0

    def bodies_of(self, session: Session, sender: str) -> list[bytes]:
        """What a client has in it last, and is to put more behind."""
        sent = self.sent
        if not sent or sent[-1].sender != sender:
            sent.append(Sent(sender, []))
        self.sessions.append(session)
        return sent[-1].bodies


@final
class Intake:
    """Holds messages while nothing may be multicast to their groups or these have too much under
    way, and packs those that go to the same groups.

    What a client sends in one domain stays in its order, so what follows something that is held is
    held too. Other clients do not wait for that.
    """

    emptied: Callable[[Session], None]
    """Is told that nothing is held any more that a client has sent in a domain."""

    def __init__(
        self,
        deployment: Deployment,
        round: Round,
        limits: Limits,
        replicas: ReplicaIntake,
    ) -> None:
        self._deployment = deployment
        self._replicas = replicas
        """It takes what goes to groups of replicas."""
        self._round = round
        self._most_in_a_pack = limits.pack
        self._most_under_way = limits.under_way
        self._most_bytes_under_way = limits.under_way_bytes
        self.clear()

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    @property
    def is_packing(self) -> bool:
        """Whether something is in a pack that is not multicast yet."""
        return self._pack is not None

    def clear(self) -> None:
        """Hold nothing: nothing has come yet, or the server has left and its clients are gone."""
        self._held: dict[tuple[int, DomainKey], deque[Waiting]] = {}
        """Messages by client and domain. Who comes first is next to multicast."""
        self._pack: Pack | None = None
        """The pack that is being filled."""

    def turn_of(self, session: Session, domain: DomainKey) -> Turn:
        """The turn of what would be held next of a client in a domain."""
        held = self._held.get((session.number, domain), ())
        return domain, session.let_go.get(domain, 0) + len(held)

    def has_come_to(self, session: Session, turn: Turn) -> bool:
        """Whether nothing is held any more that the client has sent before this turn."""
        domain, number = turn
        return session.let_go.get(domain, 0) >= number

    def cast(self, session: Session, sends: list[Send]) -> None:
        handles: list[int] = []
        groups: tuple[int, ...] = ()
        sender: str | None = None
        key: DomainKey | None = None
        for send in sends:
            if key is None or send.handles != handles:
                handles = send.handles
                groups = tuple(handles)
                sender = self._sender(session, groups)
                key = self._domain_key(session, groups) if sender is not None else None
                if len(groups) > 1:
                    groups = tuple(sorted(set(groups)))
            bodies = send.bodies
            if sender is None or key is None:
                session.taken(len(bodies))
                continue
            if self._replicas.takes(groups):
                self._replicas.send(session, sender, groups, bodies)
                self._round.request()
                continue
            cast = 0
            is_behind = bool(self._held) and (session.number, key) in self._held
            domain = None if is_behind else self._domain(key, groups)
            if domain is not None:
                cast = self._cast(domain, session, sender, groups, bodies)
            if cast < len(bodies):
                held = self._held.setdefault((session.number, key), deque())
                held.extend([(session, sender, groups, body) for body in bodies[cast:]])

    def _sender(self, session: Session, groups: tuple[int, ...]) -> str | None:
        """The name under which the client sends; without one the message is refused."""
        sender = None
        for group in groups:
            seat = session.seats.get(group)
            if seat is None or seat.ended:
                refuse_message(
                    session,
                    groups,
                    refusals.NOT_MEMBER,
                    "a message to a group that this process has neither joined nor attached to; "
                    "call join() or attach() first",
                )
                return None
            sender = seat.process
        return sender

    def _domain_key(self, session: Session, groups: tuple[int, ...]) -> DomainKey | None:
        """The domain that all these groups share; if there is none, the message is refused."""
        key: DomainKey | None = None
        for group in groups:
            of_group = self._deployment.domain_key(group)
            if of_group is None:
                refuse_message(
                    session,
                    groups,
                    refusals.MISSING,
                    "a group that it was sent to does not exist any more",
                )
                return None
            if key is not None and of_group != key:
                refuse_message(
                    session,
                    groups,
                    refusals.MIXED_STACKS,
                    f"groups of different domains ({named(key)} and {named(of_group)}) "
                    "have no order in common: send one message to each",
                )
                return None
            key = of_group
        return key

    def _domain(self, key: DomainKey, groups: tuple[int, ...]) -> HostedDomain | None:
        """The domain, unless nothing may be multicast to these groups now, or one of them has too
        much under way."""
        domain = self._deployment.with_key.get(key)
        if domain is None or self._deployment.is_stopped(domain, groups):
            return None
        for group in groups:
            count, size, sharing = domain.stability.under_way(group)
            if not count:
                continue
            # Groups share what a domain can take, so that a slow one does not take it all.
            most = self._most_under_way // sharing
            most_bytes = min(self._most_bytes_under_way, domain.window.bytes) // sharing
            if count > max(1, most) or size > most_bytes:
                domain.window.was_full = True
                return None
        return domain

    def holds(self, session: Session) -> bool:
        """Whether something waits that this client has sent. In a side, what was sent to ordinary
        groups does not count: it waits for as long as the network is parted."""
        is_apart = self._deployment.is_apart
        return any(
            number == session.number and (partitionable or not is_apart)
            for number, (_, _, partitionable) in self._held
        )

    def holds_to(self, session: Session, group: int) -> bool:
        """Whether something waits that this client has sent in the domain of a group."""
        domain = self._deployment.domain_key(group)
        return domain is not None and (session.number, domain) in self._held

    def holds_in(self, domain: DomainKey) -> bool:
        """Whether something waits to be multicast in this domain."""
        return any(key == domain for _, key in self._held)

    def cast_held(self) -> None:
        """Multicast what has become possible, a pack of each client in turn."""
        lines = list(self._held) if self._held else []
        while lines:
            # Whoever is told that nothing of a client is held any more may begin a change, before
            # which what others wait for is multicast too.
            lines = [line for line in lines if line in self._held and self._cast_some(line)]

    def _is_over(self, session: Session, key: DomainKey, groups: tuple[int, ...]) -> bool:
        """Whether these groups have ended for a client, but not for others, since its server was
        apart from them. If it has no domain with them any more, it need not have one again."""
        if key in self._deployment.with_key:
            return False
        seats = [session.seats.get(group) for group in groups]
        return any(seat is None or seat.ended for seat in seats)

    def _cast_some(self, line: tuple[int, DomainKey]) -> bool:
        """Multicast at most a pack of what is held for a client; whether more may follow."""
        held = self._held.pop(line)
        session = held[0][0]
        for count in range(len(held)):
            session, sender, groups, body = held[0]
            # Its sender may have left meanwhile: what it sent before that still counts.
            key = self._domain_key(session, groups)
            domain = self._domain(key, groups) if key is not None else None
            if key is not None and domain is None and not self._is_over(session, key, groups):
                break
            if count == self._most_in_a_pack:
                self._held[line] = held
                return True
            held.popleft()
            session.let_go[line[1]] = session.let_go.get(line[1], 0) + 1
            if domain is None:
                session.taken(1)
            else:
                self._cast(domain, session, sender, groups, [body])
        if held:
            self._held[line] = held
        else:
            self.emptied(session)
        return False

    def _cast(
        self,
        domain: HostedDomain,
        session: Session,
        sender: str,
        groups: tuple[int, ...],
        bodies: list[bytes],
    ) -> int:
        """Multicast one at least, and more until a group has too much under way; how many."""
        cast = 0
        pack: Pack | None = None
        packed_bodies: list[bytes] = []
        for body in bodies:
            if pack is None:
                pack = self._pack_to(domain, groups)
                packed_bodies = pack.bodies_of(session, sender)
            packed_bodies.append(body)
            pack.count += 1
            pack.size += len(body)
            cast += 1
            if pack.count >= self._most_in_a_pack or pack.size >= PACK_BYTES:
                self.cast_pack()
                pack = None
                if self._domain(domain.key, groups) is None:
                    break
        session.taken(cast)
        session.sent += cast
        self._round.request()
        return cast

    def _pack_to(self, domain: HostedDomain, groups: tuple[int, ...]) -> Pack:
        """The pack that is being filled, or another if that goes to other groups."""
        pack = self._pack
        if pack is None or pack.groups != groups:
            self.cast_pack()
            pack = self._pack = Pack(domain, groups)
        return pack

    def cast_pack(self) -> None:
        """The event loop has made its round: nothing waits for others to come."""
        pack, self._pack = self._pack, None
        if pack is None:
            return
        try:
            pack.domain.cast(self._round.now(), pack.groups, pack.count, packed(pack.sent))
        except UsageError as error:
            for session in dict.fromkeys(pack.sessions):
                refuse_message(session, pack.groups, refusals.BAD_STACK, str(error))


def named(key: DomainKey) -> str:
    """A domain, for people."""
    stack, name, partitionable = key
    kind = "partitionable " if partitionable else ""
    return f"{kind}'{stack}' in '{name}'" if name else f"{kind}'{stack}'"
