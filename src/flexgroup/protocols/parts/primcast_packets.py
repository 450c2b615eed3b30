"""The packets of PrimCast."""

from __future__ import annotations

from typing import final

from flexgroup.core.message import Message, MessageId, Packet, Stamp, process_of
from flexgroup.core.replicas import Replicas, group_of
from flexgroup.protocols.parts.timestamps import FAR


@final
class Start(Packet):
    """(start, m)."""

    m: Message


@final
class Proposal(Packet):
    """(ack, m, epoch, ts) of the primary, with m.

    The sender has delivered all that goes to it up to the final timestamp `have`.
    """

    m: Message
    epoch: Stamp
    ts: int
    have: int


@final
class Ack(Packet):
    """(ack, m, epoch, ts) of another replica; `have` as above."""

    m: MessageId
    epoch: Stamp
    ts: int
    have: int


@final
class Bump(Packet):
    """(bump, epoch, clock): I promised this epoch, and my clock has come this far."""

    epoch: Stamp
    clock: int


@final
class NewEpoch(Packet):
    """(new-epoch, epoch): promise to take part in no lower one."""

    epoch: Stamp


@final
class Promise(Packet):
    """(promise, epoch, ...): what I know, as of the epoch `current`: my clock, and T.

    `ts` has the timestamps of T and `messages` its messages, in that order.
    """

    epoch: Stamp
    current: Stamp
    clock: int
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class NewState(Packet):
    """(new-state, epoch, ...): the epoch begins with this clock and this T.

    Who starts again is told the clock and T of that moment.
    """

    epoch: Stamp
    clock: int
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class AcceptEpoch(Packet):
    """(accept-epoch, epoch, clock): I took over the state with which this epoch begins."""

    epoch: Stamp
    clock: int


@final
class Restarted(Packet):
    """I have crashed and started again: what was sent to me may be lost."""


OfEpoch = Proposal | Ack | Bump | NewEpoch | Promise | NewState | AcceptEpoch


def epoch_of(packet: Packet) -> Stamp:
    """The epoch that a packet, of those that replicas send, is about; 0 if it is about none."""
    return packet.epoch if isinstance(packet, OfEpoch) else 0


def is_well_formed(sender: int, packet: Packet, process: int, replicas: Replicas) -> bool:
    """Tell whether a correct process may send it to this one, whatever has happened before."""
    if isinstance(packet, Start):
        return is_to(process, packet.m, replicas)
    group = group_of(replicas, sender)
    if not group or sender == process:
        return False
    if isinstance(packet, Restarted):
        return True
    owner = process_of(epoch_of(packet))
    if owner not in group or epoch_of(packet) >= FAR:
        return False
    if isinstance(packet, Proposal):
        is_sound = 0 < packet.ts < FAR and packet.have < FAR
        return owner == sender and is_to(process, packet.m, replicas) and is_sound
    if isinstance(packet, Ack):
        return owner != sender and 0 < packet.ts < FAR and packet.have < FAR
    if process not in group:
        return False
    if isinstance(packet, NewEpoch):
        return owner == sender
    if isinstance(packet, Promise):
        is_theirs = owner == process and packet.current < packet.epoch
        return is_theirs and is_state(process, packet, replicas)
    if isinstance(packet, NewState):
        return owner == sender and is_state(process, packet, replicas)
    return isinstance(packet, Bump | AcceptEpoch) and packet.clock < FAR


def are_whole_groups(replicas: Replicas, m: Message) -> bool:
    groups = [group for group in replicas if group[0] in m.destinations]
    return bool(groups) and m.destinations == tuple([j for group in groups for j in group])


def is_to(process: int, m: Message, replicas: Replicas) -> bool:
    return process in m.destinations and are_whole_groups(replicas, m)


def is_state(process: int, packet: Promise | NewState, replicas: Replicas) -> bool:
    """Tell whether it has a clock, and messages in the order of timestamps."""
    ts = packet.ts
    is_sorted = len(ts) == len(packet.messages) and list(ts) == sorted(set(ts))
    if not is_sorted or max((packet.clock, *ts)) >= FAR:
        return False
    return all(is_to(process, m, replicas) for m in packet.messages)
