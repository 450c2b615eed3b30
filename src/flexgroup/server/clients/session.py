"""A client's session: its requests, and the queues of what is to be delivered to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final, NamedTuple, final

import msgspec

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import DomainKey
from flexgroup.server.clients.contents import head_of, head_of_kept, opened, packed_one_by_one
from flexgroup.server.clients.turns import REQUEST, SHARE, Turns
from flexgroup.server.connection import Connection, FrameHandler
from flexgroup.server.hosting.round import Round
from flexgroup.server.settings import Limits
from flexgroup.wire import refusals
from flexgroup.wire.frames import ROOM_BESIDE_A_MESSAGE, array_of, decoded, joined_arrays
from flexgroup.wire.requests import (
    AnyFromClient,
    AnyFromServer,
    Closing,
    Credit,
    Destroyed,
    Granted,
    Held,
    Hello,
    Joined,
    Refused,
    Request,
    Send,
    ViewChange,
)

MOST_IN_A_FRAME: Final = 1 << 14
"""The most requests in a frame; as many as the library could ever put into one."""

MOST_UNREAD: Final = 16 << 20
"""Bytes of answers that a client may ask for without reading them."""

_decoder: Final = msgspec.msgpack.Decoder(
    Annotated[list[AnyFromClient], msgspec.Meta(max_length=MOST_IN_A_FRAME)]
)
_encode: Final = msgspec.msgpack.Encoder().encode

MOST_OF_A_FRAME: Final = 4 << 20


def decode_requests(content: bytes) -> list[AnyFromClient]:
    return decoded(_decoder, content, "malformed requests")


KeptPart = tuple[int, int, list[tuple[str, bytes]]]
"""The numbers of the first and the last message that are kept of a group, and some of these."""


@final
@dataclass
class SessionContext:
    """What all sessions of a server have in common."""

    limits: Limits
    round: Round
    turns: Turns
    cast: Callable[[Session, list[Send]], None]
    """Takes the messages that clients send."""
    request: Callable[[Session, AnyFromClient], None]
    """Takes everything else that clients ask for."""
    go_on: Callable[[Session], None]
    """Carries out requests of a client that had to wait, now that it is the client's turn."""
    lost: Callable[[Session, str], None]
    """Is told that the connection to a client has ended, and why."""
    queue_changed: Callable[[Session, Seat], None]
    """Is told that the queue of a seat has become full, or is no longer."""
    read_kept: Callable[[int, int, int], KeptPart | None]
    """Reads what is kept of a group from a number on, so many messages at most; None while it is
    not known yet what that is."""
    last_kept: Callable[[int], int | None]
    """The number of the last message of a group, unless that is not known yet."""


class Queued(NamedTuple):
    """Something that is said in its turn."""

    position: int
    messages: int
    """How many there are in an envelope; 0 if it is anything else."""
    head: bytes
    data: bytes
    """The contents of the envelope, or all there is to say."""


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
        self.head = head_of([group], 1)
        self.queue: deque[Queued] = deque()
        self.queued = 0
        """How many messages are in the queue."""
        self.queued_bytes = 0
        self.full = False
        self.ended = False
        """The group was destroyed; what is in the queue is the last."""
        self.delivered = 0
        self.unread = 0
        """The number of the message that the member is given next of those that are kept; 0: it has
        come to those that are delivered now."""
        self.wants_all = False
        """It wants all that are kept, whichever is the first."""
        self.later_views: deque[LaterView] = deque()
        """Views that follow messages which the member has not come to."""

    def read_since(self, number: int | None) -> None:
        """Begin with messages that are kept, from this number on; 0: with the first of them."""
        if number is not None:
            self.unread = max(1, number)
            self.wants_all = number == 0


class LaterView(NamedTuple):
    """A view that a member is told of when it has come to this message; None: to the last one
    that is kept when that is known."""

    after: int | None
    change: ViewChange


@final
class Session(FrameHandler):
    def __init__(
        self, number: int, name: str, connection: Connection, context: SessionContext
    ) -> None:
        self._limits = limits = context.limits
        self.number = number
        self.name = name
        self.connection = connection
        self.seats: dict[int, Seat] = {}
        self.asking: Request | None = None
        """The request of this client that is under way because other servers must agree to it."""
        self.last_joined = -1
        """The number of the request that was answered with the last seat."""
        self.waiting: deque[AnyFromClient] = deque()
        """The requests that have come since, and wait for its end."""
        self._to_do: deque[AnyFromClient] = deque()
        """What has come and waits for the client's turn; nothing more is read meanwhile."""
        self._round = -1
        self._share_left = 0
        """What may still be spent on this client in that round."""
        self.let_go: dict[DomainKey, int] = {}
        """How many messages of this client the intake has held in each domain, and does no more."""
        self.unconfirmed = 0
        """How many requests of this client wait for a confirmation."""
        self.sent = 0
        self.full_since: float | None = None
        self._ungranted = 0
        """Messages that came, less those granted."""
        self._taken = 0
        """Messages that were taken, and not yet granted."""
        self._largest = limits.largest_message
        self._most_ungranted = limits.sends
        self._context = context
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._delivery: list[bytes] = []
        """The contents of envelopes that follow each other in the order of a group. They leave
        as one delivery: most of what it costs, here and at the client, it costs once."""
        self._delivery_seat: Seat | None = None
        self._delivery_begin = 0
        self._delivery_end = 0
        """The positions of its first message, and of the one that would follow its last."""
        self._position = 0
        """The place of what was delivered last, in the one order of all this client's groups."""
        self._queuing: dict[int, Seat] = {}
        """The seats that have something in their queues."""
        self._held = 0
        """The first position in these queues, as the client was told; 0 if all are empty."""
        self._reading: dict[int, Seat] = {}
        """The seats that are given what is kept."""
        connection.reader.allow(limits.largest_message + ROOM_BESIDE_A_MESSAGE)

    # From the client.

    def frame(self, content: bytes) -> None:
        requests = decode_requests(content)
        handled = 0 if self._to_do else self._handle(requests)
        if handled < len(requests):
            self._to_do.extend(requests[handled:])
            self.connection.pause()

    def has_turn(self, cost: int) -> bool:
        """Whether something of this cost may be done for the client in this round; otherwise it
        waits for its turn."""
        round = self._context.round.number
        if self._round != round:
            self._round = round
            self._share_left = SHARE
        if self._share_left <= 0:
            self._context.turns.wait(self.number, self._take_turn)
            return False
        self._share_left -= cost
        return True

    def _take_turn(self) -> int:
        """Go on with what has come; what that has cost."""
        self._round = self._context.round.number
        self._share_left = SHARE
        if self.connection.is_open:
            self.connection.attempt(self._go_on)
        return SHARE - self._share_left

    def _go_on(self) -> None:
        self._context.go_on(self)
        to_do = self._to_do
        for _ in range(self._handle(list(islice(to_do, SHARE)))):
            to_do.popleft()
        if not to_do:
            self.connection.resume()

    def _handle(self, requests: list[AnyFromClient]) -> int:
        """Do what the client asks for as long as it is its turn, and return how much of it."""
        connection = self.connection
        if not connection.writable and connection.transport.get_write_buffer_size() > MOST_UNREAD:
            raise PeerError("unread: a client that asks on and does not read the answers")
        handled = 0
        sends: list[Send] = []
        for request in requests:
            if type(request) is Send:
                if not self.has_turn(1):
                    break
                self._ungranted += len(request.bodies)
                if self._ungranted > self._most_ungranted:
                    raise PeerError(f"more than {self._most_ungranted} messages without a grant")
                self._refuse_large(request)
                if request.bodies:
                    sends.append(request)
                handled += 1
                continue
            if not self.has_turn(1 if type(request) is Credit else REQUEST):
                break
            if sends:
                self._context.cast(self, sends)
                sends = []
            if type(request) is Credit:
                self._credited(request)
            elif type(request) is Hello:
                raise PeerError("the client said Hello a second time")
            else:
                self._context.request(self, request)
            handled += 1
        if sends:
            self._context.cast(self, sends)
        return handled

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
        for seat in sorted(self._queuing.values(), key=_first_position):
            self._advance(seat)
        self._tell_held()
        for seat in list(self._reading.values()):
            self.read_on(seat)

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
        self.last_joined = joined.request
        self.seats[seat.group] = seat
        if seat.member:
            joined.position = self._next_position()
        self.say(joined)
        if seat.unread:
            self.read_from(seat, seat.unread)

    def _next_position(self) -> int:
        self._position += 1
        return self._position

    def deliver(self, seat: Seat, count: int, contents: bytes) -> None:
        """Deliver these messages, which are encoded already; `count` says how many they are."""
        position = self._position + 1
        self._position += count
        seat.delivered += count
        if seat.credit >= count and not seat.queue and self.connection.writable:
            seat.credit -= count
            self._put_delivery(seat, position, contents)
        else:
            self._deliver_later(seat, Queued(position, count, seat.head, contents))

    def _put_delivery(self, seat: Seat, position: int, contents: bytes) -> None:
        if self._delivery_seat is not seat or self._delivery_end != position:
            self._end_delivery()
            self._delivery_seat = seat
            self._delivery_begin = position
        self._delivery_end = self._position + 1
        self._delivery.append(contents)
        self._count_out(contents, len(self._out) + len(self._delivery))

    def _end_delivery(self) -> None:
        seat = self._delivery_seat
        if seat is not None:
            head = seat.head + _encode(self._delivery_begin)
            self._out.append(head + joined_arrays(self._delivery))
            self._delivery_seat = None
            self._delivery = []

    def deliver_kept(self, seat: Seat, number: int, messages: int, contents: bytes) -> None:
        """Deliver messages of a group that keeps them, of which the first has this number."""
        position = self._position + 1
        self._position += messages
        seat.delivered += messages
        head = head_of_kept(seat.group, number - position)
        if seat.credit >= messages and not seat.queue and self.connection.writable:
            seat.credit -= messages
            self._put(head + _encode(position) + contents)
        else:
            self._deliver_later(seat, Queued(position, messages, head, contents))

    def deliver_others(self, seat: Seat, number: int, messages: list[tuple[str, bytes]]) -> None:
        """The same, without those that the member has sent itself, if it does not want them."""
        begin = 0
        for place, message in enumerate(messages):
            if message[0] == seat.process and not seat.own:
                if place > begin:
                    part = packed_one_by_one(messages[begin:place])
                    self.deliver_kept(seat, number + begin, place - begin, part)
                begin = place + 1
        if begin < len(messages):
            part = packed_one_by_one(messages[begin:])
            self.deliver_kept(seat, number + begin, len(messages) - begin, part)

    def read_from(self, seat: Seat, number: int) -> None:
        """Give a member what is kept from this number on."""
        seat.unread = number
        self._reading[seat.group] = seat
        self.read_on(seat)

    def read_on(self, seat: Seat) -> None:
        """Give a member more of what is kept, as far as it has room; when it has come to the end,
        it is given what is delivered from then on."""
        while seat.unread and not seat.queue and self.connection.writable:
            views = seat.later_views
            until = views[0].after if views else None
            most = seat.credit if until is None else min(seat.credit, until + 1 - seat.unread)
            part = self._context.read_kept(seat.group, seat.unread, max(0, most))
            if part is None:
                return
            first, last, messages = part
            if views and until is None:
                views[0] = views[0]._replace(after=last)
            elif until is not None and seat.unread > until:
                self._say_view(seat, views.popleft().change)
            elif seat.unread < first and seat.wants_all:
                seat.unread = first
            elif not first <= seat.unread <= last + 1:
                self.close(not_kept(seat.name, seat.unread, first, last))
                return
            elif seat.unread > last:
                seat.unread = 0
                seat.wants_all = False  # from here on, whatever it is not given is a gap
                del self._reading[seat.group]
            elif messages:
                seat.wants_all = False
                self.deliver_others(seat, seat.unread, messages)
                seat.unread += len(messages)
            else:
                return

    def _say_view(self, seat: Seat, change: ViewChange) -> None:
        change.position = self._next_position()
        self._in_turn(seat, change.position, change)

    def deliver_to_several(self, seats: list[Seat], count: int, contents: bytes) -> None:
        """Deliver messages to several groups of this client: once to all those that can take them
        now, and to each of the others in its turn, lest a slow one hold up the rest."""
        position = self._position + 1
        self._position += count
        now: list[Seat] = []
        later: list[Seat] = []
        for seat in seats:
            seat.delivered += count
            if seat.credit >= count and not seat.queue and self.connection.writable:
                now.append(seat)
            else:
                later.append(seat)
        if now:
            for seat in now:
                seat.credit -= count
            head = head_of([seat.group for seat in now + later], len(now))
            self._put(head + _encode(position) + contents)
        for seat in later:
            others = [other.group for other in seats if other is not seat]
            head = head_of([seat.group, *others], 1)
            self._deliver_later(seat, Queued(position, count, head, contents))

    def _deliver_later(self, seat: Seat, queued: Queued) -> None:
        self._queue(seat, queued)
        if seat.credit > 0 and self.connection.writable:
            self._advance(seat)  # a part of it may go: the client waits, and gives no credit
            self._tell_held()

    def tell_view(self, seat: Seat, change: ViewChange) -> None:
        """Tell a member of a view in its turn, which is also the position that it gets."""
        if not seat.unread:
            self._say_view(seat, change)
            return
        last = self._context.last_kept(seat.group)
        seat.later_views.append(LaterView(last, change))
        if len(seat.later_views) > self._limits.queue:
            self.close(f"this process did not take its messages: {self._limits.queue} views waited")

    def end_seat(self, seat: Seat, reason: str) -> None:
        self._in_turn(seat, self._next_position(), Destroyed(seat.group, reason))
        seat.ended = True
        seat.unread = 0
        self._reading.pop(seat.group, None)
        if not seat.queue:
            self.seats.pop(seat.group, None)

    def leave_seat(self, group: int) -> None:
        seat = self.seats.pop(group, None)
        if seat is None:
            return
        self._reading.pop(group, None)
        seat.unread = 0
        if seat.full:
            seat.full = False
            self._context.queue_changed(self, seat)
        if seat.queue:
            del self._queuing[group]
            if seat.queue[0].position == self._held and self.connection.is_open:
                self._tell_held()

    def say(self, message: AnyFromServer) -> None:
        self._put(_encode(message))

    def refuse(
        self, request: int | None, code: str, reason: str, handle: int | None = None
    ) -> None:
        self.say(Refused(request, code, reason, handle))

    def close(self, reason: str) -> None:
        self.say(Closing(reason))
        self.flush()
        self.connection.close()

    def flush(self) -> None:
        self._end_delivery()
        out = self._out
        if not out:
            return
        self._out = []
        self._out_bytes = 0
        self.connection.send(array_of(out))

    def _put(self, data: bytes) -> None:
        self._end_delivery()
        self._out.append(data)
        self._count_out(data, len(self._out))

    def _count_out(self, data: bytes, number: int) -> None:
        """Something goes out that has this number among what waits for that."""
        self._out_bytes += len(data)
        if number == 1:
            # Not before: everybody is flushed at once if this server finds that it was stopped.
            self._context.round.flush_later(self.flush)
        if self._out_bytes > MOST_OF_A_FRAME:
            self.flush()

    def _in_turn(self, seat: Seat, position: int, message: AnyFromServer) -> None:
        data = _encode(message)
        if seat.queue:
            self._queue(seat, Queued(position, 0, b"", data))
        else:
            self._put(data)

    def _queue(self, seat: Seat, queued: Queued) -> None:
        if not seat.queue:
            self._queuing[seat.group] = seat
        seat.queue.append(queued)
        seat.queued += queued.messages
        seat.queued_bytes += len(queued.data)
        if self._held == 0:
            self._tell_held()
        limits = self._limits
        if not seat.full and (seat.queued > limits.queue or seat.queued_bytes > limits.queue_bytes):
            seat.full = True
            self._context.queue_changed(self, seat)

    def _tell_held(self) -> None:
        """Tell the client where what is held back begins, if that is not what it knows."""
        held = min([seat.queue[0].position for seat in self._queuing.values()], default=0)
        if held != self._held:
            self._held = held
            self.say(Held(held))

    def _credited(self, credit: Credit) -> None:
        seat = self.seats.get(credit.handle)
        if seat is None:
            return  # of a group that the client has just left
        seat.credit = min(seat.credit + credit.messages, self._limits.window)
        if seat.queue:
            self._advance(seat)
            self._tell_held()
        if seat.unread:
            self.read_on(seat)

    def _advance(self, seat: Seat) -> None:
        queue = seat.queue
        while queue and self.connection.writable:
            position, count, head, data = queue[0]
            if count == 0:
                self._put(data)
            elif count <= seat.credit:
                seat.credit -= count
                self._put(head + _encode(position) + data)
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
        if not queue:
            self._queuing.pop(seat.group, None)
            if seat.ended:
                self.seats.pop(seat.group, None)

    def _advance_partly(self, seat: Seat) -> None:
        """Send as much of the first envelope as the credit is good for."""
        position, count, head, data = seat.queue[0]
        credit = seat.credit
        messages = opened(data)
        rest = packed_one_by_one(messages[credit:])
        self._put(head + _encode(position) + packed_one_by_one(messages[:credit]))
        seat.queue[0] = Queued(position + credit, count - credit, head, rest)
        seat.queued -= credit
        seat.queued_bytes -= len(data) - len(rest)
        seat.credit = 0


def _first_position(seat: Seat) -> int:
    return seat.queue[0].position


def not_kept(group: str, number: int, first: int, last: int) -> str:
    """Why a member cannot be given the message of this number."""
    if number > last:
        return (
            f"message {number} of '{group}' is asked for, and the last one has the number {last}; "
            f"join with since={last + 1} at most"
        )
    return (
        f"message {number} of '{group}' is not kept any more, the first that is has the number "
        f"{first}; join with since={first}, or with since=0 for all that are kept"
    )
