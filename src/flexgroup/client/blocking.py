"""The library without async: the same calls, for programs with plain functions and threads.

    from flexgroup import blocking

    with blocking.connect("localhost:7400", name="alice") as link:
        group = link.join("chat", stack="RELIABLE CAUSAL")
        group.send(b"hello")
        for message in group:
            print(message.sender, message.body)

Each connection has a thread of its own in the background, with an event loop. All objects may be
used by several threads at once; messages of a group are shared out among those that receive.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import Any, Generic, Self, TypeVar, overload

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

EVERYTHING = sys.maxsize


class Group(Generic[T]):
    """A group as in `flexgroup.Group`, which describes the calls; here they wait."""

    @overload
    def __init__(self: Group[bytes], link: Link, name: str, *, codec: None = None) -> None: ...
    @overload
    def __init__(self, link: Link, name: str, *, codec: Codec[T]) -> None: ...
    def __init__(self, link: Link, name: str, *, codec: Codec[Any] | None = None) -> None:
        self.link = link
        self.name = name
        self.asynchronous: asynchronous.Group[Any] = asynchronous.Group(
            link.asynchronous, name, codec=codec
        )
        self._background = link.background
        # Reentrant: if Ctrl-C comes when it was just acquired, this thread can still receive.
        self._receiving = threading.RLock()
        self._items: deque[Item] = deque()
        self._view: View | None = None

    def exists(self) -> bool:
        return self._background.wait_for(self.asynchronous.exists())

    def create(
        self,
        stack: str,
        owner: str | None = None,
        open: bool = False,
        allow: Iterable[str] | None = None,
    ) -> Self:
        self._background.wait_for(self.asynchronous.create(stack, owner, open, allow))
        return self

    def destroy(self) -> None:
        self.link.flush()
        self._background.wait_for(self.asynchronous.destroy())

    def join(self, process: str | None = None, own: bool = True) -> Self:
        self._background.wait_for(self.asynchronous.join(process, own))
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
        if self._view is None:
            self._view = self._background.wait_for(self._first_view())
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

    def _put(self, data: list[bytes]) -> None:
        self.asynchronous.inbox()
        self.link.send_queue.put(lambda: self.asynchronous.send_encoded(data), len(data))

    def receive(self, timeout: float | None = None) -> Message[T]:
        deadline = None if timeout is None else monotonic() + timeout
        while isinstance(event := self.next_event(deadline), View):
            pass
        return event

    def receive_all(self, timeout: float | None = None) -> list[Message[T]]:
        """Return the next message, and those after it that are here already."""
        deadline = None if timeout is None else monotonic() + timeout
        decoded = self.asynchronous.decoded
        messages: list[Message[T]] = []
        while not messages:
            self._begin_taking(deadline, EVERYTHING)
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
        return _Events(self, self.view)

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
        self._begin_taking(deadline, AT_ONCE)
        try:
            item = self._items[0]
            try:
                event = item if isinstance(item, View) else self.asynchronous.decoded(item)
            except Exception:
                self._take()
                raise
            self._take()
            return event
        finally:
            self._receiving.release()

    def _begin_taking(self, deadline: float | None, most: int) -> None:
        """Wait until there is something to take, which no other thread takes before the release."""
        left = -1.0 if deadline is None else max(0.0, deadline - monotonic())
        if not self._receiving.acquire(timeout=left):
            raise NoMessage(f"nothing was delivered in the group '{self.name}' in time")
        try:
            if not self._items:
                _ = self.view  # so that later views are kept
                left = -1.0 if deadline is None else max(0.0, deadline - monotonic())
                self._background.wait_for(self._fetch(most, None if deadline is None else left))
        except BaseException:
            self._receiving.release()
            raise

    async def _fetch(self, most: int, timeout: float | None) -> None:
        """Fetch what is there, unless a call that Ctrl-C interrupted has left something."""
        if not self._items:
            self._items.extend(await self.asynchronous.take(most, timeout))

    def _take(self) -> None:
        item = self._items.popleft()
        if isinstance(item, View):
            self._view = item

    async def _first_view(self) -> View:
        return self.asynchronous.begin_events()


class _Events(Generic[T]):
    """An iterator, not a generator, which would end at a message that it cannot read."""

    def __init__(self, group: Group[T], first: View) -> None:
        self._group = group
        self._first: View | None = first

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message[T] | View:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        try:
            return self._group.next_event(None)
        except (GroupDestroyed, NotMember, LinkClosed):
            raise StopIteration from None


class Link:
    """A link as in `flexgroup.Link`, which describes the calls; here they wait."""

    def __init__(self, background: Background, link: asynchronous.Link) -> None:
        self.background = background
        self.send_queue = SendQueue(background)
        self.name = link.name
        self.server = link.server
        self.address = link.address
        self.asynchronous = link
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
        codec: Codec[Any] | None = None,
    ) -> Group[Any]:
        joined: Group[Any] = Group(self, group, codec=codec)
        self.background.wait_for(
            self.asynchronous.enter(joined.asynchronous, stack, process=process, own=own, open=open)
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
