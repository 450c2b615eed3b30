"""The host of the membership protocol: it passes events on with the time, and does effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVarTuple

from flexgroup.membership.effects import (
    Answer,
    Connect,
    Disconnect,
    Effect,
    Excluded,
    Freeze,
    Install,
    SendOn,
    SendTo,
)
from flexgroup.membership.flush import DomainReport
from flexgroup.membership.machine import Membership
from flexgroup.membership.messages import ControlMessage
from flexgroup.membership.operations import AnyOperation, Renew
from flexgroup.server.connection import Acceptor
from flexgroup.server.peers.links import PeerLinks
from flexgroup.server.settings import ServerIdentity, Settings

Of = TypeVarTuple("Of")

Answered = Callable[[tuple[str, str] | None], None]
"""Called when a proposal has ended: with None, or with the code and the text of an error."""


class Configurations(Protocol):
    """The parts of a server that follow its configurations."""

    def freeze(self, change: int) -> list[DomainReport]:
        """Stop all domains before configuration `change`, and tell what they have delivered."""

    def install(self, effect: Install) -> None: ...

    def excluded(self, reason: str) -> None:
        """This server is not one of the group, or not any more."""

    def cannot_join(self, reason: str) -> None: ...


class MembershipHost:
    def __init__(
        self,
        settings: Settings,
        identity: ServerIdentity,
        acceptor: Acceptor,
        configurations: Configurations,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._configurations = configurations
        self._loop = asyncio.get_running_loop()
        self.machine = Membership("", "", settings.timings)
        self.links = PeerLinks(settings, identity, acceptor, self)
        self._answers: dict[int, Answered] = {}
        """Who waits for the end of which proposal."""
        self._why_not_admitted = ""
        self._does_effects = False

    @property
    def number(self) -> int | None:
        return self.machine.number

    @property
    def is_member(self) -> bool:
        """Whether a configuration is installed."""
        return self.machine.configuration is not None

    @property
    def is_last(self) -> bool:
        """Whether this server is the only one of its configuration."""
        configuration = self.machine.configuration
        return configuration is not None and len(configuration.servers) == 1

    @property
    def is_isolated(self) -> bool:
        """Whether this server hears too few others for anything that it proposes to be decided."""
        return self.machine.is_isolated(self._loop.time())

    # What the server wants.

    def found(self) -> None:
        """Begin a cluster, as its first server."""
        self._begin()
        self._tell(self.machine.found)

    async def join(self, contact: str) -> bool:
        """Ask the server at this address to be admitted; False if nobody answers there."""
        self._why_not_admitted = ""
        self.links.leave_contact()
        self._begin()
        link = await self.links.dial(contact, None)
        if link is None:
            return False
        self.links.contact = link
        self._tell(self.machine.join)
        return True

    def _begin(self) -> None:
        """A new life as a server: with no number yet."""
        identity = self._identity
        self.machine = Membership(identity.name, identity.address, self._settings.timings)

    def propose(self, operation: AnyOperation, answered: Answered) -> None:
        ticket = self.machine.propose(operation, self._loop.time())
        self._answers[ticket] = answered
        self._do_effects()

    def tick(self) -> None:
        self.links.tell_who_was_heard()
        self._tell(self.machine.tick)

    # What links tell of.

    def received(self, link: int, server: int | None, message: ControlMessage) -> None:
        self._tell(self.machine.received, link, server, message)

    def heard(self, server: int) -> None:
        self.machine.heard(server, self._loop.time())

    def link_lost(self, server: int, gone: bool) -> None:
        self._tell(self.machine.link_lost, server, gone)

    def link_replaced(self) -> None:
        self.propose(Renew(), lambda _: None)

    def contact_lost(self, reason: str) -> None:
        if not self.is_member:
            self._why_not_admitted = reason
            self._tell(self.machine.contact_lost)

    def cannot_join(self, reason: str) -> None:
        self._configurations.cannot_join(reason)

    def _tell(self, event: Callable[[*Of, float], None], *of: *Of) -> None:
        """Tell the state machine of an event, with the time, and do what it asks for."""
        event(*of, self._loop.time())
        self._do_effects()

    # What membership asks for.

    def _do_effects(self) -> None:
        if self._does_effects:
            return
        self._does_effects = True
        try:
            while effects := self.machine.take_effects():
                for effect in effects:
                    self._do(effect)
        finally:
            self._does_effects = False

    def _do(self, effect: Effect) -> None:
        match effect:
            case SendTo():
                self.links.say(effect.server, effect.message)
            case SendOn():
                self.links.say_on(effect.link, effect.message)
            case Connect():
                self.links.connect(effect.server)
            case Disconnect():
                self.links.forget(effect.number)
            case Freeze():
                report = self._configurations.freeze(effect.change)
                self.machine.frozen(effect.change, report, self._loop.time())
            case Install():
                self.links.leave_contact()
                self._configurations.install(effect)
            case Answer():
                answered = self._answers.pop(effect.ticket, None)
                if answered is not None:
                    answered(effect.error)
            case Excluded():
                self._configurations.excluded(self._why_not_admitted or effect.reason)
