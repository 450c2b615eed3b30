"""Turns a delivery log in CSV into a trace set that FlexGroup can check.

    python examples/from_csv.py examples/data/deliveries.csv --out traces --processes 3

The log has a header and one line for each event, the lines of a node being in the order in which
things happened there:

    time_us,node,event,sender,number,destinations
    100,0,multicast,0,1,0 1 2
    180,0,deliver,0,1,

Nodes are numbered, processes before clients. Unlike `from_json_lines.py` this works on whole
columns, block by block: millions of lines take seconds, and memory does not grow with the log.
Adapt `COLUMNS` and `blocks_of`, and leave the rest.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.trace import schema
from flexgroup.trace.run import Run
from flexgroup.trace.writer import prepare_trace_set, run_file, write_run

NUMBER = r"^[0-9]{1,15}$"
NODE = r"^[0-9]{1,6}$"
COLUMNS = {
    "time_us": NUMBER,
    "node": NODE,
    "event": "^(multicast|deliver)$",
    "sender": NODE,
    "number": r"^[0-9]{1,12}$",
    "destinations": r"^([0-9]{1,6}( [0-9]{1,6})*)?$",
}
"""The columns of the log, and what their values look like."""

KINDS = (schema.MULTICAST, schema.DELIVER)


def check_header(log: Path) -> None:
    with log.open(encoding="utf-8", errors="replace", newline="") as lines:
        header = next(csv.reader(lines), [])
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise UsageError(
            f"line 1: there is no column '{missing[0]}'; begin with {','.join(COLUMNS)}"
        )


def blocks_of(log: Path, processes: int) -> Iterator[pa.RecordBatch]:
    """The log as texts, block by block, after a look at every value."""
    check_header(log)
    reader = pa.csv.open_csv(
        log,
        # One thread, so that errors know the line.
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=1 << 22),
        parse_options=pa.csv.ParseOptions(ignore_empty_lines=False),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(COLUMNS, pa.string()), include_columns=list(COLUMNS)
        ),
    )
    line = 2
    for block in reader:
        for name, pattern in COLUMNS.items():
            fits = pc.match_substring_regex(block.column(name), pattern)
            wrong = pc.index(fits, False).as_py()
            if wrong >= 0:
                value = block.column(name)[wrong].as_py()
                raise UsageError(f"line {line + wrong}: '{value}' is no {name}")
        lost = pc.index(
            pc.and_(
                pc.equal(block.column("event"), schema.MULTICAST),
                pc.equal(block.column("destinations"), ""),
            ),
            True,
        ).as_py()
        if lost >= 0:
            raise UsageError(f"line {line + lost}: a multicast without destinations")
        stray = first_client_that_receives(block, processes)
        if stray is not None:
            raise UsageError(
                f"line {line + stray}: a client receives; processes are 0 to {processes - 1}, "
                "if that is wrong name more with --processes"
            )
        line += block.num_rows
        yield block


def first_client_that_receives(block: pa.RecordBatch, processes: int) -> int | None:
    """The first row that delivers at a client, or multicasts to one."""
    delivers = pc.equal(block.column("event"), schema.DELIVER)
    is_client = pc.greater_equal(block.column("node").cast(pa.int64()), processes)
    rows = pc.indices_nonzero(pc.and_(delivers, is_client)).to_pylist()[:1]
    words = pc.split_pattern(block.column("destinations"), " ")
    given = pc.not_equal(block.column("destinations"), "")
    numbers = pc.if_else(given, words, None).cast(pa.list_(pa.int64()))
    beyond = pc.index(pc.greater_equal(pc.list_flatten(numbers), processes), True).as_py()
    if beyond >= 0:
        rows.append(pc.list_parent_indices(numbers)[beyond].as_py())
    return min(rows, default=None)


class Steps:
    """Positions in the history of each node, counted on over the blocks."""

    def __init__(self) -> None:
        self.counts = np.zeros(0, dtype=np.int64)

    def of(self, node: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
        nodes = max(len(self.counts), int(node.max(initial=-1)) + 1)
        self.counts = np.pad(self.counts, (0, nodes - len(self.counts)))
        order = np.argsort(node, kind="stable")
        here = np.bincount(node, minlength=nodes)
        steps = np.empty(len(node), dtype=np.int64)
        steps[order] = np.arange(len(node)) - np.repeat(np.cumsum(here) - here, here)
        steps += self.counts[node]
        self.counts += here
        return pa.array(steps)


def table_of(run: str, block: pa.RecordBatch, steps: Steps) -> pa.Table:
    """The rows of a block with the columns of the trace, and `event`."""
    node = block.column("node").cast(pa.int64())
    split = pc.split_pattern(block.column("destinations"), " ")
    given = pc.not_equal(block.column("destinations"), "")
    columns = {
        "run": pa.array([run]).take(pa.array(np.zeros(block.num_rows, dtype=np.int32))),
        "process": node.cast(pa.int32()),
        "step": steps.of(node.to_numpy()),
        "time": pc.multiply_checked(block.column("time_us").cast(pa.int64()), 1000),
        "origin": block.column("sender").cast(pa.int32()),
        "seq": block.column("number").cast(pa.int64()),
        "destinations": pc.if_else(given, split, None).cast(pa.list_(pa.int32())),
    }
    for field in schema.EVENT_COLUMNS:
        columns.setdefault(field.name, pa.nulls(block.num_rows, field.type))
    names = schema.EVENT_COLUMNS.names
    table = pa.table([columns[name] for name in names], schema=schema.EVENT_COLUMNS)
    return table.append_column("event", block.column("event"))


def convert(options: argparse.Namespace) -> str:
    run = options.run or options.log.stem
    if options.processes < 1:
        raise UsageError(f"{options.processes} processes deliver nothing; give 1 or more")
    prepare_trace_set(options.out, run, options.force)
    folders = [options.out / "events" / f"event={kind}" for kind in KINDS]
    steps = Steps()
    writers = []
    try:
        for folder in folders:
            folder.mkdir(exist_ok=True)
            # Readers pass over names that start with an underscore.
            writers.append(pq.ParquetWriter(folder / f"_{run_file(run)}", schema.EVENT_COLUMNS))
        for block in blocks_of(options.log, options.processes):
            table = table_of(run, block, steps)
            for kind, writer in zip(KINDS, writers, strict=True):
                chosen = table.filter(pc.equal(table.column("event"), kind))
                writer.write_table(chosen.drop_columns(["event"]))
        if not steps.counts.size:
            raise UsageError("the log is empty: there is only a header")
    except (pa.ArrowException, OSError, UsageError) as error:
        for folder, writer in zip(folders, writers, strict=False):
            writer.close()
            (folder / f"_{run_file(run)}").unlink()
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UsageError(f"{options.log}: {reason}") from None
    for folder, writer in zip(folders, writers, strict=True):
        writer.close()
        (folder / f"_{run_file(run)}").replace(folder / run_file(run))
    clients = max(len(steps.counts) - options.processes, 0)
    # Written last: a run that is listed is whole.
    write_run(
        options.out,
        Run(
            run=run,
            world="foreign",
            stack=options.stack,
            processes=options.processes,
            clients=clients,
            outcome=schema.CUT if options.cut else schema.COMPLETE,
            software=Path(__file__).name,
            promises=tuple(options.promises.split(",")) if options.promises else None,
        ),
    )
    events = int(steps.counts.sum())
    return f"{events} events of {options.processes} processes and {clients} clients: run '{run}'"


def main() -> int:
    parser = argparse.ArgumentParser(description="The CSV of a delivery log as a trace set.")
    parser.add_argument("log", type=Path, help="the log, with a header")
    parser.add_argument("--out", type=Path, required=True, help="the trace set to write into")
    parser.add_argument("--processes", type=int, required=True, help="how many; others are clients")
    parser.add_argument("--run", help="the name of the run (that of the log)")
    parser.add_argument("--stack", default="unnamed", help="what ordered the messages (unnamed)")
    parser.add_argument("--promises", help="what it promises, as in 'integrity,fifo order' (all)")
    parser.add_argument("--cut", action="store_true", help="deliveries may be missing at the end")
    parser.add_argument("--force", action="store_true", help="overwrite the same run")
    options = parser.parse_args()
    try:
        print(convert(options))
    except (UsageError, OSError) as error:
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
