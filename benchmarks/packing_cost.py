"""What it costs to send deliveries to more and more tasks, which larger runs need.

    python benchmarks/packing_cost.py [--deliveries 1000000] [--parts 10 1000 10000]

Reads and packs the events of one run for a first stage of so many tasks, and with the first number
of them goes on to the second stage, for integrity, agreement and acyclic order; without Spark.
Prints how large the trace is, the processor time, and the bytes that go to the tasks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from spark_verify import DESTINATIONS, GAP, PROPERTIES, write_run_of

from flexgroup.pipeline.reading.local_files import look_here
from flexgroup.pipeline.verify.check_plans import check_plans
from flexgroup.pipeline.verify.file_pieces import pieces_of, pieces_table
from flexgroup.pipeline.verify.layout import CELL_DELIVERIES, Layout, cell_bounds
from flexgroup.pipeline.verify.message_checks import check_messages
from flexgroup.pipeline.verify.parted_events import read_and_part


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--deliveries", type=int, default=1_000_000)
    parser.add_argument("--parts", type=int, nargs="+", default=[10, 1000, 10_000])
    options = parser.parse_args()
    million = options.deliveries / 1e6
    with tempfile.TemporaryDirectory() as folder:
        write_run_of(Path(folder), options.deliveries, in_flight=64)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
        print(f"the trace: {size / options.deliveries:.1f} bytes a delivery")
        files = look_here(folder)
        assert files is not None
        (plan,) = check_plans(files.described, PROPERTIES)
        pieces = pieces_table(pieces_of(files, files.kinds, {plan.run})).to_batches()
        for parts in options.parts:
            began = time.process_time()
            packed = list(read_and_part({plan.run: plan.number}, parts, {})(iter(pieces)))
            took = (time.process_time() - began) / million
            sent = payload_bytes(packed) / options.deliveries
            print(f"{parts:6} tasks: {took:.2f} s per million, {sent:.1f} bytes a delivery")
            if parts == options.parts[0]:
                times = np.arange(options.deliveries) * GAP // DESTINATIONS
                bounds = cell_bounds(times, options.deliveries, CELL_DELIVERIES)
                layout = Layout(plan=plan, deliveries=options.deliveries, crashed=(), bounds=bounds)
                began = time.process_time()
                sent = payload_bytes(check_parts(packed, parts, layout)) / options.deliveries
                took = (time.process_time() - began) / million
                print(f"first stage: {took:.2f} s per million, {sent:.1f} bytes a delivery")
    return 0


def payload_bytes(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(batch.nbytes for batch in batches)


def check_parts(packed: list[pa.RecordBatch], parts: int, layout: Layout) -> list[pa.RecordBatch]:
    """Return what the tasks of the first stage send to the second, one task after the other."""
    table = pa.Table.from_batches(packed)
    stage = check_messages({layout.plan.number: layout}, {})
    found: list[pa.RecordBatch] = []
    for part in range(parts):
        found += stage(iter(table.filter(pc.field("place") == part).to_batches()))
    return found


if __name__ == "__main__":
    sys.exit(main())
