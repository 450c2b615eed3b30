"""The packets of White-Box, and what a correct process may send in them."""

from __future__ import annotations

from typing import final

from flexgroup.core.message import (
    PROCESS_BITS,
    Message,
    MessageId,
    Packet,
    Stamp,
    clock_of,
    process_of,
)
from flexgroup.core.replicas import Replicas, group_of
from flexgroup.protocols.parts.timestamps import FAR
from flexgroup.protocols.parts.white_box_progress import ACCEPTED, COMMITTED, WIDTH


@final
class Multicast(Packet):
    """MULTICAST(m): order m; followers only remember it."""

    m: Message


@final
class Accept(Packet):
    """ACCEPT(m, g, b, lts): the leader of ballot b in its group g gives m this timestamp."""

    m: Message
    ballot: int
    lts: Stamp


@final
class AcceptAck(Packet):
    """ACCEPT_ACK(m, g, Bal): I accepted what the leaders of these ballots proposed.

    `ballots` has one ballot for each destination group of m, in their order. I have delivered
    everything up to the global timestamp `have`.
    """

    m: MessageId
    ballots: tuple[int, ...]
    have: Stamp


@final
class Deliver(Packet):
    """DELIVER(m, b, lts, gts): deliver m, and forget what was delivered up to `stable`."""

    m: MessageId
    ballot: int
    lts: Stamp
    gts: Stamp
    stable: Stamp


@final
class NewLeader(Packet):
    """NEW_LEADER(b): take part in no lower ballot, and tell me what you know."""

    ballot: int


@final
class NewLeaderAck(Packet):
    """NEWLEADER_ACK(b, cballot, clock, Phase, LocalTS, GlobalTS).

    `states` is flat: of each of these messages its phase, the clock of its local timestamp, and the
    clock and the group of its global one, or zeros.
    """

    ballot: int
    cballot: int
    clock: int
    states: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class NewState(Packet):
    """NEW_STATE(b, clock, Phase, LocalTS, GlobalTS): what ballot b begins with; as above."""

    ballot: int
    clock: int
    states: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class NewStateAck(Packet):
    """NEWSTATE_ACK(b): I stored what you told."""

    ballot: int


@final
class Abandoned(Packet):
    """I take part in no ballot below this one, whose leader I suspect: begin a higher one."""

    ballot: int


@final
class Restarted(Packet):
    """I have crashed and started again: what was sent to me may be lost."""


def leader_of(group: tuple[int, ...], ballot: int) -> int:
    """The paper's leader(b): the members of a group own the ballots in turn."""
    return group[ballot % len(group)]


def groups_of(replicas: Replicas, destinations: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of the groups that these are all members of; none, if others are among them."""
    numbers: list[int] = []
    members: list[int] = []
    for number, group in enumerate(replicas):
        if group[0] in destinations:
            numbers.append(number)
            members += group
    return tuple(numbers) if tuple(members) == destinations else ()


def is_well_formed(sender: int, packet: Packet, process: int, replicas: Replicas) -> bool:
    """Tell whether a correct process may send it to this one, whatever has happened before."""
    group = group_of(replicas, sender)
    if isinstance(packet, Multicast):
        return is_to(process, packet.m, replicas)
    if not group or sender == process:
        return False
    if isinstance(packet, Accept):
        return (
            is_to(process, packet.m, replicas)
            and sender in packet.m.destinations
            and leader_of(group, packet.ballot) == sender
            and is_timestamp(packet.lts, replicas.index(group))
            and packet.ballot < FAR
        )
    if isinstance(packet, AcceptAck):
        return packet.have < FAR and max(packet.ballots, default=0) < FAR
    if isinstance(packet, Restarted):
        return True
    if process not in group:
        return False
    if isinstance(packet, Deliver):
        is_ours = is_timestamp(packet.lts, replicas.index(group))
        if not is_ours or not packet.lts <= packet.gts < FAR or packet.stable >= FAR:
            return False
    if isinstance(packet, NewLeaderAck | NewState) and not are_states(process, packet, replicas):
        return False
    if isinstance(packet, Deliver | NewLeader | NewState):
        return packet.ballot < FAR and leader_of(group, packet.ballot) == sender
    if isinstance(packet, NewLeaderAck):
        return packet.cballot < packet.ballot < FAR
    return isinstance(packet, NewStateAck | Abandoned) and packet.ballot < FAR


def is_to(process: int, m: Message, replicas: Replicas) -> bool:
    return process in m.destinations and groups_of(replicas, m.destinations) != ()


def is_timestamp(ts: Stamp, group: int) -> bool:
    return process_of(ts) == group and 0 < clock_of(ts) < FAR >> PROCESS_BITS


def are_states(process: int, packet: NewLeaderAck | NewState, replicas: Replicas) -> bool:
    states, messages = packet.states, packet.messages
    if len(states) != WIDTH * len(messages):
        return False
    if max((packet.clock, *states)) >= FAR >> PROCESS_BITS:
        return False
    for place, m in enumerate(messages):
        phase, _, _, group = states[WIDTH * place : WIDTH * (place + 1)]
        is_told = ACCEPTED <= phase <= COMMITTED and group < len(replicas)
        if not is_told or not is_to(process, m, replicas):
            return False
    return True
