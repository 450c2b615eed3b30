"""How a new leader of a group of replicas gets the permission to write, and the latest state."""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, MessageId, Packet, Stamp, process_of
from flexgroup.protocols.parts.known_messages import KnownMessages
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
    `synced` gave it; these others, all of them below `counts` (a source, a count, ...) and those
    in `ahead`, all their destinations have acknowledged.
    """

    ballot: Stamp
    synced: Stamp
    clock: int
    counts: tuple[int, ...]
    ahead: tuple[int, ...]
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
    counts: tuple[int, ...]
    ahead: tuple[int, ...]
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
    forgotten: KnownMessages = KnownMessages()
    """What all destinations have acknowledged, as somebody knows."""

    def report(self, synced: Stamp, ts: tuple[int, ...], messages: tuple[Message, ...]) -> None:
        """Take note of a state that the owner of the ballot `synced` gave somebody."""
        self.synced = max(self.synced, synced)
        for m, its_ts in zip(messages, ts, strict=True):
            if m.id not in self.reported or synced > self.reported[m.id][0]:
                self.reported[m.id] = (synced, its_ts, m)

    def latest(self) -> tuple[tuple[int, ...], tuple[Message, ...]]:
        """The timestamps in the latest state, and their messages.

        A message that somebody forgot has the same timestamp in any state that has it.
        """
        ts: list[int] = []
        messages: list[Message] = []
        for identity in sorted(self.reported):
            synced, its_ts, m = self.reported[identity]
            if synced == self.synced or self.forgotten.has(identity):
                ts.append(its_ts)
                messages.append(m)
        return tuple(ts), tuple(messages)


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
    numbers = (packet.clock, *packet.counts, *packet.ts)
    sound = len(packet.ts) == len(packet.messages) and 0 not in packet.ts
    if not sound or len(packet.counts) % 2 or max(numbers) >= MOST_TS:
        return False
    if isinstance(packet, NewState):
        return owns(sender, packet.ballot)
    return owns(process, packet.ballot) and packet.synced <= packet.ballot <= ballot
