"""PrimCast: atomic multicast among groups of replicas, three delays at every destination.

Source: L. Pacheco, P. Coelho, F. Pedone, "PrimCast: a latency-efficient atomic multicast",
Middleware 2023, and the authors' public prototype, whose names are used here. The primary of each
destination group gives a message a local timestamp, and a majority of the group acknowledges it, in
one epoch, to all destinations. The final timestamp is the highest local one. A process delivers in
the order of final timestamps; that nothing with a lower one can follow it knows from clocks alone:
the primary's, and those of a majority, are as high.

Assumes reliable FIFO channels, groups of 2f + 1 replicas of which f may crash without recovery, and
a leader oracle below (`leader`) that may err: in the end, those that crashed are suspected and
nobody else is. Guarantees total (acyclic) order and uniform agreement whatever is suspected, and
that what a correct process multicasts is delivered once the oracle errs no more. Genuine. The
destinations of a message are a union of whole groups.

What the sources leave open, or do otherwise, is on the page of this protocol. In short: what the
primary acknowledges it sends with the message, so that no destination misses it if the origin
crashes; who has promised an epoch whose candidate is suspected tells the next one of it; what a
whole group has delivered and acknowledged in one epoch is forgotten.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Record
from flexgroup.core.message import Message, MessageId, Packet, Stamp, clock_of, process_of, stamp
from flexgroup.core.replicas import group_of
from flexgroup.protocols.parts.group_timestamps import GroupTimestamps
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.proposals import Proposals, Proposed, last
from flexgroup.protocols.parts.timestamps import FAR


@final
class Start(Packet):
    """(start, m)."""

    m: Message


@final
class Proposal(Packet):
    """(ack, m, epoch, ts) of the primary, with m; its group has delivered all up to `stable`."""

    m: Message
    epoch: Stamp
    ts: int
    stable: int


@final
class Ack(Packet):
    """(ack, m, epoch, ts) of another replica, which has delivered all proposals up to `have`."""

    m: MessageId
    epoch: Stamp
    ts: int
    have: int


@final
class Bump(Packet):
    """(bump, epoch, clock): I promised this epoch, and my clock has come this far."""

    epoch: Stamp
    clock: int


@final
class NewEpoch(Packet):
    """(new-epoch, epoch): promise to take part in no lower one."""

    epoch: Stamp


@final
class Promise(Packet):
    """(promise, epoch, ...): what I know, as of the epoch `current`: my clock, and T.

    `ts` has the timestamps of T and `messages` its messages, in that order.
    """

    epoch: Stamp
    current: Stamp
    clock: int
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class NewState(Packet):
    """(new-state, epoch, ...): the epoch begins with this clock and this T."""

    epoch: Stamp
    clock: int
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class AcceptEpoch(Packet):
    """(accept-epoch, epoch, clock): I took over the state with which this epoch begins."""

    epoch: Stamp
    clock: int


@final
class Candidacy(Record):
    """What a process that begins an epoch has been promised."""

    current: Stamp
    clock: int
    T: list[Proposed]
    """The T of the highest epoch and, in that epoch, the longest."""
    promises: set[int] = set()


class PrimCast(Layer):
    __slots__ = ("E_cur", "E_prom", "T", "accepted", "candidacy", "clock", "group", "min_clock",
                 "timestamps", "trusted")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.LEADER})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (
        Start, Proposal, Ack, Bump, NewEpoch, Promise, NewState, AcceptEpoch
    )  # fmt: skip
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
        """What the primary proposed, in the order of timestamps, but for what is forgotten."""
        self.min_clock: dict[int, int] = dict.fromkeys(self.group, 0)
        """The clock of each member is as high, and was when it promised an epoch above E_prom."""
        self.accepted: dict[int, Stamp] = dict.fromkeys(self.group, self.E_cur)
        """The highest epoch that each member is known to have been in."""
        self.timestamps = GroupTimestamps(context.replicas, KnownMessages())
        """What the paper searches for in the messages that came: local-ts, min-ts, final-ts."""
        self.candidacy: Candidacy | None = None
        self.trusted = self.group
        """Who is not suspected, in the eyes of the oracle; the first should lead if nobody does."""

    def is_primary(self) -> bool:
        return self.E_cur == self.E_prom and process_of(self.E_cur) == self.process

    def is_quorum(self, count: int) -> bool:
        return 2 * count > len(self.group)

    def send_to_others(self, members: tuple[int, ...], packet: Packet) -> None:
        others = tuple([j for j in members if j != self.process])
        if others:
            self.send(others, packet)

    # Multicast, and local timestamps.

    def on_cast(self, m: Message) -> None:
        if not self.are_whole_groups(m):
            raise UsageError(
                f"a message to {','.join(map(str, m.destinations))} cannot be multicast: with "
                "primcast, a message goes to all members of one or several groups of replicas"
            )
        self.send_to_others(m.destinations, Start(m))
        if self.process in m.destinations:
            self.on_start_of(m)
            self.try_deliver()

    def on_start_of(self, m: Message) -> None:
        """Propose m, or remember it until this process is the primary."""
        if not self.timestamps.delivered.has(m.id):
            self.timestamps.known(m.id).m = m
            self.propose(m)

    def propose(self, m: Message) -> None:
        if not self.is_primary() or not self.timestamps.is_new(m.id):
            return
        if len(self.T.have) == len(self.group) - 1:
            self.T.forget(min([self.delivered_until(), *self.T.have.values()]))
        proposal = Proposal(m, self.E_cur, self.clock + 1, self.T.stable)
        self.send_to_others(m.destinations, proposal)
        self.append(proposal)
        self.timestamps.count_ack(self.process, m.id, self.E_cur, self.clock)

    def on_proposal(self, sender: int, packet: Proposal) -> None:
        """The ack of a primary, this group's or another's, which brings m as Start does."""
        if sender not in self.group:
            self.advance(packet.ts)
            self.on_start_of(packet.m)
        elif packet.epoch < self.E_prom:
            self.on_start_of(packet.m)
            self.tell_promise(sender)
        elif self.is_next(packet):
            self.T.forget(min(packet.stable, self.delivered_until()))
            self.append(packet)
            self.acknowledge(packet.ts, packet.m)
        else:
            raise self.refuse(sender, packet)
        self.timestamps.count_ack(sender, packet.m.id, packet.epoch, packet.ts)

    def append(self, packet: Proposal) -> None:
        """Add a proposal of the primary, maybe this process, to T."""
        self.T.entries.append((packet.ts, packet.m))
        self.timestamps.propose(packet.m, packet.ts)
        self.clock = max(packet.ts, self.clock)
        self.note_clock(self.process, self.clock)
        self.note_clock(process_of(packet.epoch), packet.ts)

    def acknowledge(self, ts: int, m: Message) -> None:
        self.send_to_others(m.destinations, Ack(m.id, self.E_cur, ts, self.delivered_until()))
        self.timestamps.count_ack(self.process, m.id, self.E_cur, ts)

    def delivered_until(self) -> int:
        return self.T.delivered_until(self.timestamps.delivered)

    def on_ack(self, sender: int, packet: Ack) -> None:
        if sender in self.group:
            self.accepted[sender] = max(packet.epoch, self.accepted[sender])
            self.note_clock(sender, packet.ts)
            if packet.epoch == self.E_cur:
                self.T.have[sender] = packet.have
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
        if self.E_cur == self.E_prom and self.is_quorum(len(in_epoch)):
            until = min(self.quorum_clock(), self.min_clock[process_of(self.E_cur)])
            while (m := self.timestamps.take_first(until)) is not None:
                self.deliver(m)

    def quorum_clock(self) -> int:
        """The clocks of a majority are as high: no later epoch begins with a lower one."""
        return sorted(self.min_clock.values())[(len(self.group) - 1) // 2]

    # A new epoch.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Leader):
            self.trusted = notice.trusted
            self.check_leader()
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
        self.send((member,), Bump(self.E_prom, self.clock))

    def hear_of(self, epoch: Stamp) -> None:
        """Take part in no epoch below this one, and deliver nothing before it, or a later one.

        The clocks of those that have promised it may have come too late for its candidate.
        """
        if epoch > self.E_prom:
            self.E_prom = epoch
            self.candidacy = None
            self.check_leader()

    def new_epoch(self) -> None:
        self.E_prom = stamp(clock_of(self.E_prom) + 1, self.process)
        self.candidacy = Candidacy(self.E_cur, self.clock, self.T.entries.copy(), {self.process})
        self.send_to_others(self.group, NewEpoch(self.E_prom))
        self.check_promises(self.candidacy)

    def on_new_epoch(self, sender: int, packet: NewEpoch) -> None:
        self.E_prom = packet.epoch
        self.candidacy = None
        self.send((sender,), Promise(self.E_prom, self.E_cur, self.clock, *self.T.flat()))
        self.check_leader()

    def on_promise(self, sender: int, packet: Promise) -> None:
        candidacy = self.candidacy
        if candidacy is None or packet.epoch != self.E_prom:
            return
        candidacy.promises.add(sender)
        candidacy.clock = max(packet.clock, candidacy.clock)
        T = list(zip(packet.ts, packet.messages, strict=True))
        if (packet.current, last(T)) > (candidacy.current, last(candidacy.T)):
            candidacy.current = packet.current
            candidacy.T = T
        self.check_promises(candidacy)

    def check_promises(self, candidacy: Candidacy) -> None:
        """Begin the epoch with the highest clock and the best T of a majority."""
        if self.is_quorum(len(candidacy.promises)):
            self.enter(self.E_prom, max(candidacy.clock, self.clock), candidacy.T)
            self.send_to_others(self.group, NewState(self.E_cur, self.clock, *self.T.flat()))
            self.tell_other_groups()
            self.propose_waiting()

    def tell_other_groups(self) -> None:
        """Acknowledge T to the other groups, to which the primary before may not have sent it."""
        for ts, m in self.T.entries:
            remote = tuple([j for j in m.destinations if j not in self.group])
            self.send_to_others(remote, Proposal(m, self.E_cur, ts, self.T.stable))

    def propose_waiting(self) -> None:
        for id_ in sorted(self.timestamps.pending):
            m = self.timestamps.pending[id_].m
            if m is not None:
                self.propose(m)

    def on_new_state(self, packet: NewState) -> None:
        self.enter(packet.epoch, packet.clock, list(zip(packet.ts, packet.messages, strict=True)))
        self.send_to_others(self.group, AcceptEpoch(self.E_cur, self.clock))
        self.acknowledge_state()
        self.check_leader()

    def acknowledge_state(self) -> None:
        for ts, m in self.T.entries:
            self.acknowledge(ts, m)

    def enter(self, epoch: Stamp, clock: int, T: list[Proposed]) -> None:
        """Take over T, which the primary of the epoch acknowledges thereby, and the clock."""
        primary = process_of(epoch)
        self.E_cur = self.E_prom = epoch
        self.candidacy = None
        self.clock = max(clock, self.clock)
        self.accepted[primary] = self.accepted[self.process] = epoch
        self.note_clock(primary, clock)
        self.note_clock(self.process, self.clock)
        self.T.begin(T)
        self.timestamps.propose_nothing()
        for ts, m in T:
            self.timestamps.propose(m, ts)
            self.timestamps.count_ack(primary, m.id, epoch, ts)

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Start) and self.is_ours(packet.m):
            self.on_start_of(packet.m)
        elif not self.is_sound(sender, packet):
            raise self.refuse(sender, packet)
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
        self.try_deliver()

    def are_whole_groups(self, m: Message) -> bool:
        groups = [group for group in self.context.replicas if group[0] in m.destinations]
        return bool(groups) and m.destinations == tuple([j for group in groups for j in group])

    def is_ours(self, m: Message) -> bool:
        return self.is_for_me(m) and self.are_whole_groups(m)

    def is_next(self, packet: Proposal) -> bool:
        """Tell whether the primary may have proposed it after all of T."""
        is_new = packet.epoch == self.E_cur and packet.ts > last(self.T.entries)
        return is_new and self.timestamps.is_new(packet.m.id)

    def is_sound(self, sender: int, packet: Packet) -> bool:
        """Tell whether another replica, if it is correct, may have sent it."""
        if sender == self.process or not isinstance(
            packet, Proposal | Ack | Bump | NewEpoch | Promise | NewState | AcceptEpoch
        ):
            return False
        group = group_of(self.context.replicas, sender)
        owner = process_of(packet.epoch)
        is_ahead = owner == self.process and packet.epoch > self.E_prom
        if owner not in group or packet.epoch >= FAR or is_ahead:
            return False
        if isinstance(packet, Proposal):
            return owner == sender and self.is_ours(packet.m) and 0 < packet.ts < FAR
        if isinstance(packet, Ack):
            known = self.timestamps.pending.get(packet.m)
            is_for_sender = known is None or known.m is None or sender in known.m.destinations
            return owner != sender and is_for_sender and 0 < packet.ts < FAR
        if group != self.group:
            return False
        if isinstance(packet, NewEpoch):
            return owner == sender
        if isinstance(packet, Promise | NewState) and not self.is_T(packet.ts, packet.messages):
            return False
        if isinstance(packet, Promise) and (
            owner != self.process or packet.current >= packet.epoch
        ):
            return False
        if isinstance(packet, NewState) and (owner != sender or packet.epoch == self.E_cur):
            return False
        return packet.clock < FAR

    def is_T(self, ts: tuple[int, ...], messages: tuple[Message, ...]) -> bool:
        is_sorted = len(ts) == len(messages) and list(ts) == sorted(set(ts))
        return is_sorted and max(ts, default=0) < FAR and all(map(self.is_ours, messages))
