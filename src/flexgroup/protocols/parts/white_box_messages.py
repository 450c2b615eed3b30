"""The messages that a replica of White-Box knows, until all destinations have delivered them, and
what of them it has in stable storage.

The log there has the messages that it accepted, each under the clock of its local timestamp: no two
messages have the same one in the ballot of which the replica has the state.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final, final

from flexgroup.core.layer import Record, Stored
from flexgroup.core.message import Message, MessageId, Packet, Stamp, clock_of, stamp
from flexgroup.core.replicas import Replicas
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.white_box_packets import NewLeaderAck, NewState, groups_of
from flexgroup.protocols.parts.white_box_progress import (
    ACCEPTED,
    COMMITTED,
    FORGOTTEN,
    START,
    WIDTH,
    Progress,
)

CUT: Final = 64
"""How many messages are forgotten before the log is cut off."""


@final
class Entry(Packet):
    """What the log has of a message: its phase, its global timestamp or 0, and the process's clock
    at that time.

    In the phase START it no longer has the local timestamp that it is written under.
    """

    m: Message
    phase: int
    gts: Stamp
    clock: int


@final
class Joined(Packet):
    """The ballots of a replica, its clock, and what it has delivered, as `KnownMessages.told`."""

    ballot: int
    cballot: int
    clock: int
    max_delivered_gts: Stamp
    counts: tuple[int, ...]
    ahead: tuple[int, ...]


@final
class WhiteBoxMessages(Record):
    """Phase, LocalTS, GlobalTS, Delivered and max_delivered_gts."""

    replicas: Replicas
    own: int
    """The number of the process's own group."""
    known: dict[MessageId, Progress] = {}
    undelivered: set[MessageId] = set()
    """Those that are not delivered here."""
    settled: list[MessageId] = []
    """Those that are delivered here and not forgotten, in order."""
    max_delivered_gts: Stamp = 0
    delivered: KnownMessages = KnownMessages()
    """Those that are delivered here, the forgotten ones included."""
    have: dict[int, Stamp] = {}
    """The global timestamp up to which each process has delivered, as a leader was told."""
    stable: Stamp = 0
    """What was delivered up to this global timestamp is forgotten."""
    forgotten: int = 0
    """How many messages were forgotten since the process started."""

    def all(self) -> list[Progress]:
        return [self.known[m] for m in sorted(self.known)]

    def addressed_to(self, process: int) -> list[Progress]:
        return [known for known in self.all() if process in known.m.destinations]

    def clear_acks(self) -> None:
        for known in self.known.values():
            known.acks.clear()

    def remember(self, m: Message) -> Progress | None:
        """What is known of m, which may have been nothing so far; None if it is forgotten."""
        known = self.known.get(m.id)
        if known is None and not self.delivered.has(m.id):
            known = Progress(m, groups_of(self.replicas, m.destinations))
            self.known[m.id] = known
            self.undelivered.add(m.id)
        return known

    # Delivery.

    def ready(self) -> list[Progress]:
        """What a leader can deliver, in order: nothing that is not committed can precede it."""
        waiting = sorted([self.known[m] for m in self.undelivered], key=Progress.place)
        return list(takewhile(Progress.is_committed, waiting))

    def settle(self, known: Progress) -> None:
        self.max_delivered_gts = known.gts
        self.undelivered.discard(known.m.id)
        self.settled.append(known.m.id)
        self.delivered.add(known.m.id)

    def may_deliver(self, m: MessageId, gts: Stamp) -> bool:
        """Tell whether a leader may have this delivered with this global timestamp."""
        known = self.known.get(m)
        return self.delivered.has(m) if known is None else known.gts in (0, gts)

    def note_delivered(self, process: int, gts: Stamp) -> None:
        self.have[process] = max(gts, self.have.get(process, 0))

    def stable_at(self, leader: int) -> Stamp:
        """Up to where a leader knows that everything has been delivered by all destinations."""
        stable = self.stable
        for m in self.settled:
            known = self.known[m]
            have = [self.have.get(j, 0) for j in known.m.destinations if j != leader]
            if min(have, default=known.gts) < known.gts:
                break
            stable = known.gts
        return stable

    def forget(self, stable: Stamp) -> bool:
        """Forget what was delivered up to there; whether it is time to cut off the log."""
        self.stable = max(self.stable, stable)
        before = self.forgotten // CUT
        while self.settled and self.known[self.settled[0]].gts <= stable:
            del self.known[self.settled.pop(0)]
            self.forgotten += 1
        return self.forgotten // CUT > before

    # The state that a ballot begins with.

    def told(self) -> tuple[tuple[int, ...], tuple[Message, ...]]:
        """The states of those that are accepted at least, one after another, and the messages."""
        accepted = [known for known in self.all() if known.phase >= ACCEPTED]
        states = [number for known in accepted for number in known.state()]
        return tuple(states), tuple([known.m for known in accepted])

    def fall_back(self) -> list[tuple[int, Progress]]:
        """Forget what is not committed; what was accepted, and under which clock."""
        accepted: list[tuple[int, Progress]] = []
        for known in self.all():
            if known.phase == ACCEPTED:
                accepted.append((clock_of(known.lts), known))
            known.restore(FORGOTTEN, self.own)
        return accepted

    def take_over(self, told: NewLeaderAck | NewState, least: int) -> list[Progress]:
        """Take over the state of messages that are in this phase at least."""
        taken: list[Progress] = []
        for place, m in enumerate(told.messages):
            state = told.states[WIDTH * place : WIDTH * (place + 1)]
            known = self.remember(m) if state[0] >= least else None
            if known is not None:
                known.restore(state, self.own)
                taken.append(known)
        return taken

    # Stable storage.

    def joined(self, ballot: int, cballot: int, clock: int) -> Joined:
        return Joined(ballot, cballot, clock, self.max_delivered_gts, *self.delivered.told())

    def first_needed(self) -> int:
        """Where the log has to begin: all later messages get timestamps above the stable ones."""
        clocks = [clock_of(known.lts) for known in self.known.values() if known.lts]
        return min([clock_of(self.stable), *clocks])

    def load(self, stored: Stored, is_top: bool) -> tuple[int, int, int]:
        """Begin with what was stored; the ballots, and the clock.

        What the application was given is found by counting, for it was written before, and given in
        the order of global timestamps. A layer above has nothing of it.
        """
        saved = stored.saved
        ballot = cballot = highest = 0
        if isinstance(saved, Joined):
            ballot, cballot, highest = saved.ballot, saved.cballot, saved.clock
            if is_top:
                self.delivered.merge(saved.counts, saved.ahead)
                self.max_delivered_gts = saved.max_delivered_gts
        for clock in sorted(stored.log):
            entry = stored.log[clock]
            if isinstance(entry, Entry):
                highest = max(highest, entry.clock)
                self.load_entry(clock, entry)
        committed = [known for known in self.all() if known.phase == COMMITTED]
        for known in sorted(committed, key=Progress.place):
            if known.gts <= self.max_delivered_gts:
                self.undelivered.discard(known.m.id)
                self.settled.append(known.m.id)
            elif self.delivered.count() < stored.delivered:
                self.settle(known)
        return ballot, cballot, highest

    def load_entry(self, clock: int, entry: Entry) -> None:
        known = self.remember(entry.m)
        if entry.phase > START:
            if known is None:
                known = Progress(entry.m, groups_of(self.replicas, entry.m.destinations))
                self.known[entry.m.id] = known
            known.phase = entry.phase
            known.lts = stamp(clock, self.own)
            known.gts = entry.gts
