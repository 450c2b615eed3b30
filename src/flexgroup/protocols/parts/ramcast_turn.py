"""Which of RamCast's packets travel together: what piled up is one write (`parts/turn.py`)."""

from __future__ import annotations

from typing import ClassVar, Final, final

from flexgroup.core.layer import WriteCompleted
from flexgroup.core.message import Message, Packet, Stamp, message_id, origin_of, seq_of
from flexgroup.core.replicas import Replicas
from flexgroup.protocols.parts.new_leader import Ask, Deny, Grant, NewState
from flexgroup.protocols.parts.permit import Permit
from flexgroup.protocols.parts.ramcast_packets import (
    Ack,
    Delivered,
    Multicast,
    Propose,
    Restarted,
    Timestamp,
    is_well_formed,
)
from flexgroup.protocols.parts.timestamp_vectors import Vector, flat
from flexgroup.protocols.parts.turn import ALONE, Kind


@final
class Proposes(Packet):
    """The leader of this group gives these messages these timestamps."""

    PROTECTED: ClassVar[bool] = True

    ballot: Stamp
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class Timestamps(Packet):
    """The leader of another destination group gives these messages these timestamps."""

    ballot: Stamp
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class Acks(Packet):
    """I have these messages, of each its origin and its number, with these timestamps.

    Each goes to as many groups as the others.
    """

    messages: tuple[int, ...]
    V: Vector
    until: Stamp


SINGLES: Final[tuple[type[Packet], ...]] = (
    Multicast, Propose, Timestamp, Ack, Ask, Grant, Deny, NewState, Permit, Delivered, Restarted
)  # fmt: skip
TOGETHER: Final[tuple[type[Packet], ...]] = (Proposes, Timestamps, Acks)


def kind_of(packet: Packet) -> Kind:
    """What may share a write; who acknowledges has proposed, and given its timestamps, before."""
    if isinstance(packet, Propose):
        return 1, (packet.ballot,)
    if isinstance(packet, Timestamp):
        return 2, (packet.ballot,)
    if isinstance(packet, Ack):
        return 3, (len(packet.V),)
    return ALONE


def together(some: list[Packet]) -> Packet:
    """One write of several of a kind."""
    first = some[0]
    numbers: list[int] = []
    if isinstance(first, Ack):
        V: list[int] = []
        until = first.until
        for one in some:
            assert isinstance(one, Ack)
            numbers += (origin_of(one.m), seq_of(one.m))
            V += one.V
            until = one.until
        return Acks(tuple(numbers), tuple(V), until)
    assert isinstance(first, Propose | Timestamp)
    messages: list[Message] = []
    for one in some:
        assert isinstance(one, Propose | Timestamp)
        numbers.append(one.ts)
        messages.append(one.m)
    form = Proposes if isinstance(first, Propose) else Timestamps
    return form(first.ballot, tuple(numbers), tuple(messages))


def singles(packet: Packet) -> list[Packet]:
    """What was written together; nothing, if no correct process writes it so."""
    if isinstance(packet, Acks):
        count, rest = divmod(len(packet.messages), 2)
        if rest or not count or len(packet.V) % count:
            return []
        width = len(packet.V) // count
        return [
            Ack(
                message_id(*packet.messages[2 * at : 2 * at + 2]),
                packet.V[width * at : width * (at + 1)],
                packet.until,
            )
            for at in range(count)
        ]
    if not isinstance(packet, Proposes | Timestamps):
        return [packet]
    if len(packet.ts) != len(packet.messages):
        return []
    form = Propose if isinstance(packet, Proposes) else Timestamp
    return [form(m, packet.ballot, ts) for m, ts in zip(packet.messages, packet.ts, strict=True)]


def acknowledged(notice: WriteCompleted, group: tuple[int, ...]) -> list[Ack]:
    """The acknowledgements that a completion stands for, of messages to this group alone."""
    return [
        Ack(written.m.id, flat(written.ballot, written.ts), 0)
        for written in (singles(notice.packet) if notice.landed else [])
        if isinstance(written, Propose) and written.m.destinations == group
    ]


def separated(
    sender: int, packet: Packet, process: int, replicas: Replicas, ballot: Stamp
) -> list[Packet]:
    """What travelled together in a packet; nothing if no correct process may write it for one that
    has granted this ballot."""
    some = singles(packet)
    is_well = all(is_well_formed(sender, one, process, replicas, ballot) for one in some)
    return some if is_well else []
