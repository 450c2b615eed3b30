"""What servers say to each other about the group of servers, as typed messages.

They are encoded as MessagePack arrays by msgspec. Messages of the servers of a configuration
carry who sends them and which configuration it has installed, so that a server that was left
behind is recognised whatever it says.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from flexgroup.server.configuration import Configuration, Server

Ballot = tuple[int, int]
"""An attempt at a change: its round, and the number of the server that leads it."""

NO_BALLOT: Final[Ballot] = (0, 0)

# What the domains of a server hold when they are frozen, and what all deliver then.


class Kept(Struct, frozen=True, array_like=True):
    """A message that is not known to be delivered everywhere."""

    origin: int
    """The number of the server that cast it."""
    seq: int
    groups: tuple[tuple[int, int], ...]
    """(group number, sequence number in that group from that origin)."""
    payload: bytes


class DomainReport(Struct, frozen=True, array_like=True):
    """What one server has delivered in one domain."""

    stack: str
    delivered: list[Kept]
    """In the order delivered; only those not known to be delivered everywhere."""
    low: tuple[tuple[int, int, int], ...]
    """(group number, origin, everything below this is delivered here)."""
    own: list[Kept] = []
    """Sent from here and not delivered here, in the order sent."""


class DomainLeftovers(Struct, frozen=True, array_like=True):
    """What is still to be delivered in one domain before the next configuration."""

    stack: str
    messages: list[Kept]
    """In the order in which those who lack them deliver them."""


# What processes ask for through their server.


class Operation(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A wish to change the configuration."""


class CreateGroup(Operation, frozen=True, tag=1):
    group: str
    stack: str
    owner: str | None
    open: bool
    allow: tuple[str, ...] | None
    client: int | None = None
    """Who asks, if it is the owner itself."""


class DestroyGroup(Operation, frozen=True, tag=2):
    group: str
    process: str


class JoinGroup(Operation, frozen=True, tag=3):
    group: str
    process: str
    client: int


class LeaveGroup(Operation, frozen=True, tag=4):
    group: str
    process: str
    client: int


class RemoveClient(Operation, frozen=True, tag=5):
    """The client has vanished: it leaves all its groups, and owns none any more."""

    client: int


class LeaveServers(Operation, frozen=True, tag=6):
    """The server that asks shuts down in good order."""


class Admit(Operation, frozen=True, tag=7):
    """A new server asks, through the contact, to be admitted."""

    name: str
    address: str


class Renew(Operation, frozen=True, tag=8):
    """A link broke and was replaced: step into a new configuration, with nothing lost."""


AnyOperation = (
    CreateGroup
    | DestroyGroup
    | JoinGroup
    | LeaveGroup
    | RemoveClient
    | LeaveServers
    | Admit
    | Renew
)


class Outcome(Struct, frozen=True, array_like=True):
    """How a request ended."""

    origin: int
    ticket: int
    error: tuple[str, str] | None
    """A code, and for people what is wrong and what to do."""
    admitted: int | None = None
    """The number of the new server, if it was a request to admit one."""


class Decision(Struct, frozen=True, array_like=True):
    """The step to a configuration; every server that takes it takes the same one."""

    configuration: Configuration
    leftovers: list[DomainLeftovers]
    outcomes: list[Outcome]


# Between a server that wants to join, its contact, and the leader.


class ControlMessage(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Anything servers say to each other about their group."""


class AskToJoin(ControlMessage, frozen=True, tag=1):
    """To the contact."""

    name: str
    address: str


class Admitted(ControlMessage, frozen=True, tag=2):
    """From the contact: the configuration that the new server is part of."""

    number: int
    configuration: Configuration


class NotAdmitted(ControlMessage, frozen=True, tag=3):
    reason: str


class Introduced(ControlMessage, frozen=True, tag=4):
    """From the newcomer to the leader: all servers reach me at the address I gave."""

    number: int


# Between the servers of a configuration.


class FromMember(ControlMessage, frozen=True):
    sender: int
    at: int
    """The number of the configuration that the sender has installed."""


class Introduce(FromMember, frozen=True, tag=5):
    """To a newcomer, on a connection to the address it gave."""

    number: int
    """Which the newcomer is going to have."""
    servers: tuple[int, ...]
    """From the leader: who has to introduce itself. Empty from others."""


class Beat(FromMember, frozen=True, tag=6):
    """A sign of life, with the sender's opinion on the others (SuspectServer, ReplySuspect)."""

    sent: float
    """When, by the sender's clock."""
    echo: float
    """`sent` of the last beat that the sender had from the receiver."""
    silent: tuple[int, ...]
    """The servers that the sender has not heard from within the time-out."""
    promised: Ballot
    """The change that the sender is frozen for, if any."""


class NotMember(FromMember, frozen=True, tag=7):
    """The sender's configuration does not contain the receiver any more."""


class Request(FromMember, frozen=True, tag=8):
    """To the leader."""

    ticket: int
    operation: AnyOperation
    group: int | None
    """The number of the group that the operation names, where the request was made."""


class Reply(FromMember, frozen=True, tag=9):
    """The leader refuses a request, which needs no change of the configuration."""

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
    """For one that missed the commit: the step that the sender took to its configuration."""

    decision: Decision


class Meet(FromMember, frozen=True, tag=17):
    """From the leader to the others: introduce yourself to this newcomer."""

    server: Server


AnyControl = (
    AskToJoin
    | Admitted
    | NotAdmitted
    | Introduced
    | Introduce
    | Beat
    | NotMember
    | Request
    | Reply
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
