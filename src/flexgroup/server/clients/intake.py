"""The intake: what clients send, until it is multicast.

Messages of clients to the same groups travel in one envelope, as a pack: most of the cost of a
message is the stack's, and the stack then has one to order instead of many.
"""

from __future__ import annotations

from collections import deque
from typing import final

from flexgroup.core.errors import UsageError
from flexgroup.server.clients.contents import packed
from flexgroup.server.clients.session import Session
from flexgroup.server.hosting.deployment import Deployment, HostedDomain
from flexgroup.server.hosting.round import Round
from flexgroup.server.settings import Limits
from flexgroup.wire import refusals
from flexgroup.wire.requests import Send

PACK_BYTES = 64 << 10

Waiting = tuple[Session, str, tuple[int, ...], bytes]
"""A message that its sender was entitled to send when it came: from whom, to which groups."""


@final
class Pack:
    """What has come to be sent to these groups since the event loop was last at leisure."""

    def __init__(self, domain: HostedDomain, groups: tuple[int, ...]) -> None:
        self.domain = domain
        self.groups = groups
        self.messages: list[tuple[str, bytes]] = []
        self.sessions: list[Session] = []
        """The sessions that the messages came from."""
        self.size = 0

    def add(self, sender: str, body: bytes) -> None:
        self.messages.append((sender, body))
        self.size += len(body)


@final
class Intake:
    """Holds messages while the domains are frozen or theirs has too much under way, and packs those
    that go to the same groups."""

    def __init__(self, deployment: Deployment, round: Round, limits: Limits) -> None:
        self._deployment = deployment
        self._round = round
        self._most_in_a_pack = limits.pack
        self._most_under_way = limits.under_way
        self._most_bytes_under_way = limits.under_way_bytes
        self.clear()

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    def clear(self) -> None:
        """Hold nothing: nothing has come yet, or the server has left and its clients are gone."""
        self._held: dict[str, deque[Waiting]] = {}
        """Messages by stack: one with too much under way does not hold up the others."""
        self._pack: Pack | None = None
        """The pack that is being filled."""

    def cast(self, session: Session, sends: list[Send]) -> None:
        handles: list[int] = []
        groups: tuple[int, ...] = ()
        sender: str | None = None
        domain: HostedDomain | None = None
        for send in sends:
            if domain is None or send.handles != handles:
                handles = send.handles
                groups = tuple(handles)
                sender = self._sender(session, groups)
                domain = self._domain(session, groups) if sender is not None else None
                if len(groups) > 1:
                    groups = tuple(sorted(set(groups)))
            bodies = send.bodies
            if sender is None or domain is None:
                session.taken(len(bodies))
                continue
            stack = domain.stack
            cast = 0
            if not (self._deployment.frozen or stack in self._held or self._is_full(domain)):
                cast = self._cast(domain, session, sender, groups, bodies)
            if cast < len(bodies):
                held = self._held.setdefault(stack, deque())
                held.extend([(session, sender, groups, body) for body in bodies[cast:]])

    def _sender(self, session: Session, groups: tuple[int, ...]) -> str | None:
        """The name under which the client sends; without one the message is refused."""
        sender = None
        for group in groups:
            seat = session.seats.get(group)
            if seat is None:
                session.refuse(
                    None,
                    refusals.NOT_MEMBER,
                    "a message to a group that this process has neither joined nor attached to; "
                    "call join() or attach() first",
                    group,
                )
                return None
            sender = seat.process
        return sender

    def _domain(self, session: Session, groups: tuple[int, ...]) -> HostedDomain | None:
        """The domain of all these groups; if there is none, the message is refused."""
        domain = None
        for group in groups:
            of_group = self._deployment.domain_of.get(group)
            if of_group is None:
                session.refuse(None, refusals.MISSING, "the group does not exist any more", group)
                return None
            if domain is not None and of_group is not domain:
                session.refuse(
                    None,
                    refusals.MIXED_STACKS,
                    f"groups with different stacks ('{domain.stack}' and '{of_group.stack}') "
                    "have no order in common: send one message to each",
                    group,
                )
                return None
            domain = of_group
        return domain

    def _is_full(self, domain: HostedDomain) -> bool:
        stability = domain.stability
        return (
            len(stability.own) > self._most_under_way
            or stability.own_bytes > self._most_bytes_under_way
        )

    def cast_held(self) -> None:
        if not self._held or self._deployment.frozen:
            return
        for stack, held in list(self._held.items()):
            while held:
                session, sender, groups, body = held[0]
                # Its sender may have left meanwhile: what it sent before that still counts.
                domain = self._domain(session, groups)
                if domain is not None and self._is_full(domain):
                    break
                held.popleft()
                if domain is None:
                    session.taken(1)
                else:
                    self._cast(domain, session, sender, groups, [body])
            if not held:
                del self._held[stack]

    def _cast(
        self,
        domain: HostedDomain,
        session: Session,
        sender: str,
        groups: tuple[int, ...],
        bodies: list[bytes],
    ) -> int:
        """Multicast one at least, and more until the domain has too much under way; how many."""
        cast = 0
        pack: Pack | None = None
        for body in bodies:
            if pack is None:
                pack = self._pack_to(domain, groups)
                pack.sessions.append(session)
            pack.add(sender, body)
            cast += 1
            if len(pack.messages) >= self._most_in_a_pack or pack.size >= PACK_BYTES:
                self.cast_pack()
                pack = None
                if self._is_full(domain):
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
            pack.domain.cast(
                self._round.now(), pack.groups, len(pack.messages), packed(pack.messages)
            )
        except UsageError as error:
            for session in dict.fromkeys(pack.sessions):
                session.refuse(None, refusals.BAD_STACK, str(error), pack.groups[0])
