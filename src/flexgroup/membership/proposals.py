"""What a server proposes to the leader, on behalf of its processes and of newcomers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from flexgroup.membership.configuration import Configuration
from flexgroup.membership.decision import Decision
from flexgroup.membership.effects import Answer, LinkNumber, SendOn
from flexgroup.membership.messages import Admitted, AskToJoin, NotAdmitted, Propose
from flexgroup.membership.operations import (
    Admit,
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    LeaveServers,
    is_of_side,
)
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.suspicion import NEVER

MOST_NEWCOMERS = 32
"""Servers that ask this one at the same time to be admitted."""


@final
@dataclass
class Proposal:
    operation: AnyOperation
    group: int | None
    """The number that the group it names had when the proposal was made."""
    joiner: LinkNumber | None
    """The link to the new server, if the proposal is to admit one."""
    sent: float = NEVER
    sent_to: int | None = None
    """The leader that it was sent to last."""


JOINING = "is joining others itself (the first server is started without --join)"
LEFT = "is no member any more"
"""Why a server that is in no configuration admits nobody."""


@final
class Proposals:
    """The proposals of one server by ticket, until they are answered."""

    __slots__ = ("_again", "_next_ticket", "_outbox", "_unanswered")

    def __init__(self, outbox: Outbox, again: float) -> None:
        self._outbox = outbox
        self._again = again
        """Something is proposed again when it has not been answered for so many seconds."""
        self._next_ticket = 1
        self._unanswered: dict[int, Proposal] = {}

    @property
    def newcomers(self) -> int:
        """How many servers ask through this one to be admitted."""
        return sum(isinstance(one.operation, Admit) for one in self._unanswered.values())

    @property
    def are_waiting(self) -> bool:
        return bool(self._unanswered)

    def count_from(self, ticket: int) -> None:
        """Give tickets from this number on."""
        self._next_ticket = ticket

    def _new_ticket(self) -> int:
        ticket = self._next_ticket
        self._next_ticket += 1
        return ticket

    def refuse(self, reason: str) -> int:
        """Answer a proposal that comes at the wrong time."""
        ticket = self._new_ticket()
        self._outbox.ask(Answer(ticket, ("busy", reason)))
        return ticket

    def do_not_admit(self, joiner: LinkNumber, asked: AskToJoin, why: str) -> None:
        """Answer a new server that asks for being proposed at the wrong time."""
        reason = f"the server asked {why}; try again, or ask another"
        self._outbox.ask(SendOn(joiner, NotAdmitted(asked.attempt, reason)))

    def admit(self, joiner: LinkNumber, asked: AskToJoin, configuration: Configuration) -> None:
        """Propose to admit a new server that asks for it."""
        if self.newcomers >= MOST_NEWCOMERS:
            self.do_not_admit(joiner, asked, "is asked by too many at once")
        else:
            operation = Admit(asked.name, asked.address, asked.keeps_data, asked.attempt)
            self.add(operation, configuration, joiner)

    def add(
        self,
        operation: AnyOperation,
        configuration: Configuration,
        joiner: LinkNumber | None = None,
    ) -> int:
        ticket = self._new_ticket()
        number = None
        if isinstance(operation, CreateGroup | DestroyGroup | JoinGroup | LeaveGroup):
            named = configuration.group_named.get(operation.group)
            number = named.number if named is not None else None
        self._unanswered[ticket] = Proposal(operation, number, joiner)
        return ticket

    def of_side(self, configuration: Configuration) -> dict[int, Proposal]:
        """Those that a server which is apart from the others carries out in its side."""
        return {
            ticket: proposal
            for ticket, proposal in self._unanswered.items()
            if is_of_side(proposal.operation, configuration)
        }

    def withdraw(self, ticket: int) -> None:
        """Propose something no longer; nobody waits for an answer."""
        self._unanswered.pop(ticket, None)

    def send(
        self,
        me: int,
        at: int,
        leader: int,
        now: float,
        held: Collection[int] = (),
    ) -> None:
        """Send to the leader what it was not sent lately: it may be lost. What is held waits.

        To another leader everything is sent, so that nothing overtakes what was asked for before.
        """
        for ticket, proposal in self._unanswered.items():
            is_due = now - proposal.sent >= self._again or proposal.sent_to != leader
            if is_due and ticket not in held:
                proposal.sent = now
                proposal.sent_to = leader
                self._outbox.send(
                    leader, Propose(me, at, ticket, proposal.operation, proposal.group)
                )

    def send_again(self) -> None:
        """Send everything with the next `send`: what was under way may be lost."""
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
        installed: tuple[Configuration, Decision] | None = None,
    ) -> None:
        """A proposal has ended; a new server is told its number, in which configuration, and what
        led to that."""
        proposal = self._unanswered.pop(ticket, None)
        if proposal is None:
            return
        if not isinstance(proposal.operation, Admit):
            self._outbox.ask(Answer(ticket, error))
        elif error is not None:
            refusal = NotAdmitted(proposal.operation.attempt, error[1])
            self._outbox.ask(SendOn(proposal.joiner, refusal))
        elif admitted is not None and installed is not None:
            self._outbox.ask(SendOn(proposal.joiner, Admitted(admitted, *installed)))

    def refuse_all(self, reason: str) -> None:
        for ticket in list(self._unanswered):
            self.settle(ticket, ("excluded", reason))
