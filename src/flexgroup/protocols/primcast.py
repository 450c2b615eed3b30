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

from bisect import bisect_left, insort
from typing import ClassVar, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Record
from flexgroup.core.message import (
    Message,
    MessageId,
    Packet,
    Stamp,
    clock_of,
    process_of,
    stamp,
)
from flexgroup.core.replicas import group_of
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.timestamps import FAR

Proposed = tuple[int, Message]
"""A message, and the local timestamp that the primary gave it."""


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
class Pending(Record):
    """What is known of a message that is not delivered."""

    m: Message | None = None
    """None if an acknowledgement came first."""
    ts: int = 0
    """Its timestamp in T, or 0."""
    acks: dict[Stamp, set[int]] = {}
    """Who acknowledged it, by epoch; the owner of an epoch says of which group it is."""
    local_ts: dict[int, int] = {}
    """The local timestamps that are decided, by the lowest member of the group."""
    min_ts: int = 0
    """Its final timestamp is not lower; 0 if it is not in T."""


@final
class Candidacy(Record):
    """What a process that begins an epoch has been promised."""

    current: Stamp
    clock: int
    T: list[Proposed]
    """The T of the highest epoch and, in that epoch, the longest."""
    promises: set[int] = set()


class PrimCast(Layer):
    __slots__ = ("E_cur", "E_prom", "T", "accepted", "candidacy", "clock", "delivered",
                 "done", "group", "have", "min_clock", "order", "pending", "stable",
                 "trusted")  # fmt: skip

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
        self.T: list[Proposed] = []
        """What the primary proposed, in the order of timestamps, but for what is forgotten."""
        self.min_clock: dict[int, int] = dict.fromkeys(self.group, 0)
        """The clock of each member is as high, and was when it promised an epoch above E_prom."""
        self.accepted: dict[int, Stamp] = dict.fromkeys(self.group, self.E_cur)
        """The highest epoch that each member is known to have been in."""
        self.delivered = KnownMessages()
        # What the paper searches for in the messages that came.
        self.pending: dict[MessageId, Pending] = {}
        self.order: list[tuple[int, MessageId]] = []
        """Messages in T that are not delivered, by their min-ts."""
        self.candidacy: Candidacy | None = None
        self.trusted = self.group
        """Who is not suspected, in the eyes of the oracle; the first should lead if nobody does."""
        # What is forgotten.
        self.done = 0
        """How many entries of T, from the first on, are delivered."""
        self.have: dict[int, int] = {}
        """Up to which timestamp other members, in this epoch, have delivered all of T."""
        self.stable = 0
        """Up to which timestamp T is forgotten."""

    def is_primary(self) -> bool:
        return self.E_cur == self.E_prom and process_of(self.E_cur) == self.process

    def is_quorum(self, count: int) -> bool:
        return 2 * count > len(self.group)

    def send_to_group(self, packet: Packet) -> None:
        if len(self.group) > 1:
            self.send(tuple([j for j in self.group if j != self.process]), packet)

    def send_to_destinations(self, m: Message, packet: Packet) -> None:
        others = tuple([j for j in m.destinations if j != self.process])
        if others:
            self.send(others, packet)

    # Multicast, and local timestamps.

    def on_cast(self, m: Message) -> None:
        if not self.are_whole_groups(m):
            raise UsageError(
                f"a message to {','.join(map(str, m.destinations))} cannot be multicast: with "
                "primcast, a message goes to all members of one or several groups of replicas"
            )
        self.send_to_destinations(m, Start(m))
        if self.process in m.destinations:
            self.on_start_of(m)
            self.try_deliver()

    def on_start_of(self, m: Message) -> None:
        """Propose m, or remember it until this process is the primary."""
        if not self.delivered.has(m.id):
            self.known(m.id).m = m
            self.propose(m)

    def known(self, m: MessageId) -> Pending:
        known = self.pending.get(m)
        if known is None:
            known = self.pending[m] = Pending()
        return known

    def propose(self, m: Message) -> None:
        if not self.is_primary() or self.pending[m.id].ts:
            return
        if len(self.have) == len(self.group) - 1:
            self.forget(min([self.delivered_until(), *self.have.values()]))
        self.clock += 1
        self.send_to_destinations(m, Proposal(m, self.E_cur, self.clock, self.stable))
        self.append(m, self.clock)
        self.count_ack(self.process, m.id, self.E_cur, self.clock)

    def on_proposal(self, sender: int, packet: Proposal) -> None:
        """The ack of a primary, this group's or another's; no primary is asked to propose it."""
        m = packet.m
        if sender not in self.group:
            self.advance(packet.ts)
            self.on_start_of(m)
        elif packet.epoch < self.E_prom:
            self.on_start_of(m)
            self.send((sender,), Bump(self.E_prom, self.clock))
        elif packet.epoch == self.E_cur and self.is_next(packet):
            self.known(m.id).m = m
            self.forget(min(packet.stable, self.delivered_until()))
            self.append(m, packet.ts)
            self.note_clock(sender, packet.ts)
            self.acknowledge(packet.ts, m)
        else:
            raise self.refuse(sender, packet)
        self.count_ack(sender, m.id, packet.epoch, packet.ts)

    def append(self, m: Message, ts: int) -> None:
        """Add a proposal to T."""
        self.T.append((ts, m))
        known = self.pending[m.id]
        known.ts = ts
        self.place(m.id, known)
        self.clock = max(self.clock, ts)
        self.note_clock(self.process, self.clock)

    def acknowledge(self, ts: int, m: Message) -> None:
        self.send_to_destinations(m, Ack(m.id, self.E_cur, ts, self.delivered_until()))
        self.count_ack(self.process, m.id, self.E_cur, ts)

    def on_ack(self, sender: int, packet: Ack) -> None:
        if sender in self.group:
            self.accepted[sender] = max(packet.epoch, self.accepted[sender])
            self.note_clock(sender, packet.ts)
            if packet.epoch == self.E_cur:
                self.have[sender] = packet.have
            self.hear_of(packet.epoch)
        else:
            self.advance(packet.ts)
        self.count_ack(sender, packet.m, packet.epoch, packet.ts)

    def count_ack(self, sender: int, m: MessageId, epoch: Stamp, ts: int) -> None:
        """Decide local-ts(m) of a group once a majority has acknowledged it in one epoch."""
        group = group_of(self.context.replicas, sender)
        if self.delivered.has(m) or group[0] in self.known(m).local_ts:
            return
        known = self.known(m)
        known.acks.setdefault(epoch, set()).add(sender)
        if 2 * len(known.acks[epoch]) > len(group):
            known.local_ts[group[0]] = ts
            for other in list(known.acks):
                if process_of(other) in group:
                    del known.acks[other]
            self.place(m, known)

    def place(self, m: MessageId, known: Pending) -> None:
        """Give m its place in the order of min-ts, the highest of the timestamps that are sure."""
        ts = max([known.ts, *known.local_ts.values()]) if known.ts else 0
        if ts != known.min_ts:
            if known.min_ts:
                del self.order[bisect_left(self.order, (known.min_ts, m))]
            if ts:
                insort(self.order, (ts, m))
            known.min_ts = ts

    # Clocks.

    def advance(self, ts: int) -> None:
        """Take over the clock of another group, and tell this process's own group."""
        if ts > self.clock:
            self.clock = ts
            self.note_clock(self.process, ts)
            self.send_to_group(Bump(self.E_prom, ts))

    def on_bump(self, sender: int, packet: Bump) -> None:
        self.note_clock(sender, packet.clock)
        self.hear_of(packet.epoch)

    def note_clock(self, member: int, clock: int) -> None:
        self.min_clock[member] = max(clock, self.min_clock[member])

    # Delivery.

    def try_deliver(self) -> None:
        """Deliver in the order of final timestamps, and of identities where these are equal."""
        in_epoch = [j for j in self.group if self.accepted[j] >= self.E_cur]
        if self.E_cur != self.E_prom or not self.is_quorum(len(in_epoch)):
            return
        until = min(self.quorum_clock(), self.min_clock[process_of(self.E_cur)])
        delivered = 0
        for ts, id_ in self.order:
            m = self.pending[id_].m
            if m is None or ts > until or not self.is_final(m):
                break
            del self.pending[id_]
            self.delivered.add(id_)
            self.deliver(m)
            delivered += 1
        del self.order[:delivered]

    def quorum_clock(self) -> int:
        """The clocks of a majority are as high: no later epoch begins with a lower one."""
        return sorted(self.min_clock.values())[(len(self.group) - 1) // 2]

    def is_final(self, m: Message) -> bool:
        local_ts = self.pending[m.id].local_ts
        for group in self.context.replicas:
            if group[0] in m.destinations and group[0] not in local_ts:
                return False
        return True

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
        if process_of(self.E_prom) in self.trusted:
            return
        if self.trusted[0] == self.process:
            self.new_epoch()
        elif self.E_prom > self.E_cur:
            self.tell_next()

    def tell_next(self) -> None:
        self.send((self.trusted[0],), Bump(self.E_prom, self.clock))

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
        self.candidacy = Candidacy(self.E_cur, self.clock, self.T.copy(), {self.process})
        self.send_to_group(NewEpoch(self.E_prom))
        self.check_promises(self.candidacy)

    def on_new_epoch(self, sender: int, packet: NewEpoch) -> None:
        if packet.epoch < self.E_prom:
            self.send((sender,), Bump(self.E_prom, self.clock))
            return
        self.E_prom = packet.epoch
        self.candidacy = None
        ts, messages = flat(self.T)
        self.send((sender,), Promise(self.E_prom, self.E_cur, self.clock, ts, messages))
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
        if not self.is_quorum(len(candidacy.promises)):
            return
        self.enter(self.E_prom, max(candidacy.clock, self.clock), candidacy.T)
        ts, messages = flat(self.T)
        self.send_to_group(NewState(self.E_cur, self.clock, ts, messages))
        self.tell_other_groups()
        self.propose_waiting()
        self.try_deliver()

    def tell_other_groups(self) -> None:
        """Acknowledge T to the other groups, to which the primary before may not have sent it."""
        for ts, m in self.T:
            remote = tuple([j for j in m.destinations if j not in self.group])
            if remote:
                self.send(remote, Proposal(m, self.E_cur, ts, self.stable))

    def propose_waiting(self) -> None:
        for id_ in sorted(self.pending):
            m = self.pending[id_].m
            if m is not None:
                self.propose(m)

    def on_new_state(self, sender: int, packet: NewState) -> None:
        if packet.epoch < self.E_prom:
            self.send((sender,), Bump(self.E_prom, self.clock))
            return
        self.enter(packet.epoch, packet.clock, list(zip(packet.ts, packet.messages, strict=True)))
        self.send_to_group(AcceptEpoch(self.E_cur, self.clock))
        self.acknowledge_state()
        self.check_leader()

    def acknowledge_state(self) -> None:
        for ts, m in self.T:
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
        self.T = T
        self.done = 0
        self.have.clear()
        for known in self.pending.values():
            known.ts = 0
        for ts, m in T:
            if not self.delivered.has(m.id):
                self.known(m.id).m = m
                self.known(m.id).ts = ts
            self.count_ack(primary, m.id, epoch, ts)
        for id_ in sorted(self.pending):
            self.place(id_, self.pending[id_])

    def on_accept_epoch(self, sender: int, packet: AcceptEpoch) -> None:
        self.accepted[sender] = max(packet.epoch, self.accepted[sender])
        self.on_bump(sender, Bump(packet.epoch, packet.clock))

    # What is forgotten.

    def delivered_until(self) -> int:
        """The timestamp up to which all of T is delivered here."""
        while self.done < len(self.T) and self.delivered.has(self.T[self.done][1].id):
            self.done += 1
        return self.T[self.done - 1][0] if self.done else self.stable

    def forget(self, stable: int) -> None:
        """All members have delivered T up to here, and have acknowledged it in this epoch."""
        count = 0
        while count < self.done and self.T[count][0] <= stable:
            count += 1
        del self.T[:count]
        self.done -= count
        self.stable = max(stable, self.stable)

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
        elif isinstance(packet, Bump):
            self.on_bump(sender, packet)
        elif isinstance(packet, NewEpoch):
            self.on_new_epoch(sender, packet)
        elif isinstance(packet, Promise):
            self.on_promise(sender, packet)
        elif isinstance(packet, NewState):
            self.on_new_state(sender, packet)
        elif isinstance(packet, AcceptEpoch):
            self.on_accept_epoch(sender, packet)
        self.try_deliver()

    def are_whole_groups(self, m: Message) -> bool:
        members = [
            j for group in self.context.replicas if group[0] in m.destinations for j in group
        ]
        return bool(members) and tuple(members) == m.destinations

    def is_ours(self, m: Message) -> bool:
        return self.is_for_me(m) and self.are_whole_groups(m)

    def is_next(self, packet: Proposal) -> bool:
        """Tell whether the primary may have proposed it after all of T."""
        known = self.pending.get(packet.m.id)
        is_new = known is None or not known.ts
        return is_new and not self.delivered.has(packet.m.id) and packet.ts > last(self.T)

    def is_sound(self, sender: int, packet: Packet) -> bool:
        """Tell whether another replica, if it is correct, may have sent it."""
        group = group_of(self.context.replicas, sender)
        if sender == self.process or not group:
            return False
        if isinstance(packet, Proposal):
            return self.is_ours(packet.m) and self.is_ack(sender, sender, packet.epoch, packet.ts)
        if isinstance(packet, Ack):
            primary = process_of(packet.epoch)
            known = self.pending.get(packet.m)
            if known is not None and known.m is not None and sender not in known.m.destinations:
                return False
            return primary != sender and self.is_ack(sender, primary, packet.epoch, packet.ts)
        if group != self.group:
            return False
        if isinstance(packet, NewEpoch):
            return self.is_epoch(packet.epoch, sender)
        if isinstance(packet, NewState):
            if packet.epoch == self.E_cur or not self.is_T(packet.ts, packet.messages):
                return False
            return self.is_epoch(packet.epoch, sender) and packet.clock < FAR
        if isinstance(packet, Promise):
            if packet.current >= packet.epoch or not self.is_T(packet.ts, packet.messages):
                return False
            return self.is_epoch(packet.epoch, self.process) and packet.clock < FAR
        if isinstance(packet, Bump | AcceptEpoch):
            return self.is_epoch(packet.epoch, process_of(packet.epoch)) and packet.clock < FAR
        return False

    def is_ack(self, sender: int, primary: int, epoch: Stamp, ts: int) -> bool:
        if sender in self.group and not self.is_epoch(epoch, primary):
            return False
        return (
            process_of(epoch) == primary
            and primary in group_of(self.context.replicas, sender)
            and epoch < FAR
            and 0 < ts < FAR
        )

    def is_epoch(self, epoch: Stamp, owner: int) -> bool:
        """Tell whether this member owns the epoch; of its own, this process has promised all."""
        if process_of(epoch) != owner or owner not in self.group or epoch >= FAR:
            return False
        return owner != self.process or epoch <= self.E_prom

    def is_T(self, ts: tuple[int, ...], messages: tuple[Message, ...]) -> bool:
        if len(ts) != len(messages) or list(ts) != sorted(set(ts)) or max(ts, default=0) >= FAR:
            return False
        return all(map(self.is_ours, messages))


def last(T: list[Proposed]) -> int:
    """The highest timestamp in T."""
    return T[-1][0] if T else 0


def flat(T: list[Proposed]) -> tuple[tuple[int, ...], tuple[Message, ...]]:
    """The timestamps in T, and the messages."""
    return tuple([ts for ts, _ in T]), tuple([m for _, m in T])
