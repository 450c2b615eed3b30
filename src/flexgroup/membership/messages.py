"""What servers say to each other about the group of servers, as typed messages.

They are encoded as MessagePack arrays by msgspec. Messages of the servers of a configuration
carry who sends them and which configuration it has installed, so that a server that was left
behind is recognised whatever it says.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from flexgroup.membership.configuration import Configuration, Server, SideId
from flexgroup.membership.decision import Decision
from flexgroup.membership.flush import DomainFlush, Report
from flexgroup.membership.operations import AnyOperation
from flexgroup.membership.side_view import Part, SideView

Ballot = tuple[int, int]
"""An attempt at a change: its round, and the number of the server that leads it."""

NO_BALLOT: Final[Ballot] = (0, 0)


# Between a server that wants to join, its contact, and the leader.


class ControlMessage(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Anything servers say to each other about their group."""


class AskToJoin(ControlMessage, frozen=True, tag=1):
    """A new server asks its contact to be let in."""

    name: str
    address: str
    keeps_data: bool = False
    attempt: int = 0
    """Tells this attempt to join from all others, of whatever process."""
    given_up: tuple[int, ...] = ()
    """Earlier attempts of the same process that came to nothing, as far as it knows. What another
    server has of them will never be a server."""


class Admitted(ControlMessage, frozen=True, tag=2):
    """The contact tells the new server which configuration it is part of, and so does any other
    server of it that does not hear the new one."""

    number: int
    configuration: Configuration
    step: Decision
    """What led to it, for servers that have missed it: the newcomer may be the only one to tell."""


class NotAdmitted(ControlMessage, frozen=True, tag=3):
    attempt: int
    """The attempt that it answers. Only who was asked knows of it, so nobody else can refuse."""
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
    patience: float
    """How long the receiver, once it has this beat, is asked not to miss the sender."""
    echoed_patience: float
    """`patience` of the beat that `echo` is of."""


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
    """Stop what the change to configuration `at` + 1 concerns."""

    ballot: Ballot
    freeze: tuple[int, ...] = ()
    """Domains that are not to deliver anything more."""
    hold: tuple[int, ...] = ()
    """Domains in which nothing is to be multicast any more."""
    hold_groups: tuple[int, ...] = ()
    """Groups of other domains to which nothing is to be multicast any more."""


class Prepared(FromMember, frozen=True, tag=11):
    ballot: Ballot
    report: Report
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


# Between servers that stand still, about partitionable groups.


class OfSide(FromMember, frozen=True):
    """Anything that servers which stand still say to each other about partitionable groups."""


class Apart(OfSide, frozen=True, tag=18):
    """The sender stands still, and forms views with those that it hears."""

    view: SideId
    """The view that it is in."""
    count: int
    """How often views were formed, as far as it knows."""
    hears: tuple[int, ...]
    """The others that it hears, which stand still as well."""
    follows: int
    """The server that it follows; itself, if it leads."""
    leaves_out: tuple[int, ...]
    """Servers that it hears and does not lead, since others of its view do not hear them."""
    is_waiting: bool
    """Whether its processes wait to join or leave, or a link was replaced."""


class Gather(OfSide, frozen=True, tag=19):
    """The sender, who leads, asks for what the receiver brings to a view."""

    id: SideId


class Gathered(OfSide, frozen=True, tag=20):
    id: SideId
    part: Part


class Formed(OfSide, frozen=True, tag=21):
    """All have answered: this is the view, for whoever follows nobody else meanwhile."""

    view: SideView
    flush: list[DomainFlush]


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
    | Apart
    | Gather
    | Gathered
    | Formed
)
"""What a decoder of control messages is made for."""
