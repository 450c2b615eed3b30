"""What a server proposes to the leader, on behalf of its processes and of newcomers."""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.membership.configuration import Configuration
from flexgroup.membership.effects import Answer, LinkNumber, Outbox, SendOn
from flexgroup.membership.messages import Admitted, NotAdmitted, Propose
from flexgroup.membership.operations import (
    Admit,
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    LeaveServers,
)
from flexgroup.membership.suspicion import NEVER


@dataclass(slots=True)
class Proposal:
    operation: AnyOperation
    group: int | None
    """The number that the group it names had when the proposal was made."""
    joiner: LinkNumber | None
    """The link to the new server, if the proposal is to admit one."""
    sent: float = NEVER


class Proposals:
    """The proposals of one server by ticket, until they are answered."""

    __slots__ = ("_next_ticket", "_outbox", "_unanswered")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._next_ticket = 1
        self._unanswered: dict[int, Proposal] = {}

    def _new_ticket(self) -> int:
        ticket = self._next_ticket
        self._next_ticket += 1
        return ticket

    def refuse(self, reason: str) -> int:
        """Answer a proposal that comes at the wrong time."""
        ticket = self._new_ticket()
        self._outbox.ask(Answer(ticket, ("busy", reason)))
        return ticket

    def add(
        self,
        operation: AnyOperation,
        configuration: Configuration,
        joiner: LinkNumber | None = None,
    ) -> int:
        ticket = self._new_ticket()
        number = None
        if isinstance(operation, CreateGroup | DestroyGroup | JoinGroup | LeaveGroup):
            groups = configuration.groups
            number = next((g.number for g in groups if g.name == operation.group), None)
        self._unanswered[ticket] = Proposal(operation, number, joiner)
        return ticket

    def send(self, me: int, at: int, leader: int, now: float, again: float) -> None:
        """Send to the leader what was not sent within `again` seconds: it may be lost."""
        for ticket, proposal in self._unanswered.items():
            if now - proposal.sent >= again:
                proposal.sent = now
                self._outbox.send(
                    leader, Propose(me, at, ticket, proposal.operation, proposal.group)
                )

    def send_again(self) -> None:
        """A new configuration may have a new leader."""
        for proposal in self._unanswered.values():
            proposal.sent = NEVER

    def to_leave(self) -> list[int]:
        return [
            t
            for t, proposal in self._unanswered.items()
            if isinstance(proposal.operation, LeaveServers)
        ]

    def settle(
        self,
        ticket: int,
        error: tuple[str, str] | None,
        admitted: int | None = None,
        configuration: Configuration | None = None,
    ) -> None:
        """A proposal has ended; a new server is told its number, and in which configuration."""
        proposal = self._unanswered.pop(ticket, None)
        if proposal is None:
            return
        if not isinstance(proposal.operation, Admit):
            self._outbox.ask(Answer(ticket, error))
        elif error is not None:
            self._outbox.ask(SendOn(proposal.joiner, NotAdmitted(error[1])))
        elif admitted is not None and configuration is not None:
            self._outbox.ask(SendOn(proposal.joiner, Admitted(admitted, configuration)))

    def refuse_all(self, reason: str) -> None:
        for ticket in list(self._unanswered):
            self.settle(ticket, ("excluded", reason))
