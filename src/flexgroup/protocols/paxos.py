"""Paxos: every group of replicas keeps a log, and all of them deliver what is chosen for it.

Sources: L. Lamport, "The part-time parliament", 1998, section 3 (many decrees, one president), and
"Paxos made simple", 2001, whose names are used here. A leader has one batch of messages chosen for
each slot of the log. Phase 1, once for all slots: it PREPAREs a ballot above all that it knows, and
a majority PROMISEs to take part in none below it, and tells what it accepted. Phase 2, for each
slot: the leader asks all to ACCEPT a batch, and what a majority has ACCEPTED is CHOSEN.

Assumes channels that are reliable, and may reorder, between processes that are up; groups of
2f + 1 replicas of which f may be down; stable storage; and a leader oracle below (`leader`) that
may err: in the end, those that are down are suspected and nobody else is. Guarantees total order
and uniform agreement within a group whatever is suspected and whoever crashes and starts again, and
that what a correct process multicasts is delivered once the oracle errs no more. Genuine. A message
goes to exactly one whole group: one to several is refused.

What the papers leave open, or do otherwise, is on the page of this protocol. In short: the lowest
member leads at the start, with ballot (0, lowest), for which there is nothing to prepare; who is
not suspected is not deposed; at most WINDOW batches are under way, and what comes meanwhile waits
for the next one; who starts again says so, and the leader tells it what it missed.
"""

from __future__ import annotations

from typing import ClassVar, Final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Recall, Stored
from flexgroup.core.message import Message, Packet, Stamp, origin_of, process_of, stamp
from flexgroup.core.replicas import check_one_group, group_of
from flexgroup.protocols.parts.leading import Leading
from flexgroup.protocols.parts.ledger import Ledger, Promised
from flexgroup.protocols.parts.paxos_packets import (
    Accept,
    Accepted,
    Accepting,
    Ask,
    Chosen,
    Learn,
    More,
    Prepare,
    Promise,
    Reject,
    Request,
    Requests,
    Restarted,
    Stable,
    at_a_time,
    may_send,
    next_ballot,
    together,
)

WINDOW: Final = 2
"""How many batches the leader has under way, at most."""

CUT: Final = 64
"""The number of slots that are cut off the log in stable storage, set aside there, or told to who
lacks them, at a time; fewer than that are at hand though all that are up have delivered them."""

SHORT: Final = "short"
"""The option that stands for one slot at a time, so that small systems set slots aside."""

NO_OP: Final[tuple[Message, ...]] = ()
"""A batch that changes nothing."""


class Paxos(Layer):
    __slots__ = ("asks", "cut", "group", "leading", "ledger", "pending", "promised", "restarts",
                 "trusted")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.LEADER})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Request, Prepare, Promise, Accept, Accepted,
        Reject, Chosen, Ask, Learn, Stable, Restarted, More, Requests)  # fmt: skip
    ABOUT_THE_SAME: ClassVar[tuple[type[Packet], ...]] = (Accepted, Chosen)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Promised, Accepting)
    NEEDS_REPLICAS: ClassVar[bool] = True
    OPTIONS: ClassVar[tuple[str, ...]] = (SHORT,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.group = group_of(context.replicas, context.process)
        self.cut = 1 if SHORT in context.options else CUT
        # Of an acceptor.
        lowest = self.group[0] if self.group else 0
        self.promised: Stamp = stamp(0, lowest)
        """It takes part in no ballot below this one, whose owner it takes for the leader."""
        # Of an acceptor, its votes, and of a learner.
        self.ledger = Ledger()
        # Of a proposer.
        self.pending: dict[int, Message] = {}
        """What was cast and is not delivered yet, by identity, as far as it was heard of here."""
        self.leading = Leading(0, is_prepared=True) if self.process == lowest else None
        """What it knows of the ballot that it promised, if it is the owner."""
        self.asks: tuple[int, ...] = ()
        """The slots that it asks for when it has delivered those before, if there are any: from
        one on, to before another."""
        self.restarts = False
        """Whether somebody has started again, who may have lost what a client sent to all."""
        self.trusted = self.group
        """Who is not suspected, in the eyes of the oracle; the first should lead if nobody does."""

    def is_majority(self, count: int) -> bool:
        return 2 * count > len(self.group)

    def send_to_others(self, packet: Packet) -> None:
        if len(self.group) > 1:
            self.send(tuple([j for j in self.group if j != self.process]), packet)

    # Requests: replicas remember them, and the leader proposes them.

    def on_cast(self, m: Message) -> None:
        check_one_group(self.context.replicas, m.destinations, "paxos")
        if m.destinations != self.group:
            self.send(m.destinations, Request(m))
            return
        self.remember((m,))
        if self.leading is None:
            self.send((process_of(self.promised),), Request(m))

    def remember(self, messages: tuple[Message, ...]) -> None:
        for m in messages:
            if not self.ledger.delivered.has(m.id):
                self.pending[m.id] = m
        self.propose()

    def request(self, member: int, messages: list[Message]) -> None:
        """What a member is to be told travels together, so that it can propose it together."""
        if messages:
            self.send((member,), together(messages))

    def submit_again(self) -> None:
        """Tell a new leader what this process cast; what others cast, they tell it themselves."""
        told = [m for m in sorted(self.pending) if origin_of(m) == self.process or self.restarts]
        self.request(process_of(self.promised), [self.pending[m] for m in told])

    # Stable storage, and starting again.

    def promise(self, ballot: Stamp) -> None:
        self.promised = ballot
        self.asks = ()
        self.save_ledger()

    def save_ledger(self) -> None:
        self.save(self.ledger.promised(self.promised))
        if self.ledger.recent > self.ledger.stable:
            self.archive(self.ledger.recent)

    def vote(self, ballot: Stamp, slot: int, messages: tuple[Message, ...]) -> None:
        """Vote for a batch, unless the slot is set aside: then the batch is chosen already."""
        if slot >= self.ledger.recent:
            self.ledger.vote(ballot, slot, messages)
            self.write(slot, Accepting(ballot, messages))

    def on_covered(self, count: int) -> None:
        self.ledger.covered = count

    def forget(self, stable: int) -> None:
        """Forget the slots below, which all have, and set aside those that only some lack; unless
        a layer above would have to be told of them again."""
        ledger = self.ledger
        last = ledger.next - self.cut + 1
        if self.leading is not None:
            last = min(last, self.leading.first())
        before = ledger.stable // self.cut
        while ledger.sets_aside(max(last, stable), stable, self.is_top):
            if ledger.recent % self.cut == 0:
                self.save_ledger()
        if ledger.stable // self.cut > before:
            self.truncate(ledger.stable // self.cut * self.cut)

    def on_restart(self, stored: Stored) -> None:
        if isinstance(stored.saved, Promised):
            self.promised = stored.saved.ballot
        for m in self.ledger.restore(stored, self.is_top):
            self.deliver(m)
        self.leading = None
        self.restarts = True
        self.send_to_others(Restarted())
        if process_of(self.promised) == self.process:
            self.prepare()

    def on_restarted(self, sender: int) -> None:
        """Send again what may be lost: requests that all remember, and what the leader told."""
        self.restarts = True
        self.request(sender, [self.pending[m] for m in sorted(self.pending)])
        leading = self.leading
        if leading is None:
            return
        first = self.ledger.next if leading.is_prepared else leading.free
        self.send((sender,), Prepare(self.promised, first))
        # Others may wait for a majority in this ballot where the leader learnt it from another one.
        slots = {*leading.accepts, *range(first, leading.free)}
        for slot in sorted(slots & self.ledger.votes.keys()):
            messages = self.ledger.votes[slot].messages
            self.send((sender,), Accept(self.promised, slot, self.ledger.stable, messages))
            if slot in self.ledger.chosen:
                self.send((sender,), Chosen(self.promised, slot))

    # Phase 1.

    def prepare(self) -> None:
        """Begin a ballot above all others that are known here."""
        self.promise(next_ballot(self.promised, self.process))
        first = self.ledger.next
        self.leading = Leading(first, promises={self.process}, reported=self.ledger.from_next())
        self.send_to_others(Prepare(self.promised, first))
        self.check_promises(self.leading)

    def on_prepare(self, sender: int, packet: Prepare) -> None:
        if packet.ballot < self.promised:
            self.send((sender,), Reject(self.promised))
            return
        if self.ledger.lacks_what_is_set_aside(packet.first):
            # Votes that are not at hand cannot be reported; who need not wait for them leads.
            self.promised = packet.ballot
            self.prepare()
            return
        self.follow(packet.ballot)
        if packet.first > self.ledger.next:
            self.send((sender,), Ask(self.ledger.next, packet.first))
        votes, messages = self.ledger.votes_since(packet.first)
        self.send((sender,), Promise(packet.ballot, votes, messages))
        self.check_leader()

    def follow(self, ballot: Stamp) -> None:
        """Take part in no ballot below this one, which another process owns."""
        if ballot > self.promised:
            self.promise(ballot)
            self.leading = None
            self.submit_again()

    def on_promise(self, sender: int, packet: Promise) -> None:
        leading = self.leading
        if leading is None or leading.is_prepared or packet.ballot != self.promised:
            return
        leading.promises.add(sender)
        leading.report(packet.votes, packet.messages)
        self.check_promises(leading)

    def check_promises(self, leading: Leading) -> None:
        """Propose what may be chosen already, no-ops where nothing can be, and then the rest."""
        if not self.is_majority(len(leading.promises)):
            return
        # From where PREPARE said, though more may be delivered here by now: others may lack it.
        for slot in range(leading.free, max(leading.reported, default=-1) + 1):
            vote = leading.reported.get(slot)
            self.begin_ballot(leading, slot, NO_OP if vote is None else vote.messages)
            leading.free = slot + 1
        leading.is_prepared = True
        leading.promises.clear()
        leading.reported.clear()
        self.propose()

    # Phase 2.

    def propose(self) -> None:
        """Propose what waits, if not too much is under way."""
        leading = self.leading
        while leading is not None and leading.is_prepared:
            if leading.free >= self.ledger.next + WINDOW:
                return
            votes = [self.ledger.votes[slot] for slot in range(self.ledger.next, leading.free)]
            under_way = {m.id for vote in votes for m in vote.messages}
            waiting = [self.pending[m] for m in sorted(self.pending) if m not in under_way]
            if not waiting:
                return
            leading.free += 1
            self.begin_ballot(leading, leading.free - 1, tuple(waiting))

    def begin_ballot(self, leading: Leading, slot: int, messages: tuple[Message, ...]) -> None:
        self.vote(self.promised, slot, messages)
        leading.accepts[slot] = {self.process}
        self.send_to_others(Accept(self.promised, slot, self.ledger.stable, messages))
        self.check_accepts(leading, slot)

    def on_accept(self, sender: int, packet: Accept) -> None:
        if packet.ballot < self.promised:
            self.send((sender,), Reject(self.promised))
            return
        self.follow(packet.ballot)
        self.ledger.choose_stable(packet.stable)
        self.vote(packet.ballot, packet.slot, packet.messages)
        self.deliver_chosen()
        self.forget(packet.stable)
        self.send((sender,), Accepted(packet.ballot, packet.slot, self.ledger.next))
        self.check_leader()

    def on_accepted(self, sender: int, packet: Accepted) -> None:
        leading = self.leading
        if leading is None or packet.ballot != self.promised:
            return
        leading.have[sender] = max(packet.have, leading.have.get(sender, 0))
        if packet.slot in leading.accepts:
            leading.accepts[packet.slot].add(sender)
            self.check_accepts(leading, packet.slot)
        self.check_stable(leading)

    def check_accepts(self, leading: Leading, slot: int) -> None:
        if self.is_majority(len(leading.accepts[slot])):
            del leading.accepts[slot]
            self.send_to_others(Chosen(self.promised, slot))
            self.on_chosen(self.promised, slot)
            self.check_stable(leading)
            self.propose()

    # Learning what is chosen.

    def on_chosen(self, ballot: Stamp, slot: int) -> None:
        self.ledger.choose(ballot, slot)
        self.deliver_chosen()

    def deliver_chosen(self) -> None:
        for m in self.ledger.take_chosen():
            self.pending.pop(m.id, None)
            self.deliver(m)
        self.forget(self.ledger.stable)
        self.ask_on()

    def on_ask(self, sender: int, packet: Ask) -> None:
        ledger = self.ledger
        if packet.first < ledger.stable:
            self.send((sender,), Stable(ledger.stable))
        first = max(packet.first, ledger.stable)
        last = min(packet.last, ledger.next)
        if first < min(last, ledger.recent):
            self.recall(first, last, self.cut, sender)
        elif first < last:
            self.tell(sender, last, ledger.entries(first, min(last, first + self.cut)))

    def on_recall(self, asked: Recall, entries: list[tuple[int, Packet]]) -> None:
        self.tell(asked.about, asked.last, entries)

    def tell(self, process: int, last: int, entries: list[tuple[int, Packet]]) -> None:
        """Tell a replica of some slots, as many as go at a time; it asks for the rest."""
        for packet in at_a_time(entries, last):
            self.send((process,), packet)

    def ask_on(self) -> None:
        """Ask for the rest of what it lacks, when all before that is delivered."""
        if self.asks and self.ledger.next >= self.asks[0]:
            self.send((process_of(self.promised),), Ask(self.ledger.next, self.asks[1]))
            self.asks = ()

    def on_learn(self, packet: Learn) -> None:
        if packet.slot >= self.ledger.next:
            self.vote(packet.ballot, packet.slot, packet.messages)
            self.on_chosen(packet.ballot, packet.slot)

    def check_stable(self, leading: Leading) -> None:
        if len(leading.have) == len(self.group) - 1:
            self.forget(min([self.ledger.next, *leading.have.values()]))

    # Who leads.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Leader):
            self.trusted = notice.trusted
            self.check_leader()
        self.pass_on(notice)

    def check_leader(self) -> None:
        """Take over if the owner of the highest ballot is suspected, and this process is next."""
        if self.trusted[0] == self.process and process_of(self.promised) not in self.trusted:
            self.prepare()

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Request) and self.is_ours(packet.m):
            self.remember((packet.m,))
            if self.restarts and self.leading is None and sender not in self.group:
                self.send((process_of(self.promised),), packet)
        elif not self.is_sound(sender, packet):
            raise self.refuse(sender, packet)
        elif isinstance(packet, Requests):
            self.remember(packet.messages)
        elif isinstance(packet, Accept):
            self.on_accept(sender, packet)
        elif isinstance(packet, Accepted):
            self.on_accepted(sender, packet)
        elif isinstance(packet, Chosen):
            self.on_chosen(packet.ballot, packet.slot)
        elif isinstance(packet, Prepare):
            self.on_prepare(sender, packet)
        elif isinstance(packet, Promise):
            self.on_promise(sender, packet)
        elif isinstance(packet, Reject):
            self.follow(packet.ballot)
            self.check_leader()
        elif isinstance(packet, Ask):
            self.on_ask(sender, packet)
        elif isinstance(packet, More) and self.leading is None:
            # What an earlier leader says of the rest, in whatever order, must not hide any of it.
            first, last = self.asks or (packet.first, packet.last)
            self.asks = (min(first, packet.first), max(last, packet.last))
            self.ask_on()
        elif isinstance(packet, Learn):
            self.on_learn(packet)
        elif isinstance(packet, Stable):
            self.ledger.choose_stable(packet.slot)
            self.deliver_chosen()
        elif isinstance(packet, Restarted):
            self.on_restarted(sender)

    def is_ours(self, m: Message) -> bool:
        return self.is_for_me(m) and m.destinations == self.group

    def is_sound(self, sender: int, packet: Packet) -> bool:
        """Tell whether another replica of this group, if it is correct, may have sent it."""
        return may_send(sender, packet, self.process, self.group, self.promised, self.is_ours,
                        self.ledger.has_votes)  # fmt: skip
