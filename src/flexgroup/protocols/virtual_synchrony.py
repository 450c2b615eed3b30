"""Virtual synchrony: who goes from one view to the next has delivered what the others have.

Source: section 2.2.6 of the FlexGroup text, after Birman and Joseph 1987: a flush before each view,
during which nobody multicasts. The text leaves it to a subprotocol, which the servers tell of all
changes (its sections 3.5.7 and 4.3, GroupUpdate); this is one.

A *change* is a view of the processes, or other members or the end of a group. All processes are
told of the same changes in the same order, each at its own time. Stages are what lies between
changes, and a message belongs to the stage in which its origin multicast it. When told of a change,
a process

- multicasts no more, and delivers no more: what comes is held in the order in which it comes;
- tells all who go on, in a `Flush`, how many messages it has sent to each, and what it has
  delivered that goes to each, too;
- when all who go on have said so, and all that they named has come, delivers it, passes the change
  on, and goes on. What came from a process that is gone, and nobody named, is dropped by all.

If a process fails meanwhile, there is another change, and the flush for that one is enough for
both. A view that nobody has installed is skipped then: one who is left out of the next view may
still install it, with other messages. If somebody has installed it, all others do, by what was said
then. A process that is left out is in a view of itself alone, and delivers nothing until a view has
it again.

Assumes a layer below that delivers at all correct destinations what it delivers at one. Guarantees
virtual synchrony, for processes and for groups, and keeps the order below: the drop is the same for
all. It does not keep uniform agreement, as what only those who are gone have delivered is dropped.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import (
    Context,
    GroupDestroy,
    GroupUpdate,
    Layer,
    Notice,
    Record,
    View,
)
from flexgroup.core.message import Message, MessageId, Packet, message_id, origin_of, seq_of
from flexgroup.protocols.parts.known_messages import KnownMessages

VIEW: Final = 0
UPDATE: Final = 1
DESTROY: Final = 2

Triples = tuple[int, ...]
"""Triples of a destination, an origin and a number, one after the other."""


@final
@mypyc_attr(acyclic=True)
class Data(Packet):
    """m, the stage it belongs to, and which of its origin's messages to each destination it is."""

    m: Message
    stage: int
    numbers: tuple[int, ...]


@final
@mypyc_attr(acyclic=True)
class Flush(Packet):
    """What others must have got before this stage: so many messages of the sender, and, by origin
    and number among those to each destination, what the sender has delivered."""

    stage: int
    at: int
    """The stage in which the sender is."""
    since: int
    """The stage in which a view had the sender again, or the first one."""
    sent: tuple[int, ...]
    """How many messages it has sent to each process."""
    delivered: Triples
    """So many of each origin to each destination without a gap."""
    beyond: Triples
    """And these, each by its number."""


@final
class Change(Record):
    """What this process was told and has not passed on yet, as the fields of the notice."""

    kind: int
    group: int
    number: int
    processes: tuple[int, ...]
    members: tuple[str, ...]

    def notice(self) -> Notice:
        if self.kind == VIEW:
            return View(self.number, self.processes)
        if self.kind == UPDATE:
            return GroupUpdate(self.group, self.number, self.processes, self.members)
        return GroupDestroy(self.group)


class VirtualSynchrony(Layer):
    __slots__ = ("coming", "delivered", "flushes", "got", "held", "sent", "since", "stage",
                 "view", "waiting")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.VIRTUAL_SYNCHRONY})
    KEEPS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Flush)
    UNORDERED: ClassVar[tuple[type[Packet], ...]] = (Flush,)
    CLOSED: ClassVar[bool] = True
    HEEDS_GROUPS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.stage = 0
        self.since = 0
        """The stage in which a view had this process again."""
        self.view = tuple(range(context.size))
        """The processes that are there in this stage."""
        self.coming: list[Change] = []
        """The changes that it was told of and has not passed on."""
        self.waiting: list[Message] = []
        """What is to be multicast in the next stage."""
        self.held: list[Data] = []
        """What came and is not delivered, in the order in which it came."""
        self.flushes: dict[tuple[int, int], Flush] = {}
        """What was said for stages to come, by stage and sender."""
        self.sent = [0] * context.size
        """How many messages went to each destination."""
        self.got = KnownMessages()
        """The messages that came, by origin and number among those to this process."""
        self.delivered = [KnownMessages() for _ in range(context.size)]
        """What was delivered here, by origin and number among those to each other process."""

    def on_start(self) -> None:
        if self.process < self.size:
            self.pass_on(View(0, self.view))

    def on_cast(self, m: Message) -> None:
        if self.coming or self.process not in self.view:
            self.waiting.append(m)
        else:
            self.multicast(m)

    def multicast(self, m: Message) -> None:
        numbers = tuple([self.sent[destination] for destination in m.destinations])
        for destination in m.destinations:
            self.sent[destination] += 1
        self.send(m.destinations, Data(m, self.stage, numbers))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data) and self.is_sound(sender, packet):
            self.got.add(identity_at(self.process, packet))
            if packet.stage >= self.stage and self.process in self.view:
                self.held.append(packet)
                self.go_on()
        elif isinstance(packet, Flush) and self.is_news(sender, packet):
            if packet.stage > self.stage:
                self.flushes[packet.stage, sender] = packet
                self.go_on()
        else:
            raise self.refuse(sender, packet)

    def is_sound(self, sender: int, packet: Data) -> bool:
        """Tell whether a correct process may have sent it."""
        m = packet.m
        return (
            self.is_for_me(m)
            and len(packet.numbers) == len(m.destinations)
            and sender == origin_of(m.id)
            and sender < self.size
            and not self.got.has(identity_at(self.process, packet))
        )

    def is_news(self, sender: int, packet: Flush) -> bool:
        return (
            sender < self.size
            and packet.at < packet.stage
            and (packet.stage, sender) not in self.flushes
            and len(packet.sent) == self.size
            and len(packet.delivered) % 3 == len(packet.beyond) % 3 == 0
        )

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, View):
            change = Change(VIEW, 0, notice.number, notice.members, ())
        elif isinstance(notice, GroupUpdate):
            of = notice.processes
            change = Change(UPDATE, notice.group, notice.view, of, notice.members)
        elif isinstance(notice, GroupDestroy):
            change = Change(DESTROY, notice.group, 0, (), ())
        else:
            # A group that is created has no messages yet.
            self.pass_on(notice)
            return
        before = self.views_through(len(self.coming))[-1]
        after = change.processes if change.kind == VIEW else before
        if self.process not in after:
            self.stage += len(self.coming) + 1
            self.coming = []
            self.held = []
            self.view = after
            if self.process in before:
                self.pass_on(View(change.number, (self.process,)))
        elif self.process not in before:
            self.stage += 1
            self.since = self.stage
            self.view = after
            self.pass_on(notice)
            self.begin_stage()
        else:
            self.coming.append(change)
            self.flush()
            self.go_on()

    def flush(self) -> None:
        delivered: list[int] = []
        beyond: list[int] = []
        for other, known in enumerate(self.delivered):
            for origin, count in sorted(known.last.items()):
                if count:
                    delivered += (other, origin, count)
            for m in sorted(known.ahead):
                beyond += (other, origin_of(m), seq_of(m))
        stage = self.stage + len(self.coming)
        sent = tuple(self.sent)
        said = Flush(stage, self.stage, self.since, sent, tuple(delivered), tuple(beyond))
        self.flushes[stage, self.process] = said
        others = [one for one in self.going_on(len(self.coming)) if one != self.process]
        if others:
            self.send(tuple(others), said)

    def views_through(self, changes: int) -> list[tuple[int, ...]]:
        """The view of this stage, and those of so many changes."""
        return [self.view, *[c.processes for c in self.coming[:changes] if c.kind == VIEW]]

    def going_on(self, changes: int) -> list[int]:
        """The processes that were there before the last of so many changes, and are after it."""
        views = self.views_through(changes)
        if self.coming[changes - 1].kind != VIEW:
            return list(views[-1])
        return [one for one in views[-1] if one in views[-2]]

    def go_on(self) -> None:
        """Deliver what may be delivered in this stage, and end it if that was all."""
        while self.coming:
            changes = len(self.coming)
            said = self.said_for(changes)
            # Somebody may be ahead; then it was by what was said for the stage in which it is.
            while said and furthest(said) > self.stage:
                changes = furthest(said) - self.stage
                said = self.said_for(changes)
            if not said or not self.has_all(said):
                return
            self.install(changes, list(said.values()))
        self.deliver_held([], [])

    def said_for(self, changes: int) -> dict[int, Flush]:
        """What all who go on have said for the last of so many changes; nothing if one has not."""
        said: dict[int, Flush] = {}
        for one in self.going_on(changes):
            flush = self.flushes.get((self.stage + changes, one))
            if flush is None:
                return {}
            said[one] = flush
        return said

    def has_all(self, said: dict[int, Flush]) -> bool:
        """Tell whether all has come that was named for this process."""
        got = self.got
        for sender, flush in said.items():
            if got.last.get(sender, 0) < flush.sent[self.process]:
                return False
            for to, origin, count in triples(flush.delivered):
                if to == self.process and got.last.get(origin, 0) < count:
                    return False
            for to, origin, number in triples(flush.beyond):
                if to == self.process and not got.has(message_id(origin, number)):
                    return False
        return True

    def install(self, changes: int, said: list[Flush]) -> None:
        """End so many stages: the views between are skipped, and the last change is installed."""
        coming, self.coming = self.coming[:changes], self.coming[changes:]
        for place, change in enumerate(coming):
            self.deliver_held(coming, said)
            self.stage += 1
            if change.kind == VIEW:
                self.view = change.processes
            if change.kind != VIEW or place == changes - 1:
                self.pass_on(change.notice())
        if not self.coming:
            self.begin_stage()

    def deliver_held(self, coming: list[Change], said: list[Flush]) -> None:
        """Deliver what is held of this stage; of origins that do not stay, what somebody named."""
        left: list[Data] = []
        for packet in self.held:
            if packet.stage > self.stage:
                left.append(packet)
            elif packet.stage == self.stage and (
                stays(origin_of(packet.m.id), coming) or is_named(self.process, packet, said)
            ):
                for place, destination in enumerate(packet.m.destinations):
                    identity = message_id(origin_of(packet.m.id), packet.numbers[place])
                    self.delivered[destination].add(identity)
                self.deliver(packet.m)
        self.held = left

    def begin_stage(self) -> None:
        stage = self.stage
        self.flushes = {key: said for key, said in self.flushes.items() if key[0] > stage}
        self.deliver_held([], [])
        waiting, self.waiting = self.waiting, []
        for m in waiting:
            self.multicast(m)

    def held_back(self) -> list[Message]:
        return [packet.m for packet in self.held]


def identity_at(destination: int, packet: Data) -> MessageId:
    """The origin of a message, and its number among those to this destination."""
    m = packet.m
    return message_id(origin_of(m.id), packet.numbers[m.destinations.index(destination)])


def furthest(said: dict[int, Flush]) -> int:
    """The last stage in which somebody was who has said this."""
    return max([flush.at for flush in said.values()])


def stays(origin: int, coming: list[Change]) -> bool:
    """Tell whether a process is in all views that are coming."""
    return all(c.kind != VIEW or origin in c.processes for c in coming)


def is_named(process: int, packet: Data, said: list[Flush]) -> bool:
    """Tell whether somebody who was there in the stage of a message has delivered it."""
    identity = identity_at(process, packet)
    origin, number = origin_of(identity), seq_of(identity)
    for flush in said:
        if flush.since > packet.stage:
            continue
        for to, whose, count in triples(flush.delivered):
            if to == process and whose == origin and number < count:
                return True
        if (process, origin, number) in triples(flush.beyond):
            return True
    return False


def triples(numbers: Triples) -> list[tuple[int, int, int]]:
    places = range(0, len(numbers), 3)
    return [(numbers[place], numbers[place + 1], numbers[place + 2]) for place in places]
