"""Two runs mixed under one name: steps that a process took twice, refused in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.read import duplicate_steps
from flexgroup.properties.kernels.rows import by_pairs
from flexgroup.trace.history import Ints

if TYPE_CHECKING:
    from flexgroup.pipeline.read import TraceSet


def refuse_steps_taken_twice(traces: TraceSet) -> None:
    """Look at all events of a trace set with Spark."""
    for row in duplicate_steps(traces).limit(1).collect():
        run = traces.described[row["number"]].run
        raise _mixed(run, row["process"], row["step"], row["rows"])


def refuse_mixed_events(run: str, steps: Sequence[tuple[Ints, Ints]]) -> None:
    """Look at the events of one run: process and step of those of each kind."""
    process = np.concatenate([np.zeros(0, dtype=np.int64), *(part for part, _ in steps)])
    step = np.concatenate([np.zeros(0, dtype=np.int64), *(part for _, part in steps)])
    order = by_pairs(process, step)
    process, step = process[order], step[order]
    same = np.flatnonzero((process[1:] == process[:-1]) & (step[1:] == step[:-1]))
    if len(same):
        twice = int(process[same[0]]), int(step[same[0]])
        rows = int(np.count_nonzero((process == twice[0]) & (step == twice[1])))
        raise _mixed(run, *twice, rows)


def _mixed(run: str, process: int, step: int, rows: int) -> UsageError:
    return UsageError(
        f"in run '{run}' process {process} has {rows} events at step {step}: "
        "two runs with the same name are mixed; keep one of them "
        "(`flexgroup validate` names the files)"
    )
