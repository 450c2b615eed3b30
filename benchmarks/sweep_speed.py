"""Does a sweep keep both cores busy? Spark's time for many runs, beside what the runs need.

    python benchmarks/sweep_speed.py [--master local[2]]

The ideal is the sum of what each run took on its executor, divided by the cores. A first small
sweep starts the Python workers and is not counted. The ratio of the ideal to the measured time
should be 0.8 or more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from flexgroup.experiments.sweep import sweep
from flexgroup.pipeline.spark.session import start
from flexgroup.worlds.simulator.scenario import Scenario

CORES = 2
WANTED = 0.8

FIRST = [Scenario("skeen", 4, 1, "random:2", duration=0.001, seed=seed) for seed in (1, 2, 3, 4)]

MEASURED = [
    Scenario(stack, 16, clients, workload, duration=0.2, seed=1)
    for stack in ("skeen", "df", "dcc", "dcc/rv")
    for workload in ("random:2", "random:8", "tpcc")
    for clients in (4, 16, 64)
]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--master", help="any Spark master with two cores")
    options = parser.parse_args()
    spark = start(options.master, "sweep speed").spark
    with tempfile.TemporaryDirectory(prefix="flexgroup-") as folder:
        sweep(spark, FIRST, Path(folder) / "first")
        began = time.perf_counter()
        swept = sweep(spark, MEASURED, Path(folder) / "measured")
        took = time.perf_counter() - began
    spark.stop()
    ideal = sum(swept.seconds) / CORES
    events = sum(outcome.events for outcome in swept.outcomes)
    print(
        f"{len(MEASURED)} runs, {events:,} events: {took:.1f} s; the runs alone on {CORES} cores "
        f"would take {ideal:.1f} s; ratio {ideal / took:.2f} (wanted: {WANTED} or more)"
    )
    return 0 if ideal / took >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
