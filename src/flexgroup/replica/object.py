"""Objects of which every process of a group has a copy.

class Counter(flexgroup.Replica):
    value = 0

    @flexgroup.ordered
    def add(self, n: int) -> int:
        self.value += n
        return self.value

async with Counter().join("counter", "localhost:7400") as counter:
    print(await counter.add(3))
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from flexgroup.client.connecting import PATIENCE, Tls
from flexgroup.core.errors import UsageError
from flexgroup.replica.attributes import pieces_of, take_piece
from flexgroup.replica.calls import Ordered

if TYPE_CHECKING:
    from flexgroup.replica.membership import Membership

STACK = "ABCAST SAFE"
"""With it, what a call has returned is not lost as long as any server with a replica lives."""

Servers = str | Sequence[str] | None
"""Addresses, also in one text with commas between them."""


class Replicated:
    """What the async and the blocking form have in common: the state, and what happens to it.

    The state is all attributes whose names do not begin with an underscore. They hold what
    `flexgroup.values` can encode; of what would not come back as it was, such as a set, the class
    annotates the type.
    """

    __slots__ = ("__dict__", "__weakref__", "_caller", "_membership")

    ordered_methods: ClassVar[dict[str, Ordered[..., Any]]] = {}

    if TYPE_CHECKING:  # or they would be taken for attributes of which a class tells the type
        _membership: Membership | None
        _caller: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {name: method for name, method in vars(cls).items() if isinstance(method, Ordered)}
        cls.ordered_methods = cls.ordered_methods | own

    def __new__(cls, *arguments: Any, **by_name: Any) -> Self:
        made = super().__new__(cls)
        made._membership = None
        made._caller = ""
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
        return self.membership.machine.members

    @property
    def process(self) -> str:
        """The name of this replica among the members."""
        return self.membership.process

    @property
    def caller(self) -> str:
        """In an ordered method: the member that called it."""
        if not self._caller:
            raise UsageError("there is a caller only in an ordered method, while it is applied")
        return self._caller

    @property
    def membership(self) -> Membership:
        """What keeps this object in its group."""
        if self._membership is None:
            kind = type(self).__name__
            raise UsageError(
                f"this {kind} is in no group; join one: `async with {kind}().join('name') as it:`"
            )
        return self._membership

    @abstractmethod
    def call_of(self, method: Ordered[..., Any]) -> Callable[..., Any]:
        """Return what calls an ordered method at all replicas."""


K = TypeVar("K", bound="Replica")


class Joining(Generic[K]):
    """The result of `Replica.join`: await it, or use it in `async with`."""

    def __init__(self, replica: K, membership: Membership) -> None:
        self._replica = replica
        self._membership = membership

    async def _begin(self) -> K:
        self._replica._membership = self._membership
        try:
            await self._membership.begin()
        except BaseException:
            self._replica._membership = None
            raise
        return self._replica

    def __await__(self) -> Generator[Any, None, K]:
        return self._begin().__await__()

    async def __aenter__(self) -> K:
        return await self._begin()

    async def __aexit__(self, *error: object) -> None:
        await self._replica.leave()


class Replica(Replicated):
    """An object of which each process of a group has a copy; see `ordered`, and docs/replicas.md.

    A call of an ordered method is applied at all replicas, once, at the same place in the order of
    all calls; awaiting it gives what it returned. Attributes can be read at any time: they are as
    of some place in that order, which `caught_up` brings up to now.
    """

    __slots__ = ()

    def join(
        self,
        group: str,
        servers: Servers = None,
        *,
        name: str | None = None,
        stack: str = STACK,
        tls: Tls | None = None,
        timeout: float = PATIENCE,
    ) -> Joining[Self]:
        """Become a replica, with the state of those in the group, or as the first one.

        servers: addresses, of which another is tried when the connection to one is lost.
        name: the name of this replica; None stands for one that no other has.
        stack: a total order in which what one member sends stays in order.
        timeout: so many seconds may pass without a connection or any part of the state; then all
            calls fail.
        """
        return Joining(self, membership_of(self, group, servers, name, stack, tls, timeout))

    async def leave(self) -> None:
        """Leave the group; the object keeps the state that it has."""
        await self.membership.end()
        self._membership = None

    async def caught_up(self) -> None:
        """Wait until all calls that were answered anywhere before are applied here."""
        await self.membership.call("", b"")

    def call_of(self, method: Ordered[..., Any]) -> Callable[..., Any]:
        membership = self.membership

        async def call(*arguments: Any, **by_name: Any) -> Any:
            encoded = method.encode_arguments(*arguments, **by_name)
            return method.result(self, await membership.call(method.name, encoded))

        return call


def membership_of(
    replica: Replicated,
    group: str,
    servers: Servers,
    name: str | None,
    stack: str,
    tls: Tls | None,
    timeout: float,
) -> Membership:
    """Return the membership of a replica that is in no group yet."""
    from flexgroup.replica.membership import Membership

    if replica._membership is not None:
        raise UsageError("this object is a replica already: leave, or make another one")
    return Membership(replica, group, servers, name, stack, tls, timeout)
