"""The operations on a configuration, which servers propose to the leader.

Sections 3.5.3 to 3.5.8 of the FlexGroup text; `flexgroup.membership.next_configuration` carries
them out.
"""

from __future__ import annotations

from msgspec import Struct

from flexgroup.membership.configuration import Configuration
from flexgroup.membership.side_view import Part

Error = tuple[str, str]


class Operation(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Something that changes the configuration."""


class CreateGroup(Operation, frozen=True, tag=1):
    group: str
    stack: str
    owner: str | None
    open: bool
    allow: tuple[str, ...] | None
    client: int | None = None
    """Who asks, if it is the owner itself."""
    domain: str = ""
    keep: int = 0
    partitionable: bool = False
    flows: bool = False


class DestroyGroup(Operation, frozen=True, tag=2):
    group: str
    process: str


class JoinGroup(Operation, frozen=True, tag=3):
    group: str
    process: str
    client: int
    wants_kept: bool = False
    """Whether the process is to be given messages that are kept."""


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
    keeps_data: bool = False
    attempt: int = 0


class Renew(Operation, frozen=True, tag=8):
    """A link to another server broke and was replaced: what was under way on it may be lost, so the
    domains of both begin anew."""

    server: int


class SendFrom(Operation, frozen=True, tag=9):
    """The server that asks has processes that send to the group without being members, or has none
    of them any more."""

    group: str
    wanted: bool


class OpenLog(Operation, frozen=True, tag=10):
    """All keepers of a group have all of its messages, in the domain that it has now."""

    group: str
    domain: int


class Merge(Operation, frozen=True, tag=11):
    """The server that asks was apart from the others, and comes back with the processes that are
    members of partitionable groups there now."""

    part: Part


class CreateReplicated(Operation, frozen=True, tag=12):
    """All groups of a replicated domain are created together."""

    stack: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    """The name of each group, and the names of the servers with its replicas."""


AnyOperation = (
    CreateGroup
    | DestroyGroup
    | JoinGroup
    | LeaveGroup
    | RemoveClient
    | LeaveServers
    | Admit
    | Renew
    | SendFrom
    | OpenLog
    | Merge
    | CreateReplicated
)


def is_of_side(operation: AnyOperation, configuration: Configuration) -> bool:
    """Whether a server that is apart from the others carries it out in its side."""
    if isinstance(operation, JoinGroup | LeaveGroup | SendFrom):
        entry = configuration.group_named.get(operation.group)
        return entry is not None and entry.partitionable
    return isinstance(operation, RemoveClient)


def already_member(operation: JoinGroup) -> Error:
    return (
        "already-member",
        f"{operation.process!r} is a member of the group {operation.group!r} already; "
        "leave first, or join under another name",
    )
