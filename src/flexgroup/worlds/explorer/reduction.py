"""Partial-order reduction: in most states it is enough to let one process move, or a few.

Steps of different processes commute. All moves of some processes are a *persistent set* if
nobody else, moving without them, can make another move possible there: bring one of them a packet
that could arrive before those that can arrive now, or crash and be suspected by one. Whatever else
happens can then as well happen after a move of theirs.

Who can bring whom what is not declared by protocols; it is learnt. Every step that is computed
adds to a relation between sorts of events (`Machine.leads`), and a search that ends with the
relation it began with was right to use it: docs/explorer.md has the proof. A search that
learnt something new is made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i32

from flexgroup.worlds.explorer.in_flight import InFlightPackets
from flexgroup.worlds.explorer.machine import SUSPECT, Event, Machine

ALL: Final = -1


@final
class NamedFaults:
    """The crashes and suspicions that are possible in a state, or can come to be.

    Faults by name draw on no stock: each is an event of one process, which may happen once.
    Sets of processes are bits.
    """

    def __init__(self, machine: Machine, notices: bool) -> None:
        self._machine = machine
        self._notices = notices
        self.possible = notices or machine.crashes_by_name
        self._crashed = 0
        self._crashing = 0
        """Those that have not crashed, and may."""
        self._wrongly: list[int] = []
        """Those that each may suspect though they have not crashed."""
        self._unsuspected: list[int] = [0] * machine.size
        """Those that each does not suspect, if it can still suspect anybody."""
        self.suspicions: list[list[int]] = []
        """The sort of the event that the one suspects the other."""
        for p in range(machine.size if notices else 0):
            named = 0
            sorts: list[int] = []
            for q in range(machine.size):
                if machine.suspicions_by_name and machine.may_suspect(p, q):
                    named |= 1 << q
                number = machine.event(Event(SUSPECT, p, q, None, 0, "", 0))
                sorts.append(machine.events[number].sort)
            self._wrongly.append(named)
            self.suspicions.append(sorts)

    def look(self, now: vec[i32]) -> None:
        """Take note of who has crashed in a state, and whom each process suspects."""
        if not self.possible:
            return
        machine = self._machine
        self._crashed = 0
        self._crashing = 0
        for p in range(machine.size):
            local = machine.locals[int(now[2 * p])]
            if local.crashed:
                self._crashed |= 1 << p
            elif machine.crashes_by_name and machine.may_crash(p) and not local.problem:
                self._crashing |= 1 << p
            unsuspected = 0
            if self._notices and not local.crashed and not local.problem:
                unsuspected = (1 << machine.size) - 1 & ~(1 << p)
                for suspect in local.suspects:
                    unsuspected &= ~(1 << suspect)
            self._unsuspected[p] = unsuspected

    def at(self, p: int) -> int:
        """Count the faults that are possible at a process: its crash, and wrong suspicions."""
        if not self._notices or p >= self._machine.size:
            return self._crashing >> p & 1
        wrong = self._unsuspected[p] & self._wrongly[p] & ~self._crashed
        return wrong.bit_count() + (self._crashing >> p & 1)

    def noticeable(self, p: int) -> int:
        """Return those that have crashed, and that this process does not suspect yet."""
        if not self._notices or p >= self._machine.size:
            return 0
        return self._unsuspected[p] & self._crashed

    def unforeseen(self, p: int) -> int:
        """Return those that may crash, where a process cannot suspect them before they do."""
        if not self._notices or p >= self._machine.size:
            return 0
        return self._unsuspected[p] & self._crashing & ~self._wrongly[p]

    def suspected_without(self, p: int, chosen: int) -> int:
        """Return whom a process can come to suspect before any of the chosen moves."""
        if not self._notices or p >= self._machine.size:
            return 0
        crash = self._crashed | (self._crashing & ~chosen)
        return self._unsuspected[p] & (crash | self._wrongly[p])


@final
class Reduction:
    """Chooses the processes that move in a state."""

    def __init__(
        self, machine: Machine, in_flight: InFlightPackets, actors: int, notices: bool
    ) -> None:
        self._machine = machine
        self._in_flight = in_flight
        self._actors = actors
        self._faults = NamedFaults(machine, notices)
        self._growth = -1
        self._addressed: list[int] = []
        """The sorts of events that happen at each process, as bits."""
        self._queued: dict[tuple[int, int], int] = {}
        """The sorts of events that come through each channel."""
        self._reach: dict[int, dict[int, int]] = {}
        self._from_pending: dict[int, dict[int, int]] = {}
        self._from_local: dict[int, dict[int, int]] = {}
        self._behind: dict[int, int] = {}

    def choose(self, now: vec[i32]) -> int:
        """Choose processes whose transitions suffice, as bits; ALL if only all do."""
        machine = self._machine
        if machine.growth != self._growth:
            self._learn()
        self._faults.look(now)
        best = ALL
        fewest = 0
        for p in range(self._actors):
            if machine.locals[int(now[2 * p])].offers:
                return 1 << p
            # A run may end where only faults are possible, so they cannot stand for all that is.
            if self._moves(p, now) == self._faults.at(p):
                continue
            chosen = self._persistent(p, now)
            if chosen == ALL:
                continue
            moves = 0
            for q in range(self._actors):
                if chosen >> q & 1:
                    moves += self._moves(q, now)
            if best == ALL or moves < fewest:
                best = chosen
                fewest = moves
                if moves == 1:
                    break
        return best

    def _moves(self, p: int, now: vec[i32]) -> int:
        """Count the transitions of a process."""
        local = self._machine.locals[int(now[2 * p])]
        moves = len(local.own) + self._faults.at(p)
        if not local.idle:
            moves += len(self._in_flight.heads(int(now[2 * p + 1]))) // 2
            moves += self._faults.noticeable(p).bit_count()
        return moves

    def _persistent(self, p: int, now: vec[i32]) -> int:
        """Return this process, with others if need be, whose moves are persistent; or ALL.

        Until a process that may crash has crashed, hardly any other suffices alone: each would
        learn of it.
        """
        faults = self._faults
        chosen = 1 << p
        while True:
            more = chosen
            for q in range(self._actors):
                if chosen >> q & 1:
                    more |= faults.unforeseen(q)
            if more == chosen:
                coming = self._coming(chosen, now)
                for q in range(self._actors):
                    if chosen >> q & 1:
                        more |= self._bringing(q, coming, now)
            if more == chosen:
                return chosen
            if not faults.possible or more == (1 << self._actors) - 1:
                return ALL
            chosen = more

    def _bringing(self, p: int, coming: int, now: vec[i32]) -> int:
        """Return the senders, of all that is coming, of what might be this process's next move."""
        coming &= self._addressed[p]
        if coming and self._in_flight.fifo:
            coming &= ~self._behind_first(p, int(now[2 * p + 1]))
        bringing = 0
        while coming:
            lowest = coming & -coming
            bringing |= 1 << self._machine.sort_source[lowest.bit_length() - 1]
            coming ^= lowest
        return bringing

    def _coming(self, chosen: int, now: vec[i32]) -> int:
        """Return the sorts of events that there can be before any of the chosen moves."""
        coming = 0
        if chosen not in self._from_pending:
            self._from_pending[chosen] = {}
            self._from_local[chosen] = {}
        from_pending = self._from_pending[chosen]
        from_local = self._from_local[chosen]
        for q in range(self._actors):
            if chosen >> q & 1:
                continue
            pending = int(now[2 * q + 1])
            if pending:
                found = from_pending.get(pending, -1)
                if found < 0:
                    found = self._reachable_from(chosen, self._in_flight.contents[pending])
                    from_pending[pending] = found
                coming |= found
            local = int(now[2 * q])
            found = from_local.get(local, -1)
            if found < 0:
                found = self._reachable_from(chosen, self._machine.locals[local].own)
                from_local[local] = found
            coming |= found
            suspected = self._faults.suspected_without(q, chosen)
            while suspected:
                lowest = suspected & -suspected
                sort = self._faults.suspicions[q][lowest.bit_length() - 1]
                coming |= self._reachable(chosen, sort)
                suspected ^= lowest
        return coming

    def _learn(self) -> None:
        machine = self._machine
        self._growth = machine.growth
        processes = max([*machine.sort_process, self._actors - 1]) + 1
        self._addressed = [0] * processes
        self._queued = {}
        for sort, process in enumerate(machine.sort_process):
            self._addressed[process] |= 1 << sort
            channel = (machine.sort_source[sort], process)
            self._queued[channel] = self._queued.get(channel, 0) | 1 << sort
        self._reach = {}
        self._from_pending = {}
        self._from_local = {}
        self._behind = {}

    def _reachable_from(self, chosen: int, events: Iterable[int]) -> int:
        """Return the sorts of these events, and all they can give rise to without the chosen."""
        mask = 0
        for event in events:
            mask |= self._reachable(chosen, self._machine.events[event].sort)
        return mask

    def _behind_first(self, p: int, pending: int) -> int:
        """Return the sorts that can only arrive behind a packet that is there already."""
        mask = self._behind.get(pending, -1)
        if mask < 0:
            mask = 0
            for event in self._in_flight.contents[pending]:
                mask |= self._queued[self._machine.events[event].source, p]
            self._behind[pending] = mask
        return mask

    def _reachable(self, chosen: int, start: int) -> int:
        """Return this sort and all that it can give rise to while the chosen do not move."""
        if chosen not in self._reach:
            self._reach[chosen] = {}
        reach = self._reach[chosen]
        known = reach.get(start, -1)
        if known >= 0:
            return known
        machine = self._machine
        seen = 1 << start
        waiting = [start]
        while waiting:
            sort = waiting.pop()
            if chosen >> machine.sort_process[sort] & 1:
                continue
            fresh = machine.leads[sort] & ~seen
            seen |= fresh
            while fresh:
                lowest = fresh & -fresh
                waiting.append(lowest.bit_length() - 1)
                fresh ^= lowest
        reach[start] = seen
        return seen
