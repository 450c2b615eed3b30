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
channels in order between processes that are up, memory that outlives its process, and groups of
2f + 1 replicas of which f may be down. The oracle may err: in the end, those that are down are
suspected and nobody else is. Guarantees total order and uniform agreement whatever is suspected and
whoever crashes and starts again, and that what a correct process multicasts is delivered once the
oracle errs no more. Genuine.

What differs from the publication is on the page of this protocol. In short: leaders write their
timestamps to all destinations themselves, since a leader that delivers what its group cannot know
breaks the order when it crashes; timestamps travel with their message; recovery, which the
prototype leaves open, is that of the ballots of White-Box atomic multicast (Gotsman, Lefort and
Chockler 2019) with permissions in the place of promises; what all destinations have delivered is
forgotten; and who starts again goes on with what its memory holds, says so, delivers nothing before
it has the state of its leader, and leads in a new ballot only.
"""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Stored, WriteCompleted
from flexgroup.core.message import Message, Packet, Stamp, clock_of, process_of, stamp
from flexgroup.core.replicas import group_of
from flexgroup.protocols.parts import ramcast_turn as turn
from flexgroup.protocols.parts.new_leader import Ask, Deny, Grant, LatestState, NewState
from flexgroup.protocols.parts.permit import Permit
from flexgroup.protocols.parts.proposals import CUT, Entry, Proposals, Reached, Saved, numbered
from flexgroup.protocols.parts.ramcast_packets import (
    Ack,
    Delivered,
    Multicast,
    Propose,
    Restarted,
    Timestamp,
)
from flexgroup.protocols.parts.timestamp_vectors import (
    GroupTimestamps,
    TimestampedMessages,
    Vector,
    ballots_of,
    flat,
    groups_of,
    is_majority,
)
from flexgroup.protocols.parts.turn import Outgoing, Targets


class RamCast(Layer):
    __slots__ = ("T", "ballot", "clock", "floor", "group", "is_asked", "known", "leading",
                 "outgoing", "recovering", "restarts", "synced", "trusted")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.LEADER, Guarantee.PROTECTED_MEMORY}
    )
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (*turn.SINGLES, *turn.TOGETHER)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Saved, Entry, Reached)
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.group = group_of(context.replicas, context.process)
        lowest = self.group[0] if self.group else 0
        self.clock = 0
        """The highest timestamp that it knows of."""
        self.known = TimestampedMessages(lowest)
        """The messages with their timestamps, and which of them are delivered."""
        # What is not in the paper.
        self.ballot: Stamp = stamp(0, lowest)
        """The owner of this ballot, and of none below it, may write into the memory here."""
        self.synced: Stamp = self.ballot
        """The owner of this ballot gave the state that the group's timestamps here are part of."""
        self.floor = 0
        """The leader that did so proposes only higher timestamps, besides those that are here."""
        self.T = Proposals()
        """What has a timestamp of this group, and up to where it is delivered."""
        self.recovering = False
        """It has started again, and has not got the state of a leader since."""
        self.is_asked = True
        """Somebody has asked for the permission to write since it started again, if it did."""
        self.restarts = False
        """Whether somebody has started again, who may have lost what others wrote."""
        self.leading = LatestState(is_ready=True) if self.process == lowest else None
        """What it read, if it leads or wants to."""
        self.trusted = self.group
        """Who is not suspected, in the eyes of the oracle; the first should lead if nobody does."""
        self.outgoing = Outgoing()
        """What it writes when it has handled what came."""

    def is_leader(self) -> bool:
        return self.leading is not None and self.leading.is_ready

    def on_start(self) -> None:
        if self.group:
            self.send((self.process,), Permit(self.group[0]))

    def write_to(self, to: tuple[int, ...], packet: Packet) -> None:
        """Write into the memory of these, as far as they are others, at the end of this turn."""
        self.outgoing.add(tuple([j for j in to if j != self.process]), packet)

    def end_turn(self) -> None:
        for to, packet in self.outgoing.take(turn.kind_of, turn.together):
            self.send(to, packet)

    # A process writes m into the memory of all destinations.

    def on_cast(self, m: Message) -> None:
        self.write_to(m.destinations, Multicast(m))
        if self.process in m.destinations:
            self.check(self.remember(self.process, m))
        self.end_turn()

    def remember(self, sender: int, m: Message) -> GroupTimestamps | None:
        entry = self.known.entry_of(m.id)
        if entry is not None and entry.m is None:
            entry.m = m
            self.propose(m, entry)
            if self.restarts and sender != process_of(self.ballot):
                self.tell_leader(m)
        return entry

    # The leader of each destination group gives m a timestamp.

    def propose(self, m: Message, entry: GroupTimestamps) -> None:
        if not self.is_leader() or self.group[0] in entry.ts:
            return
        self.append(self.clock + 1, m)
        self.write_to(self.group, Propose(m, self.ballot, self.clock))
        self.give(m, entry, self.clock)
        self.floor = self.clock
        if m.destinations == self.group:
            # They know that it has all timestamps of m.
            self.acknowledge(m, entry, self.group)

    def append(self, ts: int, m: Message) -> None:
        """Keep m with its timestamp before anybody is told of it."""
        self.T.add(ts, m)
        self.clock = max(self.clock, ts)
        self.write(ts, Entry(self.synced, m, 0))
        # A layer above would have to be told of everything again.
        if self.is_top and self.T.is_time() and self.T.forget(self.process):
            self.known.forget_others(self.T.all())
            self.keep()
            self.truncate(self.T.first_needed(clock_of(self.T.until)))

    def give(self, m: Message, entry: GroupTimestamps, ts: int) -> None:
        """Take a timestamp of this group for m in the ballot here, and tell the other groups."""
        entry.ts[self.group[0]] = (self.ballot, ts)
        if self.leading is not None:
            others = tuple([j for j in m.destinations if j not in self.group])
            self.write_to(others, Timestamp(m, self.ballot, ts))

    def on_propose(self, sender: int, packet: Propose) -> None:
        entry = self.remember(sender, packet.m)
        # Who starts again is told once more what has landed last.
        if entry is None or packet.ballot != self.synced:
            return
        if self.group[0] not in entry.ts:
            self.append(packet.ts, packet.m)
        entry.ts[self.group[0]] = (packet.ballot, packet.ts)
        self.floor = max(self.floor, packet.ts)
        if packet.m.destinations == self.group:
            entry.add_ack(sender, flat(packet.ballot, packet.ts))
            # The leader learns from the completion that this process has m with its timestamp. If
            # that landed before it started again, the completion may be lost.
            self.acknowledge(packet.m, entry, () if self.recovering else (sender,))
        self.check(entry)

    def on_timestamp(self, sender: int, packet: Timestamp) -> None:
        entry = self.remember(sender, packet.m)
        if entry is None:
            return
        entry.hear(group_of(self.context.replicas, sender)[0], packet.ballot, packet.ts)
        if packet.ts > self.clock:
            self.clock = packet.ts
            self.write(packet.ts, Reached())
        self.check(entry)

    # Who has all timestamps of m acknowledges them to all destinations.

    def acknowledge(self, m: Message, entry: GroupTimestamps, silently: Targets = ()) -> None:
        """Acknowledge the timestamps of m, if that of this group is its leader's."""
        V = entry.vector(groups_of(self.context.replicas, m))
        if V and entry.acked != V and entry.ts[self.group[0]][0] == self.ballot == self.synced:
            entry.acknowledge(self.process, V)
            others = tuple([j for j in m.destinations if j not in silently])
            self.write_to(others, Ack(m.id, V, self.T.until))
            self.learn_floor(self.process, V)

    def on_ack(self, sender: int, packet: Ack) -> None:
        entry = self.known.entry_of(packet.m)
        if entry is not None:
            entry.add_ack(sender, packet.V)
            self.learn_floor(sender, packet.V)
            self.check(entry)

    def learn_floor(self, sender: int, V: Vector) -> None:
        """The leader has seen these timestamps, and all that it proposed before has landed here.

        That is not so if it has lost the permission: then what it proposed may have failed here.
        """
        is_leader = sender == process_of(self.synced) and self.ballot == self.synced
        if is_leader and self.synced in ballots_of(V):
            self.floor = max(self.floor, *V[2::3])

    # What majorities of all groups have acknowledged is final.

    def check(self, entry: GroupTimestamps | None) -> None:
        if entry is not None and entry.m is not None:
            self.acknowledge(entry.m, entry)
            entry.check_acks(groups_of(self.context.replicas, entry.m), self.group)
            self.deliver_final()

    # Delivery, in the order of final timestamps.

    def deliver_final(self) -> None:
        """Deliver what is final, if nothing that is here or comes later can be before it."""
        while self.known.pending and not self.recovering:
            entry = self.known.first()
            if entry.m is None or not entry.is_final_in(self.synced, self.floor):
                return
            self.known.settle(entry.m.id)
            ts = entry.ts[self.group[0]][1]
            self.write(ts, Entry(self.synced, self.T.settle_next(ts, entry.final), entry.final))
            self.deliver(entry.m)
            if self.known.delivered.count % CUT == 0:
                # Who shares messages with this process needs to know, to forget them.
                self.write_to(self.T.destinations(), Delivered(self.T.until))

    # Who leads.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Leader):
            self.trusted = notice.trusted
            self.check_leader()
        elif isinstance(notice, WriteCompleted):
            self.on_completed(notice)
        self.end_turn()
        if not isinstance(notice, WriteCompleted):
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
        if not notice.landed:
            self.admit(notice.process)
        for ack in turn.acknowledged(notice, self.group):
            self.on_ack(notice.process, ack)

    # A new leader asks for the permission to write, and reads what a majority has.

    def ask(self) -> None:
        """Begin a ballot above all others that are known here."""
        self.promise(stamp(clock_of(self.ballot) + 1, self.process), self.process)
        self.leading = LatestState()
        self.write_to(self.group, Ask(self.ballot))
        self.on_grant(self.process, self.state())

    def state(self) -> Grant:
        """What a new leader has to know of the state here."""
        return Grant(self.ballot, self.synced, self.clock, *self.T.flat())

    def promise(self, ballot: Stamp, writer: int) -> None:
        self.ballot = ballot
        self.leading = None
        self.is_asked = True
        if self.is_top and self.T.forget(self.process):
            self.known.forget_others(self.T.all())
        self.keep()
        self.send((self.process,), Permit(writer))

    def admit(self, member: int) -> None:
        """Ask who permits nobody for the permission, and tell it the state before anything else."""
        if self.leading is not None:
            self.write_to((member,), Ask(self.ballot))
            if self.restarts and self.is_leader():
                self.write_to((member,), NewState(self.ballot, self.clock, *self.T.flat()))

    def on_ask(self, sender: int, packet: Ask) -> None:
        if packet.ballot < self.ballot:
            self.write_to((sender,), Deny(self.ballot))
            return
        self.promise(packet.ballot, sender)
        self.write_to((sender,), self.state())
        self.check_leader()

    def on_deny(self, packet: Deny) -> None:
        if packet.ballot > self.ballot:
            # Nobody else may write before the owner of that ballot asks.
            self.promise(packet.ballot, self.process)
            self.check_leader()

    def on_grant(self, owner: int, packet: Grant) -> None:
        leading = self.leading
        if leading is not None and not leading.is_ready and packet.ballot == self.ballot:
            leading.hear(owner, packet)
            if is_majority(self.group, leading.granted):
                self.take_over(leading)

    # It makes the latest state the state of its group.

    def take_over(self, leading: LatestState) -> None:
        leading.is_ready = True
        state = NewState(self.ballot, leading.clock, *leading.latest())
        self.write_to(self.group, state)
        self.on_new_state(state)

    def on_new_state(self, packet: NewState) -> None:
        # Who starts again is told once more what has landed last.
        if packet.ballot >= self.synced:
            self.begin(packet)
            self.go_on()

    def begin(self, packet: NewState) -> None:
        """Have this state, and nothing else, before anybody is told of it."""
        self.synced = packet.ballot
        self.clock = max(self.clock, packet.clock)
        self.floor = packet.clock
        self.recovering = not self.is_asked
        self.T.begin(numbered(packet.ts, packet.messages), self.known.delivered)
        self.keep()
        self.known.begin(self.T.all())

    def go_on(self) -> None:
        """Give messages their timestamps, tell the other groups, and acknowledge them."""
        for ts, m in self.T.all():
            entry = self.known.entry_of(m.id)
            if entry is not None:
                entry.m = m
                self.give(m, entry, ts)
        for m, entry in self.known.all():
            self.propose(m, entry)
            if self.restarts and self.group[0] not in entry.ts:
                self.tell_leader(m)
            self.check(entry)

    # Memory that outlives the process, and starting again.

    def keep(self) -> None:
        self.save(self.T.saved(self.ballot, self.synced, self.clock, self.known.delivered))

    def on_restart(self, stored: Stored) -> None:
        if not self.group:
            return
        found = self.T.load(stored, self.synced, self.known.delivered, self.is_top)
        self.ballot, self.synced, self.clock = found
        self.known.restore(self.T.all(), self.synced)
        self.leading = None
        self.recovering = self.restarts = True
        self.is_asked = False
        self.write_to(tuple(range(self.size)), Restarted())
        if process_of(self.ballot) == self.process:
            self.ask()
        self.end_turn()

    def on_restarted(self, sender: int) -> None:
        """Write again what may be lost for it: the state, timestamps, and what is acknowledged."""
        self.restarts = True
        if sender in self.group and self.leading is not None:
            self.admit(sender)
        elif sender in self.group:
            self.write_to((sender,), Deny(self.ballot))
        for _, m in self.T.addressed_to(sender):
            entry = self.known.entry_of(m.id)
            if entry is not None and sender not in self.group and self.is_leader():
                self.write_to((sender,), Timestamp(m, *entry.ts[self.group[0]]))
            if entry is not None and entry.acked:
                self.write_to((sender,), Ack(m.id, entry.acked, self.T.until))

    def tell_leader(self, m: Message) -> None:
        """It may have lost what a client or another group wrote for all."""
        if self.ballot == self.synced and process_of(self.ballot) != self.process:
            self.write_to((process_of(self.ballot),), Multicast(m))

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        packets = turn.separated(sender, packet, self.process, self.context.replicas, self.ballot)
        if not packets:
            raise self.refuse(sender, packet)
        for one in packets:
            self.handle(sender, one)
        self.end_turn()

    def handle(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Ack | Delivered):
            self.T.note_delivered(sender, packet.until)
        if isinstance(packet, Multicast):
            self.check(self.remember(sender, packet.m))
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
        elif isinstance(packet, Restarted):
            self.on_restarted(sender)
