"""The timestamps that groups of replicas give a message, and which of them are final."""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import (
    PROCESS_BITS,
    Message,
    MessageId,
    Stamp,
    clock_of,
    process_of,
    stamp,
)
from flexgroup.core.replicas import Replicas, group_of
from flexgroup.protocols.parts.taken_messages import TakenMessages
from flexgroup.protocols.parts.timestamps import FAR

MOST_TS: Final = FAR >> PROCESS_BITS
"""A timestamp above all that correct processes give."""

Vector = tuple[int, ...]
"""The timestamps of a message, flat: of each destination group, in order, the ballot in which it
was proposed, as its round and its owner, and the timestamp."""


def groups_of(replicas: Replicas, m: Message) -> Replicas:
    """The groups that m goes to."""
    return tuple([group for group in replicas if group[0] in m.destinations])


def is_majority(group: tuple[int, ...], members: set[int]) -> bool:
    return 2 * len(members.intersection(group)) > len(group)


def flat(ballot: Stamp, ts: int) -> Vector:
    """The timestamp of one group."""
    return clock_of(ballot), process_of(ballot), ts


def ballots_of(V: Vector) -> list[Stamp]:
    """The ballots in which the timestamps were proposed."""
    return [stamp(V[at], V[at + 1]) for at in range(0, len(V), 3)]


@final
class GroupTimestamps(Record):
    """What a process knows of a message."""

    m: Message | None = None
    """The message, unless only acknowledgements of it have come."""
    ts: dict[int, tuple[Stamp, int]] = {}
    """The timestamp of each group, by its lowest member, and the ballot in which it came."""
    acked: Vector = ()
    """What this process acknowledged last."""
    acks: dict[Vector, set[int]] = {}
    """Who acknowledged which timestamps."""
    final: Stamp = 0
    """The highest timestamp, with its group, once majorities of all groups have acknowledged it."""
    decided: Stamp = FAR
    """The lowest ballot of this process's own group in which they have."""

    def vector(self, groups: Replicas) -> Vector:
        """The timestamps of these groups; nothing, if one of them is not here."""
        V: list[int] = []
        for group in groups:
            if group[0] not in self.ts:
                return ()
            V += flat(*self.ts[group[0]])
        return tuple(V)

    def hear(self, lowest: int, ballot: Stamp, ts: int) -> None:
        """Take this timestamp of a group, unless there is one of a higher ballot."""
        if lowest not in self.ts or ballot > self.ts[lowest][0]:
            self.ts[lowest] = (ballot, ts)

    def acknowledge(self, process: int, V: Vector) -> None:
        """This process acknowledges these timestamps."""
        self.acked = V
        self.add_ack(process, V)

    def add_ack(self, process: int, V: Vector) -> None:
        self.acks.setdefault(V, set()).add(process)

    def check_acks(self, groups: Replicas, own: tuple[int, ...]) -> None:
        """Take the highest of timestamps that are decided for the final one."""
        for V in sorted(self.acks):
            if self.is_decided(groups, V):
                for at, group in enumerate(groups):
                    self.final = max(self.final, stamp(V[3 * at + 2], group[0]))
                    if group == own:
                        self.decided = min(self.decided, stamp(V[3 * at], V[3 * at + 1]))

    def is_decided(self, groups: Replicas, V: Vector) -> bool:
        """Tell whether majorities of all groups have acknowledged these timestamps."""
        acks = self.acks[V]
        return len(V) == 3 * len(groups) and all(is_majority(group, acks) for group in groups)

    def is_final_in(self, ballot: Stamp, floor: int) -> bool:
        """Tell whether it is final up to this ballot, and not above this timestamp."""
        return self.final > 0 and self.decided <= ballot and clock_of(self.final) <= floor

    def bound(self, lowest: int) -> Stamp:
        """The lowest final timestamp that is possible, by that of the group of this member."""
        if self.final or lowest not in self.ts:
            return self.final or FAR
        return stamp(self.ts[lowest][1], lowest)


@final
class TimestampedMessages(Record):
    """The messages that a process knows, until all of their destinations have delivered them."""

    own: int
    """The lowest member of this process's own group."""
    pending: dict[MessageId, GroupTimestamps] = {}
    """What is not delivered."""
    done: dict[MessageId, GroupTimestamps] = {}
    """What is delivered, and may not be delivered by all destinations."""
    delivered: TakenMessages = TakenMessages()
    """All that is delivered."""

    def entry_of(self, m: MessageId) -> GroupTimestamps | None:
        """What is known of a message, unless there is nothing left to do about it."""
        entry = self.pending.get(m) or self.done.get(m)
        if entry is None and not self.delivered.has(m):
            entry = self.pending[m] = GroupTimestamps()
        return entry

    def all(self) -> list[tuple[Message, GroupTimestamps]]:
        """Those of which more has come than acknowledgements."""
        entries = {**self.pending, **self.done}
        found = [(entries[identity].m, entries[identity]) for identity in sorted(entries)]
        return [(m, entry) for m, entry in found if m is not None]

    def first(self) -> GroupTimestamps:
        """What comes first of all that is pending, as far as is known."""
        _, first = min([(self.pending[m].bound(self.own), m) for m in self.pending])
        return self.pending[first]

    def settle(self, m: MessageId) -> None:
        """It is delivered."""
        self.done[m] = self.pending.pop(m)
        self.delivered.add(m)

    def begin(self, given: list[tuple[int, Message]]) -> None:
        """These have timestamps of this process's own group from now on, and no others have.

        What is delivered and not given, all destinations have delivered.
        """
        self.forget_others(given)
        for _, entry in self.all():
            entry.ts.pop(self.own, None)

    def forget_others(self, kept: list[tuple[int, Message]]) -> None:
        """Forget what is delivered, but for these."""
        self.done = {m.id: self.done[m.id] for _, m in kept if m.id in self.done}

    def restore(self, kept: list[tuple[int, Message]], ballot: Stamp) -> None:
        """Know these again, with the timestamps that they were given in this ballot."""
        for ts, m in kept:
            entries = self.done if self.delivered.has(m.id) else self.pending
            entries[m.id] = GroupTimestamps(m, {self.own: (ballot, ts)})


# What a correct process may send.


def owns(process: int, ballot: Stamp) -> bool:
    return process_of(ballot) == process and ballot < FAR


def are_timestamps(replicas: Replicas, members: tuple[int, int], V: Vector) -> bool:
    """Tell whether these are timestamps of groups, in order, that both members belong to."""
    if not V or len(V) % 3 or max(V) >= MOST_TS:
        return False
    groups = [group_of(replicas, owner) for owner in V[1::3]]
    ascending = groups == sorted(set(groups)) and () not in groups
    return ascending and all(group_of(replicas, member) in groups for member in members)
