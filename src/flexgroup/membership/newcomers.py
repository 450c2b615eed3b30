"""Servers that want to join, until a configuration contains them.

Before all servers stop for a change, the leader makes sure that they all reach the newcomer at
the address it gave: they connect and introduce themselves, and the newcomer tells the leader
when all have. Otherwise a server that some do not reach would come in and be excluded for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from flexgroup.membership.configuration import Configuration, Server, name_in_files
from flexgroup.membership.effects import LinkNumber, SendOn
from flexgroup.membership.messages import Admitted, Introduce, Introduced, Meet
from flexgroup.membership.operations import Admit
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.suspicion import NEVER
from flexgroup.membership.timings import Timings

Key = tuple[int, int]
"""The contact through which a newcomer asks, and the ticket of its proposal there."""


@final
@dataclass
class Newcomer:
    server: Server
    since: float
    sent: float
    is_reached: bool = False


def introduce(meet: Meet, me: int, outbox: Outbox) -> None:
    """Have this server introduce itself to the newcomer that the leader has named."""
    outbox.connect(meet.server)
    outbox.send(meet.server.number, Introduce(me, meet.at, meet.server.number, ()))


def attempt_of(admitted: Admitted) -> int | None:
    """The attempt with which a newcomer is admitted; None if it is not part of what it is told."""
    servers = admitted.configuration.servers
    return next((one.attempt for one in servers if one.number == admitted.number), None)


@final
@dataclass
class Introduction:
    """Who has reached a newcomer, under a number that it may get."""

    by: set[int] = field(default_factory=set)
    needed: tuple[int, ...] = ()
    leader: LinkNumber | None = None
    told_at: float = NEVER
    """When the leader was first told that all have."""


@final
class Introductions:
    """What a newcomer keeps of those who have reached it."""

    __slots__ = ("_of", "_outbox")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._of: dict[int, Introduction] = {}

    def met(self, link: LinkNumber | None, message: Introduce, now: float) -> None:
        """A server has introduced itself; the leader is told when all have."""
        one = self._of.setdefault(message.number, Introduction())
        one.by.add(message.sender)
        if message.servers:
            one.leader, one.needed = link, message.servers
        if one.needed and one.by.issuperset(one.needed):
            if one.told_at == NEVER:
                one.told_at = now
            self._outbox.ask(SendOn(one.leader, Introduced(message.number)))

    def told_at(self, number: int) -> float:
        """A time before any configuration can have been decided with this newcomer."""
        return self._of[number].told_at if number in self._of else NEVER


@final
class Newcomers:
    """The newcomers that the leader knows of."""

    __slots__ = ("_by_key", "_outbox", "_timings")

    def __init__(self, timings: Timings, outbox: Outbox) -> None:
        self._timings = timings
        self._outbox = outbox
        self._by_key: dict[Key, Newcomer] = {}

    @property
    def are_known(self) -> bool:
        """Whether there is any."""
        return bool(self._by_key)

    def namesake(self, key: Key, admit: Admit, configuration: Configuration) -> str | None:
        """The name of another server that is the same in the files of a trace, if there is one.
        A server at the same address is this one, started again. Of a newcomer that is known
        already this was found out when it came: those who came later were compared with it."""
        if key in self._by_key:
            return None
        newcomers = [newcomer.server for newcomer in self._by_key.values()]
        for other in (*configuration.servers, *newcomers):
            same = name_in_files(other.name) == name_in_files(admit.name)
            if same and other.address != admit.address:
                return other.name
        return None

    def meet(
        self, key: Key, admit: Admit, configuration: Configuration, me: int, now: float
    ) -> None:
        """Get in touch, with the number that the newcomer is going to have."""
        newcomer = self._by_key.get(key)
        if newcomer is None:
            taken = [other.server.number for other in self._by_key.values()]
            number = max(taken, default=configuration.next_server - 1) + 1
            newcomer = Newcomer(
                Server(number, admit.name, admit.address, admit.keeps_data, admit.attempt),
                now,
                NEVER,
            )
            self._by_key[key] = newcomer
            self._outbox.connect(newcomer.server)
        # The first ones go before there are connections, and newcomers should not wait long.
        if not newcomer.is_reached and now - newcomer.sent >= self._timings.beat / 4:
            newcomer.sent = now
            number = newcomer.server.number
            servers = tuple(server.number for server in configuration.servers)
            self._outbox.send(number, Introduce(me, configuration.number, number, servers))
            for server in servers:
                if server != me:
                    self._outbox.send(server, Meet(me, configuration.number, newcomer.server))

    def introduced(self, number: int) -> Newcomer | None:
        """The newcomer has answered that is to have this number."""
        for newcomer in self._by_key.values():
            if newcomer.server.number == number:
                newcomer.is_reached = True
                return newcomer
        return None

    def ready(self, key: Key) -> Server | None:
        newcomer = self._by_key.get(key)
        return newcomer.server if newcomer is not None and newcomer.is_reached else None

    def unreachable(self, now: float) -> list[Key]:
        # Long enough to exclude a server that fails meanwhile.
        patience = 2 * self._timings.patience
        return [
            key
            for key, newcomer in self._by_key.items()
            if not newcomer.is_reached and now - newcomer.since >= patience
        ]

    def drop(self, key: Key) -> None:
        dropped = self._by_key.pop(key, None)
        if dropped is not None:
            self._outbox.disconnect(dropped.server.number)

    def forget(self) -> None:
        """This server does not lead any more."""
        for key in list(self._by_key):
            self.drop(key)

    def keep(self, configuration: Configuration) -> None:
        """Have connections to all servers of a configuration, which may follow, and drop newcomers
        that have no contact there and those that need another number."""
        numbers = {server.number for server in configuration.servers}
        for key, newcomer in list(self._by_key.items()):
            contact, _ticket = key
            if newcomer.server in configuration.servers:
                del self._by_key[key]
            elif contact not in numbers or newcomer.server.number < configuration.next_server:
                self.drop(key)
        for server in configuration.servers:
            self._outbox.connect(server)
