"""The operations on a configuration, and how the next one follows from them.

Sections 3.5.3 to 3.5.8 of the FlexGroup text, with one difference: of two that create a group
under the same name at the same time exactly one succeeds, as the leader puts all in an order.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from flexgroup.membership.configuration import Configuration, GroupEntry, Member, Server

Error = tuple[str, str]

MOST_GROUPS = 10_000
MOST_NAMES = 100_000
"""The most names on lists of who may join, over all groups. Every server holds all of them."""


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


class NextConfiguration:
    """A configuration in the making."""

    def __init__(self, before: Configuration) -> None:
        self._before = before
        self._servers = {server.number: server for server in before.servers}
        self._groups = {group.name: group for group in before.groups}
        self._next_server = before.next_server
        self._next_group = before.next_group

    def without(self, servers: set[int]) -> None:
        """These servers are not part of it, and their processes leave all groups."""
        for number in servers:
            self._servers.pop(number, None)

    def admit(self, server: Server) -> None:
        self._servers[server.number] = server
        self._next_server = max(self._next_server, server.number + 1)

    def apply(self, origin: int, operation: AnyOperation, group: int | None) -> Error | None:
        """Carry out what `origin` asked for, or say why not.

        `group` is the number that the named group had where and when the request was made.
        """
        match operation:
            case CreateGroup():
                return self._create(origin, operation)
            case DestroyGroup():
                return self._destroy(operation, group)
            case JoinGroup():
                return self._join(origin, operation)
            case LeaveGroup():
                return self._leave(origin, operation)
            case RemoveClient():
                for entry in list(self._groups.values()):
                    for member in entry.members:
                        if (member.server, member.client) == (origin, operation.client):
                            self._remove(entry.name, member)
                    if entry.owner_at == (origin, operation.client):
                        self._owner_ended(entry.name)
            case LeaveServers():
                self.without({origin})
            case Renew():
                pass
            case Admit():
                raise AssertionError("a server is admitted by admit()")
        return None

    def _create(self, origin: int, operation: CreateGroup) -> Error | None:
        if operation.group in self._groups:
            return (
                "exists",
                f"there is a group {operation.group!r}; join it, or choose another name",
            )
        allowed = sum(len(group.allow or ()) for group in self._groups.values())
        if len(self._groups) >= MOST_GROUPS or allowed + len(operation.allow or ()) > MOST_NAMES:
            return (
                "too-many",
                f"there may be {MOST_GROUPS} groups, with {MOST_NAMES} names of who may join; "
                "destroy some first",
            )
        self._groups[operation.group] = GroupEntry(
            name=operation.group,
            number=self._next_group,
            stack=operation.stack,
            owner=operation.owner,
            open=operation.open,
            allow=operation.allow,
            view=0,
            members=(),
            owner_at=None if operation.client is None else (origin, operation.client),
        )
        self._next_group += 1
        return None

    def _destroy(self, operation: DestroyGroup, number: int | None) -> Error | None:
        entry = self._groups.get(operation.group)
        if number is not None and (entry is None or entry.number != number):
            return None  # destroyed by another at the same time: both succeed
        if entry is None:
            return _missing(operation.group)
        if entry.owner is not None and entry.owner != operation.process:
            return "not-owner", f"only {entry.owner!r} may destroy the group {entry.name!r}"
        # A group without owner and members could never be destroyed if that took a member.
        is_member = any(member.process == operation.process for member in entry.members)
        if entry.owner is None and entry.members and not is_member:
            return (
                "not-member",
                f"the group {entry.name!r} is destroyed by its members; "
                f"{operation.process!r} is none",
            )
        del self._groups[entry.name]
        return None

    def _join(self, origin: int, operation: JoinGroup) -> Error | None:
        entry = self._groups.get(operation.group)
        if entry is None:
            return _missing(operation.group)
        if any(member.process == operation.process for member in entry.members):
            return (
                "already-member",
                f"{operation.process!r} is a member of the group {entry.name!r} already; "
                "leave first, or join under another name",
            )
        if entry.allow is not None and operation.process not in entry.allow:
            return (
                "not-allowed",
                f"{operation.process!r} is not among those who may join {entry.name!r}",
            )
        member = Member(operation.process, origin, operation.client)
        self._groups[entry.name] = replace(entry, members=(*entry.members, member))
        return None

    def _leave(self, origin: int, operation: LeaveGroup) -> Error | None:
        entry = self._groups.get(operation.group)
        if entry is None:
            return _missing(operation.group)
        member = Member(operation.process, origin, operation.client)
        if member not in entry.members:
            return "not-member", f"{operation.process!r} is not a member of {entry.name!r}"
        self._remove(entry.name, member)
        return None

    def _remove(self, name: str, member: Member) -> None:
        entry = self._groups[name]
        is_owner = entry.owner == member.process
        self._groups[name] = replace(
            entry,
            members=tuple(other for other in entry.members if other != member),
            owner=None if is_owner else entry.owner,
            owner_at=None if is_owner else entry.owner_at,
        )

    def _owner_ended(self, name: str) -> None:
        """The owner, or the connection under which it created the group, has ended."""
        entry = self._groups[name]
        is_member = any(member.process == entry.owner for member in entry.members)
        self._groups[name] = replace(entry, owner=entry.owner if is_member else None, owner_at=None)

    def finish(self) -> Configuration:
        for entry in list(self._groups.values()):
            for member in entry.members:
                if member.server not in self._servers:
                    self._remove(entry.name, member)
            if entry.owner_at is not None and entry.owner_at[0] not in self._servers:
                self._owner_ended(entry.name)
        members_before = {group.number: group.members for group in self._before.groups}
        groups = sorted(self._groups.values(), key=lambda group: group.number)
        return Configuration(
            number=self._before.number + 1,
            servers=tuple(self._servers[number] for number in sorted(self._servers)),
            groups=tuple(
                group
                if group.members == members_before.get(group.number, ())
                else replace(group, view=group.view + 1)
                for group in groups
            ),
            next_server=self._next_server,
            next_group=self._next_group,
        )


def _missing(group: str) -> Error:
    return "missing", f"there is no group {group!r}; create it first"
