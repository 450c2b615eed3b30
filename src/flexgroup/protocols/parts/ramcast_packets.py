"""The packets of RamCast, but for those by which a leader is changed, and who may send what."""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.message import Message, MessageId, Packet, Stamp
from flexgroup.core.replicas import Replicas, group_of
from flexgroup.protocols.parts import new_leader
from flexgroup.protocols.parts.new_leader import Grant, NewState
from flexgroup.protocols.parts.timestamp_vectors import (
    MOST_TS,
    Vector,
    are_timestamps,
    groups_of,
    owns,
)
from flexgroup.protocols.parts.timestamps import FAR


@final
class Multicast(Packet):
    """A process writes m into the memory of the destinations."""

    m: Message


@final
class Propose(Packet):
    """The leader of this group gives m this timestamp."""

    PROTECTED: ClassVar[bool] = True

    m: Message
    ballot: Stamp
    ts: int


@final
class Timestamp(Packet):
    """The leader of another destination group gives m this timestamp."""

    m: Message
    ballot: Stamp
    ts: int


@final
class Ack(Packet):
    """I have m with these timestamps of all its groups.

    The sender has delivered all that goes to it up to the final timestamp `until`.
    """

    m: MessageId
    V: Vector
    until: Stamp


@final
class Delivered(Packet):
    """I have delivered all that goes to me up to this final timestamp."""

    until: Stamp


@final
class Restarted(Packet):
    """I have crashed and started again: what was written for me since may be lost."""


def is_ours(process: int, m: Message, replicas: Replicas) -> bool:
    """Tell whether m goes to this process, and to whole groups."""
    if process not in m.destinations:
        return False
    return sum([len(group) for group in groups_of(replicas, m)]) == len(m.destinations)


def is_well_formed(
    sender: int, packet: Packet, process: int, replicas: Replicas, ballot: Stamp
) -> bool:
    """Tell whether a correct process may write this for one that has granted this ballot."""
    if isinstance(packet, Multicast):
        return is_ours(process, packet.m, replicas)
    if sender == process or not group_of(replicas, process):
        return False
    if isinstance(packet, Ack):
        return are_timestamps(replicas, (process, sender), packet.V) and packet.until < FAR
    if isinstance(packet, Delivered | Restarted):
        return group_of(replicas, sender) != () and (
            isinstance(packet, Restarted) or packet.until < FAR
        )
    group = group_of(replicas, process)
    if isinstance(packet, Propose | Timestamp):
        is_owner = owns(sender, packet.ballot) and 0 < packet.ts < MOST_TS
        is_in_group = sender in group
        is_known = is_ours(process, packet.m, replicas) and sender in packet.m.destinations
        return is_owner and is_known and is_in_group == isinstance(packet, Propose)
    if sender not in group:
        return False
    if isinstance(packet, Grant | NewState) and not all(
        is_ours(process, m, replicas) for m in packet.messages
    ):
        return False
    return new_leader.is_sound(sender, packet, group, process, ballot)
