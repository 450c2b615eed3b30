"""Servers that want to join, until a configuration contains them.

Before all servers stop for a change, the leader makes sure that they all reach the newcomer at
the address it gave: they connect and introduce themselves, and the newcomer tells the leader
when all have. Otherwise a server that some do not reach would come in and be excluded for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.membership.configuration import Configuration, Server, name_in_files
from flexgroup.membership.effects import LinkNumber, Outbox, SendOn
from flexgroup.membership.messages import Introduce, Introduced, Meet
from flexgroup.membership.operations import Admit
from flexgroup.membership.suspicion import Timings

Key = tuple[int, int]
"""The contact through which a newcomer asks, and the ticket of its proposal there."""


@dataclass(slots=True)
class Newcomer:
    server: Server
    since: float
    sent: float
    is_reached: bool = False


class Introductions:
    """Who has reached a newcomer, under a number that it may get; kept by the newcomer."""

    __slots__ = ("_by", "_leader", "_needed")

    def __init__(self) -> None:
        self._by: set[int] = set()
        self._needed: tuple[int, ...] = ()
        self._leader: LinkNumber | None = None

    def met(self, link: LinkNumber | None, message: Introduce, outbox: Outbox) -> None:
        """A server has introduced itself; the leader is told when all have."""
        self._by.add(message.sender)
        if message.servers:
            self._leader, self._needed = link, message.servers
        if self._needed and self._by.issuperset(self._needed):
            outbox.ask(SendOn(self._leader, Introduced(message.number)))


class Newcomers:
    """The newcomers that the leader knows of."""

    __slots__ = ("_by_key", "_outbox", "_timings")

    def __init__(self, timings: Timings, outbox: Outbox) -> None:
        self._timings = timings
        self._outbox = outbox
        self._by_key: dict[Key, Newcomer] = {}

    def namesake(self, key: Key, admit: Admit, configuration: Configuration) -> str | None:
        """The name of another server that is the same in the files of a trace, if there is one.
        A server at the same address is this one, started again."""
        newcomers = [newcomer.server for at, newcomer in self._by_key.items() if at != key]
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
            newcomer = Newcomer(Server(number, admit.name, admit.address), now, float("-inf"))
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

    def introduced(self, number: int) -> str | None:
        """The newcomer has answered; its address."""
        for newcomer in self._by_key.values():
            if newcomer.server.number == number:
                newcomer.is_reached = True
                return newcomer.server.address
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
        self._outbox.disconnect(self._by_key.pop(key).server.number)

    def forget(self) -> None:
        """This server does not lead any more."""
        for key in list(self._by_key):
            self.drop(key)

    def keep(self, configuration: Configuration) -> None:
        """Drop, after a change, those without a contact and those that need another number."""
        numbers = {server.number for server in configuration.servers}
        for key, newcomer in list(self._by_key.items()):
            contact, _ticket = key
            if newcomer.server in configuration.servers:
                del self._by_key[key]
            elif contact not in numbers or newcomer.server.number < configuration.next_server:
                self.drop(key)
