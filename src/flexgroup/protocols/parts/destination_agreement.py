"""Destination agreement: messages in the order of timestamps that all processes give them.

Every process gives every message a timestamp of its own and tells it to all; the highest is
the message's *sequence number*, sn(m), and messages are delivered in the order of (sn(m), source,
number at the source): Birman and Joseph 1987. How timestamps are told is what atomic broadcasts
of this kind differ in; this is the rest.

After a crash, some may have timestamps of the crashed that others will never get. So every
process tells the lowest one that is up, with FLUSH, the highest timestamp it knows of each
message, and from then on takes no more from the crashed. The lowest takes them together and
answers AGREED; until then nobody stamps anything. If another crashes meanwhile, that starts again:
what somebody has stamped since is in what that process flushes. A message is kept for this
until all are known to have delivered it; confirmations say how many somebody has.

The lowest sends FLUSH to all, too: who is suspected by one is excluded by all, and stops when it
hears of it. With a perfect detector that only saves time; a false suspicion costs the suspect, and
no more, unless processes suspect each other (docs/protocols/vcube-atomic.md).
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import (
    INTS,
    MESSAGE,
    Fields,
    Message,
    MessageId,
    Packet,
    origin_of,
    seq_of,
)
from flexgroup.protocols.parts.known_messages import is_known, make_known

ALL: Final = 1 << 60
"""More messages than anybody delivers: what a part of the system has in which nobody is left."""

KEPT: Final = 16
"""Delivered messages that are kept without a look whether somebody may still need them."""

Place = tuple[int, int, int]
"""Of a message in the total order: (sn, source, number at the source)."""

UNKNOWN: Final = -1

FAR: Final = 1 << 61
"""Above all messages and timestamps, and small enough to be compared fast."""

WORD_BITS: Final = 8
"""Processes in one bit mask. Python keeps all numbers of so many bits, and makes no new ones."""
WORD: Final = (1 << WORD_BITS) - 1


@final
class Request(Packet):
    """A client, which takes no part in the agreement, asks a destination to broadcast m."""

    __slots__ = ("m",)
    FIELDS: ClassVar[Fields] = (("m", MESSAGE),)

    def __init__(self, m: Message) -> None:
        self.m = m


@final
class Flush(Packet):
    """These crashed, and this is the highest timestamp I know of each message.

    `highest` is flat: a message and its timestamp, another message and its, ...
    """

    __slots__ = ("crashed", "highest")
    FIELDS: ClassVar[Fields] = (("crashed", INTS), ("highest", INTS))

    def __init__(self, crashed: tuple[int, ...], highest: tuple[int, ...]) -> None:
        self.crashed = crashed
        self.highest = highest


@final
class Agreed(Packet):
    """These crashed, and this is the highest timestamp that any of the others knows."""

    __slots__ = ("crashed", "highest")
    FIELDS: ClassVar[Fields] = (("crashed", INTS), ("highest", INTS))

    def __init__(self, crashed: tuple[int, ...], highest: tuple[int, ...]) -> None:
        self.crashed = crashed
        self.highest = highest


@final
class Received(Record):
    """A message that is not delivered yet: in received(i) or, with an sn, in stamped(i)."""

    __slots__ = ("highest", "m", "missing", "pending", "sn", "unheard")

    def __init__(self, m: Message, others: int, highest: int) -> None:
        self.m = m
        self.missing = others.bit_count()
        """How many timestamps are missing."""
        self.unheard = [others >> at & WORD for at in range(0, others.bit_length(), WORD_BITS)]
        """Whose they are, as bit masks of WORD_BITS processes each: one of all of them, which may
        be a thousand, would be copied with each timestamp."""
        self.highest = highest
        """The highest timestamp that is known."""
        self.pending = 0
        """Which confirmations about this message are awaited, as the protocol counts them."""
        self.sn = UNKNOWN

    def copy(self) -> Received:
        twin = Received(self.m, 0, self.highest)
        twin.missing = self.missing
        twin.unheard = self.unheard.copy()
        twin.pending = self.pending
        twin.sn = self.sn
        return twin

    def hear(self, k: int, ts: int) -> None:
        """Take note of the timestamp of process k."""
        word, bit = k // WORD_BITS, 1 << (k % WORD_BITS)
        if word < len(self.unheard) and self.unheard[word] & bit:
            self.unheard[word] ^= bit
            self.missing -= 1
        if ts > self.highest:
            self.highest = ts

    def expect(self, others: int) -> None:
        """Wait for the timestamps of nobody else any more."""
        self.missing = 0
        for word, unheard in enumerate(self.unheard):
            self.unheard[word] = unheard & others >> word * WORD_BITS
            self.missing += self.unheard[word].bit_count()


@mypyc_attr(allow_interpreted_subclasses=True)
class DestinationAgreement(Layer):
    """The base of protocols that spread timestamps; they say how."""

    __slots__ = (
        "TS", "ahead", "count", "counts", "crashed", "delivered", "flushed", "foretold", "last",
        "look_at", "received", "settled", "stopped",
    )  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.TS = 0
        """The highest timestamp given or seen."""
        self.crashed: set[int] = set()
        """The processes that are not in correct(i)."""
        self.received: dict[MessageId, Received] = {}
        """received(i) and stamped(i)."""
        self.last: dict[int, int] = {}
        """How many messages of each source, from its first on, are delivered without a gap."""
        self.ahead: set[MessageId] = set()
        """Delivered while an earlier message of the same source is not."""
        self.foretold: dict[MessageId, int] = {}
        """The highest timestamp of messages that this process has not received yet."""
        self.settled = True
        """It is agreed which timestamps of the crashed count."""
        self.flushed: set[int] = set()
        """At the lowest process that is up: whose FLUSH about these crashes has come."""
        self.stopped = False
        """Others take this process for crashed, so it is."""
        self.delivered: list[tuple[MessageId, int]] = []
        """Delivered messages and their sn, in order, that others may have to be told of."""
        self.count = 0
        """How many messages this process has delivered, those before them included."""
        self.counts: list[int] = []
        """How many messages each part of the system is known to have delivered."""
        self.look_at = KEPT
        """How many delivered messages are kept before the next look at `counts`."""

    # What protocols say.

    def spread(self, m: Message) -> None:
        """Tell all others the timestamp that this process has just given m: TS."""
        raise NotImplementedError

    def take_over(self, crashed: tuple[int, ...]) -> None:
        """Do what the crashed were to do, and wait for them no more."""
        raise NotImplementedError

    # From a broadcast to its delivery.

    def on_cast(self, m: Message) -> None:
        if self.process >= self.size:
            self.send(m.destinations[:1], Request(m))
        elif not self.stopped:
            self.a_broadcast(m)

    def on_request(self, client: int, packet: Request) -> None:
        m = packet.m
        known = m.id in self.received or self.is_delivered(m.id)
        if client < self.size or client != origin_of(m.id) or known or not self.is_for_me(m):
            raise self.refuse(client, packet)
        self.a_broadcast(m)

    def a_broadcast(self, m: Message) -> None:
        self.TS += 1
        known = self.receive_first(m)
        self.spread(m)
        self.check_deliverable(known)

    def receive_first(self, m: Message) -> Received:
        """Give m this process's timestamp."""
        highest = max(self.TS, self.foretold.pop(m.id, 0))
        known = self.received[m.id] = Received(m, self.others(), highest)
        return known

    def others(self) -> int:
        """All other processes that are up, as a bit mask."""
        mask = ((1 << self.size) - 1) & ~(1 << self.process)
        for j in self.crashed:
            mask &= ~(1 << j)
        return mask

    def is_delivered(self, m: MessageId) -> bool:
        return is_known(m, self.last, self.ahead)

    def check_deliverable(self, known: Received) -> None:
        if known.sn != UNKNOWN or known.pending or known.missing or not self.settled:
            return
        known.sn = known.highest
        for stamped in self.deliverable():
            m = stamped.m
            del self.received[m.id]
            self.remember(m.id, stamped.sn)
            if self.process in m.destinations:
                self.deliver(m)

    def deliverable(self) -> list[Received]:
        """The stamped messages that nothing can precede any more, in order.

        What is not stamped yet ends with an sn of at least the highest timestamp known of it;
        what has not been received yet, with one above TS.
        """
        stamped: list[tuple[Place, MessageId]] = []
        bound: Place | None = None
        for m, known in self.received.items():
            place = (known.highest, origin_of(m), seq_of(m))
            if known.sn != UNKNOWN:
                stamped.append((place, m))
            elif bound is None or place < bound:
                bound = place
        stamped.sort()
        return [self.received[m] for place, m in stamped if bound is None or place < bound]

    def remember(self, m: MessageId, sn: int) -> None:
        """That m is delivered."""
        make_known(m, self.last, self.ahead)
        self.delivered.append((m, sn))
        self.count += 1
        if len(self.delivered) >= self.look_at:
            self.forget()

    def forget(self) -> None:
        """What all have delivered: the same messages, for all deliver in one order."""
        stable = min([self.count, *self.counts])
        forgotten = self.count - len(self.delivered)
        if stable > forgotten:
            del self.delivered[: stable - forgotten]
        self.look_at = 2 * len(self.delivered) + KEPT

    # After a crash.

    def on_notice(self, notice: Notice) -> None:
        known = isinstance(notice, Suspect) and notice.process in self.crashed
        if isinstance(notice, Suspect) and not known and not self.stopped:
            self.crash((notice.process,))
        self.pass_on(notice)

    def crash(self, crashed: tuple[int, ...]) -> None:
        self.settled = False
        self.crashed.update(crashed)
        others = self.others()
        for known in self.received.values():
            known.expect(others)
        self.take_over(crashed)
        self.flush()

    def flush(self) -> None:
        self.flushed.clear()
        lowest = self.lowest()
        crashed = tuple(sorted(self.crashed))
        if lowest != self.process:
            self.send((lowest,), Flush(crashed, self.highest()))
        else:
            all_others = tuple([j for j in range(self.size) if j != self.process])
            self.send(all_others, Flush(crashed, ()))
            self.check_flushed()

    def lowest(self) -> int:
        """The process that collects what the others flush."""
        process = 0
        while process in self.crashed:
            process += 1
        return process

    def highest(self) -> tuple[int, ...]:
        """The highest timestamp of each message that is known of at all."""
        known = {m: received.highest for m, received in self.received.items()}
        known.update(self.foretold)
        known.update(self.delivered)
        return tuple([number for pair in sorted(known.items()) for number in pair])

    def on_flush(self, j: int, packet: Flush) -> None:
        if not self.is_flush(j, packet.crashed, packet.highest):
            raise self.refuse(j, packet)
        if j in self.crashed:
            return
        if self.process in packet.crashed:
            self.stopped = True
            return
        news = tuple([k for k in packet.crashed if k not in self.crashed])
        if news:
            self.crash(news)
        if len(packet.crashed) == len(self.crashed) and self.lowest() == self.process:
            self.raise_to(packet.highest)
            self.flushed.add(j)
            self.check_flushed()

    def check_flushed(self) -> None:
        if len(self.flushed) + len(self.crashed) + 1 < self.size:
            return
        if self.flushed:
            agreed = Agreed(tuple(sorted(self.crashed)), self.highest())
            self.send(tuple(sorted(self.flushed)), agreed)
        self.settle()

    def on_agreed(self, j: int, packet: Agreed) -> None:
        if not self.is_flush(j, packet.crashed, packet.highest):
            raise self.refuse(j, packet)
        if j not in self.crashed and packet.crashed == tuple(sorted(self.crashed)):
            self.raise_to(packet.highest)
            self.settle()

    def is_flush(self, j: int, crashed: tuple[int, ...], highest: tuple[int, ...]) -> bool:
        """FLUSH or AGREED such as a correct process sends."""
        if j >= self.size or j == self.process or not crashed or crashed[-1] >= self.size:
            return False
        if j in crashed or len(highest) % 2:
            return False
        return max(highest, default=0) < FAR and all(a < b for a, b in pairwise(crashed))

    def raise_to(self, highest: tuple[int, ...]) -> None:
        for at in range(0, len(highest), 2):
            m, ts = highest[at], highest[at + 1]
            self.TS = max(self.TS, ts)
            known = self.received.get(m)
            if known is not None:
                known.highest = max(known.highest, ts)
            elif not self.is_delivered(m):
                self.foretold[m] = max(self.foretold.get(m, 0), ts)

    def settle(self) -> None:
        self.settled = True
        for m in sorted(self.received):
            known = self.received.get(m)
            if known is not None:
                self.check_deliverable(known)
