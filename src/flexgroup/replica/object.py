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

from collections.abc import Callable, Generator
from typing import Any, Generic, Self, TypeVar

from flexgroup.client.connecting import PATIENCE, Tls
from flexgroup.replica.calls import AsyncCaller, Ordered
from flexgroup.replica.membership import STACK, Membership, Servers, member_of
from flexgroup.replica.replicated import Replicated

K = TypeVar("K", bound="Replica")
R = TypeVar("R")


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


class Replica(Replicated, AsyncCaller):
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
        return Joining(self, Membership(self, group, servers, name, stack, tls, timeout))

    async def leave(self) -> None:
        """Leave the group; the object keeps the state that it has."""
        await member_of(self).end()
        self._membership = None

    async def caught_up(self) -> None:
        """Wait until all calls that were answered anywhere before are applied here."""
        await member_of(self).call("", b"")

    async def until(self, condition: Callable[[], R]) -> R:
        """Wait until the condition holds of the state here, and return what it returned."""
        return await member_of(self).until(condition)

    def call_of(self, method: Ordered[..., Any]) -> Callable[..., Any]:
        membership = member_of(self)

        async def call(*arguments: Any, **by_name: Any) -> Any:
            encoded = method.encode_arguments(*arguments, **by_name)
            return method.result(self, await membership.call(method.name, encoded))

        return call
