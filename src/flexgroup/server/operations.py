"""How a configuration follows from another one and what was asked for.

Sections 3.5.3 to 3.5.8 of the FlexGroup text, with one difference: of two that create a group
under the same name at the same time exactly one succeeds, as the leader puts all in an order.
"""

from __future__ import annotations

from msgspec.structs import replace

from flexgroup.server.configuration import Configuration, GroupEntry, Member, Server
from flexgroup.server.control import (
    Admit,
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    LeaveServers,
    RemoveClient,
    Renew,
)

Error = tuple[str, str]


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
                return self._create(operation)
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
            case LeaveServers():
                self.without({origin})
            case Renew():
                pass
            case Admit():
                raise AssertionError("a server is admitted by admit()")
        return None

    def _create(self, operation: CreateGroup) -> Error | None:
        if operation.group in self._groups:
            return (
                "exists",
                f"there is a group {operation.group!r}; join it, or choose another name",
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
        self._groups[name] = replace(
            entry,
            members=tuple(other for other in entry.members if other != member),
            owner=None if entry.owner == member.process else entry.owner,
        )

    def finish(self) -> Configuration:
        for entry in list(self._groups.values()):
            for member in entry.members:
                if member.server not in self._servers:
                    self._remove(entry.name, member)
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
