"""A client's session: its requests, and the queues of what is to be delivered to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import msgspec

from flexgroup.core.errors import PeerError
from flexgroup.server.clients.contents import head_of, opened, packed
from flexgroup.server.connection import Connection
from flexgroup.server.hosting.round import Round
from flexgroup.server.settings import Limits
from flexgroup.wire import refusals
from flexgroup.wire.frames import array_of, decoded
from flexgroup.wire.requests import (
    AnyFromClient,
    AnyFromServer,
    Closing,
    Credit,
    Destroyed,
    Granted,
    Hello,
    Joined,
    Refused,
    Request,
    Send,
    ViewChange,
)

_decoder = msgspec.msgpack.Decoder(list[AnyFromClient])
_encoder = msgspec.msgpack.Encoder()

MOST_OF_A_FRAME = 4 << 20


def decode_requests(content: bytes) -> list[AnyFromClient]:
    return decoded(_decoder, content, "malformed requests")


@final
@dataclass
class SessionContext:
    """What all sessions of a server have in common."""

    limits: Limits
    round: Round
    cast: Callable[[Session, list[Send]], None]
    """Takes the messages that clients send."""
    request: Callable[[Session, AnyFromClient], None]
    """Takes everything else that clients ask for."""
    lost: Callable[[Session, str], None]
    """Is told that the connection to a client has ended, and why."""
    queue_changed: Callable[[Session, Seat], None]
    """Is told that the queue of a seat has become full, or is no longer."""


@final
class Seat:
    """A client's place in a group: as a member, or only to send."""

    def __init__(self, group: int, name: str, process: str, member: bool, own: bool) -> None:
        self.group = group
        self.name = name
        """The name of the group."""
        self.process = process
        self.member = member
        self.own = own
        self.credit = 0
        self.head = head_of(group)
        self.queue: deque[tuple[bytes, int]] = deque()
        """The contents of envelopes with how many messages they are, or, with 0, anything else
        that is said in its turn."""
        self.queued = 0
        """How many messages are in the queue."""
        self.queued_bytes = 0
        self.full = False
        self.ended = False
        """The group was destroyed; what is in the queue is the last."""
        self.delivered = 0


@final
class Session:
    def __init__(
        self, number: int, name: str, connection: Connection, context: SessionContext
    ) -> None:
        limits = context.limits
        self.number = number
        self.name = name
        self.connection = connection
        self.seats: dict[int, Seat] = {}
        self.asking: Request | None = None
        """The request of this client that is under way because other servers must agree to it."""
        self.waiting: deque[AnyFromClient] = deque()
        """The requests that have come since, and wait for its end."""
        self.sent = 0
        self.full_since: float | None = None
        self._ungranted = 0
        """Messages that came, less those granted."""
        self._taken = 0
        """Messages that were taken, and not yet granted."""
        self._limits = limits
        self._largest = limits.largest_message
        self._most_ungranted = limits.sends
        self._context = context
        self._out: list[bytes] = []
        self._out_bytes = 0
        connection.reader.allow(limits.largest_message + (1 << 16))

    # From the client.

    def frame(self, content: bytes) -> None:
        sends: list[Send] = []
        for request in decode_requests(content):
            if type(request) is Send:
                self._ungranted += len(request.bodies)
                if self._ungranted > self._most_ungranted:
                    raise PeerError(f"more than {self._most_ungranted} messages without a grant")
                self._refuse_large(request)
                if request.bodies:
                    sends.append(request)
                continue
            if sends:
                self._context.cast(self, sends)
                sends = []
            if type(request) is Credit:
                self._credited(request)
            elif type(request) is Hello:
                raise PeerError("the client said Hello a second time")
            else:
                self._context.request(self, request)
        if sends:
            self._context.cast(self, sends)

    def _refuse_large(self, send: Send) -> None:
        """Take messages out that are too large; the others stay in it."""
        largest = self._largest
        too_large = [body for body in send.bodies if len(body) > largest]
        if not too_large:
            return
        for body in too_large:
            self.refuse(
                None,
                refusals.TOO_LARGE,
                f"a message of {len(body)} bytes; this server takes at most {largest}: "
                "send it in parts",
                send.handles[0],
            )
        self.taken(len(too_large))
        send.bodies = [body for body in send.bodies if len(body) <= largest]

    def lost(self, error: Exception | None) -> None:
        reason = str(error) if error else "the connection was closed"
        self._context.lost(self, reason)

    def resumed(self) -> None:
        for seat in list(self.seats.values()):
            self._advance(seat)

    def taken(self, messages: int) -> None:
        """This many messages of the client were multicast, or refused."""
        self._taken += messages
        if self._taken * 4 >= self._most_ungranted:
            self._ungranted -= self._taken
            self.say(Granted(self._taken))
            self._taken = 0

    # To the client.

    def sit(self, seat: Seat, joined: Joined) -> None:
        seat.credit = self._limits.window
        self.seats[seat.group] = seat
        self.say(joined)

    def deliver(self, seat: Seat, count: int, contents: bytes) -> None:
        """Deliver these messages, which are encoded already; `count` says how many they are."""
        seat.delivered += count
        if seat.credit >= count and not seat.queue and self.connection.writable:
            seat.credit -= count
            self._put(seat.head + contents)
        else:
            self._queue(seat, contents, count)
            if seat.credit > 0 and self.connection.writable:
                self._advance(seat)  # a part of it may go: the client waits, and gives no credit

    def tell_view(self, seat: Seat, view: int, members: list[str]) -> None:
        self._in_turn(seat, ViewChange(seat.group, view, members))

    def end_seat(self, seat: Seat, reason: str) -> None:
        self._in_turn(seat, Destroyed(seat.group, reason))
        seat.ended = True
        if not seat.queue:
            self.seats.pop(seat.group, None)

    def leave_seat(self, group: int) -> None:
        seat = self.seats.pop(group, None)
        if seat is not None and seat.full:
            seat.full = False
            self._context.queue_changed(self, seat)

    def say(self, message: AnyFromServer) -> None:
        self._put(_encoder.encode(message))

    def refuse(
        self, request: int | None, code: str, reason: str, handle: int | None = None
    ) -> None:
        self.say(Refused(request, code, reason, handle))

    def close(self, reason: str) -> None:
        self.say(Closing(reason))
        self.flush()
        self.connection.close()

    def flush(self) -> None:
        out = self._out
        if not out:
            return
        self._out = []
        self._out_bytes = 0
        self.connection.send(array_of(out))

    def _put(self, data: bytes) -> None:
        if not self._out:
            self._context.round.flush_later(self.flush)
        self._out.append(data)
        self._out_bytes += len(data)
        if self._out_bytes > MOST_OF_A_FRAME:
            self.flush()

    def _in_turn(self, seat: Seat, message: AnyFromServer) -> None:
        data = _encoder.encode(message)
        if seat.queue:
            self._queue(seat, data, 0)
        else:
            self._put(data)

    def _queue(self, seat: Seat, data: bytes, count: int) -> None:
        seat.queue.append((data, count))
        seat.queued += count
        seat.queued_bytes += len(data)
        limits = self._limits
        if not seat.full and (seat.queued > limits.queue or seat.queued_bytes > limits.queue_bytes):
            seat.full = True
            self._context.queue_changed(self, seat)

    def _credited(self, credit: Credit) -> None:
        seat = self.seats.get(credit.handle)
        if seat is None:
            return  # of a group that the client has just left
        seat.credit = min(seat.credit + credit.messages, self._limits.window)
        self._advance(seat)

    def _advance(self, seat: Seat) -> None:
        queue = seat.queue
        while queue and self.connection.writable:
            data, count = queue[0]
            if count == 0:
                self._put(data)
            elif count <= seat.credit:
                seat.credit -= count
                self._put(seat.head + data)
            elif seat.credit > 0:
                self._advance_partly(seat)
                continue
            else:
                break
            queue.popleft()
            seat.queued -= count
            seat.queued_bytes -= len(data)
        limits = self._limits
        if (
            seat.full
            and seat.queued <= limits.queue // 2
            and seat.queued_bytes <= limits.queue_bytes // 2
        ):
            seat.full = False
            self._context.queue_changed(self, seat)
        if seat.ended and not queue:
            self.seats.pop(seat.group, None)

    def _advance_partly(self, seat: Seat) -> None:
        """Send as much of the first envelope as the credit is good for."""
        data, count = seat.queue[0]
        messages = opened(data)
        rest = packed(messages[seat.credit :])
        self._put(seat.head + packed(messages[: seat.credit]))
        seat.queue[0] = (rest, count - seat.credit)
        seat.queued -= seat.credit
        seat.queued_bytes -= len(data) - len(rest)
        seat.credit = 0
