"""What was delivered to a member of a group and is not received yet.

The server sends at most a window of deliveries ahead of what was received; so an application
that does not receive fills its inbox, and then stops the server from sending more.
"""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Callable
from typing import Any, cast, final

from flexgroup.client.message import Message, View
from flexgroup.core.errors import FlexGroupError, PeerError
from flexgroup.worlds.network.requests import Delivered

Item = Delivered | View

PARTS_OF_A_WINDOW = 4
"""Credit goes back when a quarter of the window has been received: seldom enough to cost
nothing, early enough that the server need not wait."""


def messages_of(
    items: deque[Item], group: str, opened: Callable[[Delivered], Message[Any]] | None
) -> tuple[list[Message[Any]], int, Exception | None]:
    """The messages in front, and how many items they are, with the views before and between them.

    What `opened` cannot read ends them, unless it comes first: then it is an item that is no
    message but an error. Without `opened`, bodies stay as they are. If there are views only,
    these are the items.
    """
    message_type, view_type = Message, View  # compiled code looks up other modules' classes slowly
    messages: list[Message[Any]] = []
    taken = 0
    place = 0
    for item in items:
        place += 1
        if type(item) is view_type:
            continue
        delivery = cast(Delivered, item)
        if opened is None:
            messages.append(message_type(delivery.sender, delivery.body, group))
        else:
            try:
                messages.append(opened(delivery))
            except Exception as error:
                return messages, taken if messages else place, None if messages else error
        taken = place
    return messages, taken if messages else place, None


@final
class Inbox:
    """Of one membership; a process that leaves and joins again has a new one."""

    __slots__ = (
        "_allowance",
        "_batch",
        "_credit",
        "_taken",
        "_waiters",
        "ended",
        "gone",
        "handle",
        "head_of_a_send",
        "items",
        "keeps_views",
        "refused",
        "stack",
        "view",
    )

    def __init__(self, group: str, window: int, credit: Callable[[int, int], None]) -> None:
        self.items: deque[Item] = deque()
        self.handle = -1
        self.head_of_a_send = b""
        self.stack = ""
        self.view = View(0, (), group)
        """The one that the application has come to."""
        self.keeps_views = False
        """Somebody wants to see every view; otherwise only the current one matters."""
        self.ended: FlexGroupError | None = None
        """Why nothing more will come."""
        self.gone: Future[None] = Future()
        """Done when the server knows of the end, too, and the group can be joined again."""
        self.refused: FlexGroupError | None = None
        """What the server said about something sent to the group; raised once."""
        self._allowance = window
        self._batch = max(1, window // PARTS_OF_A_WINDOW)
        self._taken = 0
        self._credit = credit
        self._waiters: list[Future[None]] = []
        """Those that were not woken yet."""

    # What the server says.

    def put(self, messages: list[Delivered]) -> None:
        if self.ended is not None:
            return
        count = len(messages)
        self._allowance -= count
        if self._allowance < 0:
            raise PeerError("more deliveries than the client has given credit for")
        self.items.extend(messages)
        self._wake(count)

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
        self._wake(1)

    def end(self, error: FlexGroupError) -> None:
        """Nothing more comes; what has come can still be received."""
        if self.ended is None:
            self.ended = error
            self._wake(len(self._waiters))

    def complain(self, error: FlexGroupError) -> None:
        self.refused = error
        self._wake(1)

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

    def take_messages(
        self, opened: Callable[[Delivered], Message[Any]] | None
    ) -> list[Message[Any]]:
        """All messages that are here, up to what cannot be read; none: there is none yet.

        Views are passed as `take_delivery` passes them: those after the last message stay.
        """
        items = self.items
        if items:
            messages, taken, error = messages_of(items, self.view.group, opened)
            if taken == len(messages) == len(items):
                items.clear()
                self._count(taken)
            else:
                for _ in range(taken):
                    self.take()
            if error is not None:
                raise error
            if messages:
                return messages
        self.check()
        return []

    def waiter(self) -> Future[None]:
        """After `take` had nothing: done when it may have something, good or bad.

        Whoever is cancelled while waiting has to `give_up`.
        """
        waiter: Future[None] = Future()
        self._waiters.append(waiter)
        return waiter

    def give_up(self, waiter: Future[None]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        elif not waiter.cancelled() and (self.items or self.refused is not None):
            self._wake(1)  # it was this one's turn; another may be waiting

    def _wake(self, most: int) -> None:
        """Those that have waited longest, one for each thing that they may take."""
        waiters = self._waiters
        while waiters and most > 0:
            waiter = waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                most -= 1
