"""What the membership asks its host to do, in order."""

from __future__ import annotations

from msgspec import Struct

from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.decision import Casts
from flexgroup.membership.flush import DomainFlush
from flexgroup.membership.messages import Ballot, ControlMessage
from flexgroup.membership.stable import AnyRecord

LinkNumber = int
"""The host's number for a connection."""


class SendTo(Struct, frozen=True):
    """Send a message to a server that a Connect named. Without a connection it is lost."""

    server: int
    message: ControlMessage


class SendOn(Struct, frozen=True):
    """Send a message on a link that another message came on; None is the link to the contact."""

    link: LinkNumber | None
    message: ControlMessage


class Connect(Struct, frozen=True):
    """Keep a connection to this server until Disconnect."""

    server: Server


class Disconnect(Struct, frozen=True):
    number: int


class Save(Struct, frozen=True):
    """Keep this on stable storage before anything that is asked for later is done."""

    record: AnyRecord


class Freeze(Struct, frozen=True):
    """Stop what a change concerns, and report with `frozen`. What is stopped once stays so until
    the next configuration is installed, or, if it is frozen, until the domain ends."""

    change: int
    """The number of the configuration that follows."""
    ballot: Ballot
    domains: tuple[int, ...]
    """Deliver nothing more in these domains, and report what they have delivered."""
    hold: tuple[int, ...] = ()
    """Multicast nothing more in these domains, and report how much was multicast to each group."""
    hold_groups: tuple[int, ...] = ()
    """The same, of single groups of other domains."""
    is_of_side: bool = False
    """No change is under way: `ballot` is a view of partitionable groups that is being formed."""


class Drain(Struct, frozen=True):
    """Call `drained` as soon as all of this is delivered here that this server is to deliver."""

    change: int
    """The number of the configuration that follows."""
    ballot: Ballot
    casts: Casts


class Install(Struct, frozen=True):
    """Deliver what the flush still holds for this server, then go on in this configuration."""

    configuration: Configuration
    number: int
    """The number of this server."""
    flush: list[DomainFlush]
    casts: Casts
    """How much was multicast to the groups that were held."""
    restarted: tuple[int, ...] = ()
    """Other servers that have come back, and have not ended their domains with this one."""
    is_restarted: bool = False
    """This server has come back, and takes part in no domain until the others know it."""
    stands_still: bool = False
    """Only partitionable groups have changed; the others stand still, as before."""
    is_apart: bool = False
    """This server comes from a side: its partitionable groups stay stopped until the others have
    agreed to what it brings."""


class Answer(Struct, frozen=True):
    """A proposal has been carried out or refused."""

    ticket: int
    error: tuple[str, str] | None
    """A code, and for people what is wrong and what to do."""


class Excluded(Struct, frozen=True):
    """This server is not, or not any more, one of the group. Nothing follows."""

    reason: str
    alone: Configuration | None = None
    """The partitionable groups with members at this server, if it has any: they stay as they are,
    stopped, and go on when the server is admitted again."""
    missed: Configuration | None = None
    """The next configuration that this server had accepted, if it had: the others may have
    installed that, with this server among them, before they went on without it."""


Effect = (
    SendTo | SendOn | Connect | Disconnect | Save | Freeze | Drain | Install | Answer | Excluded
)
