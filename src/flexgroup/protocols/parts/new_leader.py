"""How a new leader of a group of replicas gets the permission to write, and the latest state."""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, MessageId, Packet, Stamp, process_of
from flexgroup.protocols.parts.timestamp_vectors import MOST_TS, owns
from flexgroup.protocols.parts.timestamps import FAR


@final
class Ask(Packet):
    """Permit me to write, and nobody with a lower ballot."""

    ballot: Stamp


@final
class Grant(Packet):
    """You may write, and this is what I have.

    These messages have these timestamps of our group, in the state that the owner of the ballot
    `synced` gave it. Those that all their destinations have delivered may be left out.
    """

    ballot: Stamp
    synced: Stamp
    clock: int
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class Deny(Packet):
    """I have permitted the owner of this higher ballot to write."""

    ballot: Stamp


@final
class NewState(Packet):
    """The new leader tells what the state of the group is, in the words of `Grant`."""

    PROTECTED: ClassVar[bool] = True

    ballot: Stamp
    clock: int
    ts: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class LatestState(Record):
    """The states that members reported to a new leader, as one."""

    is_ready: bool = False
    """Whether a majority has permitted it to write."""
    granted: set[int] = set()
    """Who has."""
    clock: int = 0
    """The highest of their clocks."""
    synced: Stamp = 0
    """The ballot whose owner gave the latest of their states."""
    reported: dict[MessageId, tuple[Stamp, int, Message]] = {}
    """The messages that have a timestamp in these states, with that in the latest of them."""

    def hear(self, owner: int, packet: Grant) -> None:
        """Take note of who permits it to write, and of the state that it has."""
        self.granted.add(owner)
        self.clock = max(self.clock, packet.clock)
        self.synced = max(self.synced, packet.synced)
        for m, ts in zip(packet.messages, packet.ts, strict=True):
            if m.id not in self.reported or packet.synced > self.reported[m.id][0]:
                self.reported[m.id] = (packet.synced, ts, m)

    def latest(self) -> tuple[tuple[int, ...], tuple[Message, ...]]:
        """The timestamps in the latest state, and their messages; it need not be told again."""
        latest = {ts: m for synced, ts, m in self.reported.values() if synced == self.synced}
        self.reported.clear()
        return tuple(sorted(latest)), tuple([latest[ts] for ts in sorted(latest)])


def is_sound(
    sender: int, packet: Packet, group: tuple[int, ...], process: int, ballot: Stamp
) -> bool:
    """Tell whether a member, if it is correct, may have sent this to a process of its group that
    has granted this ballot; that the messages in there go to the group is not looked at."""
    if isinstance(packet, Ask):
        return owns(sender, packet.ballot)
    if isinstance(packet, Deny):
        return process_of(packet.ballot) in group and packet.ballot < FAR
    if not isinstance(packet, Grant | NewState):
        return False
    sound = len(packet.ts) == len(packet.messages) and list(packet.ts) == sorted(set(packet.ts))
    if not sound or 0 in packet.ts or max((packet.clock, *packet.ts)) >= MOST_TS:
        return False
    if isinstance(packet, NewState):
        return owns(sender, packet.ballot)
    return owns(process, packet.ballot) and packet.synced <= packet.ballot <= ballot
