"""Reliable multicast over channels that lose, duplicate and reorder: Trans, adapted.

Source: Trans, after Jalote 1994, as section 4.3.1 of the FlexGroup dissertation adapts it, whose
lists and names are used here.

A process numbers its messages. Who receives one puts its origin on the ack-list, and what it sees
to be missing on the nack-list; both ride on its next message or, if it has none, on a null
message. What is asked for goes on the retransmission-list, and from there out again. What is not
acknowledged within a time is sent again.

Assumes nothing of the channels, and that processes fail by stopping. Guarantees that what a
correct process multicasts, or delivers, every correct destination delivers, exactly once, in
no order. Who was suspected once is sent what there is, and no longer waited for.

Differs from the source, so that a message costs the same however many are under way:
- Messages go to subsets. Instead of gaps in the numbers of an origin, a message tells each
  destination how many numbers back the one before it was (`since`).
- Lists are kept as counts, by origin (`Origin`): all up to `have` came; something up to the number
  in the nack-list is missing, and the gaps are found when they are sent.
- Acknowledgements go to the origin (`Sent`). It tells the destinations how far its messages are
  *stable*, had by all, and may be forgotten; the source has no rule for forgetting.
- Who holds a message of another for long passes it round (`Stalled`): the rest may not have it, if
  its origin crashed. In the source, they hear of it from the acknowledgements of others.
- A null message goes only to whom there is something to say: a system at rest is silent.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import Message, MessageId, Packet, message_id, origin_of, seq_of

NULL: Final = "null"
"""The timer for null messages: how long acknowledgements wait for a message to ride on."""
AGAIN: Final = "again"
"""The timer for sending again: how long one waits for acknowledgements."""
TICKS: Final = {NULL: 10, AGAIN: 100}

AT_ONCE: Final = 100
"""How many messages of an origin are passed round at once."""

MOST: Final = 1 << 43
"""A number up to which no process counts."""

Numbers = tuple[int, ...]


@final
@mypyc_attr(acyclic=True)
class Data(Packet):
    """A message, and what its origin had to say to the destinations when it multicast it.

    `seq` is its number at the origin. `since` tells each destination how many numbers back the
    message before it was; 0 for the origin itself. `stable`, `acks` and `nacks` are as in `Null`.
    """

    m: Message
    seq: int
    since: Numbers
    stable: int
    acks: Numbers
    nacks: Numbers

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

    stable: int
    acks: Numbers
    nacks: Numbers


@final
class Have(Packet):
    """I have this message; the answer to whoever sent it and is not its origin."""

    origin: int
    seq: int


class Reliable(Layer):
    __slots__ = ("ack_list", "nack_due", "nack_list", "origins", "received_list",
                 "retransmission_list", "sent", "stalled", "suspects", "timers")  # fmt: skip

    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Null, Have)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # The lists of the source.
        self.received_list: dict[MessageId, Data] = {}
        """What may have to be sent again, own messages too, by origin and number."""
        self.ack_list: set[int] = set()
        """The origins that are owed an acknowledgement."""
        self.nack_list: dict[int, int] = {}
        """The origins of which something is missing, and the highest number known to be."""
        self.retransmission_list: set[tuple[int, MessageId]] = set()
        """The processes that asked for a message, each with the message."""
        # What is ours.
        nothing = [0] * self.size
        self.sent = Sent(nothing, nothing.copy(), nothing.copy())
        """What this process multicast, and how much of it the others have."""
        self.origins: dict[int, Origin] = {}
        """What came from each other process."""
        self.nack_due: set[int] = set()
        """The origins on the nack-list that are to be asked for what is missing."""
        self.stalled = Stalled()
        """What is held for long, perhaps because its origin crashed."""
        self.suspects: set[int] = set()
        self.timers: set[str] = set()

    # Multicast: what there is to acknowledge and to ask for rides on the message.

    def on_cast(self, m: Message) -> None:
        sent = self.sent
        sent.seq += 1
        others: list[int] = []
        since: list[int] = []
        acks: Numbers = ()
        nacks: Numbers = ()
        for d in m.destinations:
            if d == self.process:
                since.append(0)
                continue
            others.append(d)
            since.append(sent.seq - sent.last[d])
            sent.last[d] = sent.seq
            sent.told[d] = sent.stable
            if d in self.ack_list:
                self.ack_list.remove(d)
                acks += (d, seq_of(self.origins[d].have))
            if d in self.nack_due:
                self.nack_due.remove(d)
                nacks += self.gaps(d)
        if others:
            packet = Data(m, sent.seq, tuple(since), sent.stable, acks, nacks)
            self.received_list[message_id(self.process, sent.seq)] = packet
            self.send(tuple(others), packet)
            self.later(AGAIN)
        else:
            self.advance_stable()
        if len(others) < len(m.destinations):
            self.deliver(m)

    # Box 4.2: a message arrives, with acknowledgements and negative ones.

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data):
            m = packet.m
            origin, since = origin_of(m.id), packet.since_at(self.process)
            sound = self.is_for_me(m) and self.is_sound(origin, packet.acks, packet.nacks)
            if not since or not sound or (sender != origin and sender not in m.destinations):
                raise self.refuse(sender, packet)
            self.on_message(origin, packet, since)
            if sender != origin:
                self.send((sender,), Have(origin, packet.seq))
        elif isinstance(packet, Null) and self.is_sound(sender, packet.acks, packet.nacks):
            self.on_stable(self.origin(sender), packet.stable)
            self.on_acks(sender, packet.acks)
            self.on_nacks(sender, packet.nacks)
        elif isinstance(packet, Have) and packet.origin != self.process:
            self.on_have(sender, message_id(packet.origin, packet.seq))
        else:
            raise self.refuse(sender, packet)

    def is_sound(self, sender: int, acks: Numbers, nacks: Numbers) -> bool:
        """Tell whether another member may have said so: it acknowledges no more than was sent."""
        if sender >= self.size or sender == self.process:
            return False
        for place in range(0, len(acks) - 1, 2):
            if acks[place] == self.process and acks[place + 1] > self.sent.last[sender]:
                return False
        return len(acks) % 2 == 0 and are_gaps(nacks)

    def on_message(self, origin: int, packet: Data, since: int) -> None:
        identity = message_id(origin, packet.seq)
        before = message_id(origin, packet.seq - since)
        self.ack_list.add(origin)
        self.later(NULL)
        received = self.origin(origin)
        if before < received.have or (received.after and before in received.after):
            return
        self.received_list[identity] = packet
        self.later(AGAIN)
        self.deliver(packet.m)
        if before == received.have:
            received.close_gap(identity)
            if self.nack_list:
                self.check_nack_list(origin, received)
        else:
            received.after[before] = identity
            if packet.seq - since > self.nack_list.get(origin, 0):
                self.nack_list[origin] = packet.seq - since
                self.ask(origin)
        self.on_stable(received, packet.stable)
        self.on_acks(origin, packet.acks)
        self.on_nacks(origin, packet.nacks)

    def origin(self, process: int) -> Origin:
        found = self.origins.get(process)
        if found is None:
            found = self.origins[process] = Origin(process, process)
        return found

    def check_nack_list(self, origin: int, received: Origin) -> None:
        if origin in self.nack_list and self.nack_list[origin] <= seq_of(received.have):
            del self.nack_list[origin]
            self.nack_due.discard(origin)

    def ask(self, origin: int) -> None:
        self.nack_due.add(origin)
        self.later(NULL)

    def gaps(self, origin: int) -> Numbers:
        return self.origins[origin].gaps(origin, self.nack_list.get(origin, 0))

    def on_acks(self, sender: int, acks: Numbers) -> None:
        sent = self.sent
        for place in range(0, len(acks), 2):
            if acks[place] == self.process and acks[place + 1] > sent.acked[sender]:
                waited_for = sent.acked[sender] <= sent.stable
                sent.acked[sender] = acks[place + 1]
                if waited_for:
                    self.advance_stable()

    def on_nacks(self, sender: int, nacks: Numbers) -> None:
        """The origin answers, or all who have the message, if they suspect the origin."""
        for place in range(0, len(nacks), 3):
            origin, low, high = nacks[place], nacks[place + 1], nacks[place + 2]
            if origin == self.process:
                # By their numbers: many may be under way, and many gaps be asked for.
                numbers = range(max(low, self.sent.stable) + 1, min(high, self.sent.seq) + 1)
                asked_for = [message_id(origin, seq) for seq in numbers]
            elif origin in self.suspects:
                asked_for = [m for m in self.received_of(origin) if low < seq_of(m) <= high]
            else:
                continue
            for identity in asked_for:
                packet = self.received_list.get(identity)
                if packet is not None and sender in packet.m.destinations:
                    self.retransmission_list.add((sender, identity))
                    self.later(NULL)

    def received_of(self, origin: int) -> list[MessageId]:
        return [m for m in sorted(self.received_list) if origin_of(m) == origin]

    # Null messages, and what is sent again.

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
            own = origin_of(identity) == self.process
            had = own and self.sent.acked[who] >= seq_of(identity)
            if packet is not None and not had:
                self.send((who,), packet)
        self.retransmission_list.clear()

    def speak(self) -> None:
        """Send null messages to whom there is something to say."""
        sent = self.sent
        orphans = self.nack_due & self.suspects
        everyone = range(self.size if orphans else 0)
        owed = {*self.ack_list, *self.nack_due, *sent.unaware(), *everyone} - self.suspects
        for to in sorted(owed - {self.process}):
            acks = (to, seq_of(self.origins[to].have)) if to in self.ack_list else ()
            asked = {to, *orphans} & self.nack_due
            nacks = [number for origin in sorted(asked) for number in self.gaps(origin)]
            self.send((to,), Null(sent.stable, acks, tuple(nacks)))
            sent.told[to] = sent.stable
        self.ack_list.clear()
        self.nack_due.clear()

    def send_again(self) -> None:
        """The last message is enough: from it, a destination sees what it lacks before it."""
        sent = self.sent
        for d in range(self.size):
            packet = self.received_list.get(message_id(self.process, sent.last[d]))
            if packet is not None and sent.acked[d] < sent.last[d] and self.waits_for(d):
                self.send((d,), packet)
        for origin in self.nack_list:
            if self.waits_for(origin):
                self.ask(origin)

    # Ours: an origin finds out what is stable, and tells the destinations, which forget it.

    def advance_stable(self) -> None:
        sent = self.sent
        while sent.stable < sent.seq:
            identity = message_id(self.process, sent.stable + 1)
            packet = self.received_list.get(identity)
            if packet is not None:
                for d in packet.m.destinations:
                    if sent.acked[d] <= sent.stable and self.waits_for(d):
                        return
                del self.received_list[identity]
            sent.stable += 1
            self.later(NULL)

    def waits_for(self, process: int) -> bool:
        return process != self.process and process not in self.suspects

    def on_stable(self, received: Origin, stable: int) -> None:
        if stable > seq_of(received.released):
            received.release(stable, self.received_list, self.stalled.had_by)

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.suspects.add(notice.process)
            self.advance_stable()
            if notice.process in self.nack_list:
                self.ask(notice.process)
        self.pass_on(notice)

    # Ours: who holds a message of another for long passes it round.

    def pass_round(self) -> None:
        before = self.stalled.released
        self.stalled.released = {}
        for process in sorted(self.origins):
            origin = self.origins[process]
            if origin.held or process in self.nack_list:
                self.stalled.released[process] = origin.released
                if process in self.suspects or before.get(process) == origin.released:
                    self.pass_round_messages_of(process)

    def pass_round_messages_of(self, origin: int) -> None:
        had_by = self.stalled.had_by
        for identity in self.received_of(origin)[:AT_ONCE]:
            packet = self.received_list[identity]
            having = (origin, *had_by.get(identity, ()))
            lacking = [d for d in packet.m.destinations if d not in having and self.waits_for(d)]
            if lacking:
                self.send(tuple(lacking), packet)
            else:
                del self.received_list[identity]
                had_by.pop(identity, None)
        self.origins[origin].release(0, self.received_list, had_by)

    def on_have(self, sender: int, identity: MessageId) -> None:
        if identity in self.received_list:
            had_by = self.stalled.had_by
            had_by[identity] = (*had_by.get(identity, ()), sender)


def are_gaps(nacks: Numbers) -> bool:
    """Tell whether these are triples whose ranges do not overlap, so that no message is asked for
    more than once."""
    if len(nacks) % 3:
        return False
    before: tuple[int, int] = (-1, 0)
    for place in range(0, len(nacks), 3):
        origin, low, high = nacks[place], nacks[place + 1], nacks[place + 2]
        if (origin, low) < before or high <= low:
            return False
        before = (origin, high)
    return True


@final
class Sent(Record):
    """What this process multicast; the lists have an entry for each member."""

    last: list[int]
    """The number of the last message to each."""
    acked: list[int]
    """The number up to which each has acknowledged."""
    told: list[int]
    """The value of `stable` that was last sent to each."""
    seq: int = 0
    """The number of the last message."""
    stable: int = 0
    """The number up to which all have what was sent to them."""

    def unaware(self) -> list[int]:
        """Those that do not know how far what they got is stable."""
        return [d for d, told in enumerate(self.told) if told < min(self.stable, self.last[d])]


@final
class Origin(Record):
    """What came from another process."""

    have: MessageId
    """The last message before the first gap."""
    released: MessageId
    """The last message that was stable and is forgotten."""
    held: list[MessageId] = []
    """The messages between, in order."""
    after: dict[MessageId, MessageId] = {}
    """The next message to this process, for each message that came beyond a gap."""

    def close_gap(self, have: MessageId) -> None:
        self.held.append(have)
        while self.after and have in self.after:
            have = self.after.pop(have)
            self.held.append(have)
        self.have = have

    def gaps(self, origin: int, upto: int) -> Numbers:
        """What is missing up to a number, as in the field `nacks`."""
        found: list[int] = []
        have = self.have
        early = [before for before in self.after if before > have]
        for before in [*sorted(early), message_id(origin, upto)]:
            if before > have:
                found += (origin, seq_of(have), seq_of(before))
            have = max(have, self.after.get(before, have))
        return tuple(found)

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


@final
class Stalled(Record):
    """What is not forgotten for long, because nobody says that it is stable."""

    released: dict[int, MessageId] = {}
    """`Origin.released` of those that had something held when the timer AGAIN last ran out."""
    had_by: dict[MessageId, tuple[int, ...]] = {}
    """Who said to have a message that was passed round."""
