"""Confirmations: a client wants to know when what it has sent cannot be lost any more.

What a client has sent to a group is confirmed when every server with members of the group has
it: if the stack delivers only what all have, as soon as this server delivers it; otherwise when all
have told that they have delivered it, or a change of configuration has made them. What a group
keeps is confirmed when it is on the disk of all servers that keep it.
"""

from __future__ import annotations

from typing import final

from flexgroup.core.errors import PeerError
from flexgroup.server.clients.intake import Intake, Turn
from flexgroup.server.clients.session import Session
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.hosting.hosted_domain import HostedDomain
from flexgroup.server.settings import Limits
from flexgroup.wire import refusals
from flexgroup.wire.requests import Confirm, Done


@final
class Unconfirmed:
    """A request that waits, and what it waits for."""

    __slots__ = ("cast", "domain", "number", "request", "session", "turn")

    def __init__(self, session: Session, request: Confirm, turn: Turn) -> None:
        self.session = session
        self.request = request
        self.turn = turn
        """Up to where the intake must have let go of what it holds."""
        self.domain: HostedDomain | None = None
        """The domain that all of it was multicast in, once it was."""
        self.cast = 0
        """How many envelopes to the group have to be settled there."""
        self.number = 0
        """The number of a message that comes after all of it, in a group that keeps them, once it
        is known."""


@final
class Confirmations:
    def __init__(self, deployment: Deployment, intake: Intake, limits: Limits) -> None:
        self._deployment = deployment
        self._intake = intake
        self._most = limits.requests
        self._waiting: list[Unconfirmed] = []

    def ask(self, session: Session, request: Confirm) -> None:
        if session.unconfirmed >= self._most:
            raise PeerError(f"more than {self._most} confirmations without an answer")
        domain = self._deployment.domain_key(request.handle)
        if request.handle not in session.seats or domain is None:
            session.refuse(
                request.request,
                refusals.NOT_MEMBER,
                "this process is not in that group: nothing to confirm",
            )
            return
        session.unconfirmed += 1
        turn = self._intake.turn_of(session, domain)
        self._waiting.append(Unconfirmed(session, request, turn))
        self.look()

    def look(self) -> None:
        """Answer those who wait for what is settled now."""
        if self._waiting:
            self._waiting = [one for one in self._waiting if not self._is_answered(one)]

    def _is_answered(self, one: Unconfirmed) -> bool:
        session = one.session
        if not session.connection.is_open:
            return True
        if not self._is_settled(one):
            return False
        session.unconfirmed -= 1
        session.say(Done(one.request.request))
        return True

    def _is_settled(self, one: Unconfirmed) -> bool:
        group = one.request.handle
        if one.domain is None:
            if not self._intake.has_come_to(one.session, one.turn):
                return False
            self._intake.cast_pack()
            one.domain = self._deployment.domain_of.get(group)
            if one.domain is None:
                return True  # the group was destroyed
            one.cast = one.domain.cast_to(group)
        if one.domain not in self._deployment.domains:
            # What was under way in a domain that has ended, all who went on have delivered.
            following = self._deployment.domain_of.get(group)
            if one.domain.keeping is None or following is None:
                return True
            # But it may not be on their disks before the following one is open.
            one.domain, one.cast, one.number = following, 0, 0
        if not one.domain.is_settled(group, one.cast):
            return False
        keeping = one.domain.keeping
        if keeping is None:
            return True
        one.number = one.number or keeping.last
        return keeping.given >= one.number
