"""RamCast: Skeen's timestamps, agreed on by leaders that write into the memory of others.

Source: L. H. Le, M. Eslahi-Kelorazi, P. Coelho and F. Pedone, "RamCast: RDMA-based atomic
multicast", Middleware 2021, as Louzada 2024, section 3.2.2, tells it and as the authors' prototype
does it. A process writes m into the memory of all destinations. The leader of each destination
group gives m a timestamp, and writes it into the memory of its followers, which have permitted
nobody else to write there, and of the other groups. Who has the timestamps of all groups for m
acknowledges them by writing to all destinations. What majorities of all groups have acknowledged is
the same for all: m is delivered in the order of the highest of its timestamps. A new leader asks
for the permission to write, by which that of the old one ends; it reads what a majority has, and
makes that the state of its group.

Assumes protected memory and a leader oracle below (`leader protected-memory ramcast`), reliable
channels in order, and groups of 2f + 1 replicas of which f may crash without recovery. The oracle
may err: in the end, those that crashed are suspected and nobody else is. Guarantees total order and
uniform agreement whatever is suspected, and that what a correct process multicasts is delivered
once the oracle errs no more. Genuine.

What differs from the publication is on the page of this protocol. In short: leaders write their
timestamps to all destinations themselves, since a leader that delivers what its group cannot know
breaks the order when it crashes; timestamps travel with their message; and recovery, which the
prototype leaves open, is that of the ballots of White-Box atomic multicast (Gotsman, Lefort and
Chockler 2019) with permissions in the place of promises.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, WriteCompleted
from flexgroup.core.message import Message, MessageId, Packet, Stamp, clock_of, process_of, stamp
from flexgroup.core.replicas import group_of
from flexgroup.protocols.parts import new_leader
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.new_leader import Ask, Deny, Grant, LatestState, NewState
from flexgroup.protocols.parts.permit import Permit
from flexgroup.protocols.parts.timestamp_vectors import (
    MOST_TS,
    GroupTimestamps,
    Vector,
    are_timestamps,
    flat,
    groups_of,
    is_majority,
    owns,
    reports,
)


@final
class Multicast(Packet):
    """A process writes m into the memory of the destinations."""

    m: Message


@final
class Propose(Packet):
    """The leader of this group gives m this timestamp."""

    PROTECTED: ClassVar[bool] = True

    m: Message
    ballot: Stamp
    ts: int


@final
class Timestamp(Packet):
    """The leader of another destination group gives m this timestamp."""

    m: Message
    ballot: Stamp
    ts: int


@final
class Ack(Packet):
    """I have m with these timestamps of all its groups."""

    m: MessageId
    V: Vector


class RamCast(Layer):
    __slots__ = ("ballot", "clock", "done", "floor", "forgotten", "group", "leading", "pending",
                 "synced", "trusted")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.LEADER, Guarantee.PROTECTED_MEMORY}
    )
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (
        Multicast, Propose, Timestamp, Ack, Ask, Grant, Deny, NewState, Permit
    )  # fmt: skip
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.group = group_of(context.replicas, context.process)
        lowest = self.group[0] if self.group else 0
        self.clock = 0
        """The highest timestamp that it knows of."""
        self.pending: dict[MessageId, GroupTimestamps] = {}
        """What is not delivered."""
        # What is not in the paper.
        self.ballot: Stamp = stamp(0, lowest)
        """The owner of this ballot, and of none below it, may write into the memory here."""
        self.synced: Stamp = self.ballot
        """The owner of this ballot gave the state that the group's timestamps here are part of."""
        self.floor = 0
        """The leader that did so proposes only higher timestamps, besides those that are here."""
        self.done: dict[MessageId, GroupTimestamps] = {}
        """What is delivered, and not acknowledged by all destinations."""
        self.forgotten = KnownMessages()
        """What is delivered, and all destinations have acknowledged the same timestamps."""
        self.leading = LatestState(is_ready=True) if self.process == lowest else None
        """What it read, if it leads or wants to."""
        self.trusted = self.group
        """Who is not suspected, in the eyes of the oracle; the first should lead if nobody does."""

    def on_start(self) -> None:
        if self.group:
            self.permit(self.group[0])

    def permit(self, writer: int) -> None:
        self.send((self.process,), Permit(writer))

    def write_to(self, to: tuple[int, ...], packet: Packet) -> None:
        """Write into the memory of these, as far as they are others."""
        others = tuple([j for j in to if j != self.process])
        if others:
            self.send(others, packet)

    # A process writes m into the memory of all destinations.

    def on_cast(self, m: Message) -> None:
        self.write_to(m.destinations, Multicast(m))
        if self.process in m.destinations:
            self.check(self.remember(m))

    def entry_of(self, m: MessageId) -> GroupTimestamps | None:
        """What is known of a message, unless there is nothing left to do about it."""
        if self.forgotten.has(m):
            return None
        entry = self.pending.get(m) or self.done.get(m)
        if entry is None:
            entry = self.pending[m] = GroupTimestamps()
        return entry

    def remember(self, m: Message) -> GroupTimestamps | None:
        entry = self.entry_of(m.id)
        if entry is not None and entry.m is None:
            entry.m = m
            self.propose(m, entry)
        return entry

    # The leader of each destination group gives m a timestamp.

    def propose(self, m: Message, entry: GroupTimestamps) -> None:
        if self.leading is None or not self.leading.is_ready or self.group[0] in entry.ts:
            return
        self.clock += 1
        self.write_to(self.group, Propose(m, self.ballot, self.clock))
        self.give(m, entry, self.clock)
        self.floor = self.clock
        if m.destinations == self.group:
            # They know that it has all timestamps of m.
            self.acknowledge(m, entry, self.group)

    def give(self, m: Message, entry: GroupTimestamps, ts: int) -> None:
        """Take a timestamp of this group for m in the ballot here, and tell the other groups."""
        entry.ts[self.group[0]] = (self.ballot, ts)
        if self.leading is not None:
            others = tuple([j for j in m.destinations if j not in self.group])
            self.write_to(others, Timestamp(m, self.ballot, ts))

    def on_propose(self, sender: int, packet: Propose) -> None:
        entry = self.remember(packet.m)
        if entry is None:
            return
        entry.ts[self.group[0]] = (packet.ballot, packet.ts)
        self.clock = max(self.clock, packet.ts)
        self.floor = max(self.floor, packet.ts)
        if packet.m.destinations == self.group:
            entry.add_ack(sender, self.vector(packet.m, entry))
            # The leader learns from the completion that this process has m with its timestamp.
            self.acknowledge(packet.m, entry, (sender,))
        self.check(entry)

    def on_timestamp(self, sender: int, packet: Timestamp) -> None:
        entry = self.remember(packet.m)
        if entry is None:
            return
        lowest = group_of(self.context.replicas, sender)[0]
        if lowest not in entry.ts or packet.ballot > entry.ts[lowest][0]:
            entry.ts[lowest] = (packet.ballot, packet.ts)
        self.clock = max(self.clock, packet.ts)
        self.check(entry)

    # Who has all timestamps of m acknowledges them to all destinations.

    def vector(self, m: Message, entry: GroupTimestamps) -> Vector:
        return entry.vector(groups_of(self.context.replicas, m))

    def acknowledge(
        self, m: Message, entry: GroupTimestamps, silently: tuple[int, ...] = ()
    ) -> None:
        """Acknowledge the timestamps of m, if that of this group is its leader's."""
        V = self.vector(m, entry)
        if V and entry.acked != V and entry.ts[self.group[0]][0] == self.ballot == self.synced:
            entry.acked = V
            entry.add_ack(self.process, V)
            self.write_to(tuple([j for j in m.destinations if j not in silently]), Ack(m.id, V))
            self.learn_floor(self.process, V)

    def on_ack(self, sender: int, packet: Ack) -> None:
        entry = self.entry_of(packet.m)
        if entry is not None:
            entry.add_ack(sender, packet.V)
            self.learn_floor(sender, packet.V)
            self.check(entry)

    def learn_floor(self, sender: int, V: Vector) -> None:
        """The leader has seen these timestamps, and all that it proposed before has landed here.

        That is not so if it has lost the permission: then what it proposed may have failed here.
        """
        if sender == process_of(self.synced) and self.ballot == self.synced:
            for at in range(0, len(V), 3):
                if stamp(V[at], V[at + 1]) == self.synced:
                    self.floor = max(self.floor, max(V[2::3]))

    # What majorities of all groups have acknowledged is final.

    def check(self, entry: GroupTimestamps | None) -> None:
        if entry is not None and entry.m is not None:
            self.acknowledge(entry.m, entry)
            self.check_acks(entry.m, entry)
            self.deliver_final()

    def check_acks(self, m: Message, entry: GroupTimestamps) -> None:
        entry.check_acks(groups_of(self.context.replicas, m), self.group)
        if m.id in self.done and entry.is_known_to(m.destinations):
            del self.done[m.id]
            self.forgotten.add(m.id)

    # Delivery, in the order of final timestamps.

    def deliver_final(self) -> None:
        """Deliver what is final, if nothing that is here or comes later can be before it."""
        while self.pending:
            _, first = min([(self.pending[m].bound(self.group[0]), m) for m in self.pending])
            entry = self.pending[first]
            if entry.m is None or not entry.final or entry.decided > self.synced:
                return
            if clock_of(entry.final) > self.floor:
                return
            del self.pending[first]
            self.done[first] = entry
            self.deliver(entry.m)
            self.check_acks(entry.m, entry)

    # Who leads.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, WriteCompleted):
            self.on_completed(notice)
            return
        if isinstance(notice, Leader):
            self.trusted = notice.trusted
            self.check_leader()
        self.pass_on(notice)

    def check_leader(self) -> None:
        """If the owner of the highest ballot is suspected, the first that is not takes over.

        It may never have heard of that ballot, unless it is the first one, which all begin with.
        """
        if process_of(self.ballot) in self.trusted:
            return
        if self.trusted[0] == self.process:
            self.ask()
        elif clock_of(self.ballot):
            self.write_to((self.trusted[0],), Deny(self.ballot))

    def on_completed(self, notice: WriteCompleted) -> None:
        """Count who has a message of this group alone; ask who is permitted now if nobody is."""
        written = notice.packet
        if not notice.landed:
            if self.leading is not None:
                self.write_to((notice.process,), Ask(self.ballot))
        elif isinstance(written, Propose) and written.m.destinations == self.group:
            entry = self.entry_of(written.m.id)
            if entry is not None:
                entry.add_ack(notice.process, flat(written.ballot, written.ts))
                self.check(entry)

    # A new leader asks for the permission to write, and reads what a majority has.

    def ask(self) -> None:
        """Begin a ballot above all others that are known here."""
        self.ballot = stamp(clock_of(self.ballot) + 1, self.process)
        self.permit(self.process)
        self.leading = LatestState()
        self.write_to(self.group, Ask(self.ballot))
        self.read(self.leading, self.process, self.state())

    def state(self) -> Grant:
        """What a new leader has to know of the state here."""
        ts, messages = reports({**self.pending, **self.done}, self.group[0])
        counts, ahead = self.forgotten.told()
        return Grant(self.ballot, self.synced, self.clock, counts, ahead, ts, messages)

    def on_ask(self, sender: int, packet: Ask) -> None:
        if packet.ballot < self.ballot:
            self.write_to((sender,), Deny(self.ballot))
            return
        self.ballot = packet.ballot
        self.leading = None
        self.permit(sender)
        self.write_to((sender,), self.state())
        self.check_leader()

    def on_deny(self, packet: Deny) -> None:
        if packet.ballot > self.ballot:
            self.ballot = packet.ballot
            self.leading = None
            self.permit(self.process)  # and nobody else before the owner of that ballot asks
            self.check_leader()

    def on_grant(self, sender: int, packet: Grant) -> None:
        leading = self.leading
        if leading is not None and not leading.is_ready and packet.ballot == self.ballot:
            self.read(leading, sender, packet)

    def read(self, leading: LatestState, owner: int, packet: Grant) -> None:
        leading.granted.add(owner)
        leading.clock = max(leading.clock, packet.clock)
        leading.forgotten.merge(packet.counts, packet.ahead)
        leading.report(packet.synced, packet.ts, packet.messages)
        if is_majority(self.group, leading.granted):
            self.take_over(leading)

    # It makes the latest state the state of its group.

    def take_over(self, leading: LatestState) -> None:
        leading.is_ready = True
        counts, ahead = leading.forgotten.told()
        state = NewState(self.ballot, leading.clock, counts, ahead, *leading.latest())
        self.write_to(self.group, state)
        self.on_new_state(state)
        leading.reported.clear()

    def on_new_state(self, packet: NewState) -> None:
        self.synced = packet.ballot
        self.clock = max(self.clock, packet.clock)
        self.floor = packet.clock
        forgotten = KnownMessages()
        forgotten.merge(packet.counts, packet.ahead)
        given = {m.id for m in packet.messages}
        for entries in (self.pending, self.done):
            for identity in entries:
                if identity not in given and not forgotten.has(identity):
                    entries[identity].ts.pop(self.group[0], None)
        for m, ts in zip(packet.messages, packet.ts, strict=True):
            entry = self.entry_of(m.id)
            if entry is not None:
                entry.m = m
                self.give(m, entry, ts)
        for identity in sorted([*self.pending, *self.done]):
            entry = self.entry_of(identity)
            if entry is not None and entry.m is not None:
                self.propose(entry.m, entry)
                self.check(entry)

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Multicast) and self.is_ours(packet.m):
            self.check(self.remember(packet.m))
        elif not self.is_sound(sender, packet):
            raise self.refuse(sender, packet)
        elif isinstance(packet, Propose):
            self.on_propose(sender, packet)
        elif isinstance(packet, Timestamp):
            self.on_timestamp(sender, packet)
        elif isinstance(packet, Ack):
            self.on_ack(sender, packet)
        elif isinstance(packet, Ask):
            self.on_ask(sender, packet)
        elif isinstance(packet, Grant):
            self.on_grant(sender, packet)
        elif isinstance(packet, Deny):
            self.on_deny(packet)
        elif isinstance(packet, NewState):
            self.on_new_state(packet)

    def is_ours(self, m: Message) -> bool:
        """Tell whether m goes to this process, and to whole groups."""
        if not self.is_for_me(m):
            return False
        groups = groups_of(self.context.replicas, m)
        return sum([len(group) for group in groups]) == len(m.destinations)

    def is_sound(self, sender: int, packet: Packet) -> bool:
        """Tell whether another process, if it is correct, may have sent it."""
        if sender == self.process or not self.group:
            return False
        if isinstance(packet, Ack):
            return are_timestamps(self.context.replicas, (self.process, sender), packet.V)
        if sender not in self.group:
            return isinstance(packet, Timestamp) and self.is_timestamp(sender, packet)
        if isinstance(packet, Propose):
            return self.is_timestamp(sender, packet)
        if isinstance(packet, Grant | NewState) and not all(map(self.is_ours, packet.messages)):
            return False
        return new_leader.is_sound(sender, packet, self.group, self.process, self.ballot)

    def is_timestamp(self, sender: int, packet: Propose | Timestamp) -> bool:
        sound = self.is_ours(packet.m) and sender in packet.m.destinations
        return sound and owns(sender, packet.ballot) and 0 < packet.ts < MOST_TS
