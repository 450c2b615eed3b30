"""The library without async: the same calls, for programs with plain functions and threads.

    from flexgroup import blocking

    with blocking.connect("localhost:7400", name="alice") as link:
        group = link.join("chat", stack="RELIABLE CAUSAL")
        group.send(b"hello")
        for message in group:
            print(message.sender, message.body)

Each connection has a thread of its own in the background, with an event loop. All objects may be
used by several threads at once; messages are shared out among those that receive.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any, Generic, Self, TypeVar, overload
from weakref import WeakSet

from flexgroup.client import connecting
from flexgroup.client import group as asynchronous
from flexgroup.client.background import Background, SendQueue
from flexgroup.client.connecting import PATIENCE, Tls
from flexgroup.client.errors import (
    ConnectionLost,
    GroupDestroyed,
    LinkClosed,
    NoMessage,
    NotMember,
    Refusal,
)
from flexgroup.client.inbox import Item, messages_of
from flexgroup.client.message import GroupInfo, Message, View
from flexgroup.client.values import Codec

T = TypeVar("T")

AT_ONCE = 64
"""How many messages are fetched from the loop's thread at a time, since each change costs."""

Taken = TypeVar("Taken")


def deadline_of(timeout: float | None) -> float | None:
    """Return the monotonic time at which the timeout is over."""
    return None if timeout is None else monotonic() + timeout


class _Receiver(Generic[Taken]):
    """Takes items from the loop's thread on behalf of any number of threads."""

    def __init__(self, background: Background, where: str) -> None:
        self._background = background
        self._where = where
        # Reentrant: if Ctrl-C comes when it was just acquired, this thread can still receive.
        self._receiving = threading.RLock()
        self._items: deque[Taken] = deque()

    def _begin_taking(
        self,
        deadline: float | None,
        take: Callable[[float | None], Coroutine[Any, Any, Iterable[Taken]]],
    ) -> None:
        """Wait until there is something to take, which no other thread takes before the release."""
        left = -1.0 if deadline is None else max(0.0, deadline - monotonic())
        if not self._receiving.acquire(timeout=left):
            raise NoMessage(f"nothing was delivered {self._where} in time")
        try:
            if not self._items:
                left = -1.0 if deadline is None else max(0.0, deadline - monotonic())
                timeout = None if deadline is None else left
                self._background.wait_for(self._fetch(take, timeout))
        except BaseException:
            self._receiving.release()
            raise

    async def _fetch(
        self,
        take: Callable[[float | None], Coroutine[Any, Any, Iterable[Taken]]],
        timeout: float | None,
    ) -> None:
        """Fetch what is there, unless a call that Ctrl-C interrupted has left something."""
        if not self._items:
            self._items.extend(await take(timeout))


class Group(_Receiver[Item], Generic[T]):
    """A group as in `flexgroup.Group`, which describes the calls; here they wait."""

    @overload
    def __init__(self: Group[bytes], link: Link, name: str, *, codec: None = None) -> None: ...
    @overload
    def __init__(self, link: Link, name: str, *, codec: Codec[T]) -> None: ...
    def __init__(self, link: Link, name: str, *, codec: Codec[Any] | None = None) -> None:
        super().__init__(link.background, f"in the group '{name}'")
        self.link = link
        self.name = name
        self.asynchronous: asynchronous.Group[Any] = asynchronous.Group(
            link.asynchronous, name, codec=codec
        )
        self._view: View | None = None

    def exists(self) -> bool:
        return self._background.wait_for(self.asynchronous.exists())

    def create(
        self,
        stack: str,
        owner: str | None = None,
        open: bool = False,
        allow: Iterable[str] | None = None,
        domain: str | None = None,
        keep: int = 0,
        partitionable: bool = False,
    ) -> Self:
        self._background.wait_for(
            self.asynchronous.create(stack, owner, open, allow, domain, keep, partitionable)
        )
        return self

    def destroy(self) -> None:
        self.link.flush()
        self._background.wait_for(self.asynchronous.destroy())

    def join(self, process: str | None = None, own: bool = True, since: int | None = None) -> Self:
        self._background.wait_for(self.asynchronous.join(process, own, since))
        self._items.clear()
        self._view = None
        return self

    def attach(self) -> Self:
        self._background.wait_for(self.asynchronous.attach())
        return self

    def leave(self) -> None:
        self.link.flush()
        self._background.wait_for(self.asynchronous.leave())
        self._items.clear()

    def info(self) -> GroupInfo:
        return self._background.wait_for(self.asynchronous.info())

    @property
    def process(self) -> str:
        return self.asynchronous.process

    @property
    def view(self) -> View:
        if self._view is None or (self.link.is_read and not self._items):
            self._view = self._background.wait_for(self._current_view())
        return self._view

    @property
    def members(self) -> tuple[str, ...]:
        return self.view.members

    def send(self, body: T) -> None:
        """Send to all members; waits only while the connection is full, not for delivery."""
        self._put([self.asynchronous.encoded(body)])

    def send_all(self, bodies: Iterable[T]) -> None:
        """Send each body as a message of its own; if one cannot be sent at all, none is."""
        self._put(self.asynchronous.all_encoded(bodies))

    def confirm(self) -> None:
        """Wait until every server with members of the group has what was sent to it."""
        self.link.flush()
        self._background.wait_for(self.asynchronous.confirm())

    def _put(self, data: list[bytes]) -> None:
        self.asynchronous.inbox()
        self.link.send_queue.put(lambda: self.asynchronous.send_encoded(data), len(data))

    def receive(self, timeout: float | None = None) -> Message[T]:
        deadline = deadline_of(timeout)
        while isinstance(event := self.next_event(deadline), View):
            pass
        return event

    def receive_all(self, timeout: float | None = None) -> list[Message[T]]:
        """Return the next message, and those after it that are here already."""
        deadline = deadline_of(timeout)
        decoded = self.asynchronous.decoded
        messages: list[Message[T]] = []
        while not messages:
            self._begin_taking(deadline, partial(self._take_from_inbox, None))
            try:
                items = self._items
                messages, taken, error = messages_of(items, decoded)
                for item in islice(items, taken):
                    if isinstance(item, View):
                        self._view = item
                # All at once: Ctrl-C before this loses none of them.
                self._items = deque(islice(items, taken, None))
            finally:
                self._receiving.release()
            if error is not None:
                raise error
        return messages

    def events(self) -> Iterator[Message[T] | View]:
        """Iterate over messages and changes of the view, beginning with the current view."""
        return _Events([self.view], self.next_event)

    def __iter__(self) -> Iterator[Message[T]]:
        return self

    def __next__(self) -> Message[T]:
        try:
            return self.receive()
        except (GroupDestroyed, LinkClosed):
            raise StopIteration from None
        except NotMember:
            if self._view is None:
                raise
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self.join()

    def __exit__(self, *error: object) -> None:
        # Refused or not, this process is then outside of the group.
        with suppress(Refusal, ConnectionLost):
            self.leave()

    def next_event(self, deadline: float | None) -> Message[T] | View:
        """Return the next message or view; `deadline` is a monotonic time.

        It is taken only when it has been decoded, so that Ctrl-C meanwhile loses nothing.
        """
        self._begin_taking(deadline, partial(self._take_from_inbox, AT_ONCE))
        try:
            item = self._items[0]
            try:
                event = item if isinstance(item, View) else self.asynchronous.decoded(item)
            except Exception:  # whatever the application's codec raises
                self._take()
                raise
            self._take()
            return event
        finally:
            self._receiving.release()

    async def _take_from_inbox(self, most: int | None, timeout: float | None) -> list[Item]:
        if self._view is None:
            self._view = self.asynchronous.begin_events()  # so that later views are kept
        self.link.ahead.add(self)
        return await self.asynchronous.take(most, timeout)

    async def put_back(self) -> None:
        """Have what no thread has received yet received by whoever asks first."""
        while self._items:
            # A thread that is just taking something is about to release this.
            if not self._receiving.acquire(blocking=False):
                await asyncio.sleep(0)
                continue
            try:
                self.asynchronous.put_back(list(self._items))
                self._items.clear()
            finally:
                self._receiving.release()

    def _take(self) -> None:
        item = self._items.popleft()
        if isinstance(item, View):
            self._view = item

    async def _current_view(self) -> View:
        return self.asynchronous.begin_events()


class _Events(Generic[T]):
    """An iterator, not a generator, which would end at a message that it cannot read."""

    def __init__(
        self, views: list[View], next_event: Callable[[float | None], Message[T] | View]
    ) -> None:
        self._views = deque(views)
        """Those that come first."""
        self._next_event = next_event

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message[T] | View:
        if self._views:
            return self._views.popleft()
        try:
            return self._next_event(None)
        except (GroupDestroyed, NotMember, LinkClosed):
            raise StopIteration from None


class Link(_Receiver[Message[Any] | View]):
    """A link as in `flexgroup.Link`, which describes the calls; here they wait."""

    def __init__(self, background: Background, link: asynchronous.Link) -> None:
        super().__init__(background, asynchronous.ANYWHERE)
        self.background = background
        self.send_queue = SendQueue(background)
        self.name = link.name
        self.server = link.server
        self.address = link.address
        self.asynchronous = link
        self.is_read = False
        """Whether anything was received by link, so that views are passed there."""
        self.ahead: WeakSet[Group[Any]] = WeakSet()
        """Groups that may have taken more than was received; for the loop's thread only."""
        self._closing = threading.Lock()

    @overload
    def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        keep: int = 0,
        since: int | None = None,
        codec: None = None,
    ) -> Group[bytes]: ...
    @overload
    def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        keep: int = 0,
        since: int | None = None,
        codec: Codec[T],
    ) -> Group[T]: ...
    def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        keep: int = 0,
        since: int | None = None,
        codec: Codec[Any] | None = None,
    ) -> Group[Any]:
        joined: Group[Any] = Group(self, group, codec=codec)
        self.background.wait_for(
            self.asynchronous.enter(
                joined.asynchronous,
                stack,
                process=process,
                own=own,
                open=open,
                keep=keep,
                since=since,
            )
        )
        return joined

    @overload
    def attach(self, group: str, *, codec: None = None) -> Group[bytes]: ...
    @overload
    def attach(self, group: str, *, codec: Codec[T]) -> Group[T]: ...
    def attach(self, group: str, *, codec: Codec[Any] | None = None) -> Group[Any]:
        attached: Group[Any] = Group(self, group, codec=codec)
        return attached.attach()

    def multicast(self, groups: Sequence[Group[T]], body: T) -> None:
        """Send one message to several groups, which have the same stack."""
        asynchronous.check_groups(groups, Group)
        targets = [group.asynchronous for group in groups]
        self.asynchronous.handles_of(targets)
        targets[0].encoded(body)
        self.send_queue.put(lambda: self.asynchronous.multicast(targets, body))

    def receive(self, timeout: float | None = None) -> Message[Any]:
        deadline = deadline_of(timeout)
        while isinstance(event := self.next_event(deadline), View):
            pass
        return event

    def receive_all(self, timeout: float | None = None) -> list[Message[Any]]:
        """Return the next message of any group, and those after it that are here already."""
        deadline = deadline_of(timeout)
        messages: list[Message[Any]] = []
        while not messages:
            self._begin_taking(deadline, self._take_messages)
            try:
                messages = [item for item in self._items if not isinstance(item, View)]
                self._items = deque()
            finally:
                self._receiving.release()
        return messages

    def events(self) -> Iterator[Message[Any] | View]:
        """Iterate over messages and changes of the views of all groups, beginning with the current
        views; when another group is joined, its first view comes in its place."""
        return _Events(self.background.wait_for(self._current_views()), self.next_event)

    def __iter__(self) -> Iterator[Message[Any]]:
        return self

    def __next__(self) -> Message[Any]:
        try:
            return self.receive()
        except LinkClosed:
            raise StopIteration from None

    def next_event(self, deadline: float | None) -> Message[Any] | View:
        """Return the next message or, after `events`, view; `deadline` is a monotonic time."""
        self._begin_taking(deadline, self._take_event)
        try:
            return self._items.popleft()
        finally:
            self._receiving.release()

    async def _take_event(self, timeout: float | None) -> list[Message[Any] | View]:
        await self._take_all_back()
        return [await self.asynchronous.next_event(timeout)]

    async def _take_messages(self, timeout: float | None) -> list[Message[Any]]:
        await self._take_all_back()
        return await self.asynchronous.receive_all(timeout)

    async def _current_views(self) -> list[View]:
        await self._take_all_back()
        return self.asynchronous.begin_events()

    async def _take_all_back(self) -> None:
        """Have everything here that groups have taken ahead: it may come first."""
        self.is_read = True
        for group in list(self.ahead):
            await group.put_back()
        self.ahead.clear()

    def create_replicated(self, stack: str, groups: Mapping[str, Sequence[str]]) -> None:
        self.background.wait_for(self.asynchronous.create_replicated(stack, groups))

    def inspect(self) -> dict[str, Any]:
        return self.background.wait_for(self.asynchronous.inspect())

    def flush(self) -> None:
        """Wait until all that was sent is on its way to the server."""
        self.send_queue.flush()

    def close(self) -> None:
        with self._closing:
            if self.background.is_stopped:
                return
            try:
                with suppress(ConnectionLost):  # then there is nobody to send to
                    self.send_queue.flush()
            finally:
                self.background.wait_for(self.asynchronous.close())
                self.background.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def connect(
    address: str | None = None,
    *,
    name: str | None = None,
    tls: Tls | None = None,
    timeout: float | None = PATIENCE,
) -> Link:
    """Connect as `flexgroup.connect` does, which describes the arguments, and wait for it.

    Use the link in `with`, or call `close` at the end.
    """
    wanted = connecting.connect(address, name=name, tls=tls, timeout=timeout)
    background = Background()
    try:
        return Link(background, background.wait_for(wanted.link()))
    except BaseException:
        background.stop()
        raise
