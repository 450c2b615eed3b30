"""What a primary proposed to its group of replicas, and what of it is in stable storage.

A replica keeps each message until all of its destinations have delivered it: somebody who starts
again may ask for what it was told. In the log, a message stands under its timestamp, and a clock
that was told besides under itself. With every epoch, and now and then, all is saved as one.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, final

from flexgroup.core.layer import Record, Stored
from flexgroup.core.message import Message, MessageId, Packet, Stamp
from flexgroup.protocols.parts.taken_messages import TakenMessages

CUT: Final = 64
"""How many messages are added, at least, before all are looked through for what may go."""

Proposed = tuple[int, Message]
"""A message, and the local timestamp that the primary gave it."""


@final
class Entry(Packet):
    """A message that was proposed in this epoch stands under its timestamp.

    `final` is its final timestamp once it is delivered, and 0 before.
    """

    epoch: Stamp
    m: Message
    final: int


@final
class Reached(Packet):
    """The clock has come as far as the number of this entry."""


@final
class Saved(Packet):
    """All that counted when an epoch was promised or begun, or the log was cut off.

    So many messages were delivered; which ones, `counts` and `ahead` say as `TakenMessages.told`
    does. `ts`, `final` and `messages` are the proposals that are not forgotten.
    """

    promised: Stamp
    current: Stamp
    clock: int
    delivered: int
    counts: tuple[int, ...]
    ahead: tuple[int, ...]
    ts: tuple[int, ...]
    final: tuple[int, ...]
    messages: tuple[Message, ...]


@final
class Kept(Record):
    """A message that was proposed, and that some destination may not have delivered."""

    ts: int
    m: Message
    final: int = 0
    """Its final timestamp, once it is delivered here."""


@final
class Proposals(Record):
    """The messages that were proposed and are not forgotten, in the order of local timestamps."""

    kept: list[Kept] = []
    last: int = 0
    """The highest timestamp of all, the forgotten ones included."""
    until: int = 0
    """Up to which final timestamp all that goes to this process is delivered."""
    have: dict[int, int] = {}
    """The same of others, as they told."""
    first: int = 0
    """Where the log begins."""
    many: int = CUT
    """Once they are so many, it is time to look them through."""

    def begin(self, T: list[Proposed], delivered: TakenMessages) -> None:
        """Take these over, with which an epoch begins, but for those that are forgotten here.

        What is delivered and not here has been forgotten, by this process or by another.
        """
        final = {kept.m.id: kept.final for kept in self.kept}
        self.last = last(T)
        self.kept = [
            Kept(ts, m, final.get(m.id, 0))
            for ts, m in T
            if m.id in final or not delivered.has(m.id)
        ]

    def add(self, ts: int, m: Message) -> None:
        self.kept.append(Kept(ts, m))
        self.last = ts

    def settle(self, ts: int, final: int) -> Message:
        """Its final timestamp is known, and it is delivered."""
        kept = self.kept[bisect_left(self.kept, ts, key=timestamp_of)]
        kept.final = final
        return kept.m

    def settle_next(self, ts: int, final: int) -> Message:
        """The same, and no other one has this final timestamp, or comes later with a lower one."""
        self.until = final
        return self.settle(ts, final)

    def note_delivered(self, process: int, have: int) -> None:
        self.have[process] = max(have, self.have.get(process, 0))

    def is_time(self) -> bool:
        """Tell whether to look them through."""
        return len(self.kept) >= self.many

    def forget(self, process: int) -> bool:
        """Forget what this process and all others have delivered; whether there was any."""
        before = len(self.kept)
        self.kept = [kept for kept in self.kept if self.is_needed(process, kept)]
        self.many = 2 * len(self.kept) + CUT
        return len(self.kept) < before

    def is_needed(self, process: int, kept: Kept) -> bool:
        if not kept.final:
            return True
        others = [j for j in kept.m.destinations if j != process]
        return any(self.have.get(j, 0) < kept.final for j in others)

    def all(self) -> list[Proposed]:
        return [(kept.ts, kept.m) for kept in self.kept]

    def addressed_to(self, process: int) -> list[Proposed]:
        return [(kept.ts, kept.m) for kept in self.kept if process in kept.m.destinations]

    def destinations(self) -> tuple[int, ...]:
        """Everybody that any of them goes to."""
        return tuple(sorted({j for kept in self.kept for j in kept.m.destinations}))

    def flat(self) -> tuple[tuple[int, ...], tuple[Message, ...]]:
        """The timestamps, and the messages."""
        return tuple([kept.ts for kept in self.kept]), tuple([kept.m for kept in self.kept])

    # Stable storage.

    def saved(self, promised: Stamp, current: Stamp, clock: int, delivered: TakenMessages) -> Saved:
        ts, messages = self.flat()
        final = tuple([kept.final for kept in self.kept])
        told = delivered.told()
        return Saved(promised, current, clock, delivered.count, *told, ts, final, messages)

    def first_needed(self, sure: int) -> int:
        """Where the log has to begin, if all is saved: what is not delivered is written again.

        Timestamps that come later are above the one that is sure, in whatever epoch; they may be
        below some that were proposed in vain.
        """
        needed = min([kept.ts for kept in self.kept if not kept.final], default=sure + 1)
        self.first = max(min(needed, sure + 1), self.first)
        return self.first

    def load(
        self, stored: Stored, first: Stamp, delivered: TakenMessages, is_top: bool
    ) -> tuple[Stamp, Stamp, int]:
        """Begin with what was stored: the epoch that was promised, the current one, the clock.

        Nobody has stored anything of the epoch `first` with which all begin but its messages. What
        the application was given is found by counting, for it was written before, and given in the
        order of final timestamps. A layer above has nothing of it.
        """
        found: dict[int, Kept] = {}
        saved = stored.saved
        promised = current = first
        clock = 0
        if isinstance(saved, Saved):
            promised, current, clock = saved.promised, saved.current, saved.clock
            if is_top:
                delivered.take_over(saved.delivered, saved.counts, saved.ahead)
            for place, ts in enumerate(saved.ts):
                found[ts] = Kept(ts, saved.messages[place], saved.final[place])
        for ts, entry in stored.log.items():
            clock = max(ts, clock)
            if isinstance(entry, Entry) and entry.epoch == current:
                found[ts] = Kept(ts, entry.m, entry.final)
        self.first = stored.first
        self.kept = [found[ts] for ts in sorted(found)]
        self.last = last(self.all())
        for kept in sorted(self.kept, key=place_of):
            if kept.final and not delivered.has(kept.m.id):
                if delivered.count < stored.delivered:
                    delivered.add(kept.m.id)
                else:
                    kept.final = 0
        return promised, current, clock


@final
class Candidacy(Record):
    """What a process that begins an epoch has been promised."""

    current: Stamp
    clock: int
    T: list[Proposed]
    """The T of the highest epoch and, in that epoch, the longest."""
    promises: set[int] = set()

    def hear(self, sender: int, current: Stamp, clock: int, T: list[Proposed]) -> None:
        self.promises.add(sender)
        self.clock = max(clock, self.clock)
        if (current, last(T)) > (self.current, last(self.T)):
            self.current = current
            self.T = T


def timestamp_of(kept: Kept) -> int:
    return kept.ts


def place_of(kept: Kept) -> tuple[int, MessageId]:
    """Its place in the order of deliveries."""
    return kept.final, kept.m.id


def last(T: list[Proposed]) -> int:
    """The highest timestamp among these."""
    return T[-1][0] if T else 0


def numbered(ts: tuple[int, ...], messages: tuple[Message, ...]) -> list[Proposed]:
    """The messages with their timestamps, as `flat` tells them."""
    return list(zip(ts, messages, strict=True))
