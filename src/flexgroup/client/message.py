"""What an application is given by a group, and the listener that it is given to if wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from msgspec import Struct

from flexgroup.core.errors import FlexGroupError
from flexgroup.wire.requests import Message

__all__ = ["GroupInfo", "Listener", "Message", "View"]

T = TypeVar("T")


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


class Listener(ABC, Generic[T]):
    """An application derives from this class; see `Group.listen`.

    Its functions are called as soon as something has come. What one raises goes to the exception
    handler of the event loop, and then the next is called.
    """

    __slots__ = ()

    @abstractmethod
    def delivered(self, messages: list[Message[T]]) -> None:
        """Take all messages that have come together, in order."""

    def changed(self, view: View) -> None:
        """Take the view that holds from here on, for the messages that follow."""

    def refused(self, error: FlexGroupError) -> None:
        """Take the reason why the server has refused a message; unless overridden, report it."""
        raise error

    def ended(self, error: FlexGroupError) -> None:
        """Take what `receive` would have raised; nothing more will come, and no other call."""
