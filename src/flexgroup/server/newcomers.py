"""Servers that want to join, until a configuration contains them.

Before all servers stop for a change, the leader makes sure that they all reach the newcomer at
the address it gave: they connect and introduce themselves, and the newcomer tells the leader
when all have. Otherwise a server that some do not reach would come in and be excluded for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flexgroup.server.change import Send
from flexgroup.server.configuration import Configuration, Server, name_in_files
from flexgroup.server.control import Admit, Introduce, Introduced, Meet
from flexgroup.server.effects import Effect, SendOn
from flexgroup.server.suspicion import Timings

Key = tuple[int, int]
"""The contact that asked for it, and its ticket."""


@dataclass(slots=True)
class Newcomer:
    server: Server
    since: float
    sent: float
    is_reached: bool = False


class Introductions:
    """At the newcomer: who has reached it, under a number that it may get."""

    __slots__ = ("_by", "_leader", "_needed")

    def __init__(self) -> None:
        self._by: set[int] = set()
        self._needed: tuple[int, ...] = ()
        self._leader: object = None

    def met(self, link: object, message: Introduce) -> list[Effect]:
        """Tell the leader when all have."""
        self._by.add(message.sender)
        if message.servers:
            self._leader, self._needed = link, message.servers
        if self._needed and self._by.issuperset(self._needed):
            return [SendOn(self._leader, Introduced(message.number))]
        return []


class Newcomers:
    """At the leader."""

    __slots__ = ("_by_key", "_connect", "_disconnect", "_send", "_timings")

    def __init__(
        self,
        timings: Timings,
        send: Send,
        connect: Callable[[Server], None],
        disconnect: Callable[[int], None],
    ) -> None:
        self._timings = timings
        self._send = send
        self._connect = connect
        self._disconnect = disconnect
        self._by_key: dict[Key, Newcomer] = {}

    def namesake(self, key: Key, wish: Admit, configuration: Configuration) -> str | None:
        """The name of another server that is the same in the files of a trace, if there is one.
        A server at the same address is this one, started again."""
        newcomers = [newcomer.server for at, newcomer in self._by_key.items() if at != key]
        for other in (*configuration.servers, *newcomers):
            same = name_in_files(other.name) == name_in_files(wish.name)
            if same and other.address != wish.address:
                return other.name
        return None

    def meet(
        self, key: Key, wish: Admit, configuration: Configuration, me: int, now: float
    ) -> None:
        """Get in touch, with the number that the newcomer is going to have."""
        newcomer = self._by_key.get(key)
        if newcomer is None:
            taken = [other.server.number for other in self._by_key.values()]
            number = max(taken, default=configuration.next_server - 1) + 1
            newcomer = Newcomer(Server(number, wish.name, wish.address), now, float("-inf"))
            self._by_key[key] = newcomer
            self._connect(newcomer.server)
        # The first ones go before there are connections, and newcomers should not wait long.
        if not newcomer.is_reached and now - newcomer.sent >= self._timings.beat / 4:
            newcomer.sent = now
            number = newcomer.server.number
            servers = tuple(server.number for server in configuration.servers)
            self._send(number, Introduce(me, configuration.number, number, servers))
            for server in servers:
                if server != me:
                    self._send(server, Meet(me, configuration.number, newcomer.server))

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
        self._disconnect(self._by_key.pop(key).server.number)

    def forget(self) -> None:
        """This server does not lead any more."""
        for key in list(self._by_key):
            self.drop(key)

    def keep(self, configuration: Configuration) -> None:
        """After a change: drop those without a contact, and those that need another number."""
        numbers = {server.number for server in configuration.servers}
        for key, newcomer in list(self._by_key.items()):
            contact, _ticket = key
            if newcomer.server in configuration.servers:
                del self._by_key[key]
            elif contact not in numbers or newcomer.server.number < configuration.next_server:
                self.drop(key)
