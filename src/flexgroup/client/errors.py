"""What can go wrong for an application; every text says what is wrong and what to do."""

# The names read as what they are in `except`; the base class has the suffix that N818 looks for.
# ruff: noqa: N818
from __future__ import annotations

from typing import ClassVar

from flexgroup.core.errors import FlexGroupError as FlexGroupError
from flexgroup.core.errors import PeerError as PeerError
from flexgroup.core.errors import UsageError as UsageError
from flexgroup.wire import refusals


class Refusal(FlexGroupError):
    """The server did not do what was asked for; `code` is its word for the reason."""

    code: str = ""


class GroupExists(Refusal):
    """There is a group of that name: join it, or choose another name."""

    code = refusals.EXISTS


class NoSuchGroup(Refusal):
    """There is no group of that name: create it, or join with a stack, which creates it."""

    code = refusals.MISSING


class GroupDestroyed(Refusal):
    """The group is gone, and all that was deliverable has been received."""

    code = refusals.DESTROYED


class NotOwner(Refusal):
    """Only the owner of the group may destroy it."""

    code = refusals.NOT_OWNER


class NotMember(Refusal):
    """Only members may do that: join first."""

    code = refusals.NOT_MEMBER


class AlreadyMember(Refusal):
    """A process of that name is in the group: leave first, or join under another name."""

    code = refusals.ALREADY_MEMBER


class NotAllowed(Refusal):
    """The group does not let this process in, or is not open to processes outside it."""

    code = refusals.NOT_ALLOWED


class BadStack(Refusal):
    """A stack that cannot be built, or that is not the one the group has."""

    code = refusals.BAD_STACK


class MixedStacks(Refusal):
    """One message can only go to several groups if they have the same stack."""

    code = refusals.MIXED_STACKS


class TooLarge(Refusal):
    """The message has more bytes than the server takes: send it in parts."""

    code = refusals.TOO_LARGE


class TooMany(Refusal):
    """A limit is reached: of clients, of groups, or of groups of one process."""

    code = refusals.TOO_MANY


class ServerBusy(Refusal):
    """The server cannot do that just now: try again."""

    code = refusals.BUSY


class NoAnswer(FlexGroupError, TimeoutError):
    """The server did not answer a request in time; it may have carried it out."""


class NoMessage(FlexGroupError, TimeoutError):
    """Nothing was delivered within the time that `receive` was given."""


class ConnectionLost(FlexGroupError, ConnectionError):
    """There is no connection to the server any more: connect and join again."""


class LinkClosed(ConnectionLost):
    """This side has closed the link."""

    def __init__(self, text: str = "the link was closed here; connect again to go on") -> None:
        super().__init__(text)


class CannotConnect(ConnectionLost):
    """Nobody answers at the address, or it is not a FlexGroup server."""


class ServerMisbehaved(ConnectionLost, PeerError):
    """The server sent what no FlexGroup server sends; the connection was closed."""


class ServerClosing(ConnectionLost):
    """The server ends, or has given this process up: connect to another server, or later."""

    code: ClassVar[str] = refusals.CLOSING


class ServerExcluded(ServerClosing):
    """The other servers have excluded this one: connect to another."""

    code = refusals.EXCLUDED


class MalformedRequest(ServerClosing):
    """The server could not understand what this library sent."""

    code = refusals.MALFORMED


class VersionMismatch(ServerClosing):
    """Library and server speak different versions: install the same one on both sides."""

    code = refusals.BAD_VERSION


_BY_CODE: dict[str, type[Refusal] | type[ServerClosing]] = {
    kind.code: kind
    for kind in (
        GroupExists,
        NoSuchGroup,
        GroupDestroyed,
        NotOwner,
        NotMember,
        AlreadyMember,
        NotAllowed,
        BadStack,
        MixedStacks,
        TooLarge,
        TooMany,
        ServerBusy,
        ServerClosing,
        ServerExcluded,
        MalformedRequest,
        VersionMismatch,
    )
}


def refusal(code: str, reason: str) -> Refusal | ServerClosing:
    """Return the error that a server's code stands for, or `Refusal` if the code is unknown."""
    kind = _BY_CODE.get(code)
    if kind is not None:
        return kind(reason)
    error = Refusal(reason)
    error.code = code
    return error
