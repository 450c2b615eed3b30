"""What was delivered to a member of a group and is not received yet.

The server sends at most a window of deliveries ahead of what was received; so an application
that does not receive fills its inbox, and then stops the server from sending more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast, final

from flexgroup.client.message import View
from flexgroup.core.errors import FlexGroupError, PeerError
from flexgroup.worlds.network.requests import Delivered

Item = Delivered | View

PARTS_OF_A_WINDOW = 4
"""Credit goes back when a quarter of the window has been received: seldom enough to cost
nothing, early enough that the server need not wait."""


@final
class Inbox:
    """Of one membership; a process that leaves and joins again has a new one."""

    __slots__ = (
        "_allowance",
        "_batch",
        "_credit",
        "_loop",
        "_taken",
        "_waiters",
        "ended",
        "gone",
        "handle",
        "items",
        "keeps_views",
        "refused",
        "stack",
        "view",
    )

    def __init__(self, group: str, window: int, credit: Callable[[int, int], None]) -> None:
        self.items: deque[Item] = deque()
        self.handle = -1
        self.stack = ""
        self.view = View(0, (), group)
        """The one that the application has come to."""
        self.keeps_views = False
        """Somebody wants to see every view; otherwise only the current one matters."""
        self.ended: FlexGroupError | None = None
        """Why nothing more will come."""
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when the server knows of the end, too, and the group can be joined again."""
        self.refused: FlexGroupError | None = None
        """What the server said about something sent to the group; raised once."""
        self._allowance = window
        self._batch = max(1, window // PARTS_OF_A_WINDOW)
        self._taken = 0
        self._credit = credit
        self._waiters: deque[asyncio.Future[None]] = deque()

    # What the server says.

    def put(self, messages: list[Delivered]) -> None:
        if self.ended is not None:
            return
        self._allowance -= len(messages)
        if self._allowance < 0:
            raise PeerError("more deliveries than the client has given credit for")
        self.items.extend(messages)
        if self._waiters:
            self._wake()

    def put_view(self, view: View) -> None:
        if self.ended is not None:
            return
        items = self.items
        if not self.keeps_views:
            if not items:
                self.view = view
                return
            if type(items[-1]) is View:
                items.pop()
        items.append(view)
        self._wake()

    def end(self, error: FlexGroupError) -> None:
        """Nothing more comes; what has come can still be received."""
        if self.ended is None:
            self.ended = error
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def complain(self, error: FlexGroupError) -> None:
        self.refused = error
        self._wake()

    # What the application does.

    def drop(self, error: FlexGroupError) -> None:
        """The application has left: what has come is of no interest any more."""
        self.items.clear()
        self.end(error)

    def check(self) -> None:
        """Before something is sent."""
        if self.ended is not None:
            raise self.ended.with_traceback(None)
        if self.refused is not None:
            refused, self.refused = self.refused, None
            raise refused

    def current_view(self) -> View:
        """The one in which the next message will be received, unless views are events, too."""
        while not self.keeps_views and self.items and type(self.items[0]) is View:
            self.take()
        return self.view

    def take(self) -> Item | None:
        """The next item; None: there is none yet."""
        if not self.items:
            self.check()
            return None
        item = self.items.popleft()
        if type(item) is View:
            self.view = item
            return item
        self._count(1)
        return item

    def take_delivery(self) -> Delivered | None:
        """The next delivery, whatever views come before it."""
        items = self.items
        if items and self._taken + 1 < self._batch:
            first = items[0]
            if type(first) is Delivered:
                self._taken += 1
                items.popleft()
                return first
        while (item := self.take()) is not None:
            if type(item) is not View:
                return cast(Delivered, item)
        return None

    def _count(self, messages: int) -> None:
        """So many more have been received."""
        self._taken += messages
        if self._taken >= self._batch and self.ended is None:
            self._credit(self.handle, self._taken)
            self._allowance += self._taken
            self._taken = 0

    def take_all(self) -> list[Delivered]:
        """All deliveries that are here; none: there is none yet."""
        items = self.items
        if not items:
            self.check()
        deliveries: list[Delivered] = []
        for item in items:
            if type(item) is View:
                self.view = item
            else:
                deliveries.append(cast(Delivered, item))
        items.clear()
        self._count(len(deliveries))
        return deliveries

    def next_delivery(self) -> Delivered | None:
        """The same as `take_delivery` has, but it stays; views before it are passed."""
        while self.items:
            first = self.items[0]
            if type(first) is not View:
                return cast(Delivered, first)
            self.take()
        self.check()
        return None

    async def wait(self) -> None:
        """Until `take` may have something, good or bad."""
        if self.items or self.ended is not None or self.refused is not None:
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and self.items:
                self._wake()  # it was this one's turn; another may be waiting
            raise
        finally:
            self._waiters.remove(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
                return
