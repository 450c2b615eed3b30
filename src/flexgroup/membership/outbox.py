"""What the parts of a membership have asked their host for, in order."""

from __future__ import annotations

from collections import deque
from typing import final

from flexgroup.membership.configuration import Server
from flexgroup.membership.effects import Connect, Disconnect, Effect, Save, SendTo
from flexgroup.membership.messages import ControlMessage, FromMember
from flexgroup.membership.stable import AnyRecord


@final
class Outbox:
    """What the parts of a membership have asked for, until the host takes it.

    Messages to this server itself do not leave it; they wait in `to_itself`.
    """

    __slots__ = ("_address", "_connected", "_effects", "_keeps_data", "number", "to_itself")

    def __init__(self, address: str, keeps_data: bool = False) -> None:
        self._address = address
        """The address of this server."""
        self._keeps_data = keeps_data
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

    def save(self, record: AnyRecord) -> None:
        """Have it on stable storage before anybody is told of it, if this server keeps data."""
        if self._keeps_data:
            self.ask(Save(record))

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
