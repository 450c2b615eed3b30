"""PBFT: every group of replicas delivers one sequence, although a third of its members may lie.

Source: M. Castro and B. Liskov, "Practical Byzantine fault tolerance", OSDI 1999, with what their
article of 2002 (ACM TOCS 20:4) says of batches; the names are theirs. A request goes to all
replicas. The primary of a view gives a batch of requests a sequence number (PRE-PREPARE), and the
others say so to each other (PREPARE): what 2f + 1 say is *prepared*, and no other batch can be, in
this view. Who knows that tells all (COMMIT), and delivers what 2f + 1 have committed. If that takes
too long, replicas move on to the next view, whose primary has to propose again whatever may be
committed, by what 2f + 1 of them say under seals (Castro's thesis, 2001, section 3.2.4).

Assumes reliable channels, which may reorder, and whose ends are known to each other; groups of
3f + 1 replicas of which at most f are faulty: they crash, stay silent, or lie; seals that only
their process can make. Guarantees, in each group, total order and agreement among the correct ones,
whatever timers run out; and that what a correct process multicasts is delivered, if in the end
messages come sooner than timers run out. Genuine. A message goes to exactly one whole group.

What differs from the papers is on the page of this protocol. In short: sealed is what others quote,
requests, checkpoints and view changes; the state that a checkpoint is of is the sequence
itself, so who lacks a part of it is told that, by f + 1 alike; and a replica that has crashed does
not start again.
"""

from __future__ import annotations

from typing import ClassVar, Final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Recall
from flexgroup.core.message import Message, Packet, origin_of
from flexgroup.core.replicas import check_one_group, group_of
from flexgroup.protocols.parts.patience import RELAY, Patience
from flexgroup.protocols.parts.pbft_catching_up import LACK, CatchingUp
from flexgroup.protocols.parts.pbft_log import GATHER, Checkpoints, Requests, Slot, forget_votes
from flexgroup.protocols.parts.pbft_packets import (
    Batch,
    Checkpoint,
    Commit,
    Fetch,
    Fetched,
    NewView,
    Prepare,
    PrePrepare,
    Request,
    ViewChange,
    digest_of,
)
from flexgroup.protocols.parts.pbft_sequence import Sequence
from flexgroup.protocols.parts.view_changes import Quorums, Views, change_of, has_batches, may_send

INTERVAL: Final = 128
"""K: there is a checkpoint every so many sequence numbers."""

SHORT: Final = "short"
"""The option that stands for a checkpoint at each number, so that small systems show them."""

WINDOW: Final = 2
"""How many batches the primary has under way, at most."""


class Pbft(Layer):
    __slots__ = ("catching_up", "checkpoints", "others", "patience", "proposed", "quorums",
                 "requests", "sequence", "slots", "views")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Request, PrePrepare, Prepare, Commit, Checkpoint,
        ViewChange, NewView, Fetch, Fetched)  # fmt: skip
    ABOUT_THE_SAME: ClassVar[tuple[type[Packet], ...]] = (Prepare, Commit)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Batch,)
    NEEDS_REPLICAS: ClassVar[bool] = True
    NEEDS_SEALS: ClassVar[bool] = True
    OPTIONS: ClassVar[tuple[str, ...]] = (SHORT,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        interval = 1 if SHORT in context.options else INTERVAL
        group = group_of(context.replicas, context.process)
        self.quorums = Quorums(group, interval)
        self.others = tuple([j for j in group if j != context.process])
        self.views = Views(context.process, self.quorums)
        self.slots: dict[int, Slot] = {}
        """The log: what was heard of each sequence number between the water marks."""
        self.checkpoints = Checkpoints()
        self.sequence = Sequence()
        self.requests = Requests(trusted=set(group))
        self.proposed = 0
        """The last number that the primary of this view has given."""
        self.patience = Patience()
        # Not in the papers.
        self.catching_up = CatchingUp(self.others, interval, self.quorums.faulty + 1)

    @property
    def view(self) -> int:
        return self.views.view

    def send_to_others(self, packet: Packet) -> None:
        if self.others:
            self.send(self.others, packet)

    # Requests: all replicas remember them, and the primary gives them numbers.

    def on_cast(self, m: Message) -> None:
        check_one_group(self.context.replicas, m.destinations, "pbft")
        request = Request(m, self.seal(Request(m, b"")))
        if m.destinations != self.quorums.group:
            self.send(m.destinations, request)
            return
        self.send_to_others(request)
        self.remember(request)

    def remember(self, request: Request) -> None:
        if not self.sequence.taken.has(request.m.id):
            self.requests.hear(request)
            self.go_on()

    def go_on(self) -> None:
        """Propose what waits, as the primary, and wait for it; the primary, too, may lack what
        others deliver."""
        if self.views.primary == self.process and not self.views.changing:
            self.propose()
        if self.requests.pending and self.patience.is_idle and not self.views.changing:
            self.patience.wait_for(self, self.requests.next())
            if self.views.primary in self.patience.suspected:
                self.lose_patience()

    def lose_patience(self) -> None:
        """Ask for the next view, unless nobody could propose what is waited for, since its seal is
        bad: that is forgotten, and all that is like it."""
        awaited = self.requests.pending.get(self.patience.waits_for)
        self.patience.stop(self)
        if awaited is not None and self.is_authentic(awaited):
            self.change_view(self.view + 1)
            return
        self.requests.keep(sorted(self.requests.pending), self.is_authentic)
        self.go_on()

    def propose(self) -> None:
        """Give a number to all that waits, if not too much is under way."""
        high = min(self.sequence.last + WINDOW, self.checkpoints.stable + self.quorums.window)
        if self.proposed < high:
            waiting = self.requests.except_in(self.slots, self.sequence.last, self.proposed)
            batch = self.requests.to_propose(self, waiting, self.is_authentic)
            if batch:
                self.proposed += 1
                proposal = PrePrepare(self.view, self.proposed, batch)
                self.send_to_others(proposal)
                self.accept(proposal)

    def is_authentic(self, request: Request) -> bool:
        """Tell whether everybody can see that the request is that of its origin."""
        return self.is_sealed(origin_of(request.m.id), request.said(), request.seal)

    # The normal case: pre-prepare, prepare, commit.

    def is_in_window(self, sender: int, number: int, view: int = -1) -> bool:
        """Tell whether a number is between the water marks; take note if it is above them, and of
        the view that the sender takes part in."""
        self.catching_up.hear_from(sender, view)
        high = self.checkpoints.stable + self.quorums.window
        if number > high:
            self.want(self.catching_up.hear(sender, number))
        return self.checkpoints.stable < number <= high

    def slot(self, number: int) -> Slot:
        return self.slots.setdefault(number, Slot())

    def on_pre_prepare(self, sender: int, packet: PrePrepare) -> None:
        is_near = self.is_in_window(sender, packet.number, packet.view)
        if is_near and self.views.takes_part_in(packet.view):
            self.consider(packet)
        elif is_near and packet.view >= self.view:
            self.slot(packet.number).put_off(sender, packet)

    def consider(self, packet: PrePrepare) -> None:
        """Accept what the primary proposes, if it is the first for this number in this view, and is
        asked for: its origins say so, or f + 1 replicas, of whom one is correct."""
        slot = self.slot(packet.number)
        if slot.is_accepted_in(packet.view):
            return
        is_asked_for = self.requests.are_asked_for(packet, self.is_authentic)
        if is_asked_for or slot.is_vouched_for(packet, self.quorums.faulty):
            self.accept(packet)
            self.go_on()
        else:
            slot.put_off(self.views.primary, packet)

    def consider_again(self, number: int) -> None:
        """Consider what the primary has proposed when it could not be accepted."""
        early = self.slots[number].early.get(self.views.primary) if number in self.slots else None
        if early is not None and self.views.takes_part_in(early.view):
            del self.slots[number].early[self.views.primary]
            self.consider(early)

    def accept(self, packet: PrePrepare) -> None:
        slot = self.slot(packet.number)
        self.requests.add_proposed(packet, self.sequence.taken)
        prepare = Prepare(packet.view, packet.number, digest_of(packet.batch()))
        slot.accept(packet, prepare.digest)
        slot.take_prepare(self.views.primary, prepare)
        if self.views.primary != self.process:
            slot.take_prepare(self.process, prepare)
            self.send_to_others(prepare)
        self.check_prepared(slot, packet.number)

    def on_prepare(self, sender: int, packet: Prepare) -> None:
        if self.is_in_window(sender, packet.number, packet.view) and packet.view >= self.view:
            slot = self.slot(packet.number)
            if slot.take_prepare(sender, packet) and packet.view == self.view:
                self.consider_again(packet.number)
            self.check_prepared(slot, packet.number)

    def check_prepared(self, slot: Slot, number: int) -> None:
        if not slot.is_prepared_in(self.view) and slot.prepare(self.view, self.quorums.most):
            commit = Commit(self.view, number, slot.digest)
            slot.take_commit(self.process, commit)
            self.send_to_others(commit)
            self.check_committed(slot, number)

    def on_commit(self, sender: int, packet: Commit) -> None:
        is_near = self.is_in_window(sender, packet.number, packet.view)
        if is_near and packet.number > self.sequence.last:
            slot = self.slot(packet.number)
            slot.take_commit(sender, packet)
            self.check_committed(slot, packet.number)

    def check_committed(self, slot: Slot, number: int) -> None:
        if slot.accepted is not None and slot.is_committed(self.quorums.most):
            self.decide(number, slot.digest, slot.accepted.batch())
        elif slot.lacks(self.quorums.faulty + 1):
            self.catching_up.wait(self, self.slots, self.sequence.last, self.patience.ticks)

    def decide(self, number: int, digest: bytes, messages: tuple[Message, ...]) -> None:
        """Deliver what is decided, in the order of sequence numbers."""
        sequence = self.sequence
        if number <= sequence.last:
            return
        sequence.decide(number, digest, messages)
        while sequence.has_next():
            batch = sequence.take_next()
            if self.views.primary == self.process:
                self.requests.wait_for_origins_of(self, batch)
            for m in batch:
                self.requests.remove(m.id)
                self.deliver(m)
                self.patience.is_rewarded(self, m.id)
            forget_votes(self.slots, sequence.last, self.process)
            self.catching_up.answer_all(self, sequence)
            if sequence.last % self.quorums.interval == 0:
                self.make_checkpoint()
        self.catching_up.go_on(self, self.slots, sequence.last, self.patience.ticks)
        self.go_on()

    # Checkpoints, which move the water marks.

    def make_checkpoint(self) -> None:
        said = Checkpoint(self.sequence.last, self.sequence.digest, self.process, b"")
        checkpoint = said.with_seal(self.seal(said))
        self.send_to_others(checkpoint)
        self.take_checkpoint(checkpoint)

    def on_checkpoint(self, sender: int, packet: Checkpoint) -> None:
        if not self.is_sealed(sender, packet.said(), packet.seal):
            raise self.refuse(sender, packet)
        self.is_in_window(sender, packet.number)
        self.take_checkpoint(packet)

    def take_checkpoint(self, packet: Checkpoint) -> None:
        proof = self.checkpoints.take(packet, self.process, self.quorums.window, self.quorums.most)
        if proof:
            self.move_water_marks(packet.number, proof)
            self.go_on()
        recent = min(self.checkpoints.stable, self.sequence.last) - self.quorums.interval
        self.sequence.keep_recent(self, recent, self.checkpoints.of_all(self.quorums.group))

    def move_water_marks(self, stable: int, proof: tuple[Packet, ...]) -> None:
        if stable > self.checkpoints.stable:
            self.checkpoints.move(stable, proof)
            self.slots = {n: slot for n, slot in self.slots.items() if n > stable}
            if self.views.changing:
                self.want(stable + self.quorums.window)

    # View changes.

    def on_timer(self, name: str) -> None:
        if name == LACK:
            self.catching_up.on_timer(self, self.slots, self.sequence.last)
        elif name == RELAY:
            self.patience.relay(self, self.others, self.requests.pending, self.is_authentic)
        elif name == GATHER:
            self.requests.awaited.clear()
            self.go_on()
        elif self.views.changing:
            self.patience.is_disappointed()
            self.change_view(self.view + 1)
        else:
            self.lose_patience()

    def on_notice(self, notice: Notice) -> None:
        if self.patience.is_lost(notice, self.views.primary):
            self.lose_patience()
        if not isinstance(notice, Leader):
            self.pass_on(notice)

    def change_view(self, view: int) -> None:
        """Leave for this view, and say what is prepared here."""
        self.requests.doubt(self.slots, self.sequence.last, self.is_authentic)
        self.patience.stop(self)
        change = change_of(view, self.process, self.checkpoints, self.slots, self.sequence.last)
        self.send_to_others(self.views.leave(self, change))
        # The others may stay in their view; they take this for a FETCH.
        self.catching_up.asked = self.sequence.last + self.quorums.interval
        self.want(self.checkpoints.stable + self.quorums.window)
        self.check_changes()

    def on_view_change(self, sender: int, packet: ViewChange) -> None:
        if not self.views.is_news(packet):
            return
        if not self.quorums.is_valid(packet, self.is_sealed) or not has_batches(packet):
            raise self.refuse(sender, packet)
        self.views.changes[sender] = packet
        self.catching_up.on_view_change(self, self.sequence, packet)
        higher = self.views.higher()
        if higher:
            self.change_view(higher)
        else:
            self.check_changes()

    def check_changes(self) -> None:
        """Begin the view as its primary, or wait for that, when enough replicas want it."""
        if self.views.is_left_by_most():
            packet = self.views.new_view()
            if packet is None:
                self.patience.wait_for_view(self, self.view)
            else:
                self.send_to_others(packet)
                self.begin_view(packet)

    def on_new_view(self, sender: int, packet: NewView) -> None:
        if self.views.is_past(packet.view):
            return
        if not self.quorums.is_new_view(packet, self.is_sealed):
            raise self.refuse(sender, packet)
        self.begin_view(packet)

    def begin_view(self, packet: NewView) -> None:
        self.views.begin(packet.view)
        self.patience.stop(self)
        for change in [one for one in packet.V if isinstance(one, ViewChange)]:
            self.move_water_marks(change.stable, change.C)
        self.proposed = self.checkpoints.stable
        for proposal in [one for one in packet.O if isinstance(one, PrePrepare)]:
            if self.views.takes_part_in(packet.view) and proposal.number > self.checkpoints.stable:
                self.proposed = proposal.number
                self.accept(proposal)
        for number in sorted(self.slots):
            self.consider_again(number)  # unless the water marks have moved on meanwhile
        if self.views.takes_part_in(packet.view):
            self.catching_up.begin_again(self, self.sequence.last, self.checkpoints.stable)
            self.pass_on(Leader(self.views.primary, self.quorums.group))
            self.go_on()

    # Not in the papers: who lacks a part of the sequence is told it, by f + 1 alike.

    def want(self, number: int) -> None:
        self.catching_up.want(self, number, self.sequence.last)

    def on_recall(self, asked: Recall, entries: list[tuple[int, Packet]]) -> None:
        self.catching_up.on_recall(self, asked, entries)

    def on_fetched(self, sender: int, packet: Fetched) -> None:
        if self.catching_up.take(sender, packet, self.sequence.last):
            self.decide(packet.number, digest_of(packet.messages), packet.messages)

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not may_send(sender, packet, self.process, self.quorums, self.is_sealed):
            raise self.refuse(sender, packet)
        if isinstance(packet, Request):
            self.remember(packet)
        elif isinstance(packet, PrePrepare):
            self.on_pre_prepare(sender, packet)
        elif isinstance(packet, Prepare):
            self.on_prepare(sender, packet)
        elif isinstance(packet, Commit):
            self.on_commit(sender, packet)
        elif isinstance(packet, Checkpoint):
            self.on_checkpoint(sender, packet)
        elif isinstance(packet, ViewChange):
            self.on_view_change(sender, packet)
        elif isinstance(packet, NewView):
            self.on_new_view(sender, packet)
        elif isinstance(packet, Fetch):
            self.catching_up.on_fetch(self, self.sequence, sender, packet)
        elif isinstance(packet, Fetched):
            self.on_fetched(sender, packet)
