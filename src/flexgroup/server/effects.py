"""What the membership asks its host to do, in order."""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.server.configuration import Configuration, Server
from flexgroup.server.control import ControlMessage, DomainLeftovers


@dataclass(frozen=True, slots=True)
class SendTo:
    """To a server that a Connect named. If there is no connection, the message is lost."""

    server: int
    message: ControlMessage


@dataclass(frozen=True, slots=True)
class SendOn:
    """On a link that a message came on; None is the link to the contact."""

    link: object
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
    """Deliver the leftovers, then go on in this configuration."""

    configuration: Configuration
    leftovers: list[DomainLeftovers]
    number: int
    """Of this server."""


@dataclass(frozen=True, slots=True)
class Answer:
    """To a request."""

    ticket: int
    error: tuple[str, str] | None
    """A code, and for people what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Excluded:
    """This server is not, or not any more, one of the group. Nothing follows."""

    reason: str


Effect = SendTo | SendOn | Connect | Disconnect | Freeze | Install | Answer | Excluded
