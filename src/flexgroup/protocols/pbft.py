"""PBFT: every group of replicas delivers one sequence, although a third of its members may lie.

Source: M. Castro and B. Liskov, "Practical Byzantine fault tolerance", OSDI 1999, with what their
article of 2002 (ACM TOCS 20:4) says of batches; the names are theirs. A request goes to all
replicas. The primary of a view gives a batch of requests a sequence number (PRE-PREPARE), and the
others say so to each other (PREPARE): what 2f + 1 say is *prepared*, and no other batch can be, in
this view. Who knows that tells all (COMMIT), and delivers what 2f + 1 have committed. If that takes
too long, replicas move on to the next view, whose primary has to propose again whatever 2f + 1 of
them prove to be prepared.

Assumes reliable channels, which may reorder, and whose ends are known to each other; groups of
3f + 1 replicas of which at most f are faulty: they crash, stay silent, or lie; seals that only
their process can make. Guarantees, in each group, total order and agreement among the correct ones,
whatever timers run out; and that what a correct process multicasts is delivered, if in the end
messages come sooner than timers run out. Genuine. A message goes to exactly one whole group.

What differs from the papers is on the page of this protocol. In short: sealed is what others quote,
requests, prepares, checkpoints and view changes; the state that a checkpoint is of is the sequence
itself, so who lacks a part of it is told that, by f + 1 alike; and a replica that has crashed does
not start again.
"""

from __future__ import annotations

from typing import ClassVar, Final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Recall, Suspect, Trust
from flexgroup.core.message import NO_MESSAGE, Message, MessageId, Packet, origin_of
from flexgroup.core.replicas import check_one_group, group_of
from flexgroup.protocols.parts.pbft_log import Checkpoints, Requests, Slot
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
from flexgroup.protocols.parts.pbft_sequence import CatchingUp, Sequence
from flexgroup.protocols.parts.timestamps import FAR
from flexgroup.protocols.parts.view_changes import (
    Quorums,
    change_of,
    has_batches,
    may_send,
    proposals_again,
)

INTERVAL: Final = 128
"""K: there is a checkpoint every so many sequence numbers."""

SHORT: Final = "short"
"""The option that stands for a checkpoint at each number, so that small systems show them."""

WINDOW: Final = 2
"""How many batches the primary has under way, at most."""

PATIENCE: Final = 500
"""The ticks that a request may take at first, before a replica asks for another view."""

VIEW: Final = "view"
LACK: Final = "lack"
"""The timers: of who waits for a request, or for a view; and of who lacks what others deliver."""


class Pbft(Layer):
    __slots__ = ("catching_up", "changes", "changing", "checkpoints", "lacks", "patience",
                 "proposed", "quorums", "requests", "sequence", "slots", "suspected", "timed",
                 "view", "waits_for")  # fmt: skip

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
        self.quorums = Quorums(group_of(context.replicas, context.process), interval)
        self.view = 0
        self.slots: dict[int, Slot] = {}
        """The log: what was heard of each sequence number between the water marks."""
        self.checkpoints = Checkpoints()
        self.sequence = Sequence()
        self.requests = Requests()
        self.proposed = 0
        """The last number that the primary of this view has given."""
        self.changing = False
        """Whether the view is still to begin: this process takes part in no earlier one."""
        self.changes: dict[int, ViewChange] = {}
        """What each replica said when it left its view for the highest that it wants."""
        self.patience = PATIENCE
        self.waits_for = NO_MESSAGE
        """The request that the timer is about."""
        self.timed = 0
        """The last view whose beginning the timer was about: once each, or a liar who wants ever
        higher views would have it begin anew for ever."""
        # Not in the papers.
        self.catching_up = CatchingUp()
        self.lacks = 0
        """A number that correct replicas have committed to, and nobody has proposed here."""
        self.suspected: set[int] = set()
        """Those that the world, or the layer below, takes for crashed: nobody waits for them."""

    @property
    def group(self) -> tuple[int, ...]:
        return self.quorums.group

    @property
    def primary(self) -> int:
        return self.quorums.primary(self.view)

    def send_to_others(self, packet: Packet) -> None:
        if len(self.group) > 1:
            self.send(tuple([j for j in self.group if j != self.process]), packet)

    # Requests: all replicas remember them, and the primary gives them numbers.

    def on_cast(self, m: Message) -> None:
        check_one_group(self.context.replicas, m.destinations, "pbft")
        request = Request(m, self.seal(Request(m, b"")))
        if m.destinations != self.group:
            self.send(m.destinations, request)
            return
        self.send_to_others(request)
        self.remember(request)

    def remember(self, request: Request) -> None:
        if not self.sequence.taken.has(request.m.id):
            self.requests.add(request)
            self.go_on()

    def go_on(self) -> None:
        """Propose what waits, as the primary, and wait for it; the primary, too, may lack what
        others deliver."""
        if self.primary == self.process and not self.changing:
            self.propose()
        if self.waits_for == NO_MESSAGE and not self.changing:
            awaited = self.first_authentic()
            if awaited != NO_MESSAGE and self.primary in self.suspected:
                self.change_view(self.view + 1)
            elif awaited != NO_MESSAGE:
                self.waits_for = awaited
                self.set_timer(VIEW, self.patience)

    def first_authentic(self) -> MessageId:
        """What is asked for first, among what everybody can see to be asked for: nobody can propose
        the rest, and no primary is to blame for that."""
        for m in sorted(self.requests.pending):
            if self.is_authentic(self.requests.pending[m]):
                return m
            self.requests.remove(m)
        return NO_MESSAGE

    def stop_waiting(self) -> None:
        self.waits_for = NO_MESSAGE
        self.cancel_timer(VIEW)

    def propose(self) -> None:
        """Give a number to all that waits, if not too much is under way."""
        high = min(self.sequence.last + WINDOW, self.checkpoints.stable + self.quorums.window)
        while self.proposed < high:
            numbers = range(self.sequence.last + 1, self.proposed + 1)
            slots = [self.slots[number] for number in numbers if number in self.slots]
            waiting = self.requests.except_in([s.accepted for s in slots if s.accepted is not None])
            if not waiting:
                return
            sealed = [request for request in waiting if self.is_authentic(request)]
            for request in waiting:
                if request not in sealed:
                    self.requests.remove(request.m.id)
            if sealed:
                self.proposed += 1
                proposal = self.pre_prepare(self.proposed, tuple(sealed))
                self.send_to_others(proposal)
                self.accept(proposal)

    def is_authentic(self, request: Request) -> bool:
        """Tell whether everybody can see that the request is that of its origin."""
        return self.is_sealed(origin_of(request.m.id), request.said(), request.seal)

    def pre_prepare(self, number: int, requests: tuple[Packet, ...]) -> PrePrepare:
        digest = digest_of(PrePrepare(self.view, number, requests, b"").batch())
        return PrePrepare(self.view, number, requests, self.prepare(number, digest).seal)

    def prepare(self, number: int, digest: bytes) -> Prepare:
        said = Prepare(self.view, number, digest, self.process, b"")
        return Prepare(self.view, number, digest, self.process, self.seal(said))

    # The normal case: pre-prepare, prepare, commit.

    def is_in_window(self, sender: int, number: int, view: int = -1) -> bool:
        """Tell whether a number is between the water marks; take note if it is above them, and of
        the view that the sender takes part in."""
        self.catching_up.hear_from(sender, view)
        high = self.checkpoints.stable + self.quorums.window
        if number > high:
            self.want(self.catching_up.hear(sender, number, self.quorums.faulty + 1))
        return self.checkpoints.stable < number <= high

    def slot(self, number: int) -> Slot:
        if number not in self.slots:
            self.slots[number] = Slot()
        return self.slots[number]

    def on_pre_prepare(self, sender: int, packet: PrePrepare) -> None:
        is_near = self.is_in_window(sender, packet.number, packet.view)
        if not is_near or packet.view < self.view:
            return
        if packet.view == self.view and not self.changing:
            self.consider(packet)
        else:
            self.slot(packet.number).put_off(sender, packet)

    def consider(self, packet: PrePrepare) -> None:
        """Accept what the primary proposes, if it is the first for this number in this view."""
        if self.slot(packet.number).is_accepted_in(packet.view):
            return
        digest = digest_of(packet.batch())
        said = Prepare(packet.view, packet.number, digest, self.primary, b"")
        requests = [one for one in packet.requests if isinstance(one, Request)]
        if self.is_sealed(self.primary, said, packet.seal) and all(
            self.requests.has(request) or self.is_authentic(request) for request in requests
        ):
            self.accept(packet)
            self.go_on()

    def accept(self, packet: PrePrepare) -> None:
        slot = self.slot(packet.number)
        for request in packet.requests:
            if isinstance(request, Request) and not self.sequence.taken.has(request.m.id):
                self.requests.add(request)
        slot.accepted = packet
        slot.digest = digest_of(packet.batch())
        slot.take_prepare(
            Prepare(packet.view, packet.number, slot.digest, self.primary, packet.seal)
        )
        if self.primary != self.process:
            prepare = self.prepare(packet.number, slot.digest)
            slot.take_prepare(prepare)
            self.send_to_others(prepare)
        self.check_prepared(slot, packet.number)

    def on_prepare(self, sender: int, packet: Prepare) -> None:
        is_near = self.is_in_window(sender, packet.number, packet.view)
        if not is_near or packet.view < self.view:
            return
        slot = self.slot(packet.number)
        if slot.lacks_prepare(packet):
            if not self.is_sealed(sender, packet.said(), packet.seal):
                raise self.refuse(sender, packet)
            slot.take_prepare(packet)
            self.check_prepared(slot, packet.number)

    def check_prepared(self, slot: Slot, number: int) -> None:
        if self.changing or slot.is_prepared_in(self.view) or not slot.is_accepted_in(self.view):
            return
        if slot.prepare(self.quorums.most):
            commit = Commit(self.view, number, slot.digest)
            slot.take_commit(self.process, commit)
            self.send_to_others(commit)
            self.check_committed(slot, number)

    def on_commit(self, sender: int, packet: Commit) -> None:
        if self.is_in_window(sender, packet.number, packet.view):
            slot = self.slot(packet.number)
            slot.take_commit(sender, packet)
            self.check_committed(slot, packet.number)

    def check_committed(self, slot: Slot, number: int) -> None:
        if slot.accepted is not None and slot.is_committed(self.quorums.most):
            self.decide(number, slot.accepted.batch())
        elif not self.lacks and slot.lacks(self.quorums.faulty + 1):
            self.wait_for_what_lacks()

    def decide(self, number: int, messages: tuple[Message, ...]) -> None:
        """Deliver what is decided, in the order of sequence numbers."""
        sequence = self.sequence
        if number <= sequence.last:
            return
        sequence.batches[number] = messages
        while sequence.has_next():
            for m in sequence.take_next():
                self.requests.remove(m.id)
                self.deliver(m)
                if m.id == self.waits_for:
                    self.stop_waiting()
                    self.patience = PATIENCE
            for j in sorted(self.catching_up.asks):
                self.answer(j)
            if sequence.last % self.quorums.interval == 0:
                self.make_checkpoint()
        if sequence.last >= self.lacks > 0:
            self.lacks = 0
            self.cancel_timer(LACK)
            self.wait_for_what_lacks()
        self.ask_on()
        self.go_on()

    # Checkpoints, which move the water marks.

    def make_checkpoint(self) -> None:
        number, digest = self.sequence.last, self.sequence.digest
        seal = self.seal(Checkpoint(number, digest, self.process, b""))
        checkpoint = Checkpoint(number, digest, self.process, seal)
        self.send_to_others(checkpoint)
        self.take_checkpoint(checkpoint)

    def on_checkpoint(self, sender: int, packet: Checkpoint) -> None:
        if not self.is_sealed(sender, packet.said(), packet.seal):
            raise self.refuse(sender, packet)
        self.is_in_window(sender, packet.number)
        self.take_checkpoint(packet)

    def take_checkpoint(self, packet: Checkpoint) -> None:
        checkpoints, number = self.checkpoints, packet.number
        checkpoints.hear(packet.process, number)
        if checkpoints.stable < number <= checkpoints.stable + self.quorums.window:
            checkpoints.take(packet)
            votes = checkpoints.equal(self.process, number)
            if len(votes) >= self.quorums.most:
                self.move_water_marks(number, tuple(votes[: self.quorums.most]))
                self.go_on()
        self.keep_recent()

    def move_water_marks(self, stable: int, proof: tuple[Packet, ...]) -> None:
        if stable > self.checkpoints.stable:
            self.checkpoints.move(stable, proof)
            self.slots = {n: slot for n, slot in self.slots.items() if n > stable}
            if self.changing:
                self.want(stable + self.quorums.window)

    def keep_recent(self) -> None:
        """Have at hand what was delivered since the last checkpoint but one; the rest is stored for
        those that lack it."""
        recent = min(self.checkpoints.stable, self.sequence.last) - self.quorums.interval
        by_all = min([self.checkpoints.have.get(j, 0) for j in self.group])
        stored = self.sequence.set_aside(recent, by_all)
        for number, batch in stored:
            self.write(number, batch)
        if stored:
            self.archive(self.sequence.aside + 1)
        if self.sequence.drop(by_all):
            self.truncate(by_all + 1)

    # View changes.

    def on_timer(self, name: str) -> None:
        if name == LACK:
            self.want(max([self.lacks, *self.lacking()]))
        else:
            if self.changing:
                self.patience *= 2
            self.change_view(self.view + 1)

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.suspected.add(notice.process)
            if notice.process == self.primary and self.requests.pending and not self.changing:
                self.change_view(self.view + 1)
        elif isinstance(notice, Trust):
            self.suspected.discard(notice.process)
        if not isinstance(notice, Leader):
            self.pass_on(notice)

    def change_view(self, view: int) -> None:
        """Leave for this view, and say what is prepared here."""
        self.stop_waiting()
        self.view = view
        self.changing = True
        last = self.sequence.last
        change = change_of(view, self.process, self.checkpoints, self.slots, last)
        change = change.with_seal(self.seal(change.said()))
        self.send_to_others(change)
        self.changes[self.process] = change
        # The others may stay in their view; they take this for a FETCH.
        self.catching_up.asked = last + self.quorums.interval
        self.want(self.checkpoints.stable + self.quorums.window)
        self.check_changes()

    def on_view_change(self, sender: int, packet: ViewChange) -> None:
        before = self.changes.get(sender)
        is_old = before is not None and before.view >= packet.view
        if is_old or packet.view < self.view + (not self.changing):
            return
        if not self.quorums.is_valid(packet, self.is_sealed) or not has_batches(packet):
            raise self.refuse(sender, packet)
        self.changes[sender] = packet
        self.catching_up.ask(
            sender, packet.last + 1, packet.last + self.quorums.interval, packet.view
        )
        self.answer(sender)
        higher = sorted([c.view for c in self.changes.values() if c.view > self.view])
        if len(higher) > self.quorums.faulty:
            self.change_view(higher[0])
        else:
            self.check_changes()

    def check_changes(self) -> None:
        """Begin the view as its primary, or wait for that, when enough replicas want it."""
        changes = [self.changes[j] for j in sorted(self.changes)]
        left = [change for change in changes if change.view >= self.view]
        if not self.changing or len(left) < self.quorums.most:
            return
        wanting = [change for change in left if change.view == self.view]
        if self.primary != self.process or len(wanting) < self.quorums.most:
            if self.timed < self.view:
                self.timed = self.view
                self.set_timer(VIEW, self.patience)
            return
        V = wanting[: self.quorums.most]
        proposals = [self.pre_prepare(one.number, one.requests) for one in proposals_again(V)]
        packet = NewView(self.view, tuple([change.quoted() for change in V]), tuple(proposals))
        self.send_to_others(packet)
        self.begin_view(packet)

    def on_new_view(self, sender: int, packet: NewView) -> None:
        if packet.view < self.view + (not self.changing):
            return
        if not self.quorums.is_new_view(packet, self.is_sealed):
            raise self.refuse(sender, packet)
        self.begin_view(packet)

    def begin_view(self, packet: NewView) -> None:
        self.view = packet.view
        self.changing = False
        self.stop_waiting()
        self.changes = {j: c for j, c in self.changes.items() if c.view > self.view}
        for change in packet.V:
            assert isinstance(change, ViewChange)
            self.move_water_marks(change.stable, change.C)
        self.proposed = self.checkpoints.stable
        for proposal in packet.O:
            assert isinstance(proposal, PrePrepare)
            if self.takes_part_in(packet.view) and proposal.number > self.checkpoints.stable:
                self.proposed = proposal.number
                self.accept(proposal)
        for number in sorted(self.slots):
            slot = self.slots.get(number)  # unless the water marks have moved on meanwhile
            if slot is not None and self.takes_part_in(packet.view):
                early = slot.early.pop(self.primary, None)
                if early is not None and early.view == self.view:
                    self.consider(early)
        if not self.takes_part_in(packet.view):
            return
        # What this process wanted because it had left its view now comes by itself.
        reached = self.catching_up.reached(self.quorums.faulty + 1)
        self.catching_up.wanted = max(self.checkpoints.stable, reached)
        self.catching_up.asked = self.sequence.last
        self.ask_on()
        self.pass_on(Leader(self.primary, self.group))
        self.go_on()

    def takes_part_in(self, view: int) -> bool:
        """Tell whether this process has not left the view again: what it delivers may have it wait
        for the next request, of a primary that it suspects."""
        return self.view == view and not self.changing

    # Not in the papers: who lacks a part of the sequence is told it, by f + 1 alike.

    def lacking(self) -> list[int]:
        """The numbers that correct replicas have committed to, and nobody has proposed here."""
        one_is_correct = self.quorums.faulty + 1
        numbers = [number for number in self.slots if number > self.sequence.last]
        return sorted([number for number in numbers if self.slots[number].lacks(one_is_correct)])

    def wait_for_what_lacks(self) -> None:
        for number in self.lacking()[:1]:
            self.lacks = number
            self.set_timer(LACK, self.patience)

    def want(self, number: int) -> None:
        if number > self.catching_up.wanted:
            self.catching_up.wanted = number
            self.ask_on()

    def ask_on(self) -> None:
        piece = self.catching_up.next_piece(self.sequence.last, self.quorums.interval)
        if piece is not None:
            self.send_to_others(piece)

    def on_fetch(self, sender: int, packet: Fetch) -> None:
        self.catching_up.ask(sender, packet.first, packet.last, FAR)
        self.answer(sender)

    def answer(self, process: int) -> None:
        """Tell a replica what is delivered here of what it asks for, and keep the rest in mind."""
        first, last, view = self.catching_up.asks.pop(process)
        if self.sequence.is_aside(first):
            end = min(last, self.sequence.aside) + 1
            self.recall(first, end, self.quorums.interval, process)
        for packet in self.sequence.piece(first, last):
            self.send((process,), packet)
        if last > self.sequence.last:
            self.catching_up.asks[process] = (max(first, self.sequence.last + 1), last, view)

    def on_recall(self, asked: Recall, entries: list[tuple[int, Packet]]) -> None:
        for number, entry in entries:
            if isinstance(entry, Batch):
                self.send((asked.about,), Fetched(number, entry.messages))
        if entries and entries[-1][0] + 1 < asked.last:
            self.recall(entries[-1][0] + 1, asked.last, asked.most, asked.about)

    def on_fetched(self, sender: int, packet: Fetched) -> None:
        number, messages = packet.number, packet.messages
        if not self.sequence.last < number <= self.catching_up.asked:
            return
        if self.catching_up.take(number, sender, messages, self.quorums.faulty + 1):
            self.decide(number, messages)

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Request) and origin_of(packet.m.id) == sender != self.process:
            if not self.is_ours(packet.m):
                raise self.refuse(sender, packet)
            self.remember(packet)
        elif not may_send(sender, packet, self.process, self.quorums, self.is_ours):
            raise self.refuse(sender, packet)
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
            self.on_fetch(sender, packet)
        elif isinstance(packet, Fetched):
            self.on_fetched(sender, packet)

    def is_ours(self, m: Message) -> bool:
        return self.is_for_me(m) and m.destinations == self.group
