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
from typing import Final, final

from flexgroup.core.layer import Layer, Notice, Record, Suspect
from flexgroup.core.message import Message, MessageId, Packet, origin_of, seq_of
from flexgroup.protocols.parts.delivery_log import DeliveryLog
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.timestamps import FAR

UNKNOWN: Final = -1
"""The sn of a message that is not stamped yet."""

WORD_BITS: Final = 8
"""Processes in one bit mask. Python keeps all numbers of so many bits, and makes no new ones."""
WORD: Final = (1 << WORD_BITS) - 1

Place = tuple[int, int, int]
"""The place of a message in the total order: (sn, source, number at the source)."""


@final
class Flush(Packet):
    """These crashed, and this is the highest timestamp I know of each message.

    `highest` is flat: a message and its timestamp, another message and its, ...
    """

    crashed: tuple[int, ...]
    highest: tuple[int, ...]


@final
class Agreed(Packet):
    """These crashed, and this is the highest timestamp that any of the others knows."""

    crashed: tuple[int, ...]
    highest: tuple[int, ...]


@final
class Received(Record):
    """A message that is not delivered yet: in received(i) or, with an sn, in stamped(i)."""

    m: Message
    unheard: list[int]
    """Whose timestamps are missing, as bit masks of WORD_BITS processes each: one mask of all of
    them, which may be a thousand, would be copied with each timestamp."""
    missing: int
    """How many timestamps that is."""
    highest: int
    """The highest timestamp that is known."""
    pending: int = 0
    """Which confirmations about this message are awaited, as the protocol counts them."""
    sn: int = UNKNOWN

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


@final
class DestinationAgreement(Record):
    """One process's part in it. The layer that it belongs to sends and delivers for it."""

    process: int
    size: int
    log: DeliveryLog
    """What this process has delivered, for those who ask after a crash."""
    TS: int = 0
    """The highest timestamp given or seen."""
    crashed: set[int] = set()
    """The processes that are not in correct(i)."""
    received: dict[MessageId, Received] = {}
    """received(i) and stamped(i)."""
    delivered: KnownMessages = KnownMessages()
    foretold: dict[MessageId, int] = {}
    """The highest timestamp of messages that this process has not received yet."""
    settled: bool = True
    """Whether it is agreed which timestamps of the crashed count."""
    flushed: set[int] = set()
    """Whose FLUSH about these crashes has come, at the lowest process that is up."""
    stopped: bool = False
    """Whether others take this process for crashed; then it is."""

    # From a broadcast to its delivery.

    def is_new(self, m: MessageId) -> bool:
        return m not in self.received and not self.delivered.has(m)

    def receive_first(self, m: Message) -> Received:
        """Give m this process's timestamp."""
        others = self.others()
        unheard = [others >> at & WORD for at in range(0, others.bit_length(), WORD_BITS)]
        highest = max(self.TS, self.foretold.pop(m.id, 0))
        known = self.received[m.id] = Received(m, unheard, others.bit_count(), highest)
        return known

    def others(self) -> int:
        """All other processes that are up, as a bit mask."""
        mask = ((1 << self.size) - 1) & ~(1 << self.process)
        for j in self.crashed:
            mask &= ~(1 << j)
        return mask

    def check_deliverable(self, layer: Layer, known: Received) -> None:
        """Stamp a message that has all timestamps, and deliver what that makes deliverable."""
        if known.sn != UNKNOWN or known.pending or known.missing or not self.settled:
            return
        known.sn = known.highest
        for stamped in self.deliverable():
            m = stamped.m
            del self.received[m.id]
            self.delivered.add(m.id)
            self.log.add(m.id, stamped.sn)
            self.log.forget_if_many()
            if self.process in m.destinations:
                layer.deliver(m)

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

    # After a crash.

    def is_news(self, notice: Notice) -> bool:
        """Tell whether somebody is suspected who was not."""
        known = isinstance(notice, Suspect) and notice.process in self.crashed
        return isinstance(notice, Suspect) and not known and not self.stopped

    def exclude(self, crashed: tuple[int, ...]) -> None:
        """Stamp nothing until it is agreed which timestamps of the crashed count."""
        self.settled = False
        self.crashed.update(crashed)
        others = self.others()
        for known in self.received.values():
            known.expect(others)

    def flush(self, layer: Layer) -> None:
        self.flushed.clear()
        lowest = self.lowest()
        crashed = tuple(sorted(self.crashed))
        if lowest != self.process:
            layer.send((lowest,), Flush(crashed, self.highest()))
        else:
            all_others = tuple([j for j in range(self.size) if j != self.process])
            layer.send(all_others, Flush(crashed, ()))
            self.check_flushed(layer)

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
        known.update(self.log.kept)
        return tuple([number for pair in sorted(known.items()) for number in pair])

    def crashes_in(self, layer: Layer, j: int, packet: Flush) -> tuple[int, ...]:
        """The crashes that FLUSH brings news of. Whoever is named in it stops."""
        if not self.is_sound(j, packet):
            raise layer.refuse(j, packet)
        if j in self.crashed:
            return ()
        self.stopped = self.process in packet.crashed
        if self.stopped:
            return ()
        return tuple([k for k in packet.crashed if k not in self.crashed])

    def on_flush(self, layer: Layer, j: int, packet: Flush) -> None:
        """Take note of what j flushes about the crashes that are known here."""
        if j in self.crashed or self.stopped:
            return
        if len(packet.crashed) == len(self.crashed) and self.lowest() == self.process:
            self.raise_to(packet.highest)
            self.flushed.add(j)
            self.check_flushed(layer)

    def check_flushed(self, layer: Layer) -> None:
        if len(self.flushed) + len(self.crashed) + 1 < self.size:
            return
        if self.flushed:
            agreed = Agreed(tuple(sorted(self.crashed)), self.highest())
            layer.send(tuple(sorted(self.flushed)), agreed)
        self.settle(layer)

    def on_agreed(self, layer: Layer, j: int, packet: Agreed) -> None:
        if not self.is_sound(j, packet):
            raise layer.refuse(j, packet)
        if j not in self.crashed and packet.crashed == tuple(sorted(self.crashed)):
            self.raise_to(packet.highest)
            self.settle(layer)

    def is_sound(self, j: int, packet: Flush | Agreed) -> bool:
        """Tell whether a correct process may have sent it."""
        crashed, highest = packet.crashed, packet.highest
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
            elif not self.delivered.has(m):
                self.foretold[m] = max(self.foretold.get(m, 0), ts)

    def settle(self, layer: Layer) -> None:
        self.settled = True
        for m in sorted(self.received):
            known = self.received.get(m)
            if known is not None:
                self.check_deliverable(layer, known)
