"""Reliable multicast over channels that lose, duplicate and reorder: Trans, adapted.

Source: Trans, after Jalote 1994, as section 4.3.1 of the FlexGroup dissertation adapts it.

Assumes nothing of the channels, and that processes fail by stopping. Guarantees that what a
correct process multicasts, or delivers, every correct destination delivers, exactly once, in
no order. Who was suspected once is sent what there is, and no longer waited for.

Differs from the source, so that a message costs the same however many are under way:
- Messages go to subsets. Instead of gaps in the numbers of an origin, a message tells each
  destination how many numbers back the one before it was (`since`).
- Lists are kept as counts, by origin: all up to `have` came; something up to the number in
  the nack-list is missing, and the gaps are found when they are sent.
- Acknowledgements go to the origin. It tells the destinations how far its messages are
  *stable*, had by all, and may be forgotten; the source has no rule for forgetting.
- Who holds a message of another for long passes it round: the rest may not have it, if its
  origin crashed. In the source, they hear of it from the acknowledgements of others.
- A null message goes only to whom there is something to say: a system at rest is silent.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import (
    INT,
    INTS,
    MESSAGE,
    Fields,
    Message,
    MessageId,
    Packet,
    message_id,
    origin_of,
    seq_of,
)

NULL: Final = "null"
AGAIN: Final = "again"
TICKS: Final = {NULL: 10, AGAIN: 100}
"""How long acknowledgements wait for a message to ride on; how long one waits for them."""

AT_ONCE: Final = 100  # held messages of an origin that are passed round

Numbers = tuple[int, ...]

MOST: Final = 1 << 43
"""No process counts that far."""


@final
@mypyc_attr(acyclic=True)
class Data(Packet):
    """A message, and what its origin had to say to the destinations when it multicast it.

    `seq` is its number at the origin. `since` tells each destination how many numbers back the
    message before it was; 0 for the origin itself. `stable`, `acks` and `nacks` as in Null.
    """

    __slots__ = ("acks", "m", "nacks", "seq", "since", "stable")
    FIELDS: ClassVar[Fields] = (
        ("m", MESSAGE),
        ("seq", INT),
        ("since", INTS),
        ("stable", INT),
        ("acks", INTS),
        ("nacks", INTS),
    )

    def __init__(
        self, m: Message, seq: int, since: Numbers, stable: int, acks: Numbers, nacks: Numbers
    ) -> None:
        self.m = m
        self.seq = seq
        self.since = since
        self.stable = stable
        self.acks = acks
        self.nacks = nacks

    def since_at(self, process: int) -> int:
        """How many numbers back the message before it to this process was; 0 for nonsense."""
        destinations = self.m.destinations
        if len(self.since) != len(destinations):
            return 0
        for place, destination in enumerate(destinations):
            if destination == process:
                since = self.since[place]
                return since if since <= self.seq < MOST else 0
        return 0


@final
class Null(Packet):
    """The null message.

    `stable`: all destinations have the sender's messages up to this number. `acks`, pairs of
    origin and number: the sender has all that this origin sent it, up to there. `nacks`,
    triples of origin, low and high: it lacks what lies above low, up to high.
    """

    __slots__ = ("acks", "nacks", "stable")
    FIELDS: ClassVar[Fields] = (("stable", INT), ("acks", INTS), ("nacks", INTS))

    def __init__(self, stable: int, acks: Numbers, nacks: Numbers) -> None:
        self.stable = stable
        self.acks = acks
        self.nacks = nacks


@final
class Have(Packet):
    """I have this message; the answer to whoever sent it and is not its origin."""

    __slots__ = ("origin", "seq")
    FIELDS: ClassVar[Fields] = (("origin", INT), ("seq", INT))

    def __init__(self, origin: int, seq: int) -> None:
        self.origin = origin
        self.seq = seq


@final
class Origin(Record):
    """What came from an origin, up to the first gap."""

    __slots__ = ("have", "held", "released")

    def __init__(self, origin: int) -> None:
        self.have: MessageId = origin
        """The last message before the first gap."""
        self.released: MessageId = origin
        """The last message that was stable and is forgotten."""
        self.held: list[MessageId] = []
        """The messages between, in order."""

    @staticmethod
    def entry(origins: dict[int, Origin], origin: int) -> Origin:
        found = origins.get(origin)
        if found is None:
            found = origins[origin] = Origin(origin)
        return found

    def copy(self) -> Origin:
        twin = Origin(self.have)
        twin.released = self.released
        twin.held = list(self.held)
        return twin

    def release(
        self,
        stable: int,
        received_list: dict[MessageId, Data],
        had_by: dict[MessageId, tuple[int, ...]],
    ) -> None:
        """Forget what is stable or not in the received-list, up to the first that is neither."""
        count = 0
        for identity in self.held:
            if identity in received_list:
                if seq_of(identity) > stable:
                    break
                del received_list[identity]
                if had_by:
                    had_by.pop(identity, None)
            self.released = identity
            count += 1
        if count:
            del self.held[:count]


def makes_sense(packet: Data | Null, sender: int, process: int, sent: list[int]) -> bool:
    """It is a member's, and acknowledges to this process no more than was sent."""
    acks = packet.acks
    if sender >= len(sent) or sender == process:
        return False
    for place in range(0, len(acks) - 1, 2):
        if acks[place] == process and acks[place + 1] > sent[sender]:
            return False
    return len(acks) % 2 == 0 and len(packet.nacks) % 3 == 0


def gaps(origin: int, have: MessageId, after: dict[MessageId, MessageId], upto: int) -> Numbers:
    """What is missing of an origin's messages up to a number, as in the field `nacks`.

    All up to `have` came, and some beyond; `after` maps messages to what follows them.
    """
    found: list[int] = []
    early = [before for before in after if before > have and origin_of(before) == origin]
    for before in [*sorted(early), message_id(origin, upto)]:
        if before > have:
            found += (origin, seq_of(have), seq_of(before))
        have = max(have, after.get(before, have))
    return tuple(found)


def of_origin(received: dict[MessageId, Data], origin: int) -> list[MessageId]:
    return [identity for identity in sorted(received) if origin_of(identity) == origin]


class Reliable(Layer):
    __slots__ = ("ack_list", "acked", "after", "had_by", "last", "nack_due", "nack_list", "origins",
                 "received_list", "retransmission_list", "seq", "stable", "stalled", "suspects",
                 "timers", "told")  # fmt: skip

    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Null, Have)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.received_list: dict[MessageId, Data] = {}
        """What may have to be sent again, own messages too, by origin and number."""
        self.ack_list: set[int] = set()
        """The origins that are owed an acknowledgement."""
        self.nack_list: dict[int, int] = {}
        """The origins of which something is missing, and the highest number known to be."""
        self.nack_due: set[int] = set()
        """Those of them that are to be asked for it."""
        self.retransmission_list: set[tuple[int, MessageId]] = set()
        """Who asked for what."""
        self.suspects: set[int] = set()
        self.timers: set[str] = set()
        # As an origin; lists have an entry for each member.
        self.seq = 0
        self.stable = 0
        """Own messages up to this number are had by all."""
        self.last = [0] * self.size
        """The number of the last message to each."""
        self.acked = [0] * self.size
        """Up to which number each has acknowledged."""
        self.told = [0] * self.size
        """The value of `stable` that was last sent to each."""
        # As a destination.
        self.origins: dict[int, Origin] = {}
        self.after: dict[MessageId, MessageId] = {}
        """The next message of the same origin to this process, if that came beyond a gap."""
        self.stalled: dict[int, MessageId] = {}
        """`released` where something was held when the timer AGAIN last ran out."""
        self.had_by: dict[MessageId, tuple[int, ...]] = {}
        """Of messages that are held for long, who said to have them."""

    def on_cast(self, m: Message) -> None:
        self.seq += 1
        others: list[int] = []
        since: list[int] = []
        acks: Numbers = ()
        nacks: Numbers = ()
        for d in m.destinations:
            if d == self.process:
                since.append(0)
                continue
            others.append(d)
            since.append(self.seq - self.last[d])
            self.last[d] = self.seq
            self.told[d] = self.stable
            if d in self.ack_list:
                self.ack_list.remove(d)
                acks += (d, seq_of(self.origins[d].have))
            if d in self.nack_due:
                self.nack_due.remove(d)
                nacks += self.gaps(d)
        if others:
            packet = Data(m, self.seq, tuple(since), self.stable, acks, nacks)
            self.received_list[message_id(self.process, self.seq)] = packet
            self.send(tuple(others), packet)
            self.later(AGAIN)
        else:
            self.advance_stable()
        if len(others) < len(m.destinations):
            self.deliver(m)

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data):
            m = packet.m
            origin, since = origin_of(m.id), packet.since_at(self.process)
            sound = self.is_for_me(m) and makes_sense(packet, origin, self.process, self.last)
            if not since or not sound or (sender != origin and sender not in m.destinations):
                raise self.refuse(sender, packet)
            self.on_message(origin, packet, since)
            if sender != origin:
                self.send((sender,), Have(origin, packet.seq))
        elif isinstance(packet, Null) and makes_sense(packet, sender, self.process, self.last):
            self.on_stable(Origin.entry(self.origins, sender), packet.stable)
            self.on_acks(sender, packet.acks)
            self.on_nacks(sender, packet.nacks)
        elif isinstance(packet, Have) and packet.origin != self.process:
            self.on_have(sender, message_id(packet.origin, packet.seq))
        else:
            raise self.refuse(sender, packet)

    # Box 4.2: a message arrives, with acknowledgements and negative ones.

    def on_message(self, origin: int, packet: Data, since: int) -> None:
        identity = message_id(origin, packet.seq)
        before = message_id(origin, packet.seq - since)
        self.ack_list.add(origin)
        self.later(NULL)
        received = Origin.entry(self.origins, origin)
        if before < received.have or (self.after and before in self.after):
            return
        self.received_list[identity] = packet
        self.later(AGAIN)
        self.deliver(packet.m)
        if before == received.have:
            self.close_gap(origin, received, identity)
        else:
            self.after[before] = identity
            if packet.seq - since > self.nack_list.get(origin, 0):
                self.nack_list[origin] = packet.seq - since
                self.ask(origin)
        self.on_stable(received, packet.stable)
        self.on_acks(origin, packet.acks)
        self.on_nacks(origin, packet.nacks)

    def close_gap(self, origin: int, received: Origin, have: MessageId) -> None:
        received.held.append(have)
        while self.after and have in self.after:
            have = self.after.pop(have)
            received.held.append(have)
        received.have = have
        if origin in self.nack_list and self.nack_list[origin] <= seq_of(have):
            del self.nack_list[origin]
            self.nack_due.discard(origin)

    def ask(self, origin: int) -> None:
        self.nack_due.add(origin)
        self.later(NULL)

    def gaps(self, origin: int) -> Numbers:
        return gaps(origin, self.origins[origin].have, self.after, self.nack_list.get(origin, 0))

    def on_acks(self, sender: int, acks: Numbers) -> None:
        for place in range(0, len(acks), 2):
            if acks[place] == self.process and acks[place + 1] > self.acked[sender]:
                waited_for = self.acked[sender] <= self.stable
                self.acked[sender] = acks[place + 1]
                if waited_for:
                    self.advance_stable()

    def on_nacks(self, sender: int, nacks: Numbers) -> None:
        """The origin answers, or all who have the message, if they suspect the origin."""
        for place in range(0, len(nacks), 3):
            origin, low, high = nacks[place], nacks[place + 1], nacks[place + 2]
            if origin == self.process or origin in self.suspects:
                for identity in of_origin(self.received_list, origin):
                    to = self.received_list[identity].m.destinations
                    if low < seq_of(identity) <= high and sender in to:
                        self.retransmission_list.add((sender, identity))
                        self.later(NULL)

    def advance_stable(self) -> None:
        while self.stable < self.seq:
            identity = message_id(self.process, self.stable + 1)
            packet = self.received_list.get(identity)
            if packet is not None:
                for d in packet.m.destinations:
                    if self.acked[d] <= self.stable and self.waits_for(d):
                        return
                del self.received_list[identity]
            self.stable += 1
            self.later(NULL)

    def waits_for(self, process: int) -> bool:
        return process != self.process and process not in self.suspects

    def on_stable(self, received: Origin, stable: int) -> None:
        if stable > seq_of(received.released):
            received.release(stable, self.received_list, self.had_by)

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.suspects.add(notice.process)
            self.advance_stable()
            if notice.process in self.nack_list:
                self.ask(notice.process)
        self.pass_on(notice)

    def later(self, name: str) -> None:
        if name not in self.timers:
            self.timers.add(name)
            self.set_timer(name, TICKS[name])

    def on_timer(self, name: str) -> None:
        self.timers.discard(name)
        if name == NULL:
            self.retransmit()
            self.speak()
        else:
            self.advance_stable()
            self.send_again()
            self.pass_round()
            if self.received_list or self.nack_due:
                self.later(AGAIN)

    def retransmit(self) -> None:
        for who, identity in sorted(self.retransmission_list):
            packet = self.received_list.get(identity)
            had = origin_of(identity) == self.process and self.acked[who] >= seq_of(identity)
            if packet is not None and not had:
                self.send((who,), packet)
        self.retransmission_list.clear()

    def speak(self) -> None:
        """Null messages, to whom there is something to say."""
        unaware = [d for d in range(self.size) if self.told[d] < min(self.stable, self.last[d])]
        orphans = self.nack_due & self.suspects
        everyone = range(self.size if orphans else 0)
        owed = {*self.ack_list, *self.nack_due, *unaware, *everyone} - self.suspects
        for to in sorted(owed - {self.process}):
            acks = (to, seq_of(self.origins[to].have)) if to in self.ack_list else ()
            asked = {to, *orphans} & self.nack_due
            nacks = [number for origin in sorted(asked) for number in self.gaps(origin)]
            self.send((to,), Null(self.stable, acks, tuple(nacks)))
            self.told[to] = self.stable
        self.ack_list.clear()
        self.nack_due.clear()

    def send_again(self) -> None:
        """The last message is enough: from it, a destination sees what it lacks before it."""
        for d in range(self.size):
            packet = self.received_list.get(message_id(self.process, self.last[d]))
            if packet is not None and self.acked[d] < self.last[d] and self.waits_for(d):
                self.send((d,), packet)
        for origin in self.nack_list:
            if self.waits_for(origin):
                self.ask(origin)

    def pass_round(self) -> None:
        """What is held for long, perhaps because its origin crashed."""
        stalled: dict[int, MessageId] = {}
        for origin in sorted(self.origins):
            released = self.origins[origin].released
            if self.origins[origin].held or origin in self.nack_list:
                stalled[origin] = released
                if origin in self.suspects or self.stalled.get(origin) == released:
                    self.pass_round_messages_of(origin)
        self.stalled = stalled

    def pass_round_messages_of(self, origin: int) -> None:
        for identity in of_origin(self.received_list, origin)[:AT_ONCE]:
            packet = self.received_list[identity]
            had_by = (origin, *self.had_by.get(identity, ()))
            lacking = [d for d in packet.m.destinations if d not in had_by and self.waits_for(d)]
            if lacking:
                self.send(tuple(lacking), packet)
            else:
                del self.received_list[identity]
                self.had_by.pop(identity, None)
        self.origins[origin].release(0, self.received_list, self.had_by)

    def on_have(self, sender: int, identity: MessageId) -> None:
        if identity in self.received_list:
            self.had_by[identity] = (*self.had_by.get(identity, ()), sender)
