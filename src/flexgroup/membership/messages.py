"""What servers say to each other about the group of servers, as typed messages.

They are encoded as MessagePack arrays by msgspec. Messages of the servers of a configuration
carry who sends them and which configuration it has installed, so that a server that was left
behind is recognised whatever it says.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.flush import DomainFlush, DomainReport
from flexgroup.membership.operations import AnyOperation

Ballot = tuple[int, int]
"""An attempt at a change: its round, and the number of the server that leads it."""

NO_BALLOT: Final[Ballot] = (0, 0)


class ProposalResult(Struct, frozen=True, array_like=True):
    """How a proposal ended."""

    origin: int
    ticket: int
    error: tuple[str, str] | None
    """A code, and for people what is wrong and what to do."""
    admitted: int | None = None
    """The number of the new server, if it was proposed to admit one."""


class Decision(Struct, frozen=True, array_like=True):
    """The step to a configuration; every server that takes it takes the same one."""

    configuration: Configuration
    flush: list[DomainFlush]
    results: list[ProposalResult]


# Between a server that wants to join, its contact, and the leader.


class ControlMessage(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Anything servers say to each other about their group."""


class AskToJoin(ControlMessage, frozen=True, tag=1):
    """A new server asks its contact to be let in."""

    name: str
    address: str


class Admitted(ControlMessage, frozen=True, tag=2):
    """The contact tells the new server which configuration it is part of."""

    number: int
    configuration: Configuration


class NotAdmitted(ControlMessage, frozen=True, tag=3):
    reason: str


class Introduced(ControlMessage, frozen=True, tag=4):
    """The newcomer tells the leader that all servers reach it at the address it gave."""

    number: int


# Between the servers of a configuration.


class FromMember(ControlMessage, frozen=True):
    sender: int
    at: int
    """The number of the configuration that the sender has installed."""


class Introduce(FromMember, frozen=True, tag=5):
    """A server introduces itself to a newcomer, on a connection to the address it gave."""

    number: int
    """The number that the newcomer is going to have."""
    servers: tuple[int, ...]
    """The leader lists who has to introduce itself; others leave this empty."""


class Beat(FromMember, frozen=True, tag=6):
    """A sign of life, with the sender's opinion on the others (SuspectServer, ReplySuspect)."""

    sent: float
    """When it was sent, by the sender's clock."""
    echo: float
    """`sent` of the last beat that the sender had from the receiver."""
    silent: tuple[int, ...]
    """The servers that the sender has not heard from within the time-out."""
    promised: Ballot
    """The change that the sender is frozen for, if any."""


class NotMember(FromMember, frozen=True, tag=7):
    """The sender's configuration does not contain the receiver any more."""


class Propose(FromMember, frozen=True, tag=8):
    """A server proposes an operation to the leader."""

    ticket: int
    operation: AnyOperation
    group: int | None
    """The number of the group that the operation names, where it was proposed."""


class Rejected(FromMember, frozen=True, tag=9):
    """The leader refuses a proposal, which needs no change of the configuration."""

    ticket: int
    error: tuple[str, str]


class Prepare(FromMember, frozen=True, tag=10):
    """Freeze the domains for the change to configuration `at` + 1."""

    ballot: Ballot


class Prepared(FromMember, frozen=True, tag=11):
    ballot: Ballot
    report: list[DomainReport]
    accepted: tuple[Ballot, Decision] | None
    """The decision of an earlier attempt that the sender has accepted, if any."""


class Overtaken(FromMember, frozen=True, tag=12):
    """The sender follows a higher ballot than the receiver's."""

    ballot: Ballot


class Accept(FromMember, frozen=True, tag=13):
    ballot: Ballot
    decision: Decision


class Accepted(FromMember, frozen=True, tag=14):
    ballot: Ballot


class Commit(FromMember, frozen=True, tag=15):
    """All have accepted what was decided in this ballot: install it."""

    ballot: Ballot


class Decided(FromMember, frozen=True, tag=16):
    """The sender tells one that missed the commit how it came to its configuration."""

    decision: Decision


class Meet(FromMember, frozen=True, tag=17):
    """The leader asks the others to introduce themselves to this newcomer."""

    server: Server


AnyControl = (
    AskToJoin
    | Admitted
    | NotAdmitted
    | Introduced
    | Introduce
    | Beat
    | NotMember
    | Propose
    | Rejected
    | Prepare
    | Prepared
    | Overtaken
    | Accept
    | Accepted
    | Commit
    | Decided
    | Meet
)
"""What a decoder of control messages is made for."""
