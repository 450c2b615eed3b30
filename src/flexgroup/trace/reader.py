"""Reading trace sets back: runs as rows, events as columns in memory.

Bad input is the caller's to fix: every error names the file and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS
from flexgroup.trace import schema
from flexgroup.trace.history import Deliveries, Faults, History, Ints, Multicasts, Packets


@dataclass(frozen=True)
class Run:
    """A row of `runs`."""

    run: str
    world: str
    stack: str
    options: str
    processes: int
    clients: int
    groups: str | None
    workload: str | None
    network: str | None
    faults: str | None
    seed: int | None
    outcome: str
    schema_version: int
    software: str
    started: int | None


def read_table(path: Path, wanted: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """One Parquet file, checked against the schema it must have."""
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow
            for field in wanted:
                position = found.get_field_index(field.name)
                if position < 0:
                    if field.nullable:
                        continue
                    raise UsageError(
                        f"'{path}' has no column '{field.name}': it is not a FlexGroup trace; "
                        "see docs/trace.md for the columns"
                    )
                actual = found.field(position).type
                if not _same_type(actual, field.type):
                    raise UsageError(
                        f"'{path}': column '{field.name}' is {actual}, not {field.type}; "
                        "see docs/trace.md for the columns"
                    )
            present = [
                field.name
                for field in wanted
                if (columns is None or field.name in columns)
                and found.get_field_index(field.name) >= 0
            ]
            return file.read(columns=present)
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"cannot read '{path}' as Parquet: {reason}; the file is truncated, damaged or of "
            "another kind: remove it or record the run again"
        ) from None


def _same_type(actual: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(actual) and pa.types.is_list(wanted):
        return bool(actual.value_type == wanted.value_type)
    return bool(actual == wanted)


def read_run(directory: Path, name: str) -> Run:
    """The run of this name."""
    path = directory / "runs" / f"{name}.parquet"
    if not path.exists():
        raise UsageError(f"'{directory}' holds no run '{name}'")
    return _runs_of(path)[0]


def read_runs(directory: Path) -> list[Run]:
    """All runs of a trace set, sorted by name."""
    if not directory.is_dir():
        raise UsageError(f"'{directory}' is not a directory; give the directory of a trace set")
    files = sorted(path for path in (directory / "runs").glob("*.parquet") if path.name[0] != "_")
    if not files:
        raise UsageError(
            f"'{directory}' holds no runs (no runs/*.parquet); record one with: "
            f"flexgroup simulate --protocol skeen --out {directory}"
        )
    runs: dict[str, Run] = {}
    for path in files:
        for run in _runs_of(path):
            if run.run in runs:
                raise UsageError(f"'{path}' describes run '{run.run}' again; keep one of them")
            runs[run.run] = run
    return [runs[name] for name in sorted(runs)]


def _runs_of(path: Path) -> list[Run]:
    rows = read_table(path, schema.RUN_COLUMNS).to_pylist()
    runs = [Run(**{name: row.get(name) for name in schema.RUN_COLUMNS.names}) for row in rows]
    for run in runs:
        if run.schema_version > schema.VERSION:
            raise UsageError(
                f"'{path}' was written by a newer version (schema {run.schema_version}, "
                f"this one reads {schema.VERSION}); upgrade flexgroup"
            )
    return runs


def read_events(
    directory: Path, run: str, kind: str, columns: Sequence[str] | None = None
) -> pa.Table:
    """The events of one kind of one run, sorted by (process, step)."""
    folder = directory / "events" / f"event={kind}"
    tables = []
    own = folder / f"{run}.parquet"
    paths = [own] if own.exists() else sorted(folder.glob("*.parquet"))
    for path in paths:
        if path.name[0] == "_":
            continue
        table = read_table(path, schema.EVENT_COLUMNS, columns)
        if path != own:
            table = table.filter(pa.compute.field("run") == run)
        tables.append(table)
    if not tables:
        return pa.table({}, schema=pa.schema([]))
    table = pa.concat_tables(tables)
    order = np.lexsort((ints(table, "step"), ints(table, "process")))
    return table.take(pa.array(order))


def ints(table: pa.Table, name: str, missing: int = 0) -> Ints:
    """A column as 64-bit integers."""
    if table.num_rows == 0 or name not in table.column_names:
        return np.full(table.num_rows, missing, dtype=np.int64)
    column = table.column(name)
    if column.null_count:
        column = column.fill_null(missing)
    result: Ints = column.to_numpy().astype(np.int64)
    return result


def messages(table: pa.Table) -> Ints:
    origin = ints(table, "origin", -1)
    identity: Ints = np.where(
        origin < 0, NO_MESSAGE, (ints(table, "seq") << ORIGIN_BITS) | origin
    ).astype(np.int64)
    return identity


def _multicasts(table: pa.Table) -> Multicasts:
    if table.num_rows == 0:
        return Multicasts()
    lists = table.column("destinations").combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return Multicasts(
        ints(table, "process"),
        ints(table, "step"),
        ints(table, "time"),
        messages(table),
        np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths))),
        lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64),
    )


def _codes(table: pa.Table, name: str) -> tuple[tuple[str | None, ...], Ints]:
    if table.num_rows == 0 or name not in table.column_names:
        return (), np.zeros(table.num_rows, dtype=np.int64)
    encoded = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
    return tuple(encoded.dictionary.to_pylist()), encoded.indices.to_numpy().astype(np.int64)


def _packets(table: pa.Table) -> Packets:
    packet, packet_code = _codes(table, "packet")
    detail, detail_code = _codes(table, "detail")
    return Packets(
        ints(table, "process"),
        ints(table, "step"),
        ints(table, "time"),
        messages(table),
        ints(table, "peer", -1),
        ints(table, "depth"),
        ints(table, "header_bytes"),
        ints(table, "payload_bytes"),
        tuple(name or "" for name in packet),
        packet_code,
        detail,
        detail_code,
    )


def _faults(table: pa.Table) -> Faults:
    return Faults(ints(table, "process"), ints(table, "step"), ints(table, "time"))


def load_history(directory: Path, run: Run, packets: bool = True) -> History:
    """A run in memory; without packets, genuineness and costs cannot be told."""
    deliveries = read_events(directory, run.run, schema.DELIVER)
    return History(
        run.run,
        run.processes,
        run.outcome == schema.COMPLETE,
        _multicasts(read_events(directory, run.run, schema.MULTICAST)),
        Deliveries(
            ints(deliveries, "process"),
            ints(deliveries, "step"),
            ints(deliveries, "time"),
            messages(deliveries),
            ints(deliveries, "depth"),
        ),
        _packets(read_events(directory, run.run, schema.SEND)) if packets else Packets(),
        _packets(read_events(directory, run.run, schema.RECEIVE)) if packets else Packets(),
        _faults(read_events(directory, run.run, schema.CRASH)),
        _faults(read_events(directory, run.run, schema.RECOVER)),
    )
