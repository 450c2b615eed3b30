"""What the membership asks its host to do, in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.flush import DomainFlush
from flexgroup.membership.messages import ControlMessage, FromMember

LinkNumber = int
"""The host's number for a connection."""


@dataclass(frozen=True, slots=True)
class SendTo:
    """Send a message to a server that a Connect named. Without a connection it is lost."""

    server: int
    message: ControlMessage


@dataclass(frozen=True, slots=True)
class SendOn:
    """Send a message on a link that another message came on; None is the link to the contact."""

    link: LinkNumber | None
    message: ControlMessage


@dataclass(frozen=True, slots=True)
class Connect:
    """Keep a connection to this server until Disconnect."""

    server: Server


@dataclass(frozen=True, slots=True)
class Disconnect:
    number: int


@dataclass(frozen=True, slots=True)
class Freeze:
    """Deliver nothing more in any domain, and report with `frozen` what was delivered."""

    change: int
    """The number of the configuration that follows."""


@dataclass(frozen=True, slots=True)
class Install:
    """Deliver what the flush still holds for this server, then go on in this configuration."""

    configuration: Configuration
    flush: list[DomainFlush]
    number: int
    """The number of this server."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A proposal has been carried out or refused."""

    ticket: int
    error: tuple[str, str] | None
    """A code, and for people what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Excluded:
    """This server is not, or not any more, one of the group. Nothing follows."""

    reason: str


Effect = SendTo | SendOn | Connect | Disconnect | Freeze | Install | Answer | Excluded


class Outbox:
    """What the parts of a membership have asked for, until the host takes it.

    Messages to this server itself do not leave it; they wait in `to_itself`.
    """

    __slots__ = ("_address", "_connected", "_effects", "number", "to_itself")

    def __init__(self, address: str) -> None:
        self._address = address
        """The address of this server."""
        self.number: int | None = None
        """The number of this server, once it has one."""
        self.to_itself: deque[FromMember] = deque()
        self._effects: list[Effect] = []
        self._connected: dict[int, Server] = {}

    def take(self) -> list[Effect]:
        taken, self._effects = self._effects, []
        return taken

    def ask(self, effect: Effect) -> None:
        self._effects.append(effect)

    def send(self, server: int, message: ControlMessage) -> None:
        if server != self.number:
            self.ask(SendTo(server, message))
        else:
            assert isinstance(message, FromMember)
            self.to_itself.append(message)

    def connect(self, server: Server) -> None:
        known = self._connected.get(server.number)
        if known != server and server.address != self._address:
            if known is not None:  # somebody else who would have had that number
                self.ask(Disconnect(server.number))
            self._connected[server.number] = server
            self.ask(Connect(server))

    def disconnect(self, number: int) -> None:
        if self._connected.pop(number, None) is not None:
            self.ask(Disconnect(number))

    def disconnect_all_but(self, numbers: tuple[int, ...], next_server: int) -> None:
        """Keep these servers, and newcomers, whose numbers are from `next_server` on."""
        for number in list(self._connected):
            if number not in numbers and number < next_server:
                self.disconnect(number)
