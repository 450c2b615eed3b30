"""How fast Spark verifies causal order where processes answer, against sorting the same rows.

    python benchmarks/causal_speed.py [--deliveries 2000000] [--in-flight 64] [--property NAME]
                                      [--rounds 2] [--lose-one]

Every process multicasts, to 4 of 16, and delivers all in one order. Verifies the property of that
run, and sorts its deliveries by (run, process, step), in turns in one session of two cores with
Spark's default memory; the ratio is that of the fastest rounds. With `--lose-one`, one delivery
near the beginning is missing, so that slices cannot judge alone and nearly all that follows at its
destination is a violation.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from spark_verify import (
    MemoryWatch,
    Writer,
    processor_seconds,
    seconds,
    shuffled_bytes,
    sort_deliveries,
)

from flexgroup.pipeline.reading.trace_set import open_trace_set
from flexgroup.pipeline.spark.session import start
from flexgroup.pipeline.verify import verify
from flexgroup.trace import schema
from flexgroup.trace.history import Ints
from flexgroup.trace.run import Run
from flexgroup.trace.writer import write_run

RUN = "correct"
PROCESSES = 16
DESTINATIONS = 4
GAP = 1000
"""Nanoseconds from one multicast to the next."""


def write_answering_run(directory: Path, deliveries: int, in_flight: int, lose_one: bool) -> None:
    """Messages of the processes themselves, delivered in one order with delays that vary."""
    chance = np.random.default_rng(1)
    number = np.arange(deliveries // DESTINATIONS)
    origin = chance.integers(0, PROCESSES, len(number))
    drawn = np.argsort(chance.random((len(number), PROCESSES)), axis=1)[:, :DESTINATIONS]
    process = np.sort(drawn, axis=1).ravel()
    lists = pa.ListArray.from_arrays(
        np.arange(0, len(process) + 1, DESTINATIONS, dtype=np.int32), process.astype(np.int32)
    )
    sent_at = number * GAP
    moment = np.repeat(sent_at, DESTINATIONS) + in_flight * GAP // 2
    moment += chance.integers(1, max(2, in_flight * GAP // 2), len(moment))
    for place in range(PROCESSES):
        rows = np.flatnonzero(process == place)
        moment[rows] = np.maximum.accumulate(moment[rows])
    ends, times = np.concatenate([origin, process]), np.concatenate([sent_at, moment])
    step = steps(ends, times)
    seq = steps(origin, sent_at)
    order = np.argsort(moment, kind="stable")
    if lose_one:
        order = order[np.flatnonzero(order != DESTINATIONS * (len(number) // 50))]
    about = order // DESTINATIONS
    multicasts = Writer(directory, schema.MULTICAST)
    multicasts.write(
        process=origin,
        step=step[: len(number)],
        time=sent_at,
        origin=origin,
        seq=seq,
        destinations=lists,
    )
    multicasts.close()
    delivered = Writer(directory, schema.DELIVER)
    delivered.write(
        process=process[order],
        step=step[len(number) :][order],
        time=moment[order],
        origin=origin[about],
        seq=seq[about],
    )
    delivered.close()
    (directory / "runs").mkdir()
    described = Run(
        run=RUN,
        world="made up",
        stack="somebody else's",
        processes=PROCESSES,
        clients=0,
        outcome=schema.COMPLETE,
    )
    write_run(directory, described)


def steps(process: Ints, time: Ints) -> Ints:
    """Return which event of its process each is."""
    order = np.lexsort((time, process))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.searchsorted(process[order], process[order])
    return place


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--deliveries", type=int, default=2_000_000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--property", default="causal order")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--lose-one", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_answering_run(Path(folder), options.deliveries, options.in_flight, options.lose_one)
        started = start(name="benchmark")
        traces = open_trace_set(started.spark, folder)

        def check() -> None:
            for row in verify(traces, [options.property]).collect():
                print(f"{row.property}: {row.outcome}, {row.violations} violations", flush=True)
            # The next round is not to find what this one kept.
            started.spark.catalog.clearCache()

        with MemoryWatch() as memory:
            sorting, checking = math.inf, math.inf
            for number in range(options.rounds):
                sorted_in = seconds(lambda: sort_deliveries(traces))
                worked, handed = processor_seconds(), shuffled_bytes(started.spark)
                checked_in = seconds(check)
                worked = processor_seconds() - worked
                handed = shuffled_bytes(started.spark) - handed
                print(f"round {number + 1}: sort {sorted_in:.1f} s, verify {checked_in:.1f} s")
                sorting, checking = min(sorting, sorted_in), min(checking, checked_in)
        started.spark.stop()
    print(f"{options.deliveries:,} deliveries, {options.in_flight} in flight")
    print(f"sort {sorting:.1f} s, verify {checking:.1f} s: ratio {checking / sorting:.2f}")
    print(f"processor time: {worked / options.deliveries * 1e6:.2f} s per million deliveries")
    print(f"between stages: {handed / options.deliveries:.1f} bytes a delivery")
    print(f"most memory: Java {memory.java >> 20} MiB, a Python worker {memory.worker >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
