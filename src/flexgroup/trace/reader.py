"""Trace sets are read back: runs as rows, events as columns in memory.

Bad input is the caller's to fix: every error names the file and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

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
    RunFacts,
    SmallInts,
    Views,
    by_pairs,
    is_only_told,
    lost_since,
    no_ints,
    parse_view,
    views_of,
)
from flexgroup.trace.rules import SEE, is_empty_in, refuse_broken_rules, rows_told
from flexgroup.trace.run import Run, lost_processes, run_of


def read_table(
    path: Path,
    wanted: pa.Schema,
    columns: Sequence[str] | None = None,
    required: Sequence[str] = (),
) -> pa.Table:
    """Read one Parquet file, and check it against the schema that it must have.

    A column may be missing, unless it is required.
    """
    try:
        with parquet_file(path, page_checksum_verification=True) as file:
            found = file.schema_arrow
            refuse_bad_columns(path, found, wanted, required)
            present = [
                field
                for field in wanted
                if (columns is None or field.name in columns) and field.name in found.names
            ]
            table = file.read(columns=[field.name for field in present])
            table.validate(full=True)  # damaged texts come to light here, or as a traceback later
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None
    for position, field in enumerate(present):
        column = table.column(position)
        if field.name in required and column.null_count:
            raise UsageError(
                f"'{path}': {is_empty_in(field.name, rows_told(column.null_count))}; {SEE}"
            )
        if column.type != field.type and not pa.types.is_dictionary(column.type):
            table = table.set_column(position, field.name, column.cast(field.type))
    return table


def parquet_file(path: Path, **options: Any) -> pq.ParquetFile:
    """Open a file, with these options of `pq.ParquetFile`, to read its texts as dictionaries."""
    footer = pq.read_metadata(path)
    texts = [name for name in schema.TEXTS if name in footer.schema.to_arrow_schema().names]
    return pq.ParquetFile(path, metadata=footer, read_dictionary=texts, **options)


@dataclass(frozen=True)
class ColumnProblem:
    """A column that is not there, or that holds something else."""

    missing: bool
    reason: str


def column_problems(
    found: pa.Schema, wanted: pa.Schema, required: Collection[str]
) -> list[ColumnProblem]:
    """Return what is wrong with a file of these columns.

    Columns that are not required may be missing, and columns that nobody asked for may be there:
    that is how versions differ.
    """
    problems = []
    for field in wanted:
        position = found.get_field_index(field.name)
        if position < 0:
            if field.name in required:
                problems.append(ColumnProblem(True, f"has no column '{field.name}'"))
            continue
        actual = found.field(position).type
        if _plain(actual) != _plain(field.type):
            reason = f"column '{field.name}' is {actual}, not {field.type}"
            problems.append(ColumnProblem(False, reason))
    return problems


def _plain(type_: pa.DataType) -> pa.DataType:
    """Return the type without what only concerns memory: in the file, these are all the same."""
    if pa.types.is_dictionary(type_):
        return _plain(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_plain(type_.value_type))
    return type_


def refuse_bad_columns(
    path: Path, found: pa.Schema, wanted: pa.Schema, required: Sequence[str]
) -> None:
    see = "see docs/trace.md for the columns"
    for problem in column_problems(found, wanted, required):
        if problem.missing:
            raise UsageError(f"'{path}' {problem.reason}: it is not a FlexGroup trace; {see}")
        raise UsageError(f"'{path}': {problem.reason}; {see}")


def unreadable(path: Path, error: Exception) -> UsageError:
    reason = str(error).splitlines()[0]
    return UsageError(
        f"cannot read '{path}' as Parquet: {reason}; the file is truncated, damaged or of "
        "another kind: remove it or record the run again"
    )


def read_run(directory: Path, name: str) -> Run:
    """Return the run of this name."""
    path = directory / "runs" / f"{name}.parquet"
    if not path.exists():
        raise UsageError(f"'{directory}' holds no run '{name}'")
    for run in runs_by_name([(path, _rows_of_runs(path))]):
        if run.run == name:
            return run
    raise UsageError(f"'{path}' does not describe run '{name}'; record the run again")


def read_runs(directory: Path) -> list[Run]:
    """Return all runs of a trace set, sorted by name."""
    if not directory.is_dir():
        raise UsageError(f"'{directory}' is not a directory; give the directory of a trace set")
    files = parquet_files(directory / "runs")
    if not files:
        raise UsageError(
            f"'{directory}' holds no runs (no runs/*.parquet); record one with: "
            f"flexgroup simulate --protocol skeen --out {directory}"
        )
    with ThreadPoolExecutor() as threads:
        return runs_by_name(zip(files, threads.map(_rows_of_runs, files), strict=True))


def runs_by_name(told: Iterable[tuple[Path | str, Iterable[Mapping[str, Any]]]]) -> list[Run]:
    """Return the runs that the rows of these files tell of, sorted by name; refuse rows that are
    wrong, and runs that are told of twice."""
    runs: dict[str, Run] = {}
    for file, rows in told:
        for row in rows:
            try:
                run = run_of(row)
            except UsageError as error:
                raise UsageError(f"'{file}': {error}") from None
            if run.run in runs:
                raise UsageError(f"'{file}' describes run '{run.run}' again; keep one of them")
            runs[run.run] = run
    return [runs[name] for name in sorted(runs)]


def parquet_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are finished, sorted by name."""
    return sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "_.")


def _rows_of_runs(path: Path) -> list[dict[str, Any]]:
    table = read_table(path, schema.RUN_COLUMNS, required=schema.REQUIRED_OF_RUNS)
    if table.num_rows == 0:
        raise UsageError(f"'{path}' has no row; it must have one for each run it describes")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def read_events(directory: Path, run: str, kind: str) -> pa.Table:
    """Read the events of one kind of one run with all their columns, by process and step."""
    table = read_columns(directory, run, kind, schema.EVENT_COLUMNS.names)
    order = by_pairs(ints(table, "process"), ints(table, "step"))
    return table.take(pa.array(order)) if table.num_rows else table


def read_columns(directory: Path, run: str, kind: str, names: Sequence[str]) -> pa.Table:
    """Read these columns of the events of one kind of one run, as far as its files have them."""
    required = schema.required_columns(kind)
    tables = []
    for path in event_files(directory, run, kind):
        table = _of_run(run, read_table(path, schema.EVENT_COLUMNS, ["run", *names], required))
        refuse_broken_rules(path, kind, table)
        tables.append(table)
    return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})


def event_files(directory: Path, run: str, kind: str) -> list[Path]:
    """Return the files that may have events of this kind of the run: its own, or all there are."""
    folder = directory / "events" / f"event={kind}"
    own = folder / f"{run}.parquet"
    return [own] if own.exists() else parquet_files(folder)


def _of_run(run: str, table: pa.Table) -> pa.Table:
    """Return the rows of one run: the whole table, uncopied, if it holds no other."""
    if all(chunk.dictionary.to_pylist() == [run] for chunk in table.column("run").chunks):
        return table
    return table.filter(pa.compute.equal(table.column("run").cast(pa.string()), run))


def ints(table: pa.Table, name: str, missing: int = 0) -> Ints:
    """Return a column as 64-bit integers, with `missing` in place of nulls."""
    if table.num_rows == 0 or name not in table.column_names:
        return np.full(table.num_rows, missing, dtype=np.int64)
    column = table.column(name)
    if column.null_count:
        column = column.fill_null(missing)
    result: Ints = column.to_numpy().astype(np.int64)
    return result


def messages(table: pa.Table) -> Ints:
    """Return the identity of each row's message, which a table may have packed already."""
    if "message" in table.column_names:
        return ints(table, "message", NO_MESSAGE)
    origin = ints(table, "origin", -1)
    identity: Ints = np.where(
        origin < 0, NO_MESSAGE, (ints(table, "seq") << ORIGIN_BITS) | origin
    ).astype(np.int64)
    return identity


class _Columns:
    """Columns of the events of one kind of one run, by (process, step).

    Columns are turned into arrays one at a time: a trace in memory is mostly packets, and
    a table of all their columns would be several times as large as what is asked of it.
    """

    def __init__(self, table: pa.Table) -> None:
        process, step = ints(table, "process"), ints(table, "step")
        order = by_pairs(process, step)
        self.process: SmallInts = process[order].astype(np.int32)
        self.step: Ints = step[order]
        self._order = order
        self._table = table

    def base(self) -> dict[str, Ints]:
        """Return the columns that all rows in memory have, by name."""
        process = self.process.astype(np.int64)
        return {"process": process, "step": self.step, "time": self.wide("time")}

    def wide(self, name: str) -> Ints:
        return ints(self._table, name)[self._order]

    def small(self, name: str, missing: int = 0) -> SmallInts:
        return ints(self._table, name, missing)[self._order].astype(np.int32)

    def message(self) -> Ints:
        return messages(self._table)[self._order]

    def destinations(self) -> tuple[Ints, Ints]:
        """Return where each row's destinations begin, and all destinations one after the other."""
        if self._table.num_rows == 0:
            return np.zeros(1, dtype=np.int64), no_ints()
        lists = self._table.column("destinations").combine_chunks().take(pa.array(self._order))
        lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))
        targets = lists.flatten().to_numpy(zero_copy_only=False)
        return offsets.astype(np.int64), targets.astype(np.int64)

    def texts(self, name: str) -> tuple[tuple[str | None, ...], SmallInts]:
        """Return the distinct texts, and the number of each row's among them."""
        if self._table.num_rows == 0 or name not in self._table.column_names:
            return (), np.zeros(self._table.num_rows, dtype=np.int32)
        column = self._table.column(name)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        column = column.unify_dictionaries().combine_chunks()
        if column.null_count:
            texts = (*column.dictionary.to_pylist(), None)
            codes = column.indices.fill_null(len(texts) - 1)
        else:
            texts, codes = tuple(column.dictionary.to_pylist()), column.indices
        return texts, codes.to_numpy(zero_copy_only=False)[self._order].astype(np.int32)


MESSAGE_COLUMNS = ("process", "step", "time", "origin", "seq")

HISTORY_COLUMNS: dict[str, Sequence[str]] = {
    schema.MULTICAST: (*MESSAGE_COLUMNS, "destinations"),
    schema.DELIVER: (*MESSAGE_COLUMNS, "depth"),
    **dict.fromkeys(
        (schema.SEND, schema.RECEIVE),
        (*MESSAGE_COLUMNS, "peer", "depth", "header_bytes", "payload_bytes", "packet", "detail"),
    ),
    **dict.fromkeys((schema.CRASH, schema.RECOVER), ("process", "step", "time")),
    schema.VIEW: ("process", "step", "time", "detail"),
}
"""What a history is made of: columns of these kinds of events."""


def history_of(events: Callable[[str], pa.Table], about: RunFacts, where: str = "") -> History:
    """Return the history that tables of events tell, one for each kind in HISTORY_COLUMNS.

    The rows may be those of a whole run, or those about some messages. Columns that are missing
    count as empty. `where` says in errors where the events are.
    """
    return History(
        **about.facts(),
        multicasts=_multicasts(_Columns(events(schema.MULTICAST))),
        deliveries=_deliveries(_Columns(events(schema.DELIVER))),
        sends=_packets(_Columns(events(schema.SEND))),
        receives=_packets(_Columns(events(schema.RECEIVE))),
        crashes=Faults(**_Columns(events(schema.CRASH)).base()),
        recoveries=Faults(**_Columns(events(schema.RECOVER)).base()),
        views=_views(_Columns(events(schema.VIEW)), where or f"run '{about.run}'"),
    )


def _multicasts(columns: _Columns) -> Multicasts:
    offsets, targets = columns.destinations()
    return Multicasts(**columns.base(), message=columns.message(), offsets=offsets, targets=targets)


def _deliveries(columns: _Columns) -> Deliveries:
    return Deliveries(**columns.base(), message=columns.message(), depth=columns.wide("depth"))


def _packets(columns: _Columns) -> Packets:
    packet, packet_code = columns.texts("packet")
    detail, detail_code = columns.texts("detail")
    return Packets(
        process=columns.process,
        step=columns.step,
        time=columns.wide("time"),
        message=columns.message(),
        peer=columns.small("peer", -1),
        depth=columns.small("depth"),
        header_bytes=columns.small("header_bytes"),
        payload_bytes=columns.small("payload_bytes"),
        packet=tuple(name or "" for name in packet),
        packet_code=packet_code,
        detail=detail,
        detail_code=detail_code,
    )


def _views(columns: _Columns, where: str) -> Views:
    texts, codes = columns.texts("detail")
    try:
        # The texts may be those of other kinds of events as well.
        views = {code: parse_view(texts[code]) for code in set(codes.tolist())}
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    rows = [row for row, code in enumerate(codes.tolist()) if not is_only_told(texts[code])]
    installed = [views[code] for code in codes[rows].tolist()]
    base = {name: column[rows] for name, column in columns.base().items()}
    return views_of(**base, installed=installed)


def load_history(
    directory: Path,
    run: Run,
    packets: bool = True,
    kinds: Collection[str] = schema.KINDS,
    read_events_of: Callable[[str, Sequence[str]], pa.Table] | None = None,
) -> History:
    """Load a run into memory; without packets, genuineness and costs cannot be told.

    Whoever knows that a run has events of some kinds only spares a search for the others, and may
    read the columns of a kind himself.
    """
    read = {*kinds} if packets else {*kinds} - {schema.SEND, schema.RECEIVE}

    def events(kind: str) -> pa.Table:
        if kind not in read:
            return pa.table({})
        if read_events_of is not None:
            return read_events_of(kind, HISTORY_COLUMNS[kind])
        return read_columns(directory, run.run, kind, HISTORY_COLUMNS[kind])

    about = RunFacts(run.run, run.processes, run.complete, faulty=run.faulty, nodes=run.nodes)
    history = history_of(events, about, f"'{directory}', run '{run.run}'")
    lost = lost_since(lost_processes(run.lost), history.multicasts.message)
    return replace(history, lost=lost, message_name=_NamesInFiles(directory, run.run))


class _NamesInFiles:
    """What messages of a run are called where it comes from: read when first asked for, which only
    those do who explain something."""

    def __init__(self, directory: Path, run: str) -> None:
        self._directory = directory
        self._run = run

    def __call__(self, message: int) -> str | None:
        return self._names.get(message)

    @cached_property
    def _names(self) -> dict[int, str]:
        columns = ("origin", "seq", "name")
        tables = [read_columns(self._directory, self._run, kind, columns) for kind in schema.NAMED]
        return names_in(pa.concat_tables(tables, promote_options="default"))


def names_in(rows: pa.Table) -> dict[int, str]:
    """Return what rows of events call their messages."""
    if "name" not in rows.column_names:
        return {}
    named = rows.filter(rows.column("name").is_valid())
    return dict(zip(messages(named).tolist(), named.column("name").to_pylist(), strict=True))
