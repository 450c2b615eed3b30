"""The host of the membership protocol: it passes events on with the time, and does effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, final

from flexgroup.membership.configuration import Configuration
from flexgroup.membership.decision import Casts
from flexgroup.membership.effects import (
    Answer,
    Connect,
    Disconnect,
    Drain,
    Effect,
    Excluded,
    Freeze,
    Install,
    Save,
    SendOn,
    SendTo,
)
from flexgroup.membership.flush import Report
from flexgroup.membership.machine import Membership
from flexgroup.membership.messages import ControlMessage
from flexgroup.membership.operations import AnyOperation, Renew
from flexgroup.membership.stable import AnyRecord, Snapshot
from flexgroup.server.connection import Acceptor
from flexgroup.server.peers.links import PeerLinks
from flexgroup.server.peers.stable_storage import Saved, StableStorage, StorageError
from flexgroup.server.settings import ServerIdentity, Settings

MOST_ATTEMPTS = 100
"""So many attempts to join that came to nothing are told, at most."""

Answered = Callable[[tuple[str, str] | None], None]
"""Called when a proposal has ended: with None, or with the code and the text of an error."""


class Configurations(Protocol):
    """The parts of a server that follow its configurations."""

    def freeze(self, effect: Freeze) -> Report:
        """Stop what a change concerns, and tell what was delivered and multicast there."""

    def drain(self, casts: Casts, drained: Callable[[], None]) -> None:
        """Call `drained` as soon as all of this is delivered that is to be delivered here."""

    def install(self, effect: Install) -> None: ...

    def excluded(
        self, reason: str, alone: Configuration | None, missed: Configuration | None
    ) -> None:
        """This server is not one of the group, or not any more; these partitionable groups stay
        until it is again. It may have missed that configuration."""

    def cannot_join(self, reason: str) -> None: ...

    def storage_failed(self, error: StorageError) -> None:
        """What the other servers would have to be told cannot be saved, so nobody is told."""


@final
class MembershipHost:
    def __init__(
        self,
        settings: Settings,
        identity: ServerIdentity,
        acceptor: Acceptor,
        configurations: Configurations,
        storage: StableStorage | None,
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._identity = identity
        self._configurations = configurations
        self._loop = asyncio.get_running_loop()
        self.machine = Membership("", "", settings.timings, attempts=())
        self.links = PeerLinks(settings, identity, acceptor, self)
        self.say: Callable[[int, ControlMessage], None] = self.links.say
        """How another server is told what the machine has to say; to be held up by tests."""
        self.noticed: Callable[[], None] = _nothing
        """Is told that another server may be taken for failed from now on."""
        self._answers: dict[int, Answered] = {}
        """Who waits for the end of which proposal."""
        self._why_not_admitted = ""
        self._does_effects = False

    @property
    def number(self) -> int | None:
        return self.machine.number

    @property
    def secret(self) -> int | None:
        return self.machine.secret

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
        self.machine.found(self._loop.time())
        self._do_effects()

    def restore(self, saved: Snapshot) -> None:
        """Come back as the server that has saved this."""
        self._begin()
        self.machine.restore(saved, self._loop.time())
        self._do_effects()

    async def join(self, contact: str) -> bool:
        """Ask the server at this address to be admitted; False if nobody answers there."""
        self._why_not_admitted = ""
        self.links.leave_contact()
        self._begin()
        link = await self.links.dial(contact, None)
        if link is None:
            return False
        self.links.contact = link
        self.machine.join(self._loop.time())
        self._do_effects()
        return True

    def _begin(self) -> None:
        """A new life as a server: with no number yet."""
        identity, random = self._identity, self._settings.random
        self.machine = Membership(
            identity.name,
            identity.address,
            self._settings.timings,
            keeps_data=self._storage is not None,
            life=self.machine.life,
            origin=self.machine.origin,
            attempts=(*self.machine.attempts[-MOST_ATTEMPTS:], random.getrandbits(62)),
        )

    def propose(self, operation: AnyOperation, answered: Answered) -> None:
        ticket = self.machine.propose(operation, self._loop.time())
        self._answers[ticket] = answered
        self._do_effects()

    def tick(self) -> None:
        self.links.tell_who_was_heard()
        self.machine.tick(self._loop.time())
        self._do_effects()

    # What links tell of.

    def received(self, link: int, server: int | None, message: ControlMessage) -> None:
        self.machine.received(link, server, message, self._loop.time())
        self._do_effects()

    def patience_with(self, server: int) -> float:
        return self.machine.patience_with(server)

    def silent(self) -> tuple[int, ...]:
        """The numbers of the servers that are taken for failed."""
        return self.machine.silent(self._loop.time())

    def heard(self, server: int) -> None:
        self.machine.heard(server, self._loop.time())

    def link_lost(self, server: int, gone: bool) -> None:
        self.machine.link_lost(server, gone, self._loop.time())
        self._do_effects()
        self.noticed()

    def has_beaten(self, server: int) -> bool:
        return self.machine.has_beaten(server)

    def replaced(self, server: int) -> None:
        self.machine.replaced(server, self._loop.time())
        self._do_effects()

    def link_replaced(self, server: int) -> None:
        self.propose(Renew(server), lambda _: None)

    def contact_lost(self, reason: str) -> None:
        if not self.is_member:
            self._why_not_admitted = reason
            self.machine.contact_lost(self._loop.time())
            self._do_effects()

    def cannot_join(self, reason: str) -> None:
        self._configurations.cannot_join(reason)

    # What membership asks for.

    def _do_effects(self) -> None:
        if self._does_effects:
            return
        self._does_effects = True
        try:
            while effects := self.machine.take_effects():
                for effect in effects:
                    self._do(effect)
        except StorageError as error:
            self.storage_failed(error)
        finally:
            self._does_effects = False

    def storage_failed(self, error: StorageError) -> None:
        """Whatever was to follow must not be done: a server that forgets it breaks promises."""
        self.machine.ended = True
        self.machine.take_effects()
        self._configurations.storage_failed(error)

    def _save(self, record: AnyRecord) -> None:
        storage = self._storage
        if storage is None:
            return
        if isinstance(record, Snapshot):
            storage.replace(Saved(self._identity.cluster, record))
        elif storage.is_long:
            storage.replace(Saved(self._identity.cluster, self.machine.snapshot()))
        else:
            storage.append(record)

    def _do(self, effect: Effect) -> None:
        match effect:
            case SendTo():
                self.say(effect.server, effect.message)
            case SendOn():
                self.links.say_on(effect.link, effect.message)
            case Connect():
                self.links.connect(effect.server)
            case Disconnect():
                self.links.forget(effect.number)
            case Save():
                self._save(effect.record)
            case Freeze():
                report = self._configurations.freeze(effect)
                self.machine.frozen(effect, report, self._loop.time())
            case Drain():
                self._drain(effect, self.machine)
            case Install():
                self.links.leave_contact()
                self._configurations.install(effect)
            case Answer():
                answered = self._answers.pop(effect.ticket, None)
                if answered is not None:
                    answered(effect.error)
            case Excluded():
                reason = self._why_not_admitted or effect.reason
                self._configurations.excluded(reason, effect.alone, effect.missed)

    def _drain(self, effect: Drain, machine: Membership) -> None:
        """Tell the machine that asks, which may not be that of this server any more by then."""

        def drained() -> None:
            machine.drained(effect, self._loop.time())
            self._do_effects()

        self._configurations.drain(effect.casts, drained)


def _nothing() -> None:
    pass
