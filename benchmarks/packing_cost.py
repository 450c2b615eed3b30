"""What it costs to send deliveries to more and more tasks, which larger runs need.

    python benchmarks/packing_cost.py [--deliveries 1000000] [--parts 10 1000 10000]

Reads and packs the events of one run for a first stage of so many tasks, without Spark. Prints the
processor time and the bytes that go to the tasks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from spark_verify import write_run_of

from flexgroup.pipeline.reading.local_files import look_here
from flexgroup.pipeline.verify.file_pieces import pieces_of, pieces_table
from flexgroup.pipeline.verify.parted_events import read_and_part


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--deliveries", type=int, default=1_000_000)
    parser.add_argument("--parts", type=int, nargs="+", default=[10, 1000, 10_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_run_of(Path(folder), options.deliveries, in_flight=64)
        files = look_here(folder)
        assert files is not None
        numbers = {run.run: number for number, run in enumerate(files.described)}
        pieces = pieces_table(pieces_of(files, files.kinds, numbers)).to_batches()
        for parts in options.parts:
            began = time.process_time()
            packed = list(read_and_part(numbers, parts, {})(iter(pieces)))
            took = (time.process_time() - began) / options.deliveries * 1e6
            sent = sum(batch.nbytes for batch in packed) / options.deliveries
            print(f"{parts:6} tasks: {took:.2f} s per million, {sent:.1f} bytes a delivery")
    return 0


if __name__ == "__main__":
    sys.exit(main())
