"""A connection to a server: requests and their answers, and what the server says unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar, cast, final

from msgspec import MsgspecError
from msgspec.msgpack import Decoder

from flexgroup.client.errors import (
    AlreadyMember,
    CannotConnect,
    ConnectionLost,
    GroupDestroyed,
    LinkClosed,
    NoAnswer,
    NotMember,
    ServerClosing,
    ServerMisbehaved,
    refusal,
)
from flexgroup.client.inbox import Inbox, messages_at
from flexgroup.client.message import View
from flexgroup.client.order import DeliveryOrder
from flexgroup.client.outgoing import Outgoing, send_prefix
from flexgroup.core.errors import FlexGroupError, PeerError
from flexgroup.wire.frames import MOST_BYTES, FrameReader
from flexgroup.wire.keepalive import keep_alive
from flexgroup.wire.requests import (
    VERSION,
    Answer,
    AnyFromClient,
    AnyFromServer,
    Closing,
    Credit,
    Delivered,
    DeliveredKept,
    Destroyed,
    FromServer,
    Granted,
    Held,
    Hello,
    Joined,
    Leave,
    Refused,
    ViewChange,
    Welcome,
)
from flexgroup.wire.socket_writer import SocketWriter

ROOM_FOR_A_HEADER = 1 << 12
MOST_BYTES_OF_A_WELCOME = 1 << 12
GONE_SECONDS = 20.0
"""How long the server's machine may be silent before it counts as gone."""
NUMBERS = 1 << 32

_decode: Final = Decoder(list[AnyFromServer]).decode

T = TypeVar("T")
Reply = TypeVar("Reply", bound=FromServer)


class Pending(NamedTuple):
    """A request that has not been answered yet."""

    expected: type[FromServer]
    future: asyncio.Future[FromServer]
    inbox: Inbox | None
    """The inbox to use once the server says that the group was joined."""
    leaving: Inbox | None
    """The inbox that ends with the answer."""


@final
class ClientConnection:
    """Reads what the server says, and knows groups by their handles only."""

    # Not derived from asyncio's Protocol: with a base that is not compiled, calls are slow.
    def __init__(self, where: str, name: str, timeout: float | None) -> None:
        self.where = where
        self.timeout = timeout
        self.window = 0
        self.ended: FlexGroupError | None = None
        """The reason why there is no connection any more."""
        loop = asyncio.get_running_loop()
        self.outgoing = Outgoing(loop)
        self.welcomed: asyncio.Future[Welcome] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._name = name
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(MOST_BYTES_OF_A_WELCOME)
        self._pending: dict[int, Pending] = {}
        self._inboxes: dict[int, Inbox] = {}
        self._places: dict[str, Inbox] = {}
        """Inboxes by the names of the groups that were entered, or are being entered or left."""
        self._left: list[Inbox] = []
        """Inboxes of groups that were left, but are still named with messages that the server
        holds back for other groups."""
        self.order = DeliveryOrder(self._report)
        self._inboxes_ever = 0
        self._number = 0
        """The number of the last request."""
        self._to_notify: list[Inbox] = []
        """The inboxes that have something for their listeners; some may be here twice."""
        self._is_notifying = False

    # Requests.

    async def ask(
        self,
        request: Callable[[int], AnyFromClient],
        expected: type[Reply],
        *,
        inbox: Inbox | None = None,
        leaving: Inbox | None = None,
    ) -> Reply:
        """Send the request, made with a number, and return its answer, or raise its refusal."""
        if self.ended is not None:
            raise self.ended.with_traceback(None)
        future = self._ask(request, expected, inbox, leaving)
        try:
            return cast(Reply, await self._in_time(future))
        except (asyncio.CancelledError, NoAnswer):
            if inbox is not None:
                inbox.drop(NotMember("joining was given up; join again"))
            raise

    async def _in_time(self, future: asyncio.Future[T]) -> T:
        try:
            async with asyncio.timeout(self.timeout):
                return await future
        except TimeoutError:
            raise NoAnswer(
                f"the server at {self.where} has not answered for {self.timeout:g} s; it may be"
                " overloaded, or agreeing with servers that it cannot reach: look at it with"
                " `flexgroup probe`, or allow more time with connect(..., timeout=...)"
            ) from None

    def _ask(
        self,
        request: Callable[[int], AnyFromClient],
        expected: type[FromServer],
        inbox: Inbox | None,
        leaving: Inbox | None,
    ) -> asyncio.Future[FromServer]:
        self._number = (self._number + 1) % NUMBERS
        future: asyncio.Future[FromServer] = self._loop.create_future()
        self.outgoing.put(request(self._number))
        self._pending[self._number] = Pending(expected, future, inbox, leaving)
        return future

    async def new_inbox(self, group: str) -> Inbox:
        """Return the inbox of a group that this process wants to enter."""
        while (holder := self._places.get(group)) is not None:
            if holder.ended is None:
                raise AlreadyMember(
                    f"this link is in the group '{group}' already; use the object that joined it,"
                    " leave it first, or connect again to be in the group twice"
                )
            await self._in_time(asyncio.shield(holder.gone))
        self.order.forget_empty()
        self._inboxes_ever += 1
        self._places[group] = inbox = Inbox(
            self._inboxes_ever,
            group,
            self.window,
            self._give_credit,
            self._to_notify,
            self.order.arrivals,
            self._report,
        )
        return inbox

    def memberships(self) -> list[Inbox]:
        """Return the inboxes of the groups that this process is a member of."""
        return [inbox for inbox in self._inboxes.values() if inbox.entered and not inbox.ended]

    def keep_views(self) -> None:
        """Have those who read by link see every view of every group from now on."""
        self.order.keeps_views = True
        for inbox in self._inboxes.values():
            inbox.keeps_views = True

    def _give_credit(self, handle: int, messages: int) -> None:
        if self.ended is None:
            self.outgoing.put(Credit(handle, messages))

    # Receiving.

    def data_received(self, data: bytes) -> None:
        try:
            self.outgoing.is_new_turn = True
            reader = self._reader
            reader.feed(data)
            while self.ended is None and (content := reader.next_frame()) is not None:
                self._read(content)
        except (PeerError, MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._fail(
                ServerMisbehaved(
                    f"what came from {self.where} is not what a FlexGroup server sends ({error});"
                    " check the address, and that both sides have the same version"
                )
            )
        if self._to_notify or self.order.listener is not None:
            self.notify_listeners()
        self.order.wake()

    def notify_listeners(self) -> None:
        """Tell listeners what has come for them, none while another is running."""
        if self._is_notifying:
            return
        self._is_notifying = True
        self.outgoing.gather()
        try:
            while True:
                for inbox in self._to_notify:
                    inbox.notify_listener()
                self._to_notify.clear()
                self.order.notify_listener()
                if not self._to_notify:
                    break
        finally:
            self._is_notifying = False
            self.outgoing.release()

    def _report(self, what: str, error: BaseException) -> None:
        self._loop.call_exception_handler({"message": what, "exception": error})

    def _read(self, content: bytes) -> None:
        inboxes = self._inboxes
        for message in _decode(content):
            if type(message) is Delivered:
                handles = message.handles
                if len(handles) > 1:
                    self._read_shared(message)
                    continue
                inbox = inboxes.get(handles[0])
                if inbox is None:
                    raise PeerError(f"it delivers to the handle {handles[0]}, of no group")
                inbox.put(message.sent, message.position)
            else:
                self._read_other(message)

    def _read_shared(self, delivered: Delivered) -> None:
        """Put messages to several groups of this process into the inboxes that get them now."""
        position = delivered.position
        here = [self._inbox(handle) for handle in delivered.handles[: delivered.here]]
        everywhere = [
            inbox
            for handle in sorted(delivered.handles)
            for inbox in self._inboxes_ever_of(handle)
            if inbox.entered < position
        ]
        groups = tuple(dict.fromkeys([inbox.group for inbox in everywhere]))
        group = here[0].group if here else ""
        messages = messages_at(position, delivered.sent, group, groups)
        for inbox in here:
            others = [other for other in everywhere if other is not inbox]
            inbox.put_shared(messages, position, others)

    def _inboxes_ever_of(self, handle: int) -> list[Inbox]:
        found = [inbox for inbox in self._left if inbox.handle == handle]
        if handle in self._inboxes:
            found.append(self._inboxes[handle])
        return found

    def _read_other(self, message: AnyFromServer) -> None:
        match message:
            case Welcome():
                self._read_welcome(message)
            case DeliveredKept():
                inbox = self._inbox(message.handle)
                inbox.put_kept(message.sent, message.position, message.ahead)
            case ViewChange():
                inbox = self._inbox(message.handle)
                members = tuple(message.members)
                merged = tuple([tuple(part) for part in message.merged])
                position, side = message.position, message.side
                inbox.put_view(View(message.view, members, inbox.group, position, merged, side))
            case Held():
                held = self.order.held = message.position
                self._left = [inbox for inbox in self._left if 0 < held <= inbox.read_to]
            case Destroyed():
                inbox = self._inbox(message.handle)
                inbox.end(GroupDestroyed(f"'{inbox.group}': {message.reason}"))
                self._forget(inbox)
            case Granted():
                self.outgoing.grant(message.messages)
            case Closing():
                self._fail(ServerClosing(message.reason))
            case Refused(request=None):
                self._read_refusal(message)
            case Delivered():
                raise AssertionError(message)
            case Answer() | Refused():
                self._read_answer(message.request, message)

    def _inbox(self, handle: int) -> Inbox:
        inbox = self._inboxes.get(handle)
        if inbox is None:
            raise PeerError(f"it tells of the handle {handle}, of no group")
        return inbox

    def _read_welcome(self, welcome: Welcome) -> None:
        if self.welcomed.done():
            raise PeerError("it sent a second welcome")
        self._reader.allow(MOST_BYTES)
        self.window = welcome.window
        self.outgoing.welcome(welcome, min(welcome.largest, MOST_BYTES - ROOM_FOR_A_HEADER))
        self.welcomed.set_result(welcome)

    def _read_refusal(self, refused: Refused) -> None:
        """Tell the groups that something was wrong that belongs to no request."""
        error = refusal(refused.code, refused.reason)
        if not self.welcomed.done() or isinstance(error, ServerClosing):
            self._fail(error)
        elif refused.handle is None:
            for inbox in self._inboxes.values():
                inbox.put_refusal(error)
                self.order.put_refusal(inbox)
        elif refused.handle in self._inboxes:
            inbox = self._inboxes[refused.handle]
            inbox.put_refusal(error)
            self.order.put_refusal(inbox)

    def _read_answer(self, request: int | None, answer: FromServer) -> None:
        pending = self._pending.get(-1 if request is None else request)
        if pending is None:
            raise PeerError(f"it answers request {request}, which was not made")
        if not isinstance(answer, Refused | pending.expected):
            raise PeerError(
                f"it sent {type(answer).__name__} in answer to request {request}, where"
                f" {pending.expected.__name__} was due"
            )
        del self._pending[cast(int, request)]
        if pending.leaving is not None:
            self._forget(pending.leaving)
        if isinstance(answer, Refused):
            if pending.inbox is not None:
                self._forget(pending.inbox)
            if not pending.future.done():
                pending.future.set_exception(refusal(answer.code, answer.reason))
            return
        if isinstance(answer, Joined) and pending.inbox is not None:
            self._enter(answer, pending.inbox)
        if not pending.future.done():
            pending.future.set_result(answer)

    def _enter(self, joined: Joined, inbox: Inbox) -> None:
        handle = joined.handle
        if handle in self._inboxes:
            raise PeerError(f"it gave the handle {handle} to a second group")
        self._inboxes[handle] = inbox
        inbox.handle = handle
        inbox.send_prefix = send_prefix(handle)
        inbox.stack = joined.stack
        view = View(
            joined.view, tuple(joined.members), inbox.group, joined.position, side=joined.side
        )
        inbox.view = view
        inbox.entered = joined.position
        if self.order.keeps_views and joined.position:
            inbox.keeps_views = True
            inbox.put_view(view)
        if inbox.ended is not None:
            # Whoever asked to join has given up meanwhile, and will never receive.
            self._ask(lambda number: Leave(number, handle), FromServer, None, inbox).cancel()

    def _forget(self, inbox: Inbox) -> None:
        self._places.pop(inbox.group, None)
        self._inboxes.pop(inbox.handle, None)
        if 0 < self.order.held <= inbox.read_to:
            self._left.append(inbox)
        if not inbox.gone.done():
            inbox.gone.set_result(None)

    # Beginning and end.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.outgoing.open(SocketWriter(self._transport))
        keep_alive(self._transport, GONE_SECONDS)
        self.outgoing.put(Hello(VERSION, self._name))

    def eof_received(self) -> bool:
        return False  # close

    def pause_writing(self) -> None:
        self.outgoing.pause()

    def resume_writing(self) -> None:
        self.outgoing.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self.outgoing.close()
        why = f" ({exc})" if exc else ""
        if self._reader.waiting:
            why += " in the middle of a frame"
        if self.welcomed.done():
            self._fail(
                ConnectionLost(
                    f"the server at {self.where} closed the connection{why}; connect and join again"
                )
            )
        else:
            self._fail(
                CannotConnect(
                    f"{self.where} closed the connection{why} without a welcome; does it want TLS,"
                    " or another version, or is it no FlexGroup server? Its log says why"
                )
            )
        if not self.closed.done():
            self.closed.set_result(None)
        self.notify_listeners()
        self.order.wake()

    def end(self, last: AnyFromClient) -> None:
        """Close the connection from this side, after all that was sent."""
        if self.ended is None:
            self.outgoing.put(last)
            self.outgoing.flush()
            self._fail(LinkClosed())
            self.notify_listeners()
            self.order.wake()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: FlexGroupError) -> None:
        """Tell everybody who waits that the connection is of no use any more."""
        if self.ended is not None:
            return
        self.ended = self.order.ended = error
        self.outgoing.end(error)
        if self._transport is not None:
            self._transport.close()
        for inbox in [*self._places.values()]:
            inbox.end(error)
            self._forget(inbox)
        pending = [*self._pending.values()]
        self._pending.clear()
        for request in pending:
            if not request.future.done():
                request.future.set_exception(error)
                request.future.exception()
        if not self.welcomed.done():
            self.welcomed.set_exception(error)
            self.welcomed.exception()
