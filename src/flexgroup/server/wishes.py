"""What a server asks the leader for, on behalf of its processes and of newcomers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flexgroup.server.change import Send
from flexgroup.server.configuration import Configuration
from flexgroup.server.control import (
    Admit,
    Admitted,
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    LeaveServers,
    NotAdmitted,
    Request,
)
from flexgroup.server.effects import Answer, Effect, SendOn
from flexgroup.server.suspicion import NEVER


@dataclass(slots=True)
class Wish:
    operation: AnyOperation
    group: int | None
    """The number that the group it names had when the wish was made."""
    joiner: object
    """The link to the new server, if the wish is to admit one."""
    sent: float = NEVER


class Wishes:
    """By ticket, until they are answered."""

    __slots__ = ("_emit", "_next_ticket", "_unanswered")

    def __init__(self, emit: Callable[[Effect], None]) -> None:
        self._emit = emit
        self._next_ticket = 1
        self._unanswered: dict[int, Wish] = {}

    def _new_ticket(self) -> int:
        ticket = self._next_ticket
        self._next_ticket += 1
        return ticket

    def refuse(self, reason: str) -> int:
        """A wish that comes at the wrong time."""
        ticket = self._new_ticket()
        self._emit(Answer(ticket, ("busy", reason)))
        return ticket

    def add(self, operation: AnyOperation, configuration: Configuration, joiner: object) -> int:
        ticket = self._new_ticket()
        number = None
        if isinstance(operation, CreateGroup | DestroyGroup | JoinGroup | LeaveGroup):
            groups = configuration.groups
            number = next((g.number for g in groups if g.name == operation.group), None)
        self._unanswered[ticket] = Wish(operation, number, joiner)
        return ticket

    def ask(self, me: int, at: int, leader: int, send: Send, now: float, again: float) -> None:
        """Send to the leader what was not sent within `again` seconds: it may be lost."""
        for ticket, wish in self._unanswered.items():
            if now - wish.sent >= again:
                wish.sent = now
                send(leader, Request(me, at, ticket, wish.operation, wish.group))

    def ask_again(self) -> None:
        """In a new configuration."""
        for wish in self._unanswered.values():
            wish.sent = NEVER

    def to_leave(self) -> list[int]:
        return [
            t for t, wish in self._unanswered.items() if isinstance(wish.operation, LeaveServers)
        ]

    def settle(
        self,
        ticket: int,
        error: tuple[str, str] | None,
        admitted: int | None = None,
        configuration: Configuration | None = None,
    ) -> None:
        """It has ended; a new server is told which number it has in which configuration."""
        wish = self._unanswered.pop(ticket, None)
        if wish is None:
            return
        if not isinstance(wish.operation, Admit):
            self._emit(Answer(ticket, error))
        elif error is not None:
            self._emit(SendOn(wish.joiner, NotAdmitted(error[1])))
        elif admitted is not None and configuration is not None:
            self._emit(SendOn(wish.joiner, Admitted(admitted, configuration)))

    def refuse_all(self, reason: str) -> None:
        for ticket in list(self._unanswered):
            self.settle(ticket, ("excluded", reason))
