"""An unchanged protocol between groups of replicas: each group runs one process of it.

Source: F. Schneider, "Implementing fault-tolerant services using the state machine approach", 1990.
A layer is a deterministic state machine, so the members of a group that hand it the same inputs in
the same order keep the same copy of it. The *inner* layer is that of `skeen`, `df` or `dcc`; its
processes are the groups, by number. Its inputs are what the log below delivers: what the origin of
a message sends (SUBMIT), what another group sends (TRANSFER), timers that ran out (EXPIRED). What
it sends to its own group it gets at once.

The channel from one group to another is numbered: all members of the sending group compute the same
transfers with the same numbers, so it does not matter which of them sends one, or how many do. The
receivers take each number once, in order. Who leads the group sends; the others keep what is not
confirmed, and whoever leads next sends it again. What a message's origin sends to several groups,
each of them passes on to the others with its own first transfer, so that all get it if one does.

A member saves its state now and then, so that the log may forget what led to it. When it starts
again after a crash, it computes from there on what it had computed before, delivers what the
application was not given yet, and has other groups send again what its own may have lost.

Assumes a log for each group (`paxos`, or `log` in small scopes), a leader oracle below it
(`leader`), and of the inner layer: it needs no more than reliable FIFO channels between its
processes, casts a message by sending one packet, and asks the world for nothing but timers.
Guarantees what the inner layer does without crashes, and uniform agreement, although fewer than
half of each group crash and although the oracle errs.

`dcc-cft` is algorithms 5.1 to 5.3 of the DCC dissertation (Louzada 2024) with `dcc` inside, and
`dcc-cft-published` the same as printed, with `dcc_published` inside: all members of a group send a
message on, and the next group takes the first copy ("deliver first") in whatever order its log has
them, although chapter 4 assumes FIFO channels. Where line 6 of algorithm 5.2 and line 20 of 5.3 say
n, a process, for an end of an edge, which is a group, the process's group is meant.
"""

from __future__ import annotations

from itertools import chain
from typing import ClassVar, Final, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import (
    CancelTimer,
    Context,
    Deliver,
    Effect,
    Layer,
    Leader,
    Notice,
    Send,
    SetTimer,
    Stored,
)
from flexgroup.core.message import Message, MessageId, Packet, message_id, origin_of
from flexgroup.core.replicas import (
    check_destinations,
    group_number,
    members_of_groups,
    numbers_of_groups,
)
from flexgroup.core.stored_state import Types, decode_state, encode_state, set_state, state_of
from flexgroup.protocols.dcc import Dcc
from flexgroup.protocols.dcc_published import DccPublished
from flexgroup.protocols.df import DelporteFauconnier
from flexgroup.protocols.parts.group_channels import (
    CONFIRMED_AT_ONCE,
    Confirm,
    Incoming,
    Outgoing,
    Transfer,
)
from flexgroup.protocols.parts.taken_messages import TakenMessages
from flexgroup.protocols.parts.timestamps import FAR
from flexgroup.protocols.skeen import Skeen

INNER: Final[dict[str, type[Layer]]] = {
    "skeen": Skeen,
    "df": DelporteFauconnier,
    "dcc": Dcc,
    "dcc-published": DccPublished,
}
"""The layers that groups can run, by the option that stands for each."""

INNER_PACKETS: Final[tuple[type[Packet], ...]] = tuple(
    dict.fromkeys(chain(*[layer.PACKETS for layer in INNER.values()]))
)

FIRST_COPY: Final = "first-copy"
"""The option that stands for chapter 5 as printed: all members send, and what comes is taken as it
comes, if it is the first copy."""

CHECKPOINT: Final = 1024
"""How many entries of the log there are between two states that are saved."""

Leaving = dict[int, list[Message]]
"""What one input made the inner layer send, for each group that it goes to."""


@final
class Submit(Packet):
    """What the origin of a message sends for the inner layer, to each group that it goes to.

    Its identity is that of the message, its destinations are the groups, its payload the packet.
    """

    m: Message


@final
class Resume(Packet):
    """I have started again: what you sent to my group and it did not confirm may be lost."""


@final
class Expired(Packet):
    """A timer of the inner layer has run out at the sender; all that are ever set are numbered."""

    name: str
    number: int


@final
class Checkpoint(Packet):
    """The state of a member after so many entries of the log, in stable storage.

    The state is bytes, as `encode_state` makes them, each of them as the character of its number.
    """

    entries: int
    state: str


def state_types(inner: Layer) -> Types:
    """What there is in the state of a member, besides the types that every state may have."""
    return (Outgoing, Incoming, TakenMessages, Transfer, *inner.RECORDS, *inner.PACKETS)


class Replicated(Layer):
    __slots__ = ("delivered", "entries", "had", "incoming", "inner", "leads", "number", "outgoing",
                 "own", "submitted", "timers", "timers_set")  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Submit, Transfer, Confirm, Expired, Resume)
    UNORDERED: ClassVar[tuple[type[Packet], ...]] = (Confirm, Resume)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Checkpoint,)
    HOSTED: ClassVar[tuple[type[Packet], ...]] = INNER_PACKETS
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.number = group_number(context.replicas, context.process)
        """That of this process's group; it is the number of the inner layer's process, too."""
        # The state that all members of a group have alike, when they are as far in its log.
        self.inner = self.inner_at(self.number) if self.number >= 0 else None
        self.incoming: dict[int, Incoming] = {}
        self.outgoing: dict[int, Outgoing] = {}
        self.submitted = TakenMessages()
        """What came from origins. Of what goes to several groups, a copy comes from each other one;
        and an origin that starts again may submit again what it was not delivered."""
        self.timers_set = 0
        """How many timers the inner layer has set so far."""
        self.timers: dict[str, tuple[int, int]] = {}
        """The number of each timer that is set, and its ticks."""
        self.entries = 0
        """How many entries of the log came."""
        self.delivered = 0
        """How many messages the inner layer has delivered."""
        # The state of this process.
        self.own: dict[MessageId, Message] = {}
        """What it has submitted and not delivered, of what it will deliver."""
        self.leads = self.number >= 0 and context.replicas[self.number][0] == self.process
        """Whether it sends what its group has for others."""
        self.had = 0
        """How many of these the application was given before a crash."""

    def inner_at(self, number: int) -> Layer:
        """The inner layer in its first state, at the process or client of this number."""
        (name,) = [option for option in self.context.options if option in INNER]
        return INNER[name](Context(number, len(self.context.replicas)))

    def client_number(self, origin: int) -> int:
        """The client of the inner layer that stands for the origin of messages."""
        return len(self.context.replicas) + origin

    # The origin of a message, be it a member or not, is a client of the groups.

    def on_cast(self, m: Message) -> None:
        replicas = self.context.replicas
        check_destinations(replicas, m.destinations)
        client = self.inner_at(self.client_number(self.process))
        groups = numbers_of_groups(replicas, m.destinations)
        client.on_cast(Message(m.id, groups, m.payload))
        (sending,) = client.effects
        assert isinstance(sending, Send)
        submitted = Message(m.id, sending.to, sending.packet)
        if self.process in m.destinations:
            self.own[m.id] = submitted
        for number in sending.to:
            self.send(replicas[number], Submit(submitted))

    # The inputs of the inner layer.

    def on_start(self) -> None:
        if self.inner is not None:
            leaving: Leaving = {}
            self.inner.on_start()
            self.perform(self.inner, leaving)
            self.transfer(leaving)

    def on_submit(self, inner: Layer, m: Message, leaving: Leaving) -> None:
        """Take the first copy, and pass it on to the other groups that it is for."""
        if self.submitted.has(m.id):
            return
        self.submitted.add(m.id)
        for number in m.destinations:
            if number != self.number:
                leaving.setdefault(number, []).append(m)
        self.take(inner, self.client_number(origin_of(m.id)), m, leaving)

    def on_transfer(self, inner: Layer, source: int, packet: Transfer) -> None:
        """Take all transfers whose turn has come."""
        incoming = self.incoming.setdefault(source, Incoming())
        if incoming.is_known(packet.number):
            return
        before = incoming.taken
        arrived = incoming.take(packet, FIRST_COPY not in self.context.options)
        for taken in range(before + 1, incoming.taken + 1):
            if self.leads and taken % CONFIRMED_AT_ONCE == 0:
                self.send(self.context.replicas[source], Confirm(taken))
        leaving: Leaving = {}
        for transfer in arrived:
            for m in transfer.messages:
                if len(m.destinations) > 1:
                    self.on_submit(inner, m, leaving)
                else:
                    self.take(inner, source, m, leaving)
        self.transfer(leaving)

    def take(self, inner: Layer, sender: int, m: Message, leaving: Leaving) -> None:
        assert isinstance(m.payload, Packet)
        inner.on_packet(sender, m.payload)
        self.perform(inner, leaving)

    # What the inner layer asks for.

    def perform(self, inner: Layer, leaving: Leaving) -> None:
        """Do it, and hand the inner layer what it sends to itself."""
        own: list[Packet] = []
        while inner.effects or own:
            effects = inner.effects
            inner.effects = []
            for effect in effects:
                if isinstance(effect, Send):
                    self.gather(effect, own, leaving)
                elif isinstance(effect, Deliver):
                    self.deliver_once(effect.message)
                else:
                    self.keep_time(inner, effect)
            if own:
                inner.on_packet(self.number, own.pop(0))

    def deliver_once(self, m: Message) -> None:
        """Deliver a message of the inner layer, unless the application had it before a crash."""
        self.own.pop(m.id, None)
        self.delivered += 1
        if self.delivered > self.had:
            members = members_of_groups(self.context.replicas, m.destinations)
            self.deliver(Message(m.id, members, m.payload))

    def gather(self, effect: Send, own: list[Packet], leaving: Leaving) -> None:
        for number in effect.to:
            if number == self.number:
                own.append(effect.packet)
            else:
                sent = self.outgoing.setdefault(number, Outgoing()).sent
                m = Message(message_id(self.number, sent), (number,), effect.packet)
                leaving.setdefault(number, []).append(m)

    def transfer(self, leaving: Leaving) -> None:
        """Number what one input made the inner layer send, and send it if this process leads."""
        for number in sorted(leaving):
            outgoing = self.outgoing.setdefault(number, Outgoing())
            packet = Transfer(outgoing.sent, tuple(leaving[number]))
            outgoing.sent += 1
            if packet.number >= outgoing.confirmed:
                outgoing.kept.append(packet)
            if self.leads or FIRST_COPY in self.context.options:
                self.send(self.context.replicas[number], packet)

    def on_confirm(self, source: int, number: int) -> None:
        """Forget transfers; those that this member will compute only later as well."""
        outgoing = self.outgoing.setdefault(source, Outgoing())
        if number > outgoing.confirmed:
            outgoing.confirmed = number
            outgoing.kept = [packet for packet in outgoing.kept if packet.number >= number]

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Leader):
            leads = notice.process == self.process
            if leads and not self.leads:
                for number in sorted(self.outgoing):
                    self.send_again(number)
            self.leads = leads
        self.pass_on(notice)

    def send_again(self, number: int) -> None:
        """Send another group what it has not confirmed."""
        for packet in self.outgoing[number].kept:
            self.send(self.context.replicas[number], packet)

    # Stable storage, and starting again.

    def check_entries(self, inner: Layer) -> None:
        """Save the state now and then, in one piece with how much of the log has led to it."""
        self.entries += 1
        if self.entries % CHECKPOINT == 0:
            parts = (
                state_of(inner), self.incoming, self.outgoing, self.submitted, self.timers_set,
                self.timers, self.delivered,
            )  # fmt: skip
            state = encode_state(parts, state_types(inner)).decode("latin-1")
            self.save(Checkpoint(self.entries, state), self.entries)

    def restore(self, inner: Layer, saved: Checkpoint) -> None:
        self.entries = saved.entries
        parts = decode_state(saved.state.encode("latin-1"), state_types(inner))
        state, self.incoming, self.outgoing, self.submitted = parts[:4]
        self.timers_set, self.timers, self.delivered = parts[4:]
        set_state(inner, state)
        for name in sorted(self.timers):
            self.set_timer(name, self.timers[name][1])
        if self.leads or FIRST_COPY in self.context.options:
            for number in sorted(self.outgoing):
                self.send_again(number)

    def on_restart(self, stored: Stored) -> None:
        """Go on from what was saved, or begin anew; the log tells everything that follows."""
        self.had = stored.delivered
        if self.inner is not None and isinstance(stored.saved, Checkpoint):
            self.restore(self.inner, stored.saved)
        else:
            self.on_start()
        for number, members in enumerate(self.context.replicas):
            if number != self.number >= 0:
                self.send(members, Resume())

    def on_resume(self, source: int) -> None:
        """Send again what all members of that group may have forgotten."""
        for identity in sorted(self.own):
            if source in self.own[identity].destinations:
                self.send(self.context.replicas[source], Submit(self.own[identity]))
        if (self.leads or FIRST_COPY in self.context.options) and source in self.outgoing:
            self.send_again(source)

    # Timers run at every member, and run out when the log says so.

    def keep_time(self, inner: Layer, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            self.timers_set += 1
            self.timers[effect.name] = (self.timers_set, effect.ticks)
            self.set_timer(effect.name, effect.ticks)
        elif isinstance(effect, CancelTimer):
            self.timers.pop(effect.name, None)
            self.cancel_timer(effect.name)
        else:
            raise UsageError(
                f"{type(inner).__name__} cannot run in a group of replicas: it asks the world for "
                f"{type(effect).__name__}, which the members would get different answers to"
            )

    def on_timer(self, name: str) -> None:
        self.send(self.context.replicas[self.number], Expired(name, self.timers[name][0]))

    def on_expired(self, inner: Layer, packet: Expired) -> None:
        """The first member whose timer runs out speaks for all."""
        if self.timers.get(packet.name, (0, 0))[0] == packet.number:
            del self.timers[packet.name]
            self.cancel_timer(packet.name)
            leaving: Leaving = {}
            inner.on_timer(packet.name)
            self.perform(inner, leaving)
            self.transfer(leaving)

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        inner = self.inner
        source = group_number(self.context.replicas, sender)
        if inner is None:
            raise self.refuse(sender, packet)
        if isinstance(packet, Submit) and self.is_for_group(packet.m):
            leaving: Leaving = {}
            self.on_submit(inner, packet.m, leaving)
            self.transfer(leaving)
            self.check_entries(inner)
        elif isinstance(packet, Transfer) and self.is_possible(source, packet):
            self.on_transfer(inner, source, packet)
            self.check_entries(inner)
        elif isinstance(packet, Confirm) and self.is_another(source) and packet.number < FAR:
            self.on_confirm(source, packet.number)
        elif isinstance(packet, Resume) and self.is_another(source):
            self.on_resume(source)
        elif isinstance(packet, Expired) and source == self.number:
            self.on_expired(inner, packet)
            self.check_entries(inner)
        else:
            raise self.refuse(sender, packet)

    def is_another(self, source: int) -> bool:
        return source >= 0 and source != self.number

    def is_for_group(self, m: Message) -> bool:
        """Tell whether m is for this group, and all other groups that it is for exist."""
        if self.number not in m.destinations or not isinstance(m.payload, Packet):
            return False
        return m.destinations[-1] < len(self.context.replicas)

    def is_possible(self, source: int, packet: Transfer) -> bool:
        """Tell whether a member of that group, if it is correct, may have sent it."""
        if not self.is_another(source) or packet.number >= FAR:
            return False
        return bool(packet.messages) and all(map(self.is_for_group, packet.messages))
