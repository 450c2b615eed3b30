"""PrimCast: atomic multicast among groups of replicas, three delays at every destination.

Source: L. Pacheco, P. Coelho, F. Pedone, "PrimCast: a latency-efficient atomic multicast",
Middleware 2023, and the authors' public prototype, whose names are used here. The primary of each
destination group gives a message a local timestamp, and a majority of the group acknowledges it, in
one epoch, to all destinations. The final timestamp is the highest local one. A process delivers in
the order of final timestamps; that nothing with a lower one can follow it knows from clocks alone:
the primary's, and those of a majority, are as high.

Assumes reliable FIFO channels between processes that are up, groups of 2f + 1 replicas of which f
may be down, stable storage, and a leader oracle below (`leader`) that may err: in the end, those
that are down are suspected and nobody else is. Guarantees total (acyclic) order and uniform
agreement whatever is suspected and whoever crashes and starts again, and that what a correct
process multicasts is delivered once the oracle errs no more. Genuine. The destinations of a message
are a union of whole groups.

What the sources leave open, or do otherwise, is on the page of this protocol. In short: what the
primary acknowledges it sends with the message, so that no destination misses it if the origin
crashes; who has promised an epoch whose candidate is suspected tells the next one of it; what all
destinations have delivered is forgotten; and who starts again says so, is told what it may have
lost, and is a primary in a new epoch only.
"""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Stored
from flexgroup.core.message import Message, Packet, Stamp, clock_of, process_of, stamp
from flexgroup.core.replicas import check_destinations, group_of
from flexgroup.protocols.parts import primcast_turn as turn
from flexgroup.protocols.parts.group_timestamps import GroupTimestamps
from flexgroup.protocols.parts.primcast_packets import (
    AcceptEpoch,
    Ack,
    Bump,
    NewEpoch,
    NewState,
    Promise,
    Proposal,
    Restarted,
    Start,
    epoch_of,
    is_well_formed,
)
from flexgroup.protocols.parts.proposals import (
    Candidacy,
    Entry,
    Proposals,
    Proposed,
    Reached,
    Saved,
    numbered,
)
from flexgroup.protocols.parts.taken_messages import TakenMessages
from flexgroup.protocols.parts.turn import Outgoing


class PrimCast(Layer):
    __slots__ = ("E_cur", "E_prom", "T", "accepted", "candidacy", "clock", "group", "min_clock",
                 "outgoing", "recovering", "restarts", "timestamps", "trusted")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.LEADER})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (*turn.SINGLES, *turn.TOGETHER)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Saved, Entry, Reached)
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.group = group_of(context.replicas, context.process)
        self.clock = 0
        self.E_cur: Stamp = stamp(0, self.group[0] if self.group else 0)
        """The epoch that it is in; the owner is the primary."""
        self.E_prom: Stamp = self.E_cur
        """It takes part in no epoch below this one."""
        self.T = Proposals()
        """What the primary proposed, in the order of timestamps, but for what is forgotten; and up
        to where it is delivered."""
        self.min_clock: dict[int, int] = dict.fromkeys(self.group, 0)
        """The clock of each member is as high, and was when it promised an epoch above E_prom."""
        self.accepted: dict[int, Stamp] = dict.fromkeys(self.group, self.E_cur)
        """The highest epoch that each member is known to have been in."""
        self.timestamps = GroupTimestamps(context.replicas, TakenMessages())
        """What the paper searches for in the messages that came: local-ts, min-ts, final-ts."""
        self.candidacy: Candidacy | None = None
        # What is not in the paper.
        self.recovering = False
        """It has started again, and has not got the state of an epoch since."""
        self.restarts = False
        """Whether somebody has started again, who may have lost what others sent."""
        self.trusted = self.group
        """Who is not suspected, in the eyes of the oracle; the first should lead if nobody does."""
        self.outgoing = Outgoing()
        """What it sends when it has handled what came."""

    def is_primary(self) -> bool:
        return self.E_cur == self.E_prom and process_of(self.E_cur) == self.process

    def is_quorum(self, count: int) -> bool:
        return 2 * count > len(self.group)

    def send_to_others(self, members: tuple[int, ...], packet: Packet) -> None:
        self.outgoing.add(tuple([j for j in members if j != self.process]), packet)

    def end_turn(self) -> None:
        self.try_deliver()
        for to, packet in self.outgoing.take(turn.kind_of, turn.together):
            self.send(to, packet)

    # Multicast, and local timestamps.

    def on_cast(self, m: Message) -> None:
        check_destinations(self.context.replicas, m.destinations)
        self.send_to_others(m.destinations, Start(m))
        if self.process in m.destinations:
            self.on_start_of(self.process, m)
        self.end_turn()

    def on_start_of(self, sender: int, m: Message) -> None:
        """Propose m, or remember it until this process is the primary."""
        if not self.timestamps.delivered.has(m.id):
            known = self.timestamps.known(m.id)
            if known.m is None and self.restarts and sender != process_of(self.E_cur):
                self.tell_primary(m)
            known.m = m
            self.propose(m)

    def propose(self, m: Message) -> None:
        if self.is_primary() and self.timestamps.is_new(m.id):
            self.append(self.clock + 1, m)

    def on_proposal(self, sender: int, packet: Proposal) -> None:
        """The ack of a primary, this group's or another's, which brings m as Start does."""
        self.T.note_delivered(sender, packet.have)
        if sender not in self.group:
            self.advance(packet.ts)
            self.on_start_of(sender, packet.m)
        elif packet.epoch < self.E_prom:
            self.on_start_of(sender, packet.m)
            self.tell_promise(sender)
        elif self.recovering or (self.restarts and packet.epoch > self.E_cur):
            # What was proposed before it may be lost: the primary tells all of it again.
            self.on_start_of(sender, packet.m)
            self.hear_of(packet.epoch)
        elif self.is_next(packet):
            self.append(packet.ts, packet.m)
            self.note_clock(sender, packet.ts)
        else:
            raise self.refuse(sender, packet)
        self.timestamps.count_ack(sender, packet.m.id, packet.epoch, packet.ts)

    def append(self, ts: int, m: Message) -> None:
        """Add a proposal of the primary, maybe this process, to T, and acknowledge it."""
        self.T.add(ts, m)
        self.timestamps.propose(m, ts)
        self.clock = max(ts, self.clock)
        self.note_clock(self.process, self.clock)
        self.write(ts, Entry(self.E_cur, m, 0))
        # A layer above would have to be told of everything again.
        if self.is_top and self.T.is_time() and self.T.forget(self.process):
            self.keep()
            self.truncate(self.T.first_needed(self.T.until))
        self.acknowledge(ts, m)

    def acknowledge(self, ts: int, m: Message) -> None:
        self.send_to_others(m.destinations, self.ack(ts, m))
        self.timestamps.count_ack(self.process, m.id, self.E_cur, ts)

    def ack(self, ts: int, m: Message) -> Proposal | Ack:
        if process_of(self.E_cur) == self.process:
            return Proposal(m, self.E_cur, ts, self.T.until)
        return Ack(m.id, self.E_cur, ts, self.T.until)

    def on_ack(self, sender: int, packet: Ack) -> None:
        self.T.note_delivered(sender, packet.have)
        if sender in self.group:
            self.accepted[sender] = max(packet.epoch, self.accepted[sender])
            self.note_clock(sender, packet.ts)
            self.hear_of(packet.epoch)
        else:
            self.advance(packet.ts)
        self.timestamps.count_ack(sender, packet.m, packet.epoch, packet.ts)

    # Clocks.

    def advance(self, ts: int) -> None:
        """Take over the clock of another group, and tell this process's own group."""
        if ts > self.clock:
            self.clock = ts
            self.note_clock(self.process, ts)
            self.write(ts, Reached())
            self.send_to_others(self.group, Bump(self.E_prom, ts))

    def on_bump(self, sender: int, packet: Bump | AcceptEpoch) -> None:
        if isinstance(packet, AcceptEpoch):
            self.accepted[sender] = max(packet.epoch, self.accepted[sender])
        self.note_clock(sender, packet.clock)
        self.hear_of(packet.epoch)

    def note_clock(self, member: int, clock: int) -> None:
        self.min_clock[member] = max(clock, self.min_clock[member])

    # Delivery.

    def try_deliver(self) -> None:
        """Deliver in the order of final timestamps, and of identities where these are equal."""
        in_epoch = [j for j in self.group if self.accepted[j] >= self.E_cur]
        if self.E_cur != self.E_prom or self.recovering or not self.is_quorum(len(in_epoch)):
            return
        until = min(self.quorum_clock(), self.min_clock[process_of(self.E_cur)])
        found: list[Message] = []
        while (first := self.timestamps.take_first(until)) is not None:
            found.append(self.T.settle(*first))
            self.write(first[0], Entry(self.E_cur, found[-1], first[1]))
        for m in found:
            self.deliver(m)
        self.T.until = max(self.timestamps.none_until(until), self.T.until)

    def quorum_clock(self) -> int:
        """The clocks of a majority are as high: no later epoch begins with a lower one."""
        return sorted(self.min_clock.values())[(len(self.group) - 1) // 2]

    # A new epoch.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Leader):
            self.trusted = notice.trusted
            self.check_leader()
        self.end_turn()
        self.pass_on(notice)

    def check_leader(self) -> None:
        """Take over if the owner of the promised epoch is suspected, and this process is next.

        If another is next, it may not have heard of that epoch.
        """
        is_suspected = process_of(self.E_prom) not in self.trusted
        if is_suspected and self.trusted[0] == self.process:
            self.new_epoch()
        elif is_suspected and self.E_prom > self.E_cur:
            self.tell_promise(self.trusted[0])

    def tell_promise(self, member: int) -> None:
        self.send_to_others((member,), Bump(self.E_prom, self.clock))

    def hear_of(self, epoch: Stamp) -> None:
        """Take part in no epoch below this one, and deliver nothing before it, or a later one.

        The clocks of those that have promised it may have come too late for its candidate.
        """
        if epoch > self.E_prom:
            self.promise(epoch)
            self.check_leader()

    def promise(self, epoch: Stamp) -> None:
        self.E_prom = epoch
        self.candidacy = None
        if self.is_top:
            self.T.forget(self.process)
        self.keep()

    def new_epoch(self) -> None:
        self.promise(stamp(clock_of(self.E_prom) + 1, self.process))
        self.candidacy = Candidacy(self.E_cur, self.clock, self.T.all(), {self.process})
        self.send_to_others(self.group, NewEpoch(self.E_prom))
        self.check_promises(self.candidacy)

    def on_new_epoch(self, sender: int, packet: NewEpoch) -> None:
        self.promise(packet.epoch)
        promise = Promise(self.E_prom, self.E_cur, self.clock, *self.T.flat())
        self.send_to_others((sender,), promise)
        self.check_leader()

    def on_promise(self, sender: int, packet: Promise) -> None:
        if self.candidacy is not None and packet.epoch == self.E_prom:
            T = numbered(packet.ts, packet.messages)
            self.candidacy.hear(sender, packet.current, packet.clock, T)
            self.check_promises(self.candidacy)

    def check_promises(self, candidacy: Candidacy) -> None:
        """Begin the epoch with the highest clock and the best T of a majority."""
        if self.is_quorum(len(candidacy.promises)):
            self.enter(self.E_prom, max(candidacy.clock, self.clock), candidacy.T)
            self.send_to_others(self.group, self.new_state())
            self.tell_other_groups()
            for m in self.timestamps.waiting():
                self.propose(m)

    def new_state(self) -> NewState:
        return NewState(self.E_cur, self.clock, *self.T.flat())

    def tell_other_groups(self) -> None:
        """Acknowledge T to the other groups, to which the primary before may not have sent it."""
        for ts, m in self.T.all():
            remote = tuple([j for j in m.destinations if j not in self.group])
            self.send_to_others(remote, self.ack(ts, m))

    def on_new_state(self, packet: NewState) -> None:
        self.enter(packet.epoch, packet.clock, numbered(packet.ts, packet.messages))
        self.send_to_others(self.group, AcceptEpoch(self.E_cur, self.clock))
        self.acknowledge_state()
        for m in self.timestamps.waiting() if self.restarts else ():
            self.tell_primary(m)
        self.check_leader()

    def acknowledge_state(self) -> None:
        for ts, m in self.T.all():
            self.acknowledge(ts, m)

    def enter(self, epoch: Stamp, clock: int, T: list[Proposed]) -> None:
        """Take over T, which the primary of the epoch acknowledges thereby, and the clock."""
        primary = process_of(epoch)
        self.E_cur = self.E_prom = epoch
        self.candidacy = None
        self.recovering = False
        self.clock = max(clock, self.clock)
        self.accepted[primary] = self.accepted[self.process] = epoch
        self.note_clock(primary, clock)
        self.note_clock(self.process, self.clock)
        self.T.begin(T, self.timestamps.delivered)
        self.keep()
        self.timestamps.propose_nothing()
        for ts, m in T:
            self.timestamps.propose(m, ts)
            self.timestamps.count_ack(primary, m.id, epoch, ts)

    # Stable storage, and starting again.

    def keep(self) -> None:
        self.save(self.T.saved(self.E_prom, self.E_cur, self.clock, self.timestamps.delivered))

    def on_restart(self, stored: Stored) -> None:
        if not self.group:
            return
        saved = self.T.load(stored, self.E_cur, self.timestamps.delivered, self.is_top)
        self.E_prom, self.E_cur, self.clock = saved
        self.note_clock(self.process, self.clock)
        self.accepted[self.process] = self.E_cur
        for ts, m in self.T.all():
            self.timestamps.propose(m, ts)
        self.recovering = self.restarts = True
        self.send_to_others(tuple(range(self.size)), Restarted())
        if process_of(self.E_prom) == self.process:
            self.new_epoch()
        self.end_turn()

    def on_restarted(self, sender: int) -> None:
        """Tell it again what it may have lost: the state of the epoch, and what is acknowledged."""
        self.restarts = True
        if sender in self.group:
            self.send_to_others((sender,), self.state())
        if sender not in self.group or process_of(self.E_cur) != self.process:
            for ts, m in self.T.addressed_to(sender):
                self.send_to_others((sender,), self.ack(ts, m))

    def state(self) -> Packet:
        """What another member of the group has to know of this process and its epoch."""
        if self.candidacy is not None:
            return NewEpoch(self.E_prom)
        if self.is_primary():
            return self.new_state()
        return Bump(self.E_prom, self.clock)

    def tell_primary(self, m: Message) -> None:
        """It may have lost what a client or another group sent to all."""
        if self.E_cur == self.E_prom and process_of(self.E_cur) != self.process:
            self.send_to_others((process_of(self.E_cur),), Start(m))

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        packets = turn.singles(packet)
        if not packets or not all(self.is_sound(sender, one) for one in packets):
            raise self.refuse(sender, packet)
        for one in packets:
            self.handle(sender, one)
        self.end_turn()

    def handle(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Start):
            self.on_start_of(sender, packet.m)
        elif isinstance(packet, Proposal):
            self.on_proposal(sender, packet)
        elif isinstance(packet, Ack):
            self.on_ack(sender, packet)
        elif isinstance(packet, Bump | AcceptEpoch):
            self.on_bump(sender, packet)
        elif isinstance(packet, NewEpoch | NewState) and packet.epoch < self.E_prom:
            self.tell_promise(sender)
        elif isinstance(packet, NewEpoch):
            self.on_new_epoch(sender, packet)
        elif isinstance(packet, Promise):
            self.on_promise(sender, packet)
        elif isinstance(packet, NewState):
            self.on_new_state(packet)
        elif isinstance(packet, Restarted):
            self.on_restarted(sender)

    def is_next(self, packet: Proposal) -> bool:
        """Tell whether the primary may have proposed it after all of T."""
        is_new = packet.epoch == self.E_cur and packet.ts > self.T.last
        return is_new and self.timestamps.is_new(packet.m.id)

    def is_sound(self, sender: int, packet: Packet) -> bool:
        """Tell whether another process, if it is correct, may have sent it to this one."""
        if not is_well_formed(sender, packet, self.process, self.context.replicas):
            return False
        epoch = epoch_of(packet)
        if process_of(epoch) == self.process and epoch > self.E_prom:
            return False
        if isinstance(packet, Ack):
            return self.timestamps.may_go_to(sender, packet.m)
        return not isinstance(packet, NewState) or epoch != self.E_cur or self.restarts
