"""Steps that a process took more than once: two runs are mixed under one name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import union
from flexgroup.trace.history import Ints, by_pairs


def duplicate_steps(traces: TraceSet) -> DataFrame:
    """Return the steps that a process took more than once: `number`, `process`, `step`, and `rows`.

    There are none in a sound trace; there are where two runs with the same name were mixed. The
    steps of a process are first counted in blocks of 64, each a bit of one integer, and only
    blocks with more rows than bits are looked at again: without duplicates, what is shuffled is a
    fraction of the events.
    """
    parts = [traces.events(kind, "process", "step") for kind in sorted(traces.kinds)]
    if not parts:
        return traces.spark.createDataFrame([], "number int, process int, step bigint, rows bigint")
    block = ["number", "process", "block"]
    steps = union(parts).withColumn("block", f.expr("floor(step / 64)"))
    crowded = (
        steps.groupBy(block)
        .agg(
            f.count("*").alias("rows"),
            f.expr("bit_or(shiftleft(1L, int(pmod(step, 64L))))").alias("bits"),
        )
        .where("rows > bit_count(bits)")
        .select(block)
    )
    return (
        steps.join(crowded, block, "left_semi")
        .groupBy("number", "process", "step")
        .agg(f.count("*").alias("rows"))
        .where("rows > 1")
    )


def refuse_duplicate_steps(traces: TraceSet) -> None:
    """Raise a UsageError if there are any in a trace set; all its events are read with Spark."""
    for row in duplicate_steps(traces).limit(1).collect():
        run = traces.described[row["number"]].run
        raise _mixed_runs(run, row["process"], row["step"], row["rows"])


def refuse_duplicate_steps_of(run: str, steps: Sequence[tuple[Ints, Ints]]) -> None:
    """Raise a UsageError if there are any in one run, given the process and the step of the events
    of each kind."""
    process, step = (np.concatenate(column) for column in zip(*steps, strict=True))
    order = by_pairs(process, step)
    process, step = process[order], step[order]
    same = np.flatnonzero((process[1:] == process[:-1]) & (step[1:] == step[:-1]))
    if len(same):
        twice = int(process[same[0]]), int(step[same[0]])
        rows = int(np.count_nonzero((process == twice[0]) & (step == twice[1])))
        raise _mixed_runs(run, *twice, rows)


def _mixed_runs(run: str, process: int, step: int, rows: int) -> UsageError:
    return UsageError(
        f"in run '{run}' process {process} has {rows} events at step {step}: "
        "two runs with the same name are mixed; keep one of them "
        "(`flexgroup validate` names the files)"
    )
