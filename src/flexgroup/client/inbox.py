"""What was delivered to a member of a group and is not received yet.

The server sends at most a window of deliveries ahead of what was received; so an application
that does not receive fills its inbox, and then stops the server from sending more.
"""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Callable
from typing import Any, cast, final

from msgspec.structs import force_setattr

from flexgroup.client.listener import Listener
from flexgroup.client.message import Message, View
from flexgroup.core.errors import FlexGroupError, PeerError, UsageError

Item = Message[bytes] | View

PARTS_OF_A_WINDOW = 4
"""Credit goes back when a quarter of the window has been received: seldom enough to cost
nothing, early enough that the server need not wait."""


def messages_of(
    items: deque[Item], opened: Callable[[Message[bytes]], Message[Any]] | None
) -> tuple[list[Message[Any]], int, Exception | None]:
    """The messages in front, and how many items they are, with the views before and between them.

    What `opened` cannot read ends them, unless it comes first: then it is an item that is no
    message but an error. Without `opened`, bodies stay as they are. If there are views only,
    these are the items.
    """
    view_type = View  # compiled code looks up other modules' classes slowly
    messages: list[Message[Any]] = []
    taken = 0
    place = 0
    for item in items:
        place += 1
        if type(item) is view_type:
            continue
        delivery = cast(Message[bytes], item)
        if opened is None:
            messages.append(delivery)
        else:
            try:
                messages.append(opened(delivery))
            except Exception as error:
                return messages, taken if messages else place, None if messages else error
        taken = place
    return messages, taken if messages else place, None


@final
class Listening:
    """A listener, and how messages are read for it."""

    __slots__ = ("changed", "delivered", "ended", "opened", "refused", "views_were_kept")

    def __init__(
        self,
        listener: Listener[Any],
        opened: Callable[[Message[bytes]], Message[Any]] | None,
        views_were_kept: bool,
    ) -> None:
        # Found once: a method of a class that is not compiled is slow to find.
        self.delivered: Callable[[list[Message[Any]]], None] = listener.delivered
        self.changed: Callable[[View], None] = listener.changed
        self.refused: Callable[[FlexGroupError], None] = listener.refused
        self.ended: Callable[[FlexGroupError], None] = listener.ended
        self.opened = opened
        """None: bodies stay as they are."""
        self.views_were_kept = views_were_kept


@final
class Inbox:
    """Of one membership; a process that leaves and joins again has a new one."""

    __slots__ = (
        "_allowance",
        "_batch",
        "_credit",
        "_fresh",
        "_listening",
        "_news",
        "_report",
        "_taken",
        "_waiters",
        "ended",
        "gone",
        "group",
        "handle",
        "head_of_a_send",
        "items",
        "keeps_views",
        "refused",
        "stack",
        "view",
    )

    def __init__(
        self,
        group: str,
        window: int,
        credit: Callable[[int, int], None],
        news: list[Inbox],
        report: Callable[[str, BaseException], None],
    ) -> None:
        self.group = group
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
        self.refused: list[FlexGroupError] = []
        """What the server said about things sent to the group: the last is raised, or a listener
        is told all."""
        self._allowance = window
        self._batch = max(1, window // PARTS_OF_A_WINDOW)
        self._taken = 0
        self._credit = credit
        self._waiters: list[Future[None]] = []
        """Those that were not woken yet."""
        self._listening: Listening | None = None
        self._fresh: list[Message[bytes]] = []
        """The first of what is here for the listener; the rest stands in `items`."""
        self._news = news
        """Of the connection: those that have something to tell."""
        self._report = report
        """Says what went wrong in a function that nobody waits for."""

    # What the server says.

    def put(self, messages: list[Message[bytes]]) -> None:
        if self.ended is not None:
            return
        count = len(messages)
        self._allowance -= count
        if self._allowance < 0:
            raise PeerError("more deliveries than the client has given credit for")
        group = self.group
        for message in messages:
            force_setattr(message, "group", group)
        if self._listening is not None and not self.items:
            if self._fresh:
                self._fresh.extend(messages)
            else:
                self._fresh = messages
                self._news.append(self)
            return
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
            self._wake(max(1, len(self._waiters)))

    def complain(self, error: FlexGroupError) -> None:
        self.refused.append(error)
        self._wake(1)

    # What the application does.

    def drop(self, error: FlexGroupError) -> None:
        """The application has left: what has come is of no interest any more."""
        self.items.clear()
        self._fresh = []
        self.end(error)

    def check(self) -> None:
        """Before something is sent."""
        if self.ended is not None:
            raise self.ended.with_traceback(None)
        if self.refused:
            refused, self.refused = self.refused, []
            raise refused[-1]

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

    def take_delivery(self) -> Message[bytes] | None:
        """The next delivery, whatever views come before it."""
        items = self.items
        if items and self._taken + 1 < self._batch:
            first = items[0]
            if type(first) is not View:
                self._taken += 1
                items.popleft()
                return cast(Message[bytes], first)
        while (item := self.take()) is not None:
            if type(item) is not View:
                return cast(Message[bytes], item)
        return None

    def _count(self, messages: int) -> None:
        """So many more have been received."""
        self._taken += messages
        if self._taken >= self._batch and self.ended is None:
            self._credit(self.handle, self._taken)
            self._allowance += self._taken
            self._taken = 0

    def take_messages(
        self, opened: Callable[[Message[bytes]], Message[Any]] | None
    ) -> list[Message[Any]]:
        """All messages that are here, up to what cannot be read; none: there is none yet.

        Views are passed as `take_delivery` passes them: those after the last message stay.
        """
        items = self.items
        if items:
            messages, taken, error = messages_of(items, opened)
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
        self.check_nobody_listens()
        waiter: Future[None] = Future()
        self._waiters.append(waiter)
        return waiter

    def give_up(self, waiter: Future[None]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        elif not waiter.cancelled() and (self.items or self.refused):
            self._wake(1)  # it was this one's turn; another may be waiting

    def _wake(self, most: int) -> None:
        """Those that have waited longest, one for each thing that they may take."""
        if self._listening is not None:
            self._news.append(self)
            return
        waiters = self._waiters
        while waiters and most > 0:
            waiter = waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                most -= 1

    # A listener.

    def listen(
        self, listener: Listener[Any], opened: Callable[[Message[bytes]], Message[Any]] | None
    ) -> None:
        self.check_nobody_listens()
        for waiter in self._waiters:
            if not waiter.done():
                raise UsageError(
                    f"somebody waits for messages of the group '{self.group}'; end that before"
                    " listening"
                )
        self._listening = Listening(listener, opened, self.keeps_views)
        self.keeps_views = True
        self._news.append(self)

    def stop_listening(self) -> None:
        if self._listening is not None:
            self.keeps_views = self._listening.views_were_kept
            self._listening = None
            self.items.extendleft(reversed(self._fresh))
            self._fresh = []

    def check_nobody_listens(self) -> None:
        if self._listening is not None:
            raise UsageError(
                f"the group '{self.group}' has a listener, which gets all that comes;"
                " group.listen(None) ends that"
            )

    def tell(self) -> None:
        """Hand all that is here to the listener, as long as there is one."""
        while (listening := self._listening) is not None:
            fresh = self._fresh
            if self.refused:
                self._call(listening.refused, self.refused.pop(0))
            elif fresh:
                self._fresh = []
                opened = listening.opened
                messages = fresh if opened is None else self._readable(fresh, opened)
                if messages:
                    count = len(messages)  # what becomes of the list is the listener's affair
                    self._call(listening.delivered, messages)
                    self._count(count)
            elif self.items:
                first = self.items[0]
                if type(first) is View:
                    self.items.popleft()
                    self.view = first
                    self._call(listening.changed, first)
                else:
                    self._refresh()
            else:
                if self.ended is not None:
                    self.stop_listening()
                    self._call(listening.ended, self.ended)
                return

    def _readable(
        self, fresh: list[Message[bytes]], opened: Callable[[Message[bytes]], Message[Any]]
    ) -> list[Message[Any]]:
        """Up to what cannot be read, unless that comes first; the rest is told next."""
        messages: list[Message[Any]] = []
        for place, delivery in enumerate(fresh):
            try:
                messages.append(opened(delivery))
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                if messages:
                    self._fresh = fresh[place:]
                    break
                self._report(f"a message in the group '{self.group}' cannot be read", error)
                self._count(1)
        return messages

    def _refresh(self) -> None:
        """With what stands before the next view."""
        items = self.items
        while items and type(items[0]) is not View:
            self._fresh.append(cast(Message[bytes], items.popleft()))

    def _call(self, function: Callable[[Any], None], argument: object) -> None:
        try:
            function(argument)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._report(f"a listener of the group '{self.group}' failed", error)
