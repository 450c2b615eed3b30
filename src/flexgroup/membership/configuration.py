"""A configuration: which servers there are, which groups, and who is a member where.

All servers pass through the same configurations, one after another. Within one, nothing about
membership changes, so protocols see a fixed set of processes; a change of any kind is the step
to the next configuration, at which all servers first deliver the same messages.
"""

from __future__ import annotations

from msgspec import Struct


class Server(Struct, frozen=True, array_like=True):
    """One of the group of servers."""

    number: int
    """Unique for ever: counts all servers that ever joined; older servers have lower ones."""
    name: str
    address: str
    """Where other servers reach it: `host:port`."""


class Member(Struct, frozen=True, array_like=True):
    """A process in a group."""

    process: str
    """Its name, unique in the group."""
    server: int
    """The number of the server that it is connected to."""
    client: int
    """Its number among the clients of that server."""


class GroupEntry(Struct, frozen=True, array_like=True):
    name: str
    number: int
    """Unique for ever, so a group that is created anew under the same name is another."""
    stack: str
    owner: str | None
    open: bool
    allow: tuple[str, ...] | None
    view: int
    """Counts the changes of `members`."""
    members: tuple[Member, ...]
    """They stand in the order in which they joined."""
    owner_at: tuple[int, int] | None = None
    """The server and client of an owner that created the group itself: it need not be a member for
    the others to notice that it has ended."""

    def servers(self) -> tuple[int, ...]:
        """The numbers of the servers that have members of the group, ascending."""
        return tuple(sorted({member.server for member in self.members}))


class Configuration(Struct, frozen=True, array_like=True):
    number: int
    servers: tuple[Server, ...]
    """The servers in ascending order of numbers: the first is the oldest, and leads."""
    groups: tuple[GroupEntry, ...]
    """The groups in ascending order of numbers."""
    next_server: int
    next_group: int


def name_in_files(server: str) -> str:
    """A server's name as the files of a trace have it; so no two servers may agree in this."""
    return "".join(c if c.isalnum() or c in "-." else "-" for c in server)
