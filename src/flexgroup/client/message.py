"""What an application is given by a group."""

from __future__ import annotations

from msgspec import Struct

from flexgroup.wire.requests import Message

__all__ = ["GroupInfo", "Message", "View"]


class View(Struct, frozen=True):
    """The members of a group from this place in the order of its messages on."""

    number: int
    """Views are counted; all members see the same views under the same numbers."""
    members: tuple[str, ...]
    """The names of the processes, in the order they joined."""
    group: str


class GroupInfo(Struct, frozen=True):
    """What a server knows about a group."""

    name: str
    stack: str
    owner: str | None
    """The only process that may destroy it; if None, every member may."""
    open: bool
    """Whether processes that are not members may send."""
    view: int
    members: tuple[str, ...]
    servers: tuple[str, ...]
    """The servers that have members of the group."""
