"""The timestamps of messages among groups of replicas, and the order that they give.

Each destination group gives a message a local timestamp, which is decided once a majority of the
group has acknowledged it in one epoch. The final timestamp is the highest local one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, MessageId, Stamp, process_of
from flexgroup.core.replicas import Replicas, group_of
from flexgroup.protocols.parts.taken_messages import TakenMessages


@final
class Pending(Record):
    """What is known of a message that is not delivered."""

    m: Message | None = None
    """None if an acknowledgement came first."""
    ts: int = 0
    """What this process's own group proposes, or 0."""
    acks: dict[Stamp, set[int]] = {}
    """Who acknowledged it, by epoch; the owner of an epoch says of which group it is."""
    local_ts: dict[int, int] = {}
    """The local timestamps that are decided, by the lowest member of the group."""
    min_ts: int = 0
    """The final timestamp is not lower; 0 if this process's own group proposes nothing."""


@final
class GroupTimestamps(Record):
    """The messages that are not delivered, with their timestamps, and those that are."""

    replicas: Replicas
    delivered: TakenMessages
    pending: dict[MessageId, Pending] = {}
    order: list[tuple[int, MessageId]] = []
    """Those that this process's own group proposes a timestamp for, by their min-ts."""

    def is_new(self, m: MessageId) -> bool:
        """Tell whether it is not delivered, and this process's own group proposes nothing yet."""
        known = self.pending.get(m)
        return (known is None or not known.ts) and not self.delivered.has(m)

    def may_go_to(self, process: int, m: MessageId) -> bool:
        known = self.pending.get(m)
        return known is None or known.m is None or process in known.m.destinations

    def known(self, m: MessageId) -> Pending:
        known = self.pending.get(m)
        if known is None:
            known = self.pending[m] = Pending()
        return known

    def propose(self, m: Message, ts: int) -> None:
        """Take this for the timestamp of this process's own group, unless m is delivered."""
        if self.is_new(m.id):
            known = self.known(m.id)
            known.m = m
            known.ts = ts
            self.place(m.id, known)

    def propose_nothing(self) -> None:
        """Forget what this process's own group proposed; what is decided stays so."""
        for known in self.pending.values():
            known.ts = known.min_ts = 0
        self.order.clear()

    def count_ack(self, sender: int, m: MessageId, epoch: Stamp, ts: int) -> None:
        """Decide local-ts(m) of a group once a majority has acknowledged it in one epoch."""
        group = group_of(self.replicas, sender)
        if self.delivered.has(m) or group[0] in self.known(m).local_ts:
            return
        known = self.known(m)
        known.acks.setdefault(epoch, set()).add(sender)
        if 2 * len(known.acks[epoch]) > len(group):
            known.local_ts[group[0]] = ts
            for other in list(known.acks):
                if process_of(other) in group:
                    del known.acks[other]
            self.place(m, known)

    def place(self, m: MessageId, known: Pending) -> None:
        """Give m its place in the order of min-ts, the highest of the timestamps that are sure."""
        ts = max([known.ts, *known.local_ts.values()]) if known.ts else 0
        if ts != known.min_ts:
            if known.min_ts:
                del self.order[bisect_left(self.order, (known.min_ts, m))]
            insort(self.order, (ts, m))
            known.min_ts = ts

    def take_first(self, until: int) -> tuple[int, int] | None:
        """Take out the first in order, if its final timestamp is known and not above `until`.

        It is told by what this process's own group proposed, and its final timestamp.
        """
        if not self.order or self.order[0][0] > until:
            return None
        final, identity = self.order[0]
        known = self.pending[identity]
        if known.m is None or not self.is_final(known.m):
            return None
        del self.order[0]
        del self.pending[identity]
        self.delivered.add(identity)
        return known.ts, final

    def none_until(self, until: int) -> int:
        """Nothing is left to be delivered up to this timestamp, and nothing comes up to `until`."""
        return min(until, self.order[0][0] - 1) if self.order else until

    def waiting(self) -> list[Message]:
        """Those that this process's own group proposes nothing for."""
        found = [self.pending[identity] for identity in sorted(self.pending)]
        return [known.m for known in found if known.m is not None and not known.ts]

    def is_final(self, m: Message) -> bool:
        local_ts = self.pending[m.id].local_ts
        for group in self.replicas:
            if group[0] in m.destinations and group[0] not in local_ts:
                return False
        return True
