"""Which of PrimCast's packets travel together: what piled up goes out at once (`parts/turn.py`)."""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.message import Message, Packet, Stamp, message_id, origin_of, seq_of
from flexgroup.protocols.parts.primcast_packets import (
    AcceptEpoch,
    Ack,
    Bump,
    NewEpoch,
    NewState,
    Promise,
    Proposal,
    Restarted,
    Start,
)
from flexgroup.protocols.parts.turn import ALONE, Kind


@final
class Proposals(Packet):
    """Several `Proposal` of a primary, in the order of their timestamps."""

    epoch: Stamp
    have: int
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class Acks(Packet):
    """Several `Ack`: the timestamps of messages, and of each its origin and its number."""

    epoch: Stamp
    have: int
    ts: tuple[int, ...]
    messages: tuple[int, ...]


SINGLES: Final[tuple[type[Packet], ...]] = (
    Start, Proposal, Ack, Bump, NewEpoch, Promise, NewState, AcceptEpoch, Restarted
)  # fmt: skip
TOGETHER: Final[tuple[type[Packet], ...]] = (Proposals, Acks)


def kind_of(packet: Packet) -> Kind:
    """What may share a packet; who tells its clock has proposed, and acknowledged, all below."""
    if isinstance(packet, Proposal):
        return 1, (packet.epoch,)
    if isinstance(packet, Ack):
        return 2, (packet.epoch,)
    if isinstance(packet, Bump):
        return 3, (packet.epoch,)
    return ALONE


def together(some: list[Packet]) -> Packet:
    """One packet for several of a kind; of clocks, the last one is the highest."""
    last = some[-1]
    if isinstance(last, Proposal):
        proposals = [one for one in some if isinstance(one, Proposal)]
        ts = tuple([one.ts for one in proposals])
        return Proposals(last.epoch, last.have, ts, tuple([one.m for one in proposals]))
    if isinstance(last, Ack):
        acks = [one for one in some if isinstance(one, Ack)]
        numbers = [number for one in acks for number in (origin_of(one.m), seq_of(one.m))]
        ts = tuple([one.ts for one in acks])
        return Acks(last.epoch, last.have, ts, tuple(numbers))
    return last


def singles(packet: Packet) -> list[Packet]:
    """What travelled together in a packet; nothing, if no correct process sends it so."""
    if isinstance(packet, Proposals) and len(packet.ts) == len(packet.messages):
        return [
            Proposal(m, packet.epoch, ts, packet.have)
            for m, ts in zip(packet.messages, packet.ts, strict=True)
        ]
    if isinstance(packet, Acks) and 2 * len(packet.ts) == len(packet.messages):
        return [
            Ack(message_id(*packet.messages[2 * at : 2 * at + 2]), packet.epoch, ts, packet.have)
            for at, ts in enumerate(packet.ts)
        ]
    return [] if isinstance(packet, TOGETHER) else [packet]
