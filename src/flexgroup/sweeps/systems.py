"""All systems of a size, as a sweep: a row for each, with its verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.sweeps.table import Row, Sweep
from flexgroup.worlds.explorer.all_systems import SystemOutcome, systems_for
from flexgroup.worlds.explorer.comparison import Verdict, verdict_on
from flexgroup.worlds.explorer.explorer import SearchLimits, explore
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions

AT_ONCE = 16
"""The systems of a piece."""


def options_described(options: SearchOptions) -> dict[str, Any]:
    """Return how a search is made, as JSON has it."""
    return {
        "reduce": options.reduce,
        "symmetry": options.symmetry,
        "follow_clients": options.follow_clients,
        "properties": options.properties,
    }


@dataclass(frozen=True)
class AllSystems(Sweep):
    """All systems of so many processes and messages, each explored whole."""

    stack: str
    processes: int
    messages: int
    fifo: bool
    options: SearchOptions
    limits: SearchLimits
    protocols: tuple[str, ...] = ()

    columns = pa.schema(
        [
            ("system", pa.int64()),
            ("stack", pa.string()),
            ("processes", pa.int64()),
            ("destinations", pa.list_(pa.list_(pa.int64()))),
            ("states", pa.int64()),
            ("transitions", pa.int64()),
            ("depth", pa.int64()),
            ("ends", pa.int64()),
            ("complete_ends", pa.int64()),
            ("stopped_at", pa.string()),
            ("broken", pa.list_(pa.string())),
            ("orders", pa.list_(pa.list_(pa.list_(pa.int64())))),
            ("seconds", pa.float64()),
        ]
    )

    def described(self) -> dict[str, Any]:
        return {
            "sweep": "all systems",
            "stack": self.stack,
            "processes": self.processes,
            "messages": self.messages,
            "fifo": self.fifo,
            **options_described(self.options),
            "limits": asdict(self.limits),
        }

    def plan(self) -> StackPlan:
        return parse_stack(self.stack)

    def scopes(self) -> list[Scope]:
        return list(systems_for(self.plan(), self.processes, self.messages, self.fifo))

    def pieces(self) -> int:
        return -(-len(self.scopes()) // AT_ONCE)

    def begin(self) -> Callable[[int], list[Row]]:
        plan, scopes = self.plan(), self.scopes()
        order = long_ones_first(scopes)

        def rows_of(piece: int) -> list[Row]:
            numbers = order[piece * AT_ONCE : (piece + 1) * AT_ONCE]
            return [self._row(plan, number, scopes[number]) for number in numbers]

        return rows_of

    def _row(self, plan: StackPlan, number: int, scope: Scope) -> Row:
        began = time.perf_counter()
        found = explore(plan, scope, self.options, self.limits, keep_going=True)
        return {
            "system": number,
            "stack": self.stack,
            "processes": self.processes,
            "destinations": [cast.destinations for cast in scope.casts],
            "states": found.states,
            "transitions": found.transitions,
            "depth": found.depth,
            "ends": found.terminals,
            "complete_ends": found.complete,
            "stopped_at": found.stopped_at or None,
            "broken": sorted(found.broken),
            "orders": sorted(verdict_on(found).orders),
            "seconds": time.perf_counter() - began,
        }

    def outcomes(self, rows: Iterable[Row]) -> Iterator[SystemOutcome]:
        """Yield what the rows tell of each system, in the order of systems."""
        scopes = self.scopes()
        for row in sorted(rows, key=lambda row: int(row["system"])):
            verdict = Verdict(
                scopes[row["system"]],
                exhausted=row["stopped_at"] is None,
                broken=frozenset(row["broken"]),
                orders=frozenset(
                    tuple(tuple(order) for order in orders) for orders in row["orders"]
                ),
                incomplete=row["complete_ends"] < row["ends"],
            )
            yield SystemOutcome(verdict, row["states"], row["transitions"])


def long_ones_first(scopes: list[Scope]) -> list[int]:
    """Number the systems so that none of many packets is left for the end, when other cores have
    nothing to do."""
    packets = [sum(len(cast.destinations) for cast in scope.casts) for scope in scopes]
    return sorted(range(len(scopes)), key=packets.__getitem__, reverse=True)
