"""What White-Box sends and delivers in one turn, and which of its packets travel together.

It matters where a new leader proposes what piled up while nobody led (`parts/turn.py`).
"""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import (
    Message,
    Packet,
    Stamp,
    clock_of,
    message_id,
    origin_of,
    process_of,
    seq_of,
    stamp,
)
from flexgroup.core.replicas import Replicas
from flexgroup.protocols.parts.turn import ALONE, Kind, Outgoing, Sent
from flexgroup.protocols.parts.white_box_packets import (
    Abandoned,
    Accept,
    AcceptAck,
    Deliver,
    Multicast,
    NewLeader,
    NewLeaderAck,
    NewState,
    NewStateAck,
    Restarted,
    is_well_formed,
)

WIDTH: Final = 5
"""How many numbers tell of a delivery."""


@final
class Accepts(Packet):
    """ACCEPT of several messages: the clocks of their local timestamps, in this group."""

    ballot: int
    group: int
    clocks: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class AcceptAcks(Packet):
    """ACCEPT_ACK of several messages, of each its origin and its number, for the same ballots."""

    messages: tuple[int, ...]
    ballots: tuple[int, ...]
    have: Stamp


@final
class Delivers(Packet):
    """DELIVER of several messages, in their order.

    Of each: its origin and its number, the clock of its local timestamp, and the clock and the
    group of the global one.
    """

    ballot: int
    group: int
    states: tuple[int, ...]
    stable: Stamp


SINGLES: Final[tuple[type[Packet], ...]] = (
    Multicast, Accept, AcceptAck, Deliver, NewLeader, NewLeaderAck, NewState, NewStateAck,
    Abandoned, Restarted
)  # fmt: skip
TOGETHER: Final[tuple[type[Packet], ...]] = (Accepts, AcceptAcks, Delivers)


@final
class Turn(Record):
    """What waits for the end of a turn."""

    outgoing: Outgoing = Outgoing()
    """What is to be sent."""
    given: list[Message] = []
    """What is to be delivered."""
    has_committed: bool = False
    """There may be something that a leader can have delivered."""

    def take_committed(self) -> bool:
        has_committed, self.has_committed = self.has_committed, False
        return has_committed

    def take_given(self) -> list[Message]:
        given, self.given = self.given, []
        return given

    def take_outgoing(self) -> list[Sent]:
        """What goes out: what nothing travels with first, and proposals before the rest.

        So whoever gets an acknowledgement or a delivery knows the message.
        """
        return self.outgoing.take(_kind_of, _together)


def _kind_of(packet: Packet) -> Kind:
    if isinstance(packet, Accept):
        return 1, (packet.ballot,)
    if isinstance(packet, AcceptAck):
        return 2, packet.ballots
    if isinstance(packet, Deliver):
        return 3, (packet.ballot,)
    return ALONE


def _together(some: list[Packet]) -> Packet:
    last = some[-1]
    numbers: list[int] = []
    if isinstance(last, Accept):
        messages: list[Message] = []
        for one in some:
            assert isinstance(one, Accept)
            numbers.append(clock_of(one.lts))
            messages.append(one.m)
        return Accepts(last.ballot, process_of(last.lts), tuple(numbers), tuple(messages))
    if isinstance(last, AcceptAck):
        for one in some:
            assert isinstance(one, AcceptAck)
            numbers += (origin_of(one.m), seq_of(one.m))
        return AcceptAcks(tuple(numbers), last.ballots, last.have)
    assert isinstance(last, Deliver)
    for one in some:
        assert isinstance(one, Deliver)
        numbers += (origin_of(one.m), seq_of(one.m), clock_of(one.lts))
        numbers += (clock_of(one.gts), process_of(one.gts))
    return Delivers(last.ballot, process_of(last.lts), tuple(numbers), last.stable)


def separated(sender: int, packet: Packet, process: int, replicas: Replicas) -> list[Packet]:
    """What travelled together in a packet; nothing if no correct process may send it to this one,
    whatever has happened before."""
    singles = _singles(packet)
    is_well = all(is_well_formed(sender, one, process, replicas) for one in singles)
    return singles if is_well else []


def _singles(packet: Packet) -> list[Packet]:
    if isinstance(packet, Accepts) and len(packet.clocks) == len(packet.messages):
        return [
            Accept(m, packet.ballot, stamp(clock, packet.group))
            for clock, m in zip(packet.clocks, packet.messages, strict=True)
        ]
    if isinstance(packet, AcceptAcks) and len(packet.messages) % 2 == 0:
        return [
            AcceptAck(message_id(*packet.messages[at : at + 2]), packet.ballots, packet.have)
            for at in range(0, len(packet.messages), 2)
        ]
    if isinstance(packet, Delivers) and len(packet.states) % WIDTH == 0:
        singles: list[Packet] = []
        for at in range(0, len(packet.states), WIDTH):
            origin, number, lts, gts, group = packet.states[at : at + WIDTH]
            m = message_id(origin, number)
            singles.append(
                Deliver(
                    m, packet.ballot, stamp(lts, packet.group), stamp(gts, group), packet.stable
                )
            )
        return singles
    return [] if isinstance(packet, TOGETHER) else [packet]
