"""PBFT: every group of replicas delivers one sequence, although a third of its members may lie.

Source: M. Castro and B. Liskov, "Practical Byzantine fault tolerance", OSDI 1999, with what their
article of 2002 (ACM TOCS 20:4) says of batches; the names are theirs. A request goes to all
replicas. The primary of a view gives a batch of requests a sequence number (PRE-PREPARE), and the
others say so to each other (PREPARE): what 2f + 1 say is *prepared*, and no other batch can be, in
this view. Who knows that tells all (COMMIT), and delivers what 2f + 1 have committed. If that takes
too long, replicas move on to the next view, whose primary has to propose again whatever 2f + 1 of
them prove to be prepared.

Assumes reliable channels, which may reorder, and whose ends are known to each other; groups of
3f + 1 replicas of which at most f are faulty: they crash, stay silent, or lie; seals that only their
process can make. Guarantees, in each group, total order and agreement among those that are correct,
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
from flexgroup.core.message import NO_MESSAGE, Message, Packet, origin_of
from flexgroup.core.replicas import check_one_group, group_of
from flexgroup.protocols.parts.pbft_log import CatchingUp, Checkpoints, Requests, Slot, ids_of
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
    as_quoted,
    digest_after,
    digest_of,
    messages_of,
    said_by_checkpoint,
    said_by_prepare,
    said_by_request,
)
from flexgroup.protocols.parts.taken_messages import TakenMessages
from flexgroup.protocols.parts.timestamps import FAR
from flexgroup.protocols.parts.view_changes import (
    Quorums,
    batch_with,
    has_batches,
    may_send,
    obligations,
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
"""The name of the timer."""


class Pbft(Layer):
    __slots__ = ("batches", "catching_up", "changes", "changing", "checkpoints", "digest",
                 "dropped", "last", "patience", "proposed", "quorums", "requests", "set_aside", "slots", "suspected",
                 "taken", "view", "waits_for")  # fmt: skip

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
        self.changing = False
        """Whether the view is still to begin: this process takes part in no earlier one."""
        self.changes: dict[int, ViewChange] = {}
        """What each replica said when it left its view for the highest that it wants."""
        self.slots: dict[int, Slot] = {}
        """The log: what was heard of numbers between the water marks."""
        self.checkpoints = Checkpoints()
        self.last = 0
        """The last number whose batch is delivered; the first one is 1."""
        self.digest = b""
        """That of all that was delivered."""
        self.taken = TakenMessages()
        """What was delivered, each once."""
        self.requests = Requests()
        self.proposed = 0
        """The last number that the primary of this view has given."""
        # Not in the paper: what is decided, and told to who lacks it.
        self.batches: dict[int, tuple[Message, ...]] = {}
        """What is committed: those that wait for their turn, and those that were delivered since
        the last checkpoint but one."""
        self.set_aside = 0
        """The batches up to this number are in stable storage, or delivered by all."""
        self.dropped = 0
        """All have delivered the batches up to this number."""
        self.catching_up = CatchingUp()
        # Patience.
        self.patience = PATIENCE
        self.waits_for = NO_MESSAGE
        """The request that the timer is about."""
        self.suspected: set[int] = set()
        """Whom the layer below, or the world, takes for crashed: nobody is patient with them."""

    @property
    def group(self) -> tuple[int, ...]:
        return self.quorums.group

    @property
    def primary(self) -> int:
        return self.quorums.primary(self.view)

    def send_to_others(self, packet: Packet) -> None:
        if len(self.group) > 1:
            self.send(tuple([j for j in self.group if j != self.process]), packet)

    # Requests: all replicas remember them, and the primary proposes them.

    def on_cast(self, m: Message) -> None:
        check_one_group(self.context.replicas, m.destinations, "pbft")
        request = Request(m, self.seal(Request(m, b"")))
        if m.destinations != self.group:
            self.send(m.destinations, request)
            return
        self.send_to_others(request)
        self.remember(request)

    def remember(self, request: Request) -> None:
        if not self.taken.has(request.m.id):
            self.requests.add(request)
        self.go_on()

    def go_on(self) -> None:
        """Propose what waits, or see to it that the primary does."""
        if self.changing:
            return
        if self.primary == self.process:
            self.propose()
        elif self.waits_for == NO_MESSAGE and self.requests.pending:
            if self.primary in self.suspected:
                self.change_view(self.view + 1)
            else:
                self.waits_for = min(self.requests.pending)
                self.set_timer(VIEW, self.patience)

    def propose(self) -> None:
        """Give a number to all that waits, if not too much is under way."""
        while True:
            number = self.proposed + 1
            if number > min(self.last + WINDOW, self.checkpoints.stable + self.quorums.window):
                return
            requests = self.waiting()
            if not requests:
                return
            self.proposed = number
            proposal = self.pre_prepare(number, requests)
            self.send_to_others(proposal)
            self.accept(self.slot(number), proposal)

    def waiting(self) -> tuple[Request, ...]:
        """What is asked for and not under way, if its seal will convince the others."""
        under_way: set[int] = set()
        for number in range(self.last + 1, self.proposed + 1):
            accepted = self.slots[number].accepted if number in self.slots else None
            if accepted is not None:
                under_way |= ids_of(accepted)
        pending = self.requests.pending
        waiting = [pending[m] for m in sorted(pending) if m not in under_way]
        unsealed = [one.m.id for one in waiting if not self.is_from_its_origin(one)]
        for m in unsealed:
            self.requests.remove(m)
        return tuple([one for one in waiting if one.m.id not in unsealed])

    def is_from_its_origin(self, request: Request) -> bool:
        origin = origin_of(request.m.id)
        if origin == self.process:
            return self.requests.has(request)
        return self.is_sealed(origin, said_by_request(request), request.seal)

    def pre_prepare(self, number: int, requests: tuple[Packet, ...]) -> PrePrepare:
        digest = digest_of(messages_of(PrePrepare(self.view, number, requests, b"")))
        seal = self.seal(Prepare(self.view, number, digest, self.process, b""))
        return PrePrepare(self.view, number, requests, seal)

    # The normal case: pre-prepare, prepare, commit.

    def slot(self, number: int) -> Slot:
        if number not in self.slots:
            self.slots[number] = Slot()
        return self.slots[number]

    def is_in_window(self, sender: int, number: int) -> bool:
        """Tell whether a number is between the water marks; take note if it is above them."""
        high = self.checkpoints.stable + self.quorums.window
        if number > high:
            beyond = self.catching_up.beyond
            beyond[sender] = max(number, beyond.get(sender, 0))
            self.want(self.catching_up.reached(self.quorums.faulty + 1))
        return self.checkpoints.stable < number <= high

    def on_pre_prepare(self, sender: int, packet: PrePrepare) -> None:
        if not self.is_in_window(sender, packet.number) or packet.view < self.view:
            return
        slot = self.slot(packet.number)
        if packet.view == self.view and not self.changing:
            self.consider(slot, packet)
        elif sender not in slot.early or packet.view > slot.early[sender].view:
            slot.early[sender] = packet

    def consider(self, slot: Slot, packet: PrePrepare) -> None:
        """Accept what the primary proposes, if it is the first for this number in this view."""
        if slot.is_accepted_in(packet.view):
            return
        digest = digest_of(messages_of(packet))
        said = Prepare(packet.view, packet.number, digest, self.primary, b"")
        requests = [one for one in packet.requests if isinstance(one, Request)]
        if self.is_sealed(self.primary, said, packet.seal) and all(
            [self.requests.has(one) or self.is_from_its_origin(one) for one in requests]
        ):
            self.accept(slot, packet)

    def accept(self, slot: Slot, packet: PrePrepare) -> None:
        view, number = packet.view, packet.number
        digest = slot.digest = digest_of(messages_of(packet))
        slot.accepted = packet
        slot.prepares[self.primary] = Prepare(view, number, digest, self.primary, packet.seal)
        if self.primary != self.process:
            said = Prepare(view, number, digest, self.process, b"")
            prepare = Prepare(view, number, digest, self.process, self.seal(said))
            slot.prepares[self.process] = prepare
            self.send_to_others(prepare)
        self.check_prepared(slot, number)

    def on_prepare(self, sender: int, packet: Prepare) -> None:
        if not self.is_in_window(sender, packet.number) or packet.view < self.view:
            return
        slot = self.slot(packet.number)
        before = slot.prepares.get(sender)
        if slot.is_prepared_in(packet.view) or before is not None and before.view >= packet.view:
            return
        if not self.is_sealed(sender, said_by_prepare(packet), packet.seal):
            raise self.refuse(sender, packet)
        slot.prepares[sender] = packet
        self.check_prepared(slot, packet.number)

    def check_prepared(self, slot: Slot, number: int) -> None:
        if self.changing or not slot.is_accepted_in(self.view) or slot.is_prepared_in(self.view):
            return
        votes = slot.agreeing_prepares()
        if len(votes) >= self.quorums.most:
            slot.certificate = tuple(votes[: self.quorums.most])
            slot.certified = slot.accepted
            commit = Commit(self.view, number, slot.digest)
            slot.commits[self.process] = commit
            self.send_to_others(commit)
        self.check_committed(slot, number)

    def on_commit(self, sender: int, packet: Commit) -> None:
        if self.is_in_window(sender, packet.number):
            slot = self.slot(packet.number)
            before = slot.commits.get(sender)
            if before is None or before.view < packet.view:
                slot.commits[sender] = packet
                self.check_committed(slot, packet.number)

    def check_committed(self, slot: Slot, number: int) -> None:
        accepted = slot.accepted
        if accepted is not None and slot.agreeing_commits() >= self.quorums.most:
            self.decide(number, messages_of(accepted))

    def decide(self, number: int, messages: tuple[Message, ...]) -> None:
        """Deliver what is decided, in the order of sequence numbers and each message once."""
        if number <= self.last:
            return
        self.batches[number] = messages
        while self.last + 1 in self.batches:
            self.last += 1
            self.deliver_batch(self.batches[self.last])
        self.ask_on()
        self.go_on()

    def deliver_batch(self, messages: tuple[Message, ...]) -> None:
        for m in messages:
            if not self.taken.has(m.id):
                self.taken.add(m.id)
                self.requests.remove(m.id)
                self.deliver(m)
                if m.id == self.waits_for:
                    self.waits_for = NO_MESSAGE
                    self.patience = PATIENCE
                    self.cancel_timer(VIEW)
        self.digest = digest_after(self.digest, messages)
        for j in sorted(self.catching_up.asks):
            self.answer(j)
        if self.last % self.quorums.interval == 0:
            self.make_checkpoint()

    # Checkpoints, which move the water marks.

    def make_checkpoint(self) -> None:
        said = Checkpoint(self.last, self.digest, self.process, b"")
        checkpoint = Checkpoint(self.last, self.digest, self.process, self.seal(said))
        self.send_to_others(checkpoint)
        self.checkpoints.hear(self.process, self.last)
        self.checkpoints.take(checkpoint)
        self.check_stable(self.last)

    def on_checkpoint(self, sender: int, packet: Checkpoint) -> None:
        self.checkpoints.hear(sender, packet.number)
        if self.is_in_window(sender, packet.number):
            if not self.is_sealed(sender, said_by_checkpoint(packet), packet.seal):
                raise self.refuse(sender, packet)
            self.checkpoints.take(packet)
            self.check_stable(packet.number)
        self.keep_recent()

    def check_stable(self, number: int) -> None:
        votes = self.checkpoints.certificate(self.process, number)
        if len(votes) >= self.quorums.most:
            self.move_water_marks(number, tuple(votes[: self.quorums.most]))
            self.go_on()

    def move_water_marks(self, stable: int, proof: tuple[Checkpoint, ...]) -> None:
        if stable > self.checkpoints.stable:
            self.checkpoints.move(stable, proof)
            self.slots = {n: slot for n, slot in self.slots.items() if n > stable}
            self.keep_recent()
            if self.changing:
                self.want(stable + self.quorums.window)

    def keep_recent(self) -> None:
        """Have batches at hand that were delivered since the last checkpoint but one. Others are
        set aside for those that lack them, and dropped if there is nobody."""
        by_all = min([self.checkpoints.have.get(j, 0) for j in self.group])
        recent = min(self.checkpoints.stable, self.last) - self.quorums.interval
        aside = max(recent, min(by_all, self.last))
        for number in range(self.set_aside + 1, aside + 1):
            batch = self.batches.pop(number)
            if number > by_all:
                self.write(number, Batch(batch))
        if aside > max(self.set_aside, by_all):
            self.archive(aside + 1)
        self.set_aside = max(aside, self.set_aside)
        if self.dropped < by_all < self.set_aside:
            self.truncate(by_all + 1)
        self.dropped = min(by_all, self.set_aside)

    # View changes.

    def on_timer(self, name: str) -> None:
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
        self.pass_on(notice)

    def change_view(self, view: int) -> None:
        """Leave the view for this one, and say what is prepared here."""
        if self.waits_for != NO_MESSAGE:
            self.waits_for = NO_MESSAGE
            self.cancel_timer(VIEW)
        self.view = view
        self.changing = True
        stable, proof = self.checkpoints.stable, self.checkpoints.proof
        prepared = [self.slots[n] for n in sorted(self.slots) if self.slots[n].certificate]
        P = tuple([vote for slot in prepared for vote in slot.certificate])  # noqa: N806
        batches = tuple([slot.certified for slot in prepared if slot.certified is not None])
        said = ViewChange(view, stable, proof, P, self.process, b"", (), 0)
        seal = self.seal(said)
        change = ViewChange(view, stable, proof, P, self.process, seal, batches, self.last)
        self.send_to_others(change)
        self.changes[self.process] = change
        # Others may go on without this process.
        self.catching_up.last = self.last
        self.want(stable + self.quorums.window)
        self.check_changes()

    def on_view_change(self, sender: int, packet: ViewChange) -> None:
        if packet.view < self.view or packet.view == self.view and not self.changing:
            return
        before = self.changes.get(sender)
        if before is not None and before.view >= packet.view:
            return
        if not self.quorums.is_valid(packet, self.is_sealed) or not has_batches(packet):
            raise self.refuse(sender, packet)
        self.changes[sender] = packet
        self.on_fetch(sender, Fetch(packet.last + 1, packet.last + self.quorums.interval))
        higher = sorted([c.view for c in self.changes.values() if c.view > self.view])
        if len(higher) > self.quorums.faulty:
            self.change_view(higher[0])
        else:
            self.check_changes()

    def check_changes(self) -> None:
        """Begin the view as its primary, or wait for that, when enough replicas want it."""
        wanting = [self.changes[j] for j in sorted(self.changes)]
        wanting = [change for change in wanting if change.view == self.view]
        if not self.changing or len(wanting) < self.quorums.most:
            return
        if self.primary != self.process:
            self.set_timer(VIEW, self.patience)
            return
        V = wanting[: self.quorums.most]  # noqa: N806
        O = tuple(  # noqa: E741, N806
            [
                self.pre_prepare(number, batch_with(digest, V))
                for number, digest in obligations(V)
            ]
        )
        packet = NewView(self.view, tuple([as_quoted(change) for change in V]), O)
        self.send_to_others(packet)
        self.begin_view(packet)

    def on_new_view(self, sender: int, packet: NewView) -> None:
        if packet.view < self.view or packet.view == self.view and not self.changing:
            return
        if not self.quorums.is_new_view(packet, self.is_sealed):
            raise self.refuse(sender, packet)
        self.begin_view(packet)

    def begin_view(self, packet: NewView) -> None:
        self.view = packet.view
        self.changing = False
        self.waits_for = NO_MESSAGE
        self.cancel_timer(VIEW)
        self.changes = {j: c for j, c in self.changes.items() if c.view > self.view}
        for change in packet.V:
            assert isinstance(change, ViewChange)
            self.catching_up.asks.pop(change.process, None)
            self.move_water_marks(change.stable, change.C)
        proposals = [one for one in packet.O if isinstance(one, PrePrepare)]
        self.proposed = max([self.checkpoints.stable, *[one.number for one in proposals]])
        for proposal in proposals:
            if proposal.number > self.checkpoints.stable:
                self.accept(self.slot(proposal.number), proposal)
        for number in sorted(self.slots):
            early = self.slots[number].early.pop(self.primary, None)
            if early is not None and early.view == self.view:
                self.consider(self.slots[number], early)
        # What it wanted because it had left the view comes in this one, beyond what is stable.
        self.catching_up.wanted = self.checkpoints.stable
        self.catching_up.last = self.last
        self.ask_on()
        self.pass_on(Leader(self.primary, self.group))
        self.go_on()

    # Not in the papers: who lacks a part of the sequence is told it, by f + 1 alike.

    def want(self, number: int) -> None:
        if number > self.catching_up.wanted:
            self.catching_up.wanted = number
            self.ask_on()

    def ask_on(self) -> None:
        """Ask for the next piece of what it lacks, when it has all before that."""
        lacking = self.catching_up
        if lacking.wanted > self.last >= lacking.last:
            lacking.last = min(lacking.wanted, self.last + self.quorums.interval)
            self.send_to_others(Fetch(self.last + 1, lacking.last))

    def on_fetch(self, sender: int, packet: Fetch) -> None:
        self.catching_up.asks[sender] = (packet.first, packet.last)
        self.answer(sender)

    def answer(self, process: int) -> None:
        """Tell a replica what is delivered here of what it asks for, and keep the rest in mind."""
        asks = self.catching_up.asks
        first, last = asks[process]
        if self.dropped < first <= self.set_aside:
            end = min(last, self.set_aside) + 1
            self.recall(first, end, self.quorums.interval, process)
            return
        for number in range(first, min(last, self.last) + 1):
            if number in self.batches:
                self.send((process,), Fetched(number, self.batches[number]))
        if last > self.last:
            asks[process] = (max(first, self.last + 1), last)
        else:
            del asks[process]

    def on_recall(self, asked: Recall, entries: list[tuple[int, Packet]]) -> None:
        for number, entry in entries:
            if isinstance(entry, Batch) and asked.about in self.catching_up.asks:
                self.send((asked.about,), Fetched(number, entry.messages))
                last = self.catching_up.asks[asked.about][1]
                self.catching_up.asks[asked.about] = (number + 1, last)
        if entries and asked.about in self.catching_up.asks:
            self.answer(asked.about)

    def on_fetched(self, sender: int, packet: Fetched) -> None:
        number, lacking = packet.number, self.catching_up
        if not self.last < number <= lacking.last or number in self.batches:
            return
        if lacking.take(number, sender, packet.messages) > self.quorums.faulty:
            lacking.drop(number)
            self.decide(number, packet.messages)

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
