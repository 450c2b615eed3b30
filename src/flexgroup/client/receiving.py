"""Waiting for what comes in a group, or in any group of a link."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast

from flexgroup.client.errors import GroupDestroyed, LinkClosed, NoMessage, NotMember
from flexgroup.client.inbox import Inbox
from flexgroup.client.message import Listener, Message, View
from flexgroup.client.order import DeliveryOrder
from flexgroup.core.errors import UsageError

T = TypeVar("T")
R = TypeVar("R", bound=Message[Any] | View | list[Message[Any]])


async def arrival(
    queue: Inbox | DeliveryOrder,
    take: Callable[[], R | None],
    where: str,
    timeout: float | None = None,
) -> R:
    """Wait until there is something to take, and return it; NoMessage after `timeout`."""
    until = None if timeout is None else asyncio.get_running_loop().time() + timeout
    while True:
        waiter = queue.waiter()
        try:
            if until is None:
                await waiter
            else:
                async with asyncio.timeout_at(until):
                    await waiter
        except BaseException as error:
            queue.give_up(waiter)
            if isinstance(error, TimeoutError):
                raise NoMessage(f"nothing was delivered {where} within {timeout:g} s") from None
            raise
        if taken := take():
            return taken


def check_listener(listener: object) -> None:
    """Refuse to call the functions of anything but a listener."""
    if not isinstance(listener, Listener):
        raise UsageError(f"{listener!r} is no listener; derive a class from Listener, and make one")


class Events(Generic[T]):
    """An iterator, not a generator, which would end at a cancelled step or unreadable message."""

    def __init__(
        self,
        queue: Inbox | DeliveryOrder,
        order: DeliveryOrder,
        take: Callable[[], Message[T] | View | None],
        views: list[View],
        where: str,
    ) -> None:
        self._queue = queue
        self._order = order
        self._take = take
        self._views = deque(views)
        """Those that come first."""
        self._where = where

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message[T] | View:
        if self._views:
            return self._views.popleft()
        self._queue.check_nobody_listens()
        self._order.check_nobody_listens()
        try:
            event = self._take() or await arrival(self._queue, self._take, self._where)
        except (GroupDestroyed, NotMember, LinkClosed):
            raise StopAsyncIteration from None
        return cast("Message[T] | View", event)
