"""What a client sends is joined into frames, and held back while nobody takes it.

What is sent within one iteration of the event loop leaves as one frame, except that the first
message leaves at once if none was received that might lead to more. The loop does not say when an
iteration begins; it is a new one for certain when something has come, or when what was joined has
left. A sender waits while the server takes no more messages or the transport no more bytes, and
lets others run after each burst.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, final

from msgspec.msgpack import Encoder

from flexgroup.client.errors import TooLarge
from flexgroup.client.inbox import Inbox
from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.wire.frames import MOST_BYTES, ROOM_BESIDE_A_MESSAGE, FrameWriter, array_of
from flexgroup.wire.requests import AnyFromClient, Send, Welcome
from flexgroup.wire.socket_writer import SocketWriter

BURST: Final = 1 << 16
"""The most bytes that are sent at once, unless a single message has more."""

HEAD: Final = 5
"""The most bytes that tell the length of a body, or of a list of bodies."""

_encode: Final = Encoder().encode


@final
class Outgoing:
    """The way from a client to its server."""

    __slots__ = (
        "_bytes",
        "_frames",
        "_held",
        "_is_flush_due",
        "_is_full",
        "_loop",
        "_senders",
        "_sends_left",
        "_sure_sends",
        "_writer",
        "busy",
        "ended",
        "is_new_turn",
        "largest",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.busy = False
        """Whether a sender has to wait, with `await room()`."""
        self.largest = MOST_BYTES
        self.ended: FlexGroupError | None = None
        """The reason why nothing can be sent any more."""
        self.is_new_turn = True
        """Whether no message has left at once in this iteration of the loop."""
        self._loop = loop
        self._writer: SocketWriter | None = None
        self._frames = FrameWriter()
        self._held: list[bytes] = []
        self._bytes = 0
        self._is_flush_due = False
        self._is_full = False
        self._sends_left = 0
        self._sure_sends = 0
        """How many are sure to be left again some time, when the server grants what it takes."""
        self._senders: list[asyncio.Future[None]] = []

    # What the server and the transport say.

    def open(self, writer: SocketWriter) -> None:
        self._writer = writer

    def welcome(self, welcome: Welcome, largest: int) -> None:
        self._frames.begin_at(welcome.session)
        self._sends_left = welcome.sends
        self._sure_sends = max(1, welcome.sends // 2)
        self.largest = largest

    def grant(self, messages: int) -> None:
        self._sends_left += messages
        self._wake_senders()

    def pause(self) -> None:
        self._is_full = self.busy = True

    def resume(self) -> None:
        self._is_full = False
        self._wake_senders()

    def close(self) -> None:
        self._writer = None

    def end(self, error: FlexGroupError) -> None:
        self.ended = error
        self.busy = True
        self._wake_senders()

    def _wake_senders(self) -> None:
        """Wake all senders; those that have to wait all the same will notice."""
        for sender in self._senders:
            if not sender.done():
                sender.set_result(None)

    # What the application sends.

    def sendable(self, body: object) -> bytes:
        """Return the body as bytes, provided that it can be a message."""
        if isinstance(body, bytes):
            data = body
        elif isinstance(body, (bytearray, memoryview)):
            data = bytes(body)
        else:
            raise UsageError(
                f"a message is bytes, not {type(body).__name__}; encode it, or join with"
                " codec=flexgroup.values"
            )
        if len(data) > self.largest:
            raise TooLarge(
                f"a message of {len(data)} bytes; the server takes {self.largest}: send it in parts"
            )
        return data

    def all_sendable(self, bodies: Iterable[object]) -> list[bytes]:
        return [self.sendable(body) for body in bodies]

    def put(self, message: AnyFromClient) -> None:
        """Send anything but a message to a group, at the end of this turn."""
        data = _encode(message)
        most = self.largest + ROOM_BESIDE_A_MESSAGE
        if len(data) > most:
            raise TooLarge(
                f"a request of {len(data)} bytes; the server takes {most}: give fewer or shorter"
                " names"
            )
        self._hold(data)
        self._flush_later()

    def send(self, inbox: Inbox, handles: list[int], body: bytes) -> None:
        """Send to several groups, one of which has the inbox; wait for `room` before."""
        self._count_sends(1)
        self._hold(_encode(Send(handles, [body])))
        self._flush_or_wait(inbox)

    def send_many(self, inbox: Inbox, bodies: list[bytes], start: int) -> int:
        """Send to one group, from `start` on, until a sender has to wait; return how many are
        sent then."""
        sent = start
        while sent < len(bodies) and not self.busy:
            sent = self._send_some(inbox, bodies, sent)
        if sent > start:
            self._flush_or_wait(inbox)
        return sent

    def send_now(
        self, inbox: Inbox, bodies: Iterable[Any], encode: Callable[[Any], bytes] | None
    ) -> bool:
        """Send all to one group, or none, and return whether there was room."""
        if inbox.ended is not None or inbox.refused:
            inbox.check()
        data = self.all_sendable(bodies if encode is None else map(encode, bodies))
        if not self.has_room(len(data)):
            return False
        sent = 0
        while sent < len(data):
            sent = self._send_some(inbox, data, sent)
        if data:
            self._flush_or_wait(inbox)
        return True

    def _send_some(self, inbox: Inbox, bodies: list[bytes], start: int) -> int:
        """Send as many as there is room for and fit into this burst, but at least one; return
        how many are sent then."""
        most = min(len(bodies), start + max(1, self._sends_left))
        size = self._bytes + len(inbox.send_prefix) + HEAD + HEAD + len(bodies[start])
        end = start + 1
        while end < most:
            size += HEAD + len(bodies[end])
            if size > BURST:
                break
            end += 1
        self._count_sends(end - start)
        self._hold(inbox.send_prefix + _encode(bodies[start:end]))
        return end

    def has_room(self, messages: int) -> bool:
        """Return whether so many can be sent at once; senders that were just woken come first."""
        if self._is_full or self._sends_left < messages:
            return False
        return not self._senders or not any(sender.done() for sender in self._senders)

    async def room_for(self, messages: int) -> None:
        """Wait until there is room for so many at once, and let others run in any case."""
        if messages > self._sure_sends:
            raise UsageError(
                f"room for {messages} messages at once; no more than {self._sure_sends} are sure"
                " to find it some time: send them in parts, or with send_all"
            )
        await asyncio.sleep(0)
        while not self.has_room(messages):
            if self.ended is not None:
                raise self.ended.with_traceback(None)
            if self._is_full or self._sends_left < messages:
                await self._until_woken()
            else:
                await asyncio.sleep(0)  # those that come first are about to send

    async def room(self) -> None:
        """Wait until there is room for what a sender has."""
        while self.busy:
            if self.ended is not None:
                raise self.ended.with_traceback(None)
            if self._is_full or self._sends_left <= 0:
                await self._until_woken()
                self.busy = self._is_full or self._sends_left <= 0 or self.ended is not None
            else:
                self.busy = False
                await asyncio.sleep(0)

    async def _until_woken(self) -> None:
        sender = self._loop.create_future()
        self._senders.append(sender)
        try:
            await sender
        finally:
            self._senders.remove(sender)

    def _count_sends(self, messages: int) -> None:
        self._sends_left -= messages
        if self._sends_left <= 0:
            self.busy = True

    def _hold(self, data: bytes) -> None:
        size = len(data)
        if self._bytes + size > BURST and self._held:
            self.flush()
            self.busy = True
        self._held.append(data)
        self._bytes += size

    def _flush_or_wait(self, inbox: Inbox) -> None:
        """Write what is held now, or with what follows."""
        if self._is_flush_due:
            return
        # What was received and is still to be looked at may make this application send more.
        if self.is_new_turn and not inbox.items:
            self.is_new_turn = False
            self.flush()
        else:
            self._flush_later()

    def gather(self) -> None:
        """Hold what is sent from now on, until `release` is called."""
        self._is_flush_due = True

    def release(self) -> None:
        self._is_flush_due = False
        if self._held:
            self.is_new_turn = False
            self.flush()

    def _flush_later(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_in_turn)

    def _flush_in_turn(self) -> None:
        self._is_flush_due = False
        self.is_new_turn = True
        self.flush()

    def flush(self) -> None:
        held = self._held
        if not held or self._writer is None or self.ended is not None:
            return
        self._held = []
        self._bytes = 0
        self._writer.write(self._frames.frame(array_of(held)))


def send_prefix(handle: int) -> bytes:
    """Return what stands before the bodies in the encoded form of messages to one group."""
    no_bodies: list[bytes] = []
    return _encode(Send([handle], no_bodies))[: -len(_encode(no_bodies))]
