"""Partial-order reduction: in most states it is enough to let one process move.

Steps of different processes commute. All moves of one process p are a *persistent set* if
nobody else, moving without p, can bring p a packet that could arrive before those that can
arrive now; whatever else happens can then as well happen after p's move.

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
from flexgroup.worlds.explorer.machine import Machine

ALL: Final = -1


@final
class Reduction:
    """Chooses the process that moves in a state."""

    def __init__(self, machine: Machine, in_flight: InFlightPackets, actors: int) -> None:
        self._machine = machine
        self._in_flight = in_flight
        self._actors = actors
        self._growth = -1
        self._addressed: list[int] = []
        """The sorts of events that happen at each process, as bits."""
        self._queued: dict[tuple[int, int], int] = {}
        """The sorts of events that come through each channel."""
        self._reach: list[dict[int, int]] = []
        self._from_pending: list[dict[int, int]] = []
        self._from_local: list[dict[int, int]] = []
        self._behind: dict[int, int] = {}

    def choose(self, now: vec[i32]) -> int:
        """Choose a process whose transitions suffice; ALL if there is none."""
        machine = self._machine
        if machine.growth != self._growth:
            self._learn()
        best = ALL
        fewest = 0
        for p in range(self._actors):
            local = machine.locals[int(now[2 * p])]
            moves = len(local.own)
            if local.offers:
                return p
            if not local.idle:
                moves += len(self._in_flight.heads(int(now[2 * p + 1]))) // 2
            if moves and (best == ALL or moves < fewest) and self._is_persistent(p, now):
                best = p
                fewest = moves
                if moves == 1:
                    break
        return best

    def _is_persistent(self, p: int, now: vec[i32]) -> bool:
        coming = 0
        from_pending = self._from_pending[p]
        from_local = self._from_local[p]
        for q in range(self._actors):
            if q == p:
                continue
            pending = int(now[2 * q + 1])
            if pending:
                found = from_pending.get(pending, -1)
                if found < 0:
                    found = self._reachable_from(p, self._in_flight.contents[pending])
                    from_pending[pending] = found
                coming |= found
            local = int(now[2 * q])
            found = from_local.get(local, -1)
            if found < 0:
                found = self._reachable_from(p, self._machine.locals[local].own)
                from_local[local] = found
            coming |= found
        coming &= self._addressed[p]
        if coming and self._in_flight.fifo:
            coming &= ~self._behind_first(p, int(now[2 * p + 1]))
        return coming == 0

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
        self._reach = [{} for _ in range(self._actors)]
        self._from_pending = [{} for _ in range(self._actors)]
        self._from_local = [{} for _ in range(self._actors)]
        self._behind = {}

    def _reachable_from(self, p: int, events: Iterable[int]) -> int:
        """Return the sorts of these events, and all that they can give rise to without p."""
        mask = 0
        for event in events:
            mask |= self._reachable(p, self._machine.events[event].sort)
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

    def _reachable(self, p: int, start: int) -> int:
        """Return this sort and all that it can give rise to while p does not move."""
        known = self._reach[p].get(start, -1)
        if known >= 0:
            return known
        machine = self._machine
        seen = 1 << start
        waiting = [start]
        while waiting:
            sort = waiting.pop()
            if machine.sort_process[sort] == p:
                continue
            fresh = machine.leads[sort] & ~seen
            seen |= fresh
            while fresh:
                lowest = fresh & -fresh
                waiting.append(lowest.bit_length() - 1)
                fresh ^= lowest
        self._reach[p][start] = seen
        return seen
