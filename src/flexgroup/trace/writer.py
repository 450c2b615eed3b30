"""Writing a run into a trace set, as Parquet, block by block.

Files get their final names when the run is closed: names that start with an underscore
are in the making, and readers, ours and Spark's, pass over them. The row in `runs` is
written last, so a run that is listed is whole.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.core.message import SEQ_BITS
from flexgroup.trace import schema
from flexgroup.trace.history import Ints
from flexgroup.trace.recorder import Sink
from flexgroup.trace.rows import WIDTH

# Positions of the integers in a row of the event log.
(KIND, PROCESS, STEP, TIME, MESSAGE, PEER, LABEL, DEPTH, HEADER, PAYLOAD, SENT, QUEUED) = range(
    WIDTH
)

_ABOUT_PACKETS = frozenset({schema.SEND, schema.RECEIVE})
_ABOUT_MESSAGES = frozenset({schema.MULTICAST, schema.DELIVER}) | _ABOUT_PACKETS
_WITH_DEPTH = frozenset({schema.DELIVER}) | _ABOUT_PACKETS

_DICTIONARY_COLUMNS = ["run", "process", "origin", "peer", "packet", "depth", "detail"]
_DELTA_COLUMNS = ["step", "time", "seq", "sent"]

Labels = list[tuple[str | None, str | None]]
DestinationSets = list[tuple[int, ...]]


def run_file(run: str) -> str:
    return f"{run}.parquet"


def prepare_trace_set(directory: Path, run: str, force: bool = False) -> None:
    """Make sure that this run can be written there; refuse to overwrite it unless forced."""
    try:
        (directory / "runs").mkdir(parents=True, exist_ok=True)
        (directory / "events").mkdir(exist_ok=True)
        probe = directory / "runs" / "_probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"cannot write a trace into '{directory}': {error.strerror or error}; "
            "choose a directory that you may write to"
        ) from None
    if (directory / "runs" / run_file(run)).exists() and not force:
        raise UsageError(
            f"'{directory}' already holds run '{run}'; choose another --out, or add --force"
        )


class TraceWriter(Sink):
    """Writes the events of one run as they come, and its row in `runs` at the end."""

    def __init__(self, directory: Path, run: str, force: bool = False) -> None:
        prepare_trace_set(directory, run, force)
        self.directory = directory
        self.run = run
        self._writers: dict[str, pq.ParquetWriter] = {}
        self.rows = 0

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abandon()

    def take(self, rows: bytes, labels: Labels, destination_sets: DestinationSets) -> None:
        block = np.frombuffer(rows, dtype="<i8").reshape(-1, WIDTH)
        self.rows += len(block)
        for number, kind in enumerate(schema.KINDS):
            chosen = np.flatnonzero(block[:, KIND] == number)
            if len(chosen):
                part = block[chosen]
                self._writer(kind).write_table(
                    event_table(self.run, kind, part, labels, destination_sets)
                )

    def close(self, description: dict[str, object]) -> None:
        """Give the files their final names and write the row that describes the run."""
        for kind, writer in self._writers.items():
            writer.close()
            self._in_the_making(kind).replace(self._final(kind))
        for kind in schema.KINDS:
            if kind not in self._writers:
                self._final(kind).unlink(missing_ok=True)
        write_run(self.directory, self.run, description)

    def abandon(self) -> None:
        """Remove what was written of a run that will not be finished."""
        for kind, writer in self._writers.items():
            writer.close()
            self._in_the_making(kind).unlink(missing_ok=True)

    def _final(self, kind: str) -> Path:
        return self.directory / "events" / f"event={kind}" / run_file(self.run)

    def _in_the_making(self, kind: str) -> Path:
        return self._final(kind).with_name("_" + run_file(self.run))

    def _writer(self, kind: str) -> pq.ParquetWriter:
        writer = self._writers.get(kind)
        if writer is None:
            path = self._in_the_making(kind)
            path.parent.mkdir(parents=True, exist_ok=True)
            writer = self._writers[kind] = pq.ParquetWriter(
                path,
                schema.EVENT_COLUMNS,
                compression="zstd",
                compression_level=1,
                use_dictionary=_DICTIONARY_COLUMNS,
                column_encoding=dict.fromkeys(_DELTA_COLUMNS, "DELTA_BINARY_PACKED"),
                write_statistics=["run", "process", "step", "time"],
                store_schema=False,
            )
        return writer


def write_run(directory: Path, run: str, description: dict[str, object]) -> None:
    row = {name: [description.get(name)] for name in schema.RUN_COLUMNS.names}
    row["run"] = [run]
    row["schema_version"] = [schema.VERSION]
    table = pa.table(row, schema=schema.RUN_COLUMNS)
    path = directory / "runs" / f"_{run_file(run)}"
    pq.write_table(table, path, compression="none", store_schema=False)
    path.replace(directory / "runs" / run_file(run))


def event_table(
    run: str, kind: str, rows: Ints, labels: Labels, destination_sets: DestinationSets
) -> pa.Table:
    """Rows of one kind as a table of the trace schema."""
    count = len(rows)
    columns: dict[str, pa.Array] = {
        "run": pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), [run]),
        "process": _narrow(rows, PROCESS),
        "step": _wide(rows, STEP),
        "time": _wide(rows, TIME),
    }
    if kind in _ABOUT_MESSAGES:
        message = rows[:, MESSAGE]
        none = message < 0
        columns["origin"] = pa.array((message >> SEQ_BITS).astype(np.int32), mask=none)
        columns["seq"] = pa.array(message & ((1 << SEQ_BITS) - 1), mask=none)
        columns["payload_bytes"] = _narrow(rows, PAYLOAD)
    if kind in _WITH_DEPTH:
        columns["depth"] = _narrow(rows, DEPTH)
    if kind in _ABOUT_PACKETS:
        columns["header_bytes"] = _narrow(rows, HEADER)
    if kind in _ABOUT_PACKETS or kind == schema.SUSPECT:
        columns["peer"] = _narrow(rows, PEER)
    if kind == schema.RECEIVE:
        columns["sent"] = _wide(rows, SENT)
        columns["queued"] = _wide(rows, QUEUED)
    if kind == schema.MULTICAST:
        columns["destinations"] = _lists(rows, destination_sets)
    else:
        columns["packet"] = _texts(rows, [packet for packet, _ in labels])
        columns["detail"] = _texts(rows, [detail for _, detail in labels])
    arrays = []
    for field in schema.EVENT_COLUMNS:
        array = columns.get(field.name)
        if array is None:
            array = pa.nulls(count, field.type)
        elif isinstance(array, pa.DictionaryArray):
            array = array.cast(field.type)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema.EVENT_COLUMNS)


def _narrow(rows: Ints, column: int) -> pa.Array:
    return pa.array(rows[:, column].astype(np.int32))


def _wide(rows: Ints, column: int) -> pa.Array:
    return pa.array(np.ascontiguousarray(rows[:, column]))


def _texts(rows: Ints, texts: list[str | None]) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(rows[:, LABEL].astype(np.int32)))


def _lists(rows: Ints, destination_sets: DestinationSets) -> pa.Array:
    return pa.array(destination_sets, pa.list_(pa.int32())).take(
        pa.array(rows[:, LABEL].astype(np.int32))
    )


def as_json(value: object) -> str:
    """JSON with sorted keys: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
