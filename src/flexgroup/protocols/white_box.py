"""White-Box: Skeen's atomic multicast, its destinations replicated, with Paxos woven into it.

Source: A. Gotsman, A. Lefort and G. Chockler, "White-box atomic multicast", DSN 2019 (extended
version: arXiv 1904.07171), whose names are used here; the normal case is also section 3.2.1 of the
DCC dissertation (Louzada 2024). The leader of each destination group gives m a local timestamp and
has it ACCEPTed by all processes of all destination groups at once, which acknowledge it to all of
these leaders. Majorities of every group have then stored all local timestamps, and have moved their
clocks to the highest, the global one: m is committed. Leaders DELIVER in the order of global
timestamps. A new leader has a majority of its group tell what it accepted (NEW_LEADER) and has the
same state stored by a majority (NEW_STATE) before it goes on.

Assumes reliable FIFO channels between processes that are up, groups of 2f + 1 replicas of which f
may be down, stable storage, and a leader oracle below (`leader`) that may err: in the end, those
that are down are suspected and nobody else is. Guarantees total order over all groups and uniform
agreement whatever is suspected and whoever crashes and starts again, and that what a correct
process multicasts is delivered once the oracle errs no more. Genuine. The destinations of a message
are whole groups.

What differs is on the page of this protocol. In short: an origin sends to all replicas, of which
followers only remember, and an ACCEPT of any group stands for a MULTICAST, so that nobody needs a
timer to retry; what is committed stays so, whatever a new leader says; who is not suspected is not
deposed; what all destinations have delivered is forgotten; who starts again says so, takes over the
state of its leader before it goes on, and leads in a new ballot only; and what a turn has for the
same processes travels together.
"""

from __future__ import annotations

from typing import ClassVar, Final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Stored
from flexgroup.core.message import Message, Packet, Stamp, clock_of, process_of, stamp
from flexgroup.core.replicas import check_destinations, group_of
from flexgroup.protocols.parts.white_box_messages import Entry, Joined, WhiteBoxMessages
from flexgroup.protocols.parts.white_box_packets import (
    Abandoned,
    Accept,
    AcceptAck,
    Deliver,
    Multicast,
    NewLeader,
    NewLeaderAck,
    NewState,
    NewStateAck,
    Restarted,
    leader_of,
)
from flexgroup.protocols.parts.white_box_progress import ACCEPTED, COMMITTED, START, Progress
from flexgroup.protocols.parts.white_box_turn import SINGLES, TOGETHER, Turn, separated

# What a process is in its group.
LEADER: Final = "leader"
FOLLOWER: Final = "follower"
RECOVERING: Final = "recovering"


class WhiteBox(Layer):
    __slots__ = ("ballot", "cballot", "clock", "g0", "group", "messages", "newleader_acks",
                 "newstate_acks", "restarts", "status", "trusted", "turn")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.LEADER})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (*SINGLES, *TOGETHER)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Joined, Entry)
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.group = group_of(context.replicas, context.process)
        self.g0 = context.replicas.index(self.group) if self.group else 0
        """The number of this process's own group."""
        self.status: str = LEADER if self.group[:1] == (self.process,) else FOLLOWER
        self.ballot = 0
        """It takes part in no ballot below this one."""
        self.cballot = 0
        """The last ballot of which it has the state."""
        self.clock = 0
        self.messages = WhiteBoxMessages(context.replicas, self.g0)
        """Phase, LocalTS, GlobalTS, Delivered, max_delivered_gts."""
        self.newleader_acks: dict[int, NewLeaderAck] = {}
        self.newstate_acks: set[int] = set()
        # What is not in the paper.
        self.restarts = False
        """Whether somebody has started again, who may have lost what others sent."""
        self.trusted = self.group
        """Who is not suspected, in the eyes of the oracle; the first should lead if nobody does."""
        self.turn = Turn()
        """What it sends and delivers when it has handled what came."""

    def send_to_others(self, to: tuple[int, ...], packet: Packet) -> None:
        self.turn.outgoing.add(tuple([j for j in to if j != self.process]), packet)

    def end_turn(self) -> None:
        if self.turn.take_committed():
            self.deliver_committed()
        self.send_all()
        for m in self.turn.take_given():
            self.deliver(m)

    def send_all(self) -> None:
        for to, packet in self.turn.take_outgoing():
            self.send(to, packet)

    # The normal case.

    def on_cast(self, m: Message) -> None:
        check_destinations(self.context.replicas, m.destinations)
        # The leader of a destination group need not ask anybody: its ACCEPT tells all of m.
        if self.status != LEADER or self.process not in m.destinations:
            self.send_to_others(m.destinations, Multicast(m))
        if self.process in m.destinations:
            self.on_multicast(m)
        self.end_turn()

    def on_multicast(self, m: Message) -> Progress | None:
        known = self.messages.remember(m)
        if known is not None and self.status == LEADER:
            self.propose(known)
        return known

    def propose(self, known: Progress) -> None:
        """Send ACCEPT, once in every ballot."""
        if self.g0 in known.accepts and known.accepts[self.g0][0] == self.cballot:
            return
        if known.phase == START:
            self.clock += 1
            known.propose(stamp(self.clock, self.g0))
        self.send_to_others(known.m.destinations, Accept(known.m, self.cballot, known.lts))
        self.accept(known, self.g0, self.cballot, known.lts)

    def on_accept(self, packet: Accept) -> None:
        known = self.on_multicast(packet.m)
        if known is not None:
            self.accept(known, process_of(packet.lts), packet.ballot, packet.lts)

    def accept(self, known: Progress, group: int, ballot: int, lts: Stamp) -> None:
        if group not in known.accepts or known.accepts[group][0] < ballot:
            known.accepts[group] = (ballot, lts)
            self.check_accepts(known)

    def check_accepts(self, known: Progress) -> None:
        """Acknowledge to the leaders when ACCEPT has come from all groups."""
        ballots = known.ballots(self.g0, self.cballot)
        if not ballots or self.status == RECOVERING:
            return
        clock = max(self.clock, clock_of(known.highest()))
        if known.accept(self.g0) or clock > self.clock:
            self.clock = clock
            self.keep(known)
        to = tuple(map(leader_of, known.members(self.context.replicas), ballots))
        self.send_to_others(to, AcceptAck(known.m.id, ballots, self.messages.max_delivered_gts))
        if self.status == LEADER:
            known.acks[self.process] = ballots
            self.check_acks(known)

    def on_accept_ack(self, sender: int, packet: AcceptAck) -> None:
        self.messages.note_delivered(sender, packet.have)
        known = self.messages.known.get(packet.m)
        if known is not None and known.phase != COMMITTED and self.status == LEADER:
            known.acks[sender] = packet.ballots
            self.check_acks(known)

    def check_acks(self, known: Progress) -> None:
        """Commit when majorities of all groups have acknowledged the same ballots."""
        ballots = known.ballots(self.g0, self.cballot)
        if known.phase != COMMITTED and known.is_acknowledged(ballots, self.context.replicas):
            known.commit()
            self.turn.has_committed = True

    def deliver_committed(self) -> None:
        """Deliver in the order of global timestamps what no local one can precede any more."""
        self.forget(self.messages.stable_at(self.process))
        ready = self.messages.ready()
        for known in ready:
            self.send_deliver(known, self.group)
        self.send_all()
        for known in ready:
            self.settle(known)

    def send_deliver(self, known: Progress, to: tuple[int, ...]) -> None:
        stable = self.messages.stable
        self.send_to_others(to, Deliver(known.m.id, self.cballot, known.lts, known.gts, stable))

    def on_deliver(self, packet: Deliver) -> None:
        if self.status != FOLLOWER or packet.ballot != self.cballot:
            return
        known = self.messages.known.get(packet.m)
        if known is not None:
            known.phase, known.lts, known.gts = COMMITTED, packet.lts, packet.gts
            self.clock = max(self.clock, clock_of(packet.gts))
            if packet.gts > self.messages.max_delivered_gts:
                self.settle(known)
        self.forget(packet.stable)

    def settle(self, known: Progress) -> None:
        self.messages.settle(known)
        self.keep(known)
        self.turn.given.append(known.m)

    # Recovery.

    def recover(self) -> None:
        """Begin the next ballot of this process above all others that are known here."""
        turn = self.group.index(self.process) - self.ballot
        self.join(self.ballot + (turn % len(self.group) or len(self.group)))
        self.send_to_others(self.group, NewLeader(self.ballot))
        self.on_newleader_ack(self.process, self.state())

    def join(self, ballot: int) -> None:
        self.ballot = ballot
        self.status = RECOVERING
        self.newleader_acks.clear()
        self.newstate_acks.clear()
        self.messages.clear_acks()
        self.keep_ballots()

    def state(self) -> NewLeaderAck:
        return NewLeaderAck(self.ballot, self.cballot, self.clock, *self.messages.told())

    def on_new_leader(self, sender: int, packet: NewLeader) -> None:
        # It may have joined this ballot when another told that it is abandoned.
        if packet.ballot >= self.ballot and packet.ballot > self.cballot:
            self.join(packet.ballot)
            self.send((sender,), self.state())
            self.check_leader()

    def on_newleader_ack(self, sender: int, packet: NewLeaderAck) -> None:
        if self.status != RECOVERING or packet.ballot != self.ballot or self.ballot == self.cballot:
            return
        self.newleader_acks[sender] = packet
        states = [self.newleader_acks[j] for j in sorted(self.newleader_acks)]
        if 2 * len(states) <= len(self.group):
            return
        newest = max([ack.cballot for ack in states])
        self.begin_ballot(max([ack.clock for ack in states]))
        for ack in states:
            self.store(ack, ACCEPTED if ack.cballot == newest else COMMITTED)
        self.send_to_others(self.group, NewState(self.ballot, self.clock, *self.messages.told()))
        self.newleader_acks.clear()
        self.on_newstate_ack(self.process, NewStateAck(self.ballot))

    def begin_ballot(self, clock: int) -> None:
        """Forget what is not committed, unless the state of this ballot is told once more."""
        self.clock = max(self.clock, clock)
        if self.cballot < self.ballot:
            for number, known in self.messages.fall_back():
                self.write(number, Entry(known.m, known.phase, known.gts, self.clock))
        self.cballot = self.ballot
        self.keep_ballots()

    def store(self, told: NewLeaderAck | NewState, least: int) -> None:
        """Take over the state of messages that are in this phase at least."""
        for known in self.messages.take_over(told, least):
            self.keep(known)

    def on_new_state(self, sender: int, packet: NewState) -> None:
        if self.status != RECOVERING or packet.ballot != self.ballot:
            return
        self.status = FOLLOWER
        self.begin_ballot(packet.clock)
        self.store(packet, ACCEPTED)
        self.send((sender,), NewStateAck(packet.ballot))
        for known in self.messages.all() if self.restarts else ():
            # It may have been proposed before the state came, and the leader may not know it.
            self.check_accepts(known)
            self.tell_leader(known)

    def on_newstate_ack(self, sender: int, packet: NewStateAck) -> None:
        if self.status != RECOVERING or packet.ballot != self.ballot:
            return
        self.newstate_acks.add(sender)
        if 2 * len({*self.newstate_acks, self.process}) > len(self.group):
            self.newstate_acks.clear()
            self.lead()

    def lead(self) -> None:
        """Deliver again what followers may lack, and propose again what other groups may lack."""
        self.status = LEADER
        self.deliver_again(self.group)
        for known in self.messages.all():
            self.propose(known)
        self.turn.has_committed = True

    def deliver_again(self, to: tuple[int, ...]) -> None:
        for m in self.messages.settled:
            self.send_deliver(self.messages.known[m], to)
        self.send_all()

    # Who leads.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Leader):
            self.trusted = notice.trusted
            self.check_leader()
        self.end_turn()
        self.pass_on(notice)

    def check_leader(self) -> None:
        """If the leader of the highest ballot is suspected, the first that is not takes over."""
        if leader_of(self.group, self.ballot) in self.trusted:
            return
        if self.trusted[0] == self.process:
            self.recover()
        else:
            self.send((self.trusted[0],), Abandoned(self.ballot))

    def on_abandoned(self, packet: Abandoned) -> None:
        if packet.ballot > self.ballot:
            self.join(packet.ballot)
            self.check_leader()

    # Stable storage, and starting again.

    def keep(self, known: Progress) -> None:
        self.write(clock_of(known.lts), Entry(known.m, known.phase, known.gts, self.clock))

    def keep_ballots(self) -> None:
        self.save(self.messages.joined(self.ballot, self.cballot, self.clock))

    def on_restart(self, stored: Stored) -> None:
        self.ballot, self.cballot, self.clock = self.messages.load(stored, self.is_top)
        self.status = RECOVERING
        self.restarts = True
        self.send_to_others(tuple(range(self.size)), Restarted())
        if leader_of(self.group, self.ballot) == self.process:
            self.recover()
        self.end_turn()

    def on_restarted(self, sender: int) -> None:
        """Send again what may be lost: the state of the ballot, what is proposed or remembered."""
        self.restarts = True
        if sender in self.group and leader_of(self.group, self.ballot) == self.process:
            self.send((sender,), NewLeader(self.ballot))
            if self.ballot == self.cballot:
                self.send((sender,), NewState(self.ballot, self.clock, *self.messages.told()))
            if self.status == LEADER:
                self.deliver_again((sender,))
        for known in self.messages.addressed_to(sender):
            if self.status == LEADER:
                self.send_to_others((sender,), Accept(known.m, self.cballot, known.lts))
            elif known.m.id in self.messages.undelivered:
                self.send((sender,), Multicast(known.m))
        self.check_leader()

    def tell_leader(self, known: Progress) -> None:
        if self.status == FOLLOWER and known.phase == START:
            self.send((leader_of(self.group, self.ballot),), Multicast(known.m))

    # Forgetting.

    def forget(self, stable: Stamp) -> None:
        """Forget it, unless a layer above would have to be told of it again."""
        if self.is_top and self.messages.forget(stable):
            self.keep_ballots()
            self.truncate(self.messages.first_needed())

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        packets = separated(sender, packet, self.process, self.context.replicas)
        if not packets or not all(self.is_sound(sender, one) for one in packets):
            raise self.refuse(sender, packet)
        for one in packets:
            self.handle(sender, one)
        self.end_turn()

    def handle(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Multicast):
            known = self.on_multicast(packet.m)
            if known is not None and self.restarts and sender not in self.group:
                self.tell_leader(known)
        elif isinstance(packet, Accept):
            self.on_accept(packet)
        elif isinstance(packet, AcceptAck):
            self.on_accept_ack(sender, packet)
        elif isinstance(packet, Deliver):
            self.on_deliver(packet)
        elif isinstance(packet, NewLeader):
            self.on_new_leader(sender, packet)
        elif isinstance(packet, NewLeaderAck):
            self.on_newleader_ack(sender, packet)
        elif isinstance(packet, NewState):
            self.on_new_state(sender, packet)
        elif isinstance(packet, NewStateAck):
            self.on_newstate_ack(sender, packet)
        elif isinstance(packet, Abandoned):
            self.on_abandoned(packet)
        elif isinstance(packet, Restarted):
            self.on_restarted(sender)

    def is_sound(self, sender: int, packet: Packet) -> bool:
        """Tell whether another process, if it is correct, may have sent this to this one."""
        if isinstance(packet, AcceptAck):
            known = self.messages.known.get(packet.m)
            if known is None:
                return self.restarts or self.messages.delivered.has(packet.m)
            return self.is_ours(known.ballot_acknowledged(sender, packet.ballots, self.g0))
        if isinstance(packet, NewLeaderAck | NewStateAck):
            return self.is_ours(packet.ballot)
        if isinstance(packet, Deliver) and packet.ballot == self.cballot:
            return self.status != FOLLOWER or self.messages.may_deliver(packet.m, packet.gts)
        return True

    def is_ours(self, ballot: int) -> bool:
        return leader_of(self.group, ballot) == self.process and ballot <= self.ballot
