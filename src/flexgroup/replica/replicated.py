"""Objects with a state that others have as well, and what happens to it."""

from __future__ import annotations

from collections.abc import Iterable
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from flexgroup.client.errors import NotMember
from flexgroup.core.errors import UsageError
from flexgroup.replica.attributes import pieces_of, take_piece
from flexgroup.replica.calls import Caller, Ordered


class Place(Protocol):
    """What an object has to know of its place in a group."""

    @property
    def members(self) -> tuple[str, ...]: ...
    @property
    def process(self) -> str: ...


class Replicated(Caller):
    """What the async and the blocking form have in common: the state, and what happens to it.

    The state is all attributes whose names do not begin with an underscore. They hold what
    `flexgroup.values` can encode; of what would not come back as it was, such as a set, the class
    annotates the type.
    """

    __slots__ = ("__dict__", "__weakref__", "_applied_in", "_caller", "_membership")

    ordered_methods: ClassVar[dict[str, Ordered[..., Any]]] = {}

    if TYPE_CHECKING:  # or they would be taken for attributes of which a class tells the type
        _membership: Place | None
        _caller: str
        _applied_in: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherited = [pair for one in reversed(cls.__mro__) for pair in vars(one).items()]
        cls.ordered_methods = {
            name: method for name, method in dict(inherited).items() if isinstance(method, Ordered)
        }

    def __new__(cls, *arguments: Any, **by_name: Any) -> Self:
        made = super().__new__(cls)
        made._membership = None
        made._caller = ""
        made._applied_in = 0
        return made

    # What a class may define in its own way.

    def joined(self, member: str) -> None:
        """Take that a member has come to the state. Called at all replicas, at the same place."""

    def left(self, member: str) -> None:
        """Take that a member has left or died. Called at all replicas, at the same place."""

    def snapshot(self) -> Iterable[bytes]:
        """Return the state, in pieces. Those after the first are drawn while calls go on, so a
        generator has to remember the state as it was when the first one was drawn."""
        return list(pieces_of(self))

    def restore(self, piece: bytes) -> None:
        """Take the next piece of a snapshot, on an object that was just made."""
        take_piece(self, piece)

    # What it tells.

    @property
    def members(self) -> tuple[str, ...]:
        """Who has the state, from the one that has had it longest on, at the place in the order
        that this replica has come to."""
        return self.membership.members

    @property
    def process(self) -> str:
        """The name of this replica among the members."""
        return self.membership.process

    @property
    def caller(self) -> str:
        """The member that has called the ordered method which is being applied."""
        if not self._caller:
            raise UsageError("there is a caller only in an ordered method, while it is applied")
        return self._caller

    @property
    def is_applying(self) -> bool:
        """Whether an ordered method is being applied, in this thread."""
        return bool(self._caller) and self._applied_in == get_ident()

    @property
    def is_member(self) -> bool:
        return self._membership is not None

    @property
    def membership(self) -> Place:
        if self._membership is None:
            raise NotMember(
                f"this {type(self).__name__} is in no group; join one, as in"
                f" `async with {type(self).__name__}().join('name') as it:`"
            )
        return self._membership
