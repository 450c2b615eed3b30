"""The inbox of a member: what was delivered to it and is not received yet.

The server sends at most a window of deliveries ahead of what was received; so an application
that does not receive fills its inbox, and then stops the server from sending more.
"""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast, final

from msgspec.structs import force_setattr

from flexgroup.client.message import Listener, Message, View
from flexgroup.core.errors import FlexGroupError, PeerError, UsageError

Item = Message[bytes] | View
Decode = Callable[[Message[bytes]], Message[Any]]
"""How a message with bytes becomes one with a value, if the group has a codec."""

PARTS_OF_A_WINDOW = 4
"""Credit goes back when a quarter of the window has been received: seldom enough to cost
nothing, early enough that the server need not wait."""


def messages_of(
    items: Iterable[Item], decoded: Decode | None
) -> tuple[list[Message[Any]], int, Exception | None]:
    """Return the messages in front, and how many items they take up, with views among them.

    A message that `decoded` cannot read ends them. If no other comes before it, it is taken up
    itself, and its error is returned. Without `decoded`, bodies stay as they are. If there are
    views only, all are taken up.
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
        if decoded is None:
            messages.append(delivery)
        else:
            try:
                messages.append(decoded(delivery))
            except Exception as error:
                return messages, taken if messages else place, None if messages else error
        taken = place
    return messages, taken if messages else place, None


@final
class Inbox:
    """The inbox of one membership; a process that leaves and joins again has a new one."""

    __slots__ = (
        "_allowance",
        "_batch",
        "_credit",
        "_decoded",
        "_fresh",
        "_listener",
        "_report",
        "_taken",
        "_to_notify",
        "_views_were_kept",
        "_waiters",
        "ended",
        "gone",
        "group",
        "handle",
        "items",
        "keeps_views",
        "refused",
        "send_prefix",
        "stack",
        "view",
    )

    def __init__(
        self,
        group: str,
        window: int,
        credit: Callable[[int, int], None],
        to_notify: list[Inbox],
        report: Callable[[str, BaseException], None],
    ) -> None:
        self.group = group
        self.items: deque[Item] = deque()
        self.handle = -1
        self.send_prefix = b""
        self.stack = ""
        self.view = View(0, (), group)
        """The view that the application has come to."""
        self.keeps_views = False
        """Whether somebody wants to see every view; otherwise only the current one matters."""
        self.ended: FlexGroupError | None = None
        """The reason why nothing more will come."""
        self.gone: Future[None] = Future()
        """Done as soon as the server knows of the end, and the group can be joined again."""
        self.refused: list[FlexGroupError] = []
        """The reasons why the server refused messages to the group. The last one is raised, or a
        listener is told all."""
        self._allowance = window
        self._batch = max(1, window // PARTS_OF_A_WINDOW)
        self._taken = 0
        self._credit = credit
        self._waiters: list[Future[None]] = []
        """Those who wait and were not woken yet."""
        self._listener: Listener[Any] | None = None
        self._decoded: Decode | None = None
        """How messages are decoded for the listener; if this is None, bodies stay as they are."""
        self._views_were_kept = False
        """What `keeps_views` was before there was a listener."""
        self._fresh: list[Message[bytes]] = []
        """The first messages for the listener; what follows them stands in `items`."""
        self._to_notify = to_notify
        """The list that the connection keeps of inboxes with something for their listeners."""
        self._report = report
        """A function that reports what went wrong where nobody waits for a result."""

    # What the server says.

    def put(self, messages: list[Message[bytes]]) -> None:
        if self.ended is not None:
            return
        count = len(messages)
        self._allowance -= count
        if self._allowance < 0:
            raise PeerError("it sent more deliveries than the client has given credit for")
        group = self.group
        for message in messages:
            force_setattr(message, "group", group)
        if self._listener is not None and not self.items:
            if self._fresh:
                self._fresh.extend(messages)
            else:
                self._fresh = messages
                self._to_notify.append(self)
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
        """Let nothing more come; what has come can still be received."""
        if self.ended is None:
            self.ended = error
            self._wake(max(1, len(self._waiters)))

    def put_refusal(self, error: FlexGroupError) -> None:
        self.refused.append(error)
        self._wake(1)

    # What the application does.

    def drop(self, error: FlexGroupError) -> None:
        """Forget what has come, because the application has left."""
        self.items.clear()
        self._fresh = []
        self.end(error)

    def check(self) -> None:
        """Raise what stands against sending and receiving, if anything does."""
        if self.ended is not None:
            raise self.ended.with_traceback(None)
        if self.refused:
            refused, self.refused = self.refused, []
            raise refused[-1]

    def current_view(self) -> View:
        """Return the view in which the next message is received, unless views are events, too."""
        while not self.keeps_views and self.items and type(self.items[0]) is View:
            self.take()
        return self.view

    def take(self) -> Item | None:
        """Return the next item, or None if there is none yet."""
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
        """Return the next delivery, whatever views come before it, or None."""
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
        """Count messages that have been received, and give the server credit for more."""
        self._taken += messages
        if self._taken >= self._batch and self.ended is None:
            self._credit(self.handle, self._taken)
            self._allowance += self._taken
            self._taken = 0

    def take_messages(self, decoded: Decode | None) -> list[Message[Any]]:
        """Return all messages that are here, up to one that cannot be read.

        Views are passed over as in `take_delivery`; those after the last message stay.
        """
        items = self.items
        if items:
            messages, taken, error = messages_of(items, decoded)
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
        """Return a future to wait for after `take` had nothing; then it may have something.

        Whoever is cancelled while waiting has to call `give_up`.
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
        """Wake those who have waited longest, one for each thing that they may take."""
        if self._listener is not None:
            self._to_notify.append(self)
            return
        waiters = self._waiters
        while waiters and most > 0:
            waiter = waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                most -= 1

    # A listener.

    def listen(self, listener: Listener[Any], decoded: Decode | None) -> None:
        self.check_nobody_listens()
        for waiter in self._waiters:
            if not waiter.done():
                raise UsageError(
                    f"somebody waits for messages of the group '{self.group}'; end that before"
                    " listening"
                )
        self._listener = listener
        self._decoded = decoded
        self._views_were_kept = self.keeps_views
        self.keeps_views = True
        self._to_notify.append(self)

    def stop_listening(self) -> None:
        if self._listener is not None:
            self.keeps_views = self._views_were_kept
            self._listener = None
            self.items.extendleft(reversed(self._fresh))
            self._fresh = []

    def check_nobody_listens(self) -> None:
        if self._listener is not None:
            raise UsageError(
                f"the group '{self.group}' has a listener, which gets all that comes;"
                " group.listen(None) ends that"
            )

    def notify_listener(self) -> None:
        """Hand everything that is here to the listener, as long as there is one."""
        while (listener := self._listener) is not None:
            if self.refused:
                self._call(listener.refused, self.refused.pop(0))
            elif self._fresh:
                messages = self._take_fresh()
                if messages:
                    count = len(messages)  # what becomes of the list is the listener's affair
                    self._call(listener.delivered, messages)
                    self._count(count)
            elif self.items:
                first = self.items[0]
                if type(first) is View:
                    self.items.popleft()
                    self.view = first
                    self._call(listener.changed, first)
                else:
                    self._refresh()
            else:
                if self.ended is not None:
                    self.stop_listening()
                    self._call(listener.ended, self.ended)
                return

    def _take_fresh(self) -> list[Message[Any]]:
        """Return the messages up to one that cannot be read, which is reported if it is first."""
        fresh, self._fresh = self._fresh, []
        if self._decoded is None:
            return fresh
        messages, taken, error = messages_of(fresh, self._decoded)
        self._fresh = fresh[taken:]
        if error is not None:
            self._report(f"a message in the group '{self.group}' cannot be read", error)
            self._count(1)
        return messages

    def _refresh(self) -> None:
        """Move the messages that stand before the next view to the listener's first ones."""
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
