"""White-Box: Skeen's atomic multicast, its destinations replicated, with Paxos woven into it.

Source: A. Gotsman, A. Lefort and G. Chockler, "White-box atomic multicast", DSN 2019 (extended
version: arXiv 1904.07171), whose names are used here; the normal case is also section 3.2.1 of the
DCC dissertation (Louzada 2024). The leader of each destination group gives m a local timestamp and
has it ACCEPTed by all processes of all destination groups at once, which acknowledge it to all of
these leaders. Majorities of every group have then stored all local timestamps, and have moved their
clocks to the highest, the global one: m is committed. Leaders DELIVER in the order of global
timestamps. A new leader has a majority of its group tell what it accepted (NEW_LEADER) and has the
same state stored by a majority (NEW_STATE) before it goes on.

Assumes reliable FIFO channels, groups of 2f + 1 replicas of which f may crash without recovery, and
a leader oracle below (`leader`) that may err: in the end, those that crashed are suspected and
nobody else is. Guarantees total order over all groups and uniform agreement whatever is suspected,
and that what a correct process multicasts is delivered once the oracle errs no more. Genuine. The
destinations of a message are whole groups.

What differs is on the page of this protocol. In short: an origin sends to all replicas, of which
followers only remember, and an ACCEPT of any group stands for a MULTICAST, so that nobody needs a
timer to retry; what is committed stays so, whatever a new leader says; who is not suspected is not
deposed; and what all destinations have delivered is forgotten.
"""

from __future__ import annotations

from typing import ClassVar, Final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice
from flexgroup.core.message import Message, MessageId, Packet, Stamp, clock_of, process_of, stamp
from flexgroup.core.replicas import check_destinations, group_of
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.ordered_message import (
    ACCEPTED,
    COMMITTED,
    FORGOTTEN,
    PROPOSED,
    START,
    WIDTH,
    OrderedMessage,
)
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
    groups_of,
    is_well_formed,
    leader_of,
)

# What a process is in its group.
LEADER: Final = "leader"
FOLLOWER: Final = "follower"
RECOVERING: Final = "recovering"


class WhiteBox(Layer):
    __slots__ = ("ballot", "cballot", "clock", "delivered", "g0", "group", "have",
                 "max_delivered_gts", "messages", "newleader_acks", "newstate_acks", "settled",
                 "stable", "status", "trusted", "undelivered")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.LEADER})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (
        Multicast, Accept, AcceptAck, Deliver, NewLeader, NewLeaderAck, NewState, NewStateAck,
        Abandoned
    )  # fmt: skip
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
        self.messages: dict[MessageId, OrderedMessage] = {}
        self.max_delivered_gts: Stamp = 0
        self.newleader_acks: dict[int, NewLeaderAck] = {}
        self.newstate_acks: set[int] = set()
        # What is not in the paper.
        self.delivered = KnownMessages()
        self.undelivered: set[MessageId] = set()
        """The messages that are not delivered here."""
        self.settled: list[MessageId] = []
        """The messages that are delivered here and not forgotten, in order."""
        self.have: dict[int, Stamp] = {}
        """The global timestamp up to which each process has delivered, as a leader was told."""
        self.stable: Stamp = 0
        """What was delivered up to this global timestamp is forgotten."""
        self.trusted = self.group
        """Who is not suspected, in the eyes of the oracle; the first should lead if nobody does."""

    def send_to_others(self, to: tuple[int, ...], packet: Packet) -> None:
        others = tuple([j for j in to if j != self.process])
        if others:
            self.send(others, packet)

    # The normal case.

    def on_cast(self, m: Message) -> None:
        check_destinations(self.context.replicas, m.destinations)
        # The leader of a destination group need not ask anybody: its ACCEPT tells all of m.
        if self.status != LEADER or self.process not in m.destinations:
            self.send_to_others(m.destinations, Multicast(m))
        if self.process in m.destinations:
            self.on_multicast(m)

    def on_multicast(self, m: Message) -> None:
        known = self.remember(m)
        if known is not None and self.status == LEADER:
            self.propose(known)

    def remember(self, m: Message) -> OrderedMessage | None:
        """What is known of m, which may have been nothing so far; None if it is forgotten."""
        known = self.messages.get(m.id)
        if known is None and not self.delivered.has(m.id):
            known = OrderedMessage(m, groups_of(self.context.replicas, m.destinations))
            self.messages[m.id] = known
            self.undelivered.add(m.id)
        return known

    def propose(self, known: OrderedMessage) -> None:
        """Send ACCEPT, once in every ballot."""
        if self.g0 in known.accepts and known.accepts[self.g0][0] == self.cballot:
            return
        if known.phase == START:
            self.clock += 1
            known.lts = stamp(self.clock, self.g0)
            known.phase = PROPOSED
        self.send_to_others(known.m.destinations, Accept(known.m, self.cballot, known.lts))
        self.accept(known, self.g0, self.cballot, known.lts)

    def on_accept(self, packet: Accept) -> None:
        self.on_multicast(packet.m)
        known = self.messages.get(packet.m.id)
        if known is not None:
            self.accept(known, process_of(packet.lts), packet.ballot, packet.lts)

    def accept(self, known: OrderedMessage, group: int, ballot: int, lts: Stamp) -> None:
        if group not in known.accepts or known.accepts[group][0] < ballot:
            known.accepts[group] = (ballot, lts)
            self.check_accepts(known)

    def check_accepts(self, known: OrderedMessage) -> None:
        """Acknowledge to the leaders when ACCEPT has come from all groups."""
        ballots = known.ballots(self.g0, self.cballot)
        if not ballots or self.status == RECOVERING:
            return
        if known.phase < ACCEPTED:
            known.phase = ACCEPTED
            known.lts = known.accepts[self.g0][1]
        self.clock = max(self.clock, clock_of(known.highest()))
        groups = [self.context.replicas[group] for group in known.groups]
        leaders = tuple(map(leader_of, groups, ballots))
        self.send_to_others(leaders, AcceptAck(known.m.id, ballots, self.max_delivered_gts))
        if self.status == LEADER:
            known.acks[self.process] = ballots
            self.check_acks(known)

    def on_accept_ack(self, sender: int, packet: AcceptAck) -> None:
        self.have[sender] = max(packet.have, self.have.get(sender, 0))
        known = self.messages.get(packet.m)
        if known is not None and known.phase != COMMITTED and self.status == LEADER:
            known.acks[sender] = packet.ballots
            self.check_acks(known)

    def check_acks(self, known: OrderedMessage) -> None:
        """Commit when majorities of all groups have acknowledged the same ballots."""
        ballots = known.ballots(self.g0, self.cballot)
        if known.phase == COMMITTED or not known.is_acknowledged(ballots, self.context.replicas):
            return
        known.phase = COMMITTED
        known.gts = known.highest()
        known.acks.clear()
        self.deliver_committed()

    def deliver_committed(self) -> None:
        """Deliver in the order of global timestamps what no local one can precede any more."""
        waiting = [self.messages[m] for m in self.undelivered]
        for known in sorted(waiting, key=OrderedMessage.place):
            if known.phase != COMMITTED:
                return
            self.check_stable()
            self.send_deliver(known)
            self.settle(known)

    def send_deliver(self, known: OrderedMessage) -> None:
        deliver = Deliver(known.m.id, self.cballot, known.lts, known.gts, self.stable)
        self.send_to_others(self.group, deliver)

    def on_deliver(self, packet: Deliver) -> None:
        if self.status != FOLLOWER or packet.ballot != self.cballot:
            return
        known = self.messages.get(packet.m)
        if known is not None:
            known.phase, known.lts, known.gts = COMMITTED, packet.lts, packet.gts
            self.clock = max(self.clock, clock_of(packet.gts))
            if packet.gts > self.max_delivered_gts:
                self.settle(known)
        self.forget(packet.stable)

    def settle(self, known: OrderedMessage) -> None:
        self.max_delivered_gts = known.gts
        self.undelivered.discard(known.m.id)
        self.settled.append(known.m.id)
        self.delivered.add(known.m.id)
        self.deliver(known.m)

    # Recovery.

    def recover(self) -> None:
        """Begin the next ballot of this process above all others that are known here."""
        turn = self.group.index(self.process) - self.ballot
        self.join(self.ballot + (turn % len(self.group) or len(self.group)))
        self.newleader_acks[self.process] = self.state_of(self.ballot)
        self.send_to_others(self.group, NewLeader(self.ballot))

    def join(self, ballot: int) -> None:
        self.ballot = ballot
        self.status = RECOVERING
        self.newleader_acks.clear()
        self.newstate_acks.clear()
        for known in self.messages.values():
            known.acks.clear()

    def state_of(self, ballot: int) -> NewLeaderAck:
        known = [self.messages[m] for m in sorted(self.messages)]
        known = [one for one in known if one.phase >= ACCEPTED]
        states = tuple([number for one in known for number in one.state()])
        messages = tuple([one.m for one in known])
        return NewLeaderAck(ballot, self.cballot, self.clock, states, messages)

    def on_new_leader(self, sender: int, packet: NewLeader) -> None:
        # It may have joined this ballot when another told that it is abandoned.
        if packet.ballot >= self.ballot and packet.ballot > self.cballot:
            self.join(packet.ballot)
            self.send((sender,), self.state_of(packet.ballot))
            self.check_leader()

    def on_newleader_ack(self, sender: int, packet: NewLeaderAck) -> None:
        if self.status != RECOVERING or packet.ballot != self.ballot or self.ballot == self.cballot:
            return
        acks = self.newleader_acks
        acks[sender] = packet
        if 2 * len(acks) <= len(self.group):
            return
        told = [acks[j] for j in sorted(acks)]
        newest = max([ack.cballot for ack in told])
        self.begin_ballot(max([ack.clock for ack in told]))
        for ack in told:
            self.store(ack, ACCEPTED if ack.cballot == newest else COMMITTED)
        state = self.state_of(self.ballot)
        new_state = NewState(self.ballot, self.clock, state.states, state.messages)
        self.send_to_others(self.group, new_state)
        acks.clear()

    def begin_ballot(self, clock: int) -> None:
        self.cballot = self.ballot
        self.clock = max(self.clock, clock)
        for known in self.messages.values():
            known.restore(FORGOTTEN, self.g0)

    def store(self, told: NewLeaderAck | NewState, least: int) -> None:
        """Take over the state of messages that are in this phase at least."""
        for place, m in enumerate(told.messages):
            state = told.states[WIDTH * place : WIDTH * (place + 1)]
            known = self.remember(m) if state[0] >= least else None
            if known is not None:
                known.restore(state, self.g0)

    def on_new_state(self, sender: int, packet: NewState) -> None:
        if self.status != RECOVERING or packet.ballot != self.ballot:
            return
        self.status = FOLLOWER
        self.begin_ballot(packet.clock)
        self.store(packet, ACCEPTED)
        self.send((sender,), NewStateAck(packet.ballot))

    def on_newstate_ack(self, sender: int, packet: NewStateAck) -> None:
        if self.status != RECOVERING or packet.ballot != self.ballot:
            return
        self.newstate_acks.add(sender)
        if 2 * (len(self.newstate_acks) + 1) > len(self.group):
            self.newstate_acks.clear()
            self.lead()

    def lead(self) -> None:
        """Deliver again what followers may lack, and propose again what other groups may lack."""
        self.status = LEADER
        for m in self.settled:
            self.send_deliver(self.messages[m])
        for known in [self.messages[m] for m in sorted(self.messages)]:
            self.propose(known)
        self.deliver_committed()

    # Who leads.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Leader):
            self.trusted = notice.trusted
            self.check_leader()
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

    # Forgetting.

    def check_stable(self) -> None:
        """Forget, at a leader, what was delivered before the first message that somebody lacks."""
        stable = self.stable
        for m in self.settled:
            known = self.messages[m]
            have = [self.have.get(j, 0) for j in known.m.destinations if j != self.process]
            if min(have, default=known.gts) < known.gts:
                break
            stable = known.gts
        self.forget(stable)

    def forget(self, stable: Stamp) -> None:
        self.stable = max(self.stable, stable)
        while self.settled and self.messages[self.settled[0]].gts <= stable:
            del self.messages[self.settled.pop(0)]

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        is_well = is_well_formed(sender, packet, self.process, self.context.replicas)
        if not is_well or not self.is_sound(sender, packet):
            raise self.refuse(sender, packet)
        if isinstance(packet, Multicast):
            self.on_multicast(packet.m)
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

    def is_sound(self, sender: int, packet: Packet) -> bool:
        """Tell whether another process, if it is correct, may have sent this to this one."""
        if isinstance(packet, AcceptAck):
            known = self.messages.get(packet.m)
            if known is None:
                return self.delivered.has(packet.m)
            if sender not in known.m.destinations or len(packet.ballots) != len(known.groups):
                return False
            return self.is_ours(packet.ballots[known.groups.index(self.g0)])
        if isinstance(packet, NewLeaderAck | NewStateAck):
            return self.is_ours(packet.ballot)
        if isinstance(packet, Deliver) and packet.ballot == self.cballot:
            known = self.messages.get(packet.m)
            return self.delivered.has(packet.m) if known is None else known.gts in (0, packet.gts)
        return True

    def is_ours(self, ballot: int) -> bool:
        return leader_of(self.group, ballot) == self.process and ballot <= self.ballot
