"""What an application gets from a group."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Message(Struct, Generic[T], frozen=True):
    """A message, in its place in the order of the group."""

    sender: str
    """The name of the process that sent it."""
    body: T
    """The bytes that were sent, or the value, if the group has a codec."""
    group: str


class View(Struct, frozen=True):
    """Who is in a group, from this place in the order of its messages on."""

    number: int
    """Counts the changes; all members see the same views under the same numbers."""
    members: tuple[str, ...]
    """The names of the processes, in the order they joined."""
    group: str


class GroupInfo(Struct, frozen=True):
    """What a server knows about a group."""

    name: str
    stack: str
    owner: str | None
    """Who alone may destroy it; None: any member."""
    open: bool
    """Whether processes that are not members may send."""
    view: int
    members: tuple[str, ...]
    servers: tuple[str, ...]
    """The servers that have members of the group."""
