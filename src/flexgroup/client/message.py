"""What an application is given by a group, and the listener that it is given to if wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from msgspec import Struct

from flexgroup.core.errors import FlexGroupError
from flexgroup.core.promises import level_of

T = TypeVar("T")


# The collector does not look at messages, which makes them a fifth cheaper: what is in one knows
# nothing of it, unless an application puts it there.
class Message(Struct, Generic[T], frozen=True, eq=False, gc=False):
    """A message, in its place in the order of the group."""

    sender: str
    """The name of the process that sent it."""
    body: T
    """The bytes that were sent, or the value, if the group has a codec."""
    group: str = ""
    position: int = 0
    """The place in the one order in which the server delivered to this process, over all its
    groups."""
    _groups: tuple[str, ...] = ()
    """All groups of this process that it goes to, if they are several."""
    number: int = 0
    """Its number among the messages of a group that keeps them or has replicas, the same for every
    member: from 1 on. 0 in other groups."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups of this process that the message was sent to."""
        return self._groups or (self.group,)

    # Another process, or the same one with another link, has other positions for the same message.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return (self.sender, self.body, self.group) == (other.sender, other.body, other.group)

    def __hash__(self) -> int:
        return hash((self.sender, self.body, self.group))


class View(Struct, frozen=True, eq=False):
    """The members of a group from this place in the order of its messages on."""

    number: int
    """Views are counted; all members see the same views under the same numbers."""
    members: tuple[str, ...]
    """The names of the processes, in the order they joined."""
    group: str
    position: int = 0
    """Its place in the one order in which the server delivered to this process, over all its
    groups. Members have different positions for the same view, which are not compared."""
    merged: tuple[tuple[str, ...], ...] = ()
    """If components of the network have met with this view of a partitionable group: the members of
    each that were in one view before. Otherwise it is empty."""
    side: tuple[int, int] = (0, 0)
    """If the network was parted and this view of a partitionable group was formed in one of its
    components: which one. Another component may have a view of the same number and members."""

    def _identity(self) -> tuple[object, ...]:
        return self.number, self.members, self.group, self.side

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


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
    """The servers that have members of the group, or keep its messages."""
    promises: tuple[str, ...]
    """The properties that its stack promises, such as `agreement` and `fifo order`."""
    domain: str | None = None
    """Groups with the same stack and the same domain have an order in common."""
    keep: int = 0
    """How many of its last messages servers keep on disk, at least."""
    partitionable: bool = False
    """Whether its members go on in every component of the network, with views of their own."""

    @property
    def level(self) -> str:
        """How much is certain of a message that is delivered, its sender's own included: it is
        best-effort, reliable, agreed, safe or kept (docs/client.md has the table)."""
        return "kept" if self.keep else level_of(self.promises)


class Listener(ABC, Generic[T]):
    """An application derives from this class; see `Group.listen` and `Link.listen`.

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
