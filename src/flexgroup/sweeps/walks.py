"""Random walks through one scope, as a sweep: a row for each hundred walks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.sweeps.systems import options_described
from flexgroup.sweeps.table import Row, Sweep
from flexgroup.worlds.explorer.machine import ClientAddressedError
from flexgroup.worlds.explorer.random_walks import Walker, WalkOptions, WalkTotals
from flexgroup.worlds.explorer.result import Violation
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import Scope


@dataclass(frozen=True)
class Walks(Sweep):
    """These walks through a scope, up to the first that breaks a property."""

    stack: str
    scope: Scope
    how: WalkOptions
    todo: tuple[range, ...]
    protocols: tuple[str, ...] = ()

    columns = pa.schema(
        [
            ("first_walk", pa.int64()),
            ("walks", pa.int64()),
            ("steps", pa.int64()),
            ("deepest", pa.int64()),
            ("complete", pa.int64()),
            ("endless", pa.int64()),
            ("channels", pa.int64()),
            ("local_states", pa.int64()),
            ("broken", pa.list_(pa.string())),
            ("run", pa.string()),
            ("is_about_clients", pa.bool_()),
            ("seen_orders", pa.list_(pa.list_(pa.int64()))),
            ("states", pa.list_(pa.int64())),
        ]
    )

    def described(self) -> dict[str, Any]:
        return {
            "sweep": "walks",
            "stack": self.stack,
            "scope": asdict(self.scope),
            "seed": self.how.seed,
            "pct": self.how.depth,
            "walks": self.todo[-1].stop,
            **options_described(self.how.search),
        }

    def pieces(self) -> int:
        return len(self.todo)

    def begin(self) -> Callable[[int], list[Row]]:
        try:
            walker = Walker(parse_stack(self.stack), self.scope, self.how)
        except ClientAddressedError:
            return lambda piece: [ABOUT_CLIENTS]

        def rows_of(piece: int) -> list[Row]:
            try:
                totals = walker.take(self.todo[piece])
            except ClientAddressedError:
                return [ABOUT_CLIENTS]
            return [_row(self.todo[piece].start, totals)]

        return rows_of

    may_end_early = True

    def is_enough(self, rows: list[Row]) -> bool:
        return any(row["broken"] or row["is_about_clients"] for row in rows)

    def totals(self, rows: Iterable[Row]) -> Iterator[WalkTotals]:
        """Yield what the walks of each row came to."""
        for row in rows:
            if row["is_about_clients"]:
                raise ClientAddressedError
            run = tuple(ScheduleStep(**step) for step in json.loads(row["run"]))
            yield WalkTotals(
                walks=row["walks"],
                steps=row["steps"],
                deepest=row["deepest"],
                complete=row["complete"],
                endless=row["endless"],
                channels=row["channels"],
                states=row["states"],
                seen_orders=frozenset((a, b) for a, b in row["seen_orders"]),
                local_states=row["local_states"],
                violations=tuple(Violation(name, run) for name in row["broken"]),
            )


ABOUT_CLIENTS: Row = {"is_about_clients": True, "broken": []}
"""The row of walks that cannot be taken in this way: clients have to be followed."""


def _row(first: int, totals: WalkTotals) -> Row:
    found = totals.violations
    return {
        "first_walk": first,
        "walks": totals.walks,
        "steps": totals.steps,
        "deepest": totals.deepest,
        "complete": totals.complete,
        "endless": totals.endless,
        "channels": totals.channels,
        "local_states": totals.local_states,
        "broken": [violation.name for violation in found],
        "run": json.dumps([asdict(step) for step in found[0].run] if found else []),
        "is_about_clients": False,
        "seen_orders": sorted(totals.seen_orders),
        "states": totals.states,
    }
