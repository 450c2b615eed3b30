"""Schedules of whole servers in virtual time, as a sweep: a row for each, with its problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flexgroup.sweeps.table import Row, Sweep
from flexgroup.virtual.campaign import Drawn, Judged, judge
from flexgroup.virtual.clients import Problem
from flexgroup.virtual.schedule import parse_schedule

AT_ONCE = 4
"""The schedules of a piece."""


@dataclass(frozen=True)
class Schedules(Sweep):
    """These schedules, drawn and executed; bad ones made smaller in so many executions."""

    drawn: tuple[Drawn, ...]
    most_executions: int
    protocols: tuple[str, ...] = ()

    columns = pa.schema(
        [
            ("seed", pa.int64()),
            ("stack", pa.string()),
            ("load", pa.string()),
            ("problems", pa.list_(pa.struct([("kind", pa.string()), ("text", pa.string())]))),
            ("schedule", pa.string()),
            ("lines", pa.int64()),
            ("cpu_seconds", pa.float64()),
        ]
    )

    def described(self) -> dict[str, Any]:
        return {
            "sweep": "schedules",
            "stacks": list(dict.fromkeys(one.stack for one in self.drawn)),
            "loads": list(dict.fromkeys(one.load for one in self.drawn)),
            "first": self.drawn[0].seed,
            "last": self.drawn[-1].seed,
            "executions": self.most_executions,
        }

    def pieces(self) -> int:
        return -(-len(self.drawn) // AT_ONCE)

    def begin(self) -> Callable[[int], list[Row]]:
        def rows_of(piece: int) -> list[Row]:
            some = self.drawn[piece * AT_ONCE : (piece + 1) * AT_ONCE]
            return [_row(judge(one, self.most_executions)) for one in some]

        return rows_of

    def judged(self, rows: Iterable[Row]) -> Iterator[Judged]:
        """Yield what came of each schedule, in the order in which they were drawn."""
        for one, row in zip(self.drawn, rows, strict=True):
            problems = [Problem(told["kind"], told["text"]) for told in row["problems"]]
            schedule = parse_schedule(row["schedule"])
            yield Judged(one, problems, schedule, row["lines"], row["cpu_seconds"])


def _row(judged: Judged) -> Row:
    return {
        "seed": judged.drawn.seed,
        "stack": judged.drawn.stack,
        "load": judged.drawn.load,
        "problems": [{"kind": problem.kind, "text": problem.text} for problem in judged.problems],
        "schedule": str(judged.schedule),
        "lines": judged.lines,
        "cpu_seconds": judged.cpu_seconds,
    }
