"""How fast a trace set is measured on Spark, against sorting the same rows there.

    python benchmarks/measure_speed.py [--seconds 2] [--stack skeen] [--workload random:4]

Simulates 16 processes with 64 clients for so many virtual seconds, and measures the run twice: the
first time Spark compiles what it runs. The floor is a plain `orderBy` of the deliveries by process
and step; packets, which are most of a trace, are sorted as well for a second one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.pipeline.reading.trace_set import open_trace_set
from flexgroup.pipeline.spark.session import start
from flexgroup.trace import schema
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.reading.trace_set import TraceSet

MILLION = 1_000_000
ORDER = ("number", "process", "step")


def seconds(frame: DataFrame) -> float:
    """To compute every row, which then goes nowhere."""
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def rows(traces: TraceSet, *kinds: str) -> DataFrame:
    columns = ("process", "step", "time", "origin", "seq")
    frames = [traces.events(kind, *columns) for kind in kinds]
    together = frames[0]
    for frame in frames[1:]:
        together = together.union(frame)
    return together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--stack", default="skeen")
    parser.add_argument("--workload", default="random:4")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        outcome = record_scenario(
            Scenario(options.stack, 16, 64, options.workload, duration=options.seconds),
            Path(directory),
        )
        started = start(name="measure_speed")
        from flexgroup.pipeline.measure.spark_sums import sums_of_runs

        traces = open_trace_set(started.spark, directory)
        deliveries = rows(traces, schema.DELIVER)
        everything = rows(traces, schema.DELIVER, schema.MULTICAST, schema.SEND, schema.RECEIVE)
        millions = outcome.deliveries / MILLION
        print(
            f"{outcome.deliveries:,} deliveries, {everything.count():,} events; "
            f"Spark started in {started.seconds:.1f} s"
        )
        first = seconds(sums_of_runs(traces))
        again = seconds(sums_of_runs(traces))
        seconds(deliveries.orderBy(*ORDER))
        floor = seconds(deliveries.orderBy(*ORDER))
        whole_floor = seconds(everything.orderBy(*ORDER))
        print(f"{'':24}{'seconds':>9}{'a million deliveries':>22}")
        for name, took in (
            ("measure, first time", first),
            ("measure, again", again),
            ("sorting the deliveries", floor),
            ("sorting all events", whole_floor),
        ):
            print(f"{name:24}{took:9.2f}{took / millions:22.2f}")
        print(
            f"measuring again takes {again / floor:.1f} times sorting the deliveries, "
            f"{again / whole_floor:.1f} times sorting all events"
        )
        started.spark.stop()


if __name__ == "__main__":
    main()
