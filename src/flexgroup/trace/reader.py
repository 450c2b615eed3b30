"""Reading trace sets back: runs as rows, events as columns in memory.

Bad input is the caller's to fix: every error names the file and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS
from flexgroup.trace import schema
from flexgroup.trace.history import (
    Deliveries,
    Faults,
    History,
    Ints,
    Multicasts,
    Packets,
    SmallInts,
    no_ints,
)

TEXTS = ["packet", "detail"]
"""Read as dictionaries: a handful of texts, each repeated millions of times."""


REQUIRED = {
    schema.MULTICAST: ("origin", "seq", "destinations"),
    schema.DELIVER: ("origin", "seq"),
}
"""Columns that other kinds of events may lack, and these not: without, nothing can be checked."""


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


def read_table(
    path: Path,
    wanted: pa.Schema,
    columns: Sequence[str] | None = None,
    required: Sequence[str] = (),
) -> pa.Table:
    """One Parquet file, checked against the schema it must have.

    A column that may be null may be missing, unless it is required here.
    """
    try:
        found = pq.read_schema(path)
        texts = [name for name in TEXTS if found.get_field_index(name) >= 0]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            for field in wanted:
                position = found.get_field_index(field.name)
                if position < 0:
                    if field.nullable and field.name not in required:
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
            table = file.read(columns=present)
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"cannot read '{path}' as Parquet: {reason}; the file is truncated, damaged or of "
            "another kind: remove it or record the run again"
        ) from None
    for name in present:
        if not wanted.field(name).nullable and table.column(name).null_count:
            raise UsageError(
                f"'{path}': column '{name}' has empty rows, and must not; "
                "see docs/trace.md for the columns"
            )
    return table


def _same_type(actual: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(actual):
        return bool(actual.value_type == wanted)
    if pa.types.is_list(actual) and pa.types.is_list(wanted):
        return bool(actual.value_type == wanted.value_type)
    return bool(actual == wanted)


def read_run(directory: Path, name: str) -> Run:
    """The run of this name."""
    path = directory / "runs" / f"{name}.parquet"
    if not path.exists():
        raise UsageError(f"'{directory}' holds no run '{name}'")
    for run in _runs_of(path):
        if run.run == name:
            return run
    raise UsageError(f"'{path}' does not describe run '{name}'; record the run again")


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
    if not runs:
        raise UsageError(f"'{path}' has no row; it must have one for each run it describes")
    for run in runs:
        if run.schema_version > schema.VERSION:
            raise UsageError(
                f"'{path}' was written by a newer version (schema {run.schema_version}, "
                f"this one reads {schema.VERSION}); upgrade flexgroup"
            )
    return runs


def read_events(directory: Path, run: str, kind: str) -> pa.Table:
    """The events of one kind of one run with all their columns, by (process, step)."""
    table = _read_kind(directory, run, kind, schema.EVENT_COLUMNS.names)
    order = np.lexsort((ints(table, "step"), ints(table, "process")))
    return table.take(pa.array(order)) if table.num_rows else table


def _read_kind(directory: Path, run: str, kind: str, names: Sequence[str]) -> pa.Table:
    folder = directory / "events" / f"event={kind}"
    own = folder / f"{run}.parquet"
    required = REQUIRED.get(kind, ())
    if own.exists():
        return read_table(own, schema.EVENT_COLUMNS, names, required)
    tables = [
        read_table(path, schema.EVENT_COLUMNS, ["run", *names], required).filter(
            pa.compute.equal(pa.compute.field("run"), run)
        )
        for path in sorted(folder.glob("*.parquet"))
        if path.name[0] != "_"
    ]
    return pa.concat_tables(tables) if tables else pa.table({})


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


class _Columns:
    """Chosen columns of the events of one kind of one run, by (process, step).

    Columns are turned into arrays one at a time: a trace in memory is mostly packets, and
    a table of all their columns would be several times as large as what is asked of it.
    """

    def __init__(self, directory: Path, run: str, kind: str, names: Sequence[str]) -> None:
        table = _read_kind(directory, run, kind, ["process", "step", *names])
        process, step = ints(table, "process"), ints(table, "step")
        order = np.lexsort((step, process))
        self.process: SmallInts = process[order].astype(np.int32)
        self.step: Ints = step[order]
        self._order = order
        self._table = table

    def wide(self, name: str) -> Ints:
        return ints(self._table, name)[self._order]

    def small(self, name: str, missing: int = 0) -> SmallInts:
        return ints(self._table, name, missing)[self._order].astype(np.int32)

    def message(self) -> Ints:
        return messages(self._table)[self._order]

    def destinations(self) -> tuple[Ints, Ints]:
        """Where each row's destinations begin, and all destinations one after the other."""
        if self._table.num_rows == 0:
            return np.zeros(1, dtype=np.int64), no_ints()
        lists = self._table.column("destinations").combine_chunks().take(pa.array(self._order))
        lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
        targets = lists.flatten().to_numpy(zero_copy_only=False)
        return offsets.astype(np.int64), targets.astype(np.int64)

    def texts(self, name: str) -> tuple[tuple[str | None, ...], SmallInts]:
        """The distinct texts, and the number of each row's among them."""
        if self._table.num_rows == 0 or name not in self._table.column_names:
            return (), np.zeros(self._table.num_rows, dtype=np.int32)
        column = self._table.column(name).unify_dictionaries().combine_chunks()
        if column.null_count:
            texts = (*column.dictionary.to_pylist(), None)
            codes = column.indices.fill_null(len(texts) - 1)
        else:
            texts, codes = tuple(column.dictionary.to_pylist()), column.indices
        return texts, codes.to_numpy(zero_copy_only=False)[self._order].astype(np.int32)


def _multicasts(directory: Path, run: str) -> Multicasts:
    columns = _Columns(directory, run, schema.MULTICAST, ["time", "origin", "seq", "destinations"])
    return Multicasts(
        columns.process.astype(np.int64),
        columns.step,
        columns.wide("time"),
        columns.message(),
        *columns.destinations(),
    )


def _deliveries(directory: Path, run: str) -> Deliveries:
    columns = _Columns(directory, run, schema.DELIVER, ["time", "origin", "seq", "depth"])
    return Deliveries(
        columns.process.astype(np.int64),
        columns.step,
        columns.wide("time"),
        columns.message(),
        columns.wide("depth"),
    )


def _packets(directory: Path, run: str, kind: str) -> Packets:
    columns = _Columns(
        directory,
        run,
        kind,
        ["time", "origin", "seq", "peer", "depth", "header_bytes", "payload_bytes", *TEXTS],
    )
    packet, packet_code = columns.texts("packet")
    detail, detail_code = columns.texts("detail")
    return Packets(
        columns.process,
        columns.step,
        columns.wide("time"),
        columns.message(),
        columns.small("peer", -1),
        columns.small("depth"),
        columns.small("header_bytes"),
        columns.small("payload_bytes"),
        tuple(name or "" for name in packet),
        packet_code,
        detail,
        detail_code,
    )


def _faults(directory: Path, run: str, kind: str) -> Faults:
    columns = _Columns(directory, run, kind, ["time"])
    return Faults(columns.process.astype(np.int64), columns.step, columns.wide("time"))


def load_history(directory: Path, run: Run, packets: bool = True) -> History:
    """A run in memory; without packets, genuineness and costs cannot be told."""
    name = run.run
    return History(
        name,
        run.processes,
        run.outcome == schema.COMPLETE,
        _multicasts(directory, name),
        _deliveries(directory, name),
        _packets(directory, name, schema.SEND) if packets else Packets(),
        _packets(directory, name, schema.RECEIVE) if packets else Packets(),
        _faults(directory, name, schema.CRASH),
        _faults(directory, name, schema.RECOVER),
    )
