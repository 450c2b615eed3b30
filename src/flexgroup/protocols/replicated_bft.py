"""An unchanged protocol between groups of replicas, of which some in each group lie.

Source: F. Schneider, "Implementing fault-tolerant services using the state machine approach", 1990;
for DCC-bft, algorithms 5.4 to 5.6 and section 5.2 of the DCC dissertation (Louzada 2024).
`replicated` is the same where replicas only crash. The *inner* layer is that of `dcc` or `df`; its
processes are the groups, by number. Its inputs are what the log below delivers: what the origin of
a message sends (SUBMIT), and what another group sends (TRANSFER). What it sends to its own group it
gets at once.

All members of a group send what it has for another one, and an input counts when f + 1 of them have
sent equal copies, under a number of the channel (`vouched_channels`): f + 1 proofs of what one
correct member computed. What an origin submits counts if the inner layer of an honest client would
have sent it.

With the option `sealed`, members seal what they send, past the log. A receiver who has f + 1 seals
on the same transfer puts them, as a certificate, into the log of its group: one entry instead of
n. The members of the group take turns at that; the others wait for a while, and if nothing comes
they do it as well.

Assumes a log for each group, which fewer than a third of its members can break (`pbft`, or `log`
in small scopes), and says truly who sent an entry. Of the inner layer: it needs no more than
reliable FIFO channels between its processes, casts a message by sending one packet to one group,
asks the world for nothing, and is not confused by a client that uses an identity twice. Guarantees
what the inner layer does without crashes, among correct processes, although up to f of the 3f + 1
members of each group, and any clients, do what they like.

`dcc-bft` has `dcc` inside, and `df-bft` has `df`. `dcc-bft-published` is algorithms 5.4 to 5.6 as
printed, with `dcc_published` inside and channels without order: "deliver m (f + 1) times" says
nothing of what was sent before m.
"Times" is read kindly, as equal copies of distinct members of one group. Where line 6 of algorithm
5.5 sets m.src to n, a process, its group is meant: no two members would send equal copies, as it
stands.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Deliver, Effect, Layer, Send
from flexgroup.core.message import Message, Packet, message_id, origin_of
from flexgroup.core.replicas import (
    check_destinations,
    group_number,
    members_of_groups,
    numbers_of_groups,
)
from flexgroup.protocols.dcc import Dcc
from flexgroup.protocols.dcc_published import DccPublished
from flexgroup.protocols.df import DelporteFauconnier
from flexgroup.protocols.parts.certificates import Certificate, Sealed, SealedCopies
from flexgroup.protocols.parts.group_channels import Confirm, Incoming, Transfer
from flexgroup.protocols.parts.taken_messages import TakenMessages
from flexgroup.protocols.parts.timestamps import FAR
from flexgroup.protocols.parts.vouched_channels import (
    AS_THEY_COME,
    Sending,
    Vouched,
    confirmations,
    enough_of,
)

INNER: Final[dict[str, type[Layer]]] = {
    "dcc": Dcc,
    "dcc-published": DccPublished,
    "df": DelporteFauconnier,
}
"""The layers that groups can run, by the option that stands for each."""

SEALED: Final = "sealed"
"""The option that stands for certificates in the place of copies."""

PATIENCE: Final = 100
"""The ticks that a member waits for the one whose turn it is to show a certificate."""

INNER_PACKETS: Final[tuple[type[Packet], ...]] = tuple(
    dict.fromkeys([packet for layer in INNER.values() for packet in layer.PACKETS])
)


@final
class Submit(Packet):
    """What the origin of a message sends for the inner layer, to the first group that it goes to.

    Its identity is that of the message, its destination the group, its payload the packet.
    """

    m: Message


class ReplicatedBft(Layer):
    __slots__ = ("delivered", "incoming", "inner", "number", "outgoing", "sealed", "submitted")

    NEEDS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (
        Submit,
        Transfer,
        Confirm,
        Sealed,
        Certificate,
    )
    UNORDERED: ClassVar[tuple[type[Packet], ...]] = (Confirm, Sealed)
    HOSTED: ClassVar[tuple[type[Packet], ...]] = INNER_PACKETS
    NEEDS_REPLICAS: ClassVar[bool] = True
    AMONG_LIARS: ClassVar[bool] = True
    NEEDS_SEALS: ClassVar[bool] = True
    OPTIONS: ClassVar[tuple[str, ...]] = (SEALED,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.number = group_number(context.replicas, context.process)
        """That of this process's group; it is the number of the inner layer's process, too."""
        self.inner = self.inner_at(self.number) if self.number >= 0 else None
        self.incoming: dict[int, Vouched] = {}
        self.outgoing: dict[int, Sending] = {}
        self.submitted = TakenMessages()
        """What came from origins."""
        self.delivered = TakenMessages()
        """What the inner layer has delivered. An origin that lies may have submitted something
        else under the same identity to another group."""

        self.sealed: dict[int, SealedCopies] = {}
        """What the members of each other group have sealed."""

    def inner_at(self, number: int) -> Layer:
        """The inner layer in its first state, at the process or client of this number."""
        (name,) = [option for option in self.context.options if option in INNER]
        return INNER[name](Context(number, len(self.context.replicas)))

    def on_start(self) -> None:
        if self.inner is not None:
            self.inner.on_start()
            self.perform(self.inner)

    # The origin of a message, be it a member or not, is a client of the groups.

    def on_cast(self, m: Message) -> None:
        replicas = self.context.replicas
        check_destinations(replicas, m.destinations)
        groups = numbers_of_groups(replicas, m.destinations)
        submitted = self.submission(Message(m.id, groups, m.payload))
        self.send(members_of_groups(replicas, submitted.destinations), Submit(submitted))

    def submission(self, m: Message) -> Message:
        """What an honest origin submits of a message to these groups."""
        client = self.inner_at(self.client_number(origin_of(m.id)))
        client.on_cast(m)
        (sending,) = client.effects
        assert isinstance(sending, Send)
        return Message(m.id, sending.to, sending.packet)

    def client_number(self, origin: int) -> int:
        """The client of the inner layer that stands for the origin of messages."""
        return len(self.context.replicas) + origin

    # The inputs of the inner layer.

    def on_packet(self, sender: int, packet: Packet) -> None:
        inner = self.inner
        source = group_number(self.context.replicas, sender)
        if inner is None:
            raise self.refuse(sender, packet)
        if isinstance(packet, Submit) and self.is_submitted(sender, packet.m):
            self.on_submit(inner, sender, packet.m)
        elif isinstance(packet, Transfer) and self.is_sent(source, packet):
            self.on_transfer(inner, source, sender, packet)
        elif isinstance(packet, Sealed) and self.is_sealed_for_us(source, sender, packet):
            self.on_sealed(source, sender, packet)
        elif isinstance(packet, Certificate) and self.is_certified(source, packet):
            self.on_certificate(inner, packet)
        elif isinstance(packet, Confirm) and self.is_another(source) and packet.number < FAR:
            self.on_confirm(source, sender, packet.number)
        else:
            raise self.refuse(sender, packet)

    def on_submit(self, inner: Layer, origin: int, m: Message) -> None:
        if not self.submitted.has(m.id):
            self.submitted.add(m.id)
            assert isinstance(m.payload, Packet)
            inner.on_packet(self.client_number(origin), m.payload)
            self.perform(inner)

    def on_transfer(self, inner: Layer, source: int, sender: int, packet: Transfer) -> None:
        group = self.context.replicas[source]
        vouched = self.channel_from(source)
        before = vouched.incoming.taken
        in_order = AS_THEY_COME not in self.context.options
        self.take(inner, source, before, vouched.add(sender, packet, group, in_order))

    def take(self, inner: Layer, source: int, before: int, transfers: list[Transfer]) -> None:
        """Hand the inner layer what is due, of which so many transfers were taken before."""
        for transfer in transfers:
            for m in transfer.messages:
                assert isinstance(m.payload, Packet)
                inner.on_packet(source, m.payload)
                self.perform(inner)
        for number in confirmations(before, self.channel_from(source).incoming.taken):
            self.send(self.context.replicas[source], Confirm(number))

    def channel_from(self, source: int) -> Vouched:
        return self.incoming.setdefault(source, Vouched(Incoming()))

    # Certificates.

    def on_sealed(self, source: int, sender: int, packet: Sealed) -> None:
        """Show a certificate when there is one, if it is this member's turn."""
        transfer = packet.transfer
        assert isinstance(transfer, Transfer)
        if self.channel_from(source).incoming.is_known(transfer.number):
            return
        enough = enough_of(self.context.replicas[source])
        sealed = self.sealed.setdefault(source, SealedCopies())
        certificate = sealed.add(sender, transfer, packet.seal, enough)
        mates = self.context.replicas[self.number]
        if certificate is not None and mates[transfer.number % len(mates)] == self.process:
            self.send(mates, certificate)
        elif certificate is not None:
            self.set_timer(f"{source}.{transfer.number}", PATIENCE)

    def on_timer(self, name: str) -> None:
        """Whose turn it was has not shown the certificate of this transfer."""
        source, number = map(int, name.split("."))
        certificate = self.sealed[source].certificates.get(number)
        if certificate is not None:
            self.send(self.context.replicas[self.number], certificate)

    def on_certificate(self, inner: Layer, packet: Certificate) -> None:
        """Take what is certified, if it is not taken already."""
        transfer = packet.transfer
        assert isinstance(transfer, Transfer)
        source = group_number(self.context.replicas, packet.members[0])
        incoming = self.channel_from(source).incoming
        if incoming.is_known(transfer.number):
            return
        self.cancel_timer(f"{source}.{transfer.number}")
        self.sealed.setdefault(source, SealedCopies()).drop(transfer.number)
        before = incoming.taken
        self.take(inner, source, before, incoming.take(transfer, in_order=True))

    # What the inner layer asks for.

    def perform(self, inner: Layer) -> None:
        """Do it, and hand the inner layer what it sends to itself."""
        own: list[Packet] = []
        while inner.effects or own:
            effects = inner.effects
            inner.effects = []
            for effect in effects:
                if isinstance(effect, Send):
                    self.transfer(effect, own)
                elif isinstance(effect, Deliver):
                    self.deliver_once(effect.message)
                else:
                    raise unanswerable(inner, effect)
            if own:
                inner.on_packet(self.number, own.pop(0))

    def transfer(self, effect: Send, own: list[Packet]) -> None:
        for number in effect.to:
            if number == self.number:
                own.append(effect.packet)
            else:
                sending = self.outgoing.setdefault(number, Sending())
                m = Message(message_id(self.number, sending.sent), (number,), effect.packet)
                for packet in sending.add((m,)):
                    self.send_transfer(number, packet)

    def send_transfer(self, number: int, packet: Transfer) -> None:
        members = self.context.replicas[number]
        if SEALED in self.context.options:
            self.send(members, Sealed(packet, self.seal(packet)))
        else:
            self.send(members, packet)

    def deliver_once(self, m: Message) -> None:
        if not self.delivered.has(m.id):
            self.delivered.add(m.id)
            members = members_of_groups(self.context.replicas, m.destinations)
            self.deliver(Message(m.id, members, m.payload))

    def on_confirm(self, source: int, sender: int, number: int) -> None:
        sending = self.outgoing.setdefault(source, Sending())
        for packet in sending.confirm(sender, number, self.context.replicas[source]):
            self.send_transfer(source, packet)

    # What may have been sent.

    def is_submitted(self, sender: int, m: Message) -> bool:
        """Tell whether the sender submits what an honest origin would, and to this group."""
        inner = getattr(m.payload, "m", None)
        if not isinstance(inner, Message) or origin_of(m.id) != sender:
            return False
        to = inner.destinations
        if not to or to != tuple(sorted({*to})) or to[-1] >= len(self.context.replicas):
            return False
        return m.destinations == (self.number,) and m == self.submission(inner)

    def is_another(self, source: int) -> bool:
        return source >= 0 and source != self.number

    def is_sent(self, source: int, packet: Transfer) -> bool:
        """Tell whether it is of another group, and may be under way."""
        if SEALED in self.context.options or not self.is_another(source):
            return False
        vouched = self.incoming.get(source)
        return (vouched or Vouched(Incoming())).is_under_way(packet.number)

    def is_sealed_for_us(self, source: int, sender: int, packet: Sealed) -> bool:
        """Tell whether the sender, of another group, has sealed it, and this group is meant."""
        if SEALED not in self.context.options or not self.is_another(source):
            return False
        return self.is_for_us(packet.transfer) and self.is_sealed(
            sender, packet.transfer, packet.seal
        )

    def is_for_us(self, transfer: Packet) -> bool:
        """Tell whether it is a transfer to this group: another one has other numbers."""
        if not isinstance(transfer, Transfer) or transfer.number >= FAR:
            return False
        return all(m.destinations == (self.number,) for m in transfer.messages)

    def is_certified(self, source: int, packet: Certificate) -> bool:
        """Tell whether a member of this group shows f + 1 seals of another group's members."""
        if SEALED not in self.context.options or source != self.number or not packet.members:
            return False
        replicas = self.context.replicas
        sealing = group_number(replicas, packet.members[0])
        if not self.is_another(sealing) or not self.is_for_us(packet.transfer):
            return False
        members = {*packet.members}.intersection(replicas[sealing])
        if len(members) != len(packet.members) or len(members) != len(packet.seals):
            return False
        return len(members) >= enough_of(replicas[sealing]) and all(
            self.is_sealed(member, packet.transfer, seal)
            for member, seal in zip(packet.members, packet.seals, strict=True)
        )


def unanswerable(inner: Layer, effect: Effect) -> UsageError:
    """The error to raise for what the world would answer differently to each member."""
    return UsageError(
        f"{type(inner).__name__} cannot run in a group of replicas among liars: it asks the world "
        f"for {type(effect).__name__}, which the members would get different answers to"
    )
