"""What can go wrong for an application; every text says what is wrong and what to do."""

# The names read as what they are in `except`; the base class has the suffix that N818 looks for.
# ruff: noqa: N818
from __future__ import annotations

from typing import ClassVar

from flexgroup.core.errors import FlexGroupError as FlexGroupError
from flexgroup.core.errors import PeerError as PeerError
from flexgroup.core.errors import UsageError as UsageError
from flexgroup.wire import refusals


class ServerError(FlexGroupError):
    """What a server said to be wrong; `code` is its word for the reason."""

    code: str = ""
    by_code: ClassVar[dict[str, type[ServerError]]] = {}

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        """Declare a kind of error, with the code that stands for it if there is one."""
        if code is not None:
            cls.code = code
            ServerError.by_code[code] = cls


class Refusal(ServerError):
    """The server did not do what was asked for."""


class GroupExists(Refusal, code=refusals.EXISTS):
    """There is a group of that name: join it, or choose another name."""


class NoSuchGroup(Refusal, code=refusals.MISSING):
    """There is no group of that name: create it, or join with a stack, which creates it."""


class GroupDestroyed(Refusal, code=refusals.DESTROYED):
    """The group is gone, and all that was deliverable has been received."""


class NotOwner(Refusal, code=refusals.NOT_OWNER):
    """Only the owner of the group may destroy it."""


class NotMember(Refusal, code=refusals.NOT_MEMBER):
    """Only members may do that: join first."""


class AlreadyMember(Refusal, code=refusals.ALREADY_MEMBER):
    """A process of that name is in the group: leave first, or join under another name."""


class NotAllowed(Refusal, code=refusals.NOT_ALLOWED):
    """The group does not let this process in, or is not open to processes outside it."""


class BadStack(Refusal, code=refusals.BAD_STACK):
    """A stack that cannot be built, or that is not the one the group has."""


class NotKept(Refusal, code=refusals.NOT_KEPT):
    """What is asked for is not kept, or cannot be; the text says what is, or who keeps it."""


class NotHere(Refusal, code=refusals.NOT_HERE):
    """This server has no replica of the group: connect to one of those that the text names."""


class MixedStacks(Refusal, code=refusals.MIXED_STACKS):
    """One message can only go to several groups if they have the same stack."""


class TooLarge(Refusal, code=refusals.TOO_LARGE):
    """The message has more bytes than the server takes: send it in parts."""


class TooMany(Refusal, code=refusals.TOO_MANY):
    """A limit is reached: of clients, of groups, or of groups of one process."""


class ServerBusy(Refusal, code=refusals.BUSY):
    """The server cannot do that just now: try again."""


class NoAnswer(FlexGroupError, TimeoutError):
    """The server did not answer a request in time; it may have carried it out."""


class NoMessage(FlexGroupError, TimeoutError):
    """Nothing was delivered within the time that `receive` was given."""


class OutcomeUnknown(FlexGroupError):
    """Nobody can tell whether the call of a replica was applied: see by calling it what is so."""


class CallFailed(FlexGroupError):
    """An ordered method of a replica has raised something that has no class here."""


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


class ServerClosing(ServerError, ConnectionLost, code=refusals.CLOSING):
    """The server ends, or has given this process up: connect to another server, or later."""


class ServerExcluded(ServerClosing, code=refusals.EXCLUDED):
    """The other servers have excluded this one: connect to another."""


class MalformedRequest(ServerClosing, code=refusals.MALFORMED):
    """The server could not understand what this library sent."""


class VersionMismatch(ServerClosing, code=refusals.BAD_VERSION):
    """Library and server speak different versions: install the same one on both sides."""


def refusal(code: str, reason: str) -> ServerError:
    """Return the error that a server's code stands for, or `Refusal` if the code is unknown."""
    error = ServerError.by_code.get(code, Refusal)(reason)
    error.code = code
    return error
