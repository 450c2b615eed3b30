"""The inbox of a member: what was delivered to it and is not received yet.

The server sends at most a window of deliveries ahead of what was received; so an application
that does not receive fills its inbox, and then stops the server from sending more.

A message to several groups of this process is in the inbox of each, in its place. It is given to
the application once, from the inbox that comes to it first; whether another one has come to it is
told by how far that was read.
"""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast, final

from msgspec.structs import force_setattr

from flexgroup.client.message import Listener, Message, View
from flexgroup.core.errors import FlexGroupError, PeerError, UsageError
from flexgroup.wire.requests import Sent

Item = Message[bytes] | View
Decode = Callable[[Message[bytes]], Message[Any]]
"""How a message with bytes becomes one with a value, if the group has a codec."""

PARTS_OF_A_WINDOW = 4
"""Credit goes back when a quarter of the window has been received: seldom enough to cost
nothing, early enough that the server need not wait."""


def messages_at(
    position: int, sent: list[Sent], group: str, groups: tuple[str, ...] = ()
) -> list[Message[bytes]]:
    """Return messages as the application is given them; the first one has this position."""
    message_type = Message  # compiled code looks up other modules' classes slowly
    messages: list[Message[bytes]] = []
    for one in sent:
        sender = one.sender
        for body in one.bodies:
            messages.append(message_type(sender, body, group, position, groups))
            position += 1
    return messages


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
            except Exception as error:  # whatever the application's codec raises
                return messages, taken if messages else place, None if messages else error
        taken = place
    return messages, taken if messages else place, None


class Shared(NamedTuple):
    """Messages that stand in other inboxes, too."""

    first: int
    last: int
    """Their positions."""
    others: list[Inbox]


@final
class Inbox:
    """The inbox of one membership; a process that leaves and joins again has a new one."""

    __slots__ = (
        "_allowance",
        "_arrivals",
        "_batch",
        "_credit",
        "_fresh",
        "_is_listed",
        "_last",
        "_listener",
        "_report",
        "_shared",
        "_taken",
        "_to_notify",
        "_unconfirmed",
        "_views_were_kept",
        "_waiters",
        "decoded",
        "ended",
        "entered",
        "gone",
        "group",
        "handle",
        "items",
        "keeps_views",
        "number",
        "read_to",
        "refused",
        "send_prefix",
        "stack",
        "view",
    )

    def __init__(
        self,
        number: int,
        group: str,
        window: int,
        credit: Callable[[int, int], None],
        to_notify: list[Inbox],
        arrivals: list[Inbox],
        report: Callable[[str, BaseException], None],
    ) -> None:
        self.number = number
        """Inboxes of a connection are counted."""
        self.group = group
        self.decoded: Decode | None = None
        """How messages are decoded for the application; if None, bodies stay as they are."""
        self.items: deque[Item] = deque()
        self.handle = -1
        self.send_prefix = b""
        self.stack = ""
        self.view = View(0, (), group)
        """The view that the application has come to."""
        self.entered = 0
        """The position at which the membership began."""
        self.read_to = 0
        """The last position up to which messages of several groups were given, or passed over."""
        self.keeps_views = False
        """Whether somebody wants to see every view; otherwise only the current one matters."""
        self.ended: FlexGroupError | None = None
        """The reason why nothing more will come."""
        self.gone: Future[None] = Future()
        """Done as soon as the server knows of the end, and the group can be joined again."""
        self.refused: list[FlexGroupError] = []
        """The reasons why the server refused messages to the group. The last one is raised, or a
        listener is told all."""
        self._unconfirmed: FlexGroupError | None = None
        """The last of the reasons, until confirm() has told of it."""
        self._allowance = window
        self._batch = max(1, window // PARTS_OF_A_WINDOW)
        self._taken = 0
        self._credit = credit
        self._waiters: list[Future[None]] = []
        """Those who wait and were not woken yet."""
        self._listener: Listener[Any] | None = None
        self._last = 0
        """The position of what came last."""
        self._shared: deque[Shared] = deque()
        """Which of the items stand in other inboxes, too. The first item was not given there."""
        self._views_were_kept = False
        """What `keeps_views` was before there was a listener."""
        self._fresh: list[Message[bytes]] = []
        """The first messages for the listener; what follows them stands in `items`."""
        self._to_notify = to_notify
        """The list that the connection keeps of inboxes with something for their listeners."""
        self._arrivals = arrivals
        """The list that the connection keeps of inboxes with something new, for who reads all."""
        self._is_listed = False
        self._report = report
        """A function that reports what went wrong where nobody waits for a result."""

    # What the server says.

    def put(self, sent: list[Sent], position: int) -> None:
        if self.ended is None:
            self._put(messages_at(position, sent, self.group), position)

    def put_kept(self, sent: list[Sent], position: int, ahead: int) -> None:
        """Take in messages of a group that keeps them; their numbers are so far ahead of their
        positions."""
        if self.ended is None:
            messages = messages_at(position, sent, self.group)
            for message in messages:
                force_setattr(message, "number", message.position + ahead)
            self._put(messages, position)

    def _put(self, messages: list[Message[bytes]], position: int) -> None:
        count = len(messages)
        self._admit(count, position)
        if self._listener is not None and not self.items:
            if self._fresh:
                self._fresh.extend(messages)
            else:
                self._fresh = messages
                self._to_notify.append(self)
            return
        self.items.extend(messages)
        self._arrived(count)

    def put_shared(
        self, messages: list[Message[bytes]], position: int, others: list[Inbox]
    ) -> None:
        """Take in messages that know their groups and positions, and are in the others, too."""
        if self.ended is not None or not messages:
            return
        count = len(messages)
        self._admit(count, position)
        self._shared.append(Shared(position, self._last, others))
        self.items.extend(messages)
        self._pass_over_given()
        if self.items:
            self._arrived(count)

    def _admit(self, count: int, position: int) -> None:
        self._allowance -= count
        if self._allowance < 0:
            raise PeerError("it sent more deliveries than the client has given credit for")
        if position <= self._last:
            raise PeerError(f"it delivers at position {position} what follows {self._last}")
        self._last = position + count - 1

    def put_view(self, view: View) -> None:
        if self.ended is not None:
            return
        self._admit(0, view.position)
        self._last = view.position
        items = self.items
        if not self.keeps_views:
            if not items:
                self.view = view
                return
            if type(items[-1]) is View:
                items.pop()
        items.append(view)
        self._arrived(1)

    def _arrived(self, count: int) -> None:
        if not self._is_listed:
            self._list()
        self._wake(count)

    def _list(self) -> None:
        self._is_listed = True
        self._arrivals.append(self)

    def end(self, error: FlexGroupError) -> None:
        """Let nothing more come; what has come can still be received."""
        if self.ended is None:
            self.ended = error
            self._wake(max(1, len(self._waiters)))

    def put_refusal(self, error: FlexGroupError) -> None:
        self.refused.append(error)
        self._unconfirmed = error
        self._wake(1)

    # What the application does.

    def drop(self, error: FlexGroupError) -> None:
        """Forget what has come, because the application has left."""
        self.items.clear()
        self._shared.clear()
        self._fresh = []
        self.end(error)

    def check(self) -> None:
        """Raise what stands against sending and receiving, if anything does."""
        if self.ended is not None:
            raise self.ended.with_traceback(None)
        if self.refused:
            refused, self.refused = self.refused, []
            raise refused[-1]

    def check_sent(self) -> None:
        """Raise why something was refused that was sent since this was asked last, whoever was told
        of that meanwhile."""
        error, self._unconfirmed = self._unconfirmed, None
        if error is not None:
            self.refused = []
            raise error.with_traceback(None)

    def current_view(self) -> View:
        """Return the view in which the next message is received, unless views are events, too."""
        while self.items and type(self.items[0]) is View:
            if self.keeps_views and self.items[0] is not self.view:
                break
            self.take()
        return self.view

    def first(self) -> Item | None:
        """Return the item that is next for who reads all groups; if there is none, this inbox is
        to be asked again when it says so."""
        if self.items and self._listener is None:
            return self.items[0]
        self._is_listed = False
        return None

    def read(self, message: Message[bytes]) -> Message[Any]:
        """Return the message as the application wants it."""
        return message if self.decoded is None else self.decoded(message)

    def take(self) -> Item | None:
        """Return the next item, or None if there is none yet."""
        if not self.items:
            self.check()
            return None
        item = self.items.popleft()
        if type(item) is View:
            self.view = item
        else:
            self._count(1)
        if self._shared:
            self._give(item)
        return item

    def take_event(self) -> Message[Any] | View | None:
        """Return the next item as the application wants it, or None if there is none yet."""
        item = self.take()
        return item if item is None or isinstance(item, View) else self.read(item)

    def take_delivery(self) -> Message[bytes] | None:
        """Return the next delivery, whatever views come before it, or None."""
        items = self.items
        if items and self._taken + 1 < self._batch and not self._shared:
            first = items[0]
            if type(first) is not View:
                self._taken += 1
                items.popleft()
                return cast(Message[bytes], first)
        while (item := self.take()) is not None:
            if type(item) is not View:
                return cast(Message[bytes], item)
        return None

    @property
    def shares(self) -> bool:
        """Whether messages are here that stand in other inboxes, too."""
        return bool(self._shared)

    def _give(self, item: Item) -> None:
        """Let other inboxes pass over what the application is given from this one."""
        position = item.position
        shared = self._shared_at(position)
        if shared is not None:
            self.read_to = position
            force_setattr(item, "group", self.group)
            for other in shared.others:
                other._pass_over_given()
        self._pass_over_given()

    def _shared_at(self, position: int) -> Shared | None:
        """Return what tells where else the message of this position stands, if it does."""
        while self._shared and self._shared[0].last < position:
            self._shared.popleft()
        if self._shared and self._shared[0].first <= position:
            return self._shared[0]
        return None

    def _is_given(self, position: int) -> bool:
        shared = self._shared_at(position)
        return shared is not None and any(o.read_to >= position for o in shared.others)

    def _pass_over_given(self) -> None:
        while self._shared and self.items:
            position = self.items[0].position
            if not self._is_given(position):
                return
            self.items.popleft()
            self.read_to = position
            self._count(1)
        self._shared.clear()

    def put_back(self, items: list[Item]) -> None:
        """Have items here again that were taken, and are no longer here or in another inbox."""
        self.items.extendleft(reversed(items))
        self._taken -= len([item for item in items if type(item) is not View])
        self._list()  # also if it was: now the first one has an earlier position
        self._wake(len(items))

    def _count(self, messages: int) -> None:
        """Count messages that have been received, and give the server credit for more."""
        self._taken += messages
        if self._taken >= self._batch and self.ended is None:
            self._credit(self.handle, self._taken)
            self._allowance += self._taken
            self._taken = 0

    def take_messages(self) -> list[Message[Any]]:
        """Return all messages that are here, up to one that cannot be read.

        Views are passed over as in `take_delivery`; those after the last message stay.
        """
        items = self.items
        if items:
            if self._shared:
                messages, error = self._take_one_by_one()
            else:
                messages, taken, error = messages_of(items, self.decoded)
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

    def _take_one_by_one(self) -> tuple[list[Message[Any]], Exception | None]:
        """Take messages, any of which may have been given from another inbox."""
        messages: list[Message[Any]] = []
        while self.items:
            next_ones: list[Item] = []
            for item in self.items:
                next_ones.append(item)
                if type(item) is not View:
                    break
            if self._is_given(next_ones[-1].position):
                next_ones.pop()  # it goes with what is taken before it
            one, taken, error = messages_of(next_ones, self.decoded)
            if messages and not one and len(next_ones) == len(self.items):
                break
            if messages and error is not None:
                break
            for _ in range(taken):
                self.take()
            if error is not None:
                return messages, error
            messages += one
        return messages, None

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

    def listen(self, listener: Listener[Any]) -> None:
        self.check_nobody_listens()
        self.check_nobody_waits()
        if self.items and self.items[0] is self.view:
            self.take()  # the first view, which who reads by link would be told of
        self._listener = listener
        self._views_were_kept = self.keeps_views
        self.keeps_views = True
        self._to_notify.append(self)

    def check_nobody_waits(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                raise UsageError(
                    f"somebody waits for messages of the group '{self.group}'; end that before"
                    " listening"
                )

    def stop_listening(self) -> None:
        if self._listener is not None:
            self.keeps_views = self._views_were_kept
            self._listener = None
            fresh, self._fresh = self._fresh, []
            self.items.extendleft(reversed(fresh))
            if self.items:
                self._list()

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
                    self.take()
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
        if self.decoded is None:
            return fresh
        messages, taken, error = messages_of(fresh, self.decoded)
        self._fresh = fresh[taken:]
        if error is not None:
            self._report(f"a message in the group '{self.group}' cannot be read", error)
            self._count(1)
        return messages

    def _refresh(self) -> None:
        """Move the messages that stand before the next view to the listener's first ones."""
        items = self.items
        while items and type(items[0]) is not View:
            message = cast(Message[bytes], items.popleft())
            self._fresh.append(message)
            if self._shared:
                self._give(message)

    def _call(self, function: Callable[[Any], None], argument: object) -> None:
        try:
            function(argument)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._report(f"a listener of the group '{self.group}' failed", error)
