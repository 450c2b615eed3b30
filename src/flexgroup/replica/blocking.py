"""Replicas without async: the same class, whose ordered methods wait and return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

from flexgroup.client.background import Background
from flexgroup.client.connecting import PATIENCE, Tls
from flexgroup.replica.calls import BlockingCaller, Ordered
from flexgroup.replica.membership import STACK, Membership, Servers, member_of
from flexgroup.replica.replicated import Replicated

R = TypeVar("R")


class BlockingReplica(Replicated, BlockingCaller):
    """A replicated object as `flexgroup.Replica`, which describes the calls; here they wait.

    Calls are applied in a thread of their own. Attributes may change at any moment, so what has to
    be read together is read by an ordered method.
    """

    __slots__ = ("_background",)

    _background: Background

    def join(
        self,
        group: str,
        servers: Servers = None,
        *,
        name: str | None = None,
        stack: str = STACK,
        tls: Tls | None = None,
        timeout: float = PATIENCE,
    ) -> Self:
        membership = Membership(self, group, servers, name, stack, tls, timeout)
        self._background = Background()
        self._membership = membership  # calls of others are applied here before this returns
        try:
            self._background.wait_for(membership.begin())
        except BaseException:
            self._background.stop()
            self._membership = None
            raise
        return self

    def leave(self) -> None:
        """Leave the group; the object keeps the state that it has."""
        self._background.wait_for(member_of(self).end())
        self._background.stop()
        self._membership = None

    def caught_up(self) -> None:
        """Wait until all calls that were answered anywhere before are applied here."""
        self._background.wait_for(member_of(self).call("", b""))

    def until(self, condition: Callable[[], R]) -> R:
        """Wait until the condition holds of the state here, and return what it returned."""
        return self._background.wait_for(member_of(self).until(condition))

    def call_of(self, method: Ordered[..., Any]) -> Callable[..., Any]:
        membership = member_of(self)

        def call(*arguments: Any, **by_name: Any) -> Any:
            encoded = method.encode_arguments(*arguments, **by_name)
            outcome = self._background.wait_for(membership.call(method.name, encoded))
            return method.result(self, outcome)

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()
