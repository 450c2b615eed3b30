"""Runs are written into a trace set, as Parquet, block by block.

Files get their final names when the run is closed: names that start with an underscore
are in the making, and readers, ours and Spark's, pass over them. The row in `runs` is
written last, so a run that is listed is whole.

A run that is to be watched while it goes on is published in parts instead: every block of rows
becomes a file of its own at once, numbered in order for each kind of event, and a row in
`started` tells at the beginning what is being run.
"""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from flexgroup.core.errors import UsageError
from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK
from flexgroup.trace import schema
from flexgroup.trace.recorder import Sink
from flexgroup.trace.rows import COLUMNS, TYPES
from flexgroup.trace.run import Run

_ABOUT_PACKETS = (schema.SEND, schema.RECEIVE)
_ABOUT_MESSAGES = (schema.MULTICAST, schema.DELIVER, *_ABOUT_PACKETS)

_WRITTEN_FOR = {
    **dict.fromkeys(("process", "step", "time"), schema.KINDS),
    "payload_bytes": _ABOUT_MESSAGES,
    "depth": (schema.DELIVER, *_ABOUT_PACKETS),
    "header_bytes": _ABOUT_PACKETS,
    "peer": (schema.SUSPECT, *_ABOUT_PACKETS),
    "sent": (schema.RECEIVE,),
    "queued": (schema.RECEIVE,),
}
"""The kinds of events for which a column of the event log is written as it is."""

_INTEGER_COLUMNS = [
    "process", "step", "time", "origin", "seq", "peer", "depth",
    "header_bytes", "payload_bytes", "sent", "queued",
]  # fmt: skip

# Texts are handed over as dictionaries, which the Parquet writer takes as they are: written
# as plain texts, they would be looked up again row by row. In the file they are strings.
_WRITTEN_COLUMNS = pa.schema(
    [
        field.with_type(pa.dictionary(pa.int32(), field.type))
        if field.name in schema.TEXTS
        else field
        for field in schema.RECORDED
    ]
)

CHECKSUMS = {"write_page_checksum": True}
"""Readers find out with them whether a bit was flipped."""

DTYPES = {"i": "<i4", "q": "<i8"}
"""What numpy calls the types that the columns of the event log have (`TYPES`)."""

Column = NDArray[np.signedinteger]
Block = dict[str, Column]
"""Rows of the event log, by column."""
Labels = list[tuple[str | None, str | None]]
DestinationSets = list[tuple[int, ...]]


def run_file(run: str) -> str:
    return f"{run}.parquet"


STARTED = "started"
"""The folder of runs that have begun, beside `runs`, which has those that are over."""

LONGEST_NAME = 200
"""The name of a run has at most so many bytes: that of a file, which is longer, may have 255."""


def part_file(run: str, number: int) -> str:
    return f"{run}-part-{number:06}.parquet"


def prepare_trace_set(directory: Path, run: str, force: bool = False) -> None:
    """Make sure that this run can be written there; refuse to overwrite it unless forced."""
    if not run or run[0] in "._" or "/" in run or "\0" in run or len(run.encode()) > LONGEST_NAME:
        raise UsageError(
            f"a run cannot be called '{run}', which names files: write 1 to {LONGEST_NAME} bytes "
            "without a slash, and no dot or underscore in front"
        )
    make_folders(directory)
    if (directory / "runs" / run_file(run)).exists() and not force:
        raise UsageError(
            f"'{directory}' already holds run '{run}'; choose another --out, or add --force"
        )


def make_folders(directory: Path, *more: str) -> None:
    """Make the folders of a trace set, as far as they are missing, and see that one may write."""
    try:
        for folder in ("runs", "events", *more):
            (directory / folder).mkdir(parents=True, exist_ok=True)
        probe = directory / "runs" / "_probe"
        probe.touch()
        probe.unlink(missing_ok=True)  # others may make the same set at the same time
    except OSError as error:
        raise UsageError(
            f"cannot write a trace into '{directory}': {error.strerror or error}; "
            "choose a directory that you may write to"
        ) from None


class TraceWriter(Sink):
    """Writes the events of one run as they come, and its row in `runs` at the end.

    With `in_parts`, what was taken can be read at once, in parts of the size it was handed over.
    """

    def __init__(
        self, directory: Path, run: str, force: bool = False, in_parts: bool = False
    ) -> None:
        prepare_trace_set(directory, run, force)
        self.directory = directory
        self.run = run
        self.in_parts = in_parts
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._parts: dict[str, int] = {}
        self._events = Counter[str]()
        if in_parts:
            # What is listed must be whole, and this run is not any more.
            (directory / "runs" / run_file(run)).unlink(missing_ok=True)
            for kind in schema.KINDS:
                self._final(kind).unlink(missing_ok=True)
                self._remove_parts(kind)

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

    def take(self, columns: list[bytes], labels: Labels, destination_sets: DestinationSets) -> None:
        for kind, table in event_tables(self.run, columns, labels, destination_sets):
            self._writer(kind).write_table(table)
            self._events[kind] += table.num_rows
            if self.in_parts:
                self._publish(kind)

    def announce(self, run: Run) -> None:
        """Tell what is being run, before it is over."""
        (self.directory / STARTED).mkdir(exist_ok=True)
        write_run(self.directory, replace(run, outcome=schema.RUNNING), STARTED)

    def close(self, run: Run) -> None:
        """Give the files their final names and write the row that describes the run."""
        for kind, writer in self._writers.items():
            writer.close()
            self._in_the_making(kind).replace(self._final(kind))
        for kind in schema.KINDS:
            if kind not in self._writers:
                self._final(kind).unlink(missing_ok=True)
            if not self.in_parts:
                self._remove_parts(kind)
        write_run(self.directory, replace(run, events=as_json(self._events)))

    def abandon(self) -> None:
        """Remove what was written of a run that will not be finished."""
        for kind, writer in self._writers.items():
            writer.close()
            self._in_the_making(kind).unlink(missing_ok=True)
        for kind in self._parts:
            self._remove_parts(kind)

    def _publish(self, kind: str) -> None:
        number = self._parts.get(kind, 0)
        self._writers.pop(kind).close()
        self._in_the_making(kind).replace(self._part(kind, number))
        self._parts[kind] = number + 1

    def _remove_parts(self, kind: str) -> None:
        """Remove the parts of a run, the last first, so that whoever is interrupted leaves no gap.

        Names are tried one after the other, since the folder may hold the parts of many runs."""
        parts: list[Path] = []
        while (path := self._part(kind, len(parts))).exists():
            parts.append(path)
        for path in reversed(parts):
            path.unlink()

    def _part(self, kind: str, number: int) -> Path:
        return self._final(kind).with_name(part_file(self.run, number))

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
                _WRITTEN_COLUMNS,
                compression="snappy",
                use_dictionary=schema.TEXTS,
                column_encoding=dict.fromkeys(_INTEGER_COLUMNS, "DELTA_BINARY_PACKED"),
                write_statistics=["process", "step", "time"],
                store_schema=False,
                **CHECKSUMS,
            )
        return writer


def write_run(directory: Path, run: Run, folder: str = "runs", writer: str = "") -> None:
    """Write the row of a run; several writers of the same one must have different names."""
    table = pa.Table.from_pylist([vars(run)], schema=schema.RUN_COLUMNS)
    path = directory / folder / f"_{writer}{run_file(run.run)}"
    pq.write_table(table, path, compression="none", store_schema=False, **CHECKSUMS)
    path.replace(directory / folder / run_file(run.run))


def write_part(directory: Path, kind: str, name: str, table: pa.Table) -> None:
    """Write events of one kind as a file of this name that can be read at once."""
    folder = directory / "events" / f"event={kind}"
    folder.mkdir(parents=True, exist_ok=True)
    making = folder / f"_{name}"
    pq.write_table(table, making, compression="snappy", store_schema=False, **CHECKSUMS)
    making.replace(folder / name)


def first_missing_step(directory: Path, prefix: str, steps: int) -> int:
    """The first of so many steps of a process that is in none of the files whose names begin so,
    which have no later ones; `steps` if none is missing."""
    parts = [part for kind in schema.KINDS for part in _parts(directory, kind, prefix)]
    if sum([pq.read_metadata(part).num_rows for part in parts]) == steps:
        return steps
    held = np.zeros(steps + 1, dtype=bool)
    for part in parts:
        held[pq.read_table(part, columns=["step"], partitioning=None)["step"].to_numpy()] = True
    return int(np.argmin(held))


def _parts(directory: Path, kind: str, prefix: str) -> list[Path]:
    folder = directory / "events" / f"event={kind}"
    return sorted(folder.glob(f"{glob.escape(prefix)}*.parquet"))


def keep_steps(directory: Path, kind: str, prefix: str, steps: int) -> int:
    """Keep only events before this step in files whose names begin so, which have ascending steps;
    return how many of the files are left."""
    parts = _parts(directory, kind, prefix)
    while parts:
        table = pq.read_table(parts[-1], partitioning=None)
        kept = table.filter(pc.less(table["step"], steps))
        if kept.num_rows:
            if kept.num_rows < table.num_rows:
                write_part(directory, kind, parts[-1].name, kept)
            break
        parts.pop().unlink()
    return len(parts)


def blocks_by_kind(columns: list[bytes]) -> Iterator[tuple[str, Block]]:
    """Yield each kind of event that occurs in drained columns, with its rows: views and crashes
    before deliveries, which is the order in which whoever watches has to see parts appear."""
    block: Block = {
        name: np.frombuffer(column, dtype=DTYPES[type_])
        for name, type_, column in zip(COLUMNS, TYPES, columns, strict=True)
    }
    kinds = np.unique(block["kind"])
    if len(kinds) == 1:
        yield schema.KINDS[kinds[0]], block
        return
    for number in kinds[::-1]:
        chosen = np.flatnonzero(block["kind"] == number)
        yield schema.KINDS[number], {name: column[chosen] for name, column in block.items()}


def event_tables(
    run: str, columns: list[bytes], labels: Labels, destination_sets: DestinationSets
) -> Iterator[tuple[str, pa.Table]]:
    """Yield each kind of event that occurs in drained columns, with its rows as a table of the
    trace schema."""
    for kind, block in blocks_by_kind(columns):
        yield kind, _event_table(run, kind, block, labels, destination_sets)


def _event_table(
    run: str, kind: str, block: Block, labels: Labels, destination_sets: DestinationSets
) -> pa.Table:
    count = len(block["process"])
    columns: dict[str, pa.Array] = {
        name: pa.array(block[name]) for name, kinds in _WRITTEN_FOR.items() if kind in kinds
    }
    columns["run"] = pa.DictionaryArray.from_arrays(
        np.zeros(count, dtype=np.int32), pa.array([run])
    )
    if kind in _ABOUT_MESSAGES:
        message = block["message"]
        none = message < 0
        mask = none if none.any() else None
        columns["origin"] = pa.array((message & ORIGIN_MASK).astype(np.int32), mask=mask)
        columns["seq"] = pa.array(message >> ORIGIN_BITS, mask=mask)
    if kind == schema.MULTICAST:
        sets = pa.array(destination_sets, pa.list_(pa.int32()))
        columns["destinations"] = sets.take(pa.array(block["label"]))
    else:
        columns["packet"] = _texts(block["label"], [packet for packet, _ in labels])
        columns["detail"] = _texts(block["label"], [detail for _, detail in labels])
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(count, field.type)
        for field in _WRITTEN_COLUMNS
    ]
    return pa.Table.from_arrays(arrays, schema=_WRITTEN_COLUMNS)


def _texts(numbers: Column, texts: list[str | None]) -> pa.Array:
    """Return the text of each number, as a dictionary that has each text once."""
    distinct = sorted({text for text in texts if text is not None})
    if not distinct:
        return pa.nulls(len(numbers), pa.dictionary(pa.int32(), pa.string()))
    code_of = {text: code for code, text in enumerate(distinct)}
    codes = np.array([-1 if text is None else code_of[text] for text in texts], dtype=np.int32)
    chosen = codes[numbers]
    none = chosen < 0
    return pa.DictionaryArray.from_arrays(
        pa.array(chosen, mask=none if none.any() else None), pa.array(distinct, pa.string())
    )


def as_json(value: object) -> str:
    """Return JSON with sorted keys: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
