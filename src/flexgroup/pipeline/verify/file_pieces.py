"""Parts of files that tasks open themselves, which spares most of the work where it is possible."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.packed_rows import Batches
from flexgroup.pipeline.reading.local_files import LocalFiles
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.trace.history import Ints
from flexgroup.trace.reader import parquet_file, unreadable
from flexgroup.trace.rules import refuse_broken_rules

ROWS_AT_ONCE = 1 << 19

ROWS_A_TASK = 2_000_000
"""How many rows a task reads from files, roughly."""


@dataclass(frozen=True)
class Piece:
    """A part of a file for one task: some of its row groups."""

    path: str
    kind: str
    row_groups: list[int]


PIECES = pa.schema([pa.field("place", pa.int32()), pa.field("pieces", pa.string())])


def read_pieces(
    batches: Batches, numbers: Mapping[str, int], columns: Callable[[str], Sequence[str]]
) -> Iterator[tuple[str, Ints, pa.Table]]:
    """Yield the events of the runs with these names from PIECES of files: of which kind they are,
    the number of each one's run, and the columns that are wanted of that kind."""
    for batch in batches:
        for pieces in batch.column("pieces").to_pylist():
            for told in json.loads(pieces):
                piece = Piece(*told)
                yield from _read(piece, numbers, ["run", *columns(piece.kind)])


def _read(
    piece: Piece, numbers: Mapping[str, int], columns: list[str]
) -> Iterator[tuple[str, Ints, pa.Table]]:
    path = Path(piece.path)
    try:
        with parquet_file(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, piece.row_groups, columns):
                refuse_broken_rules(path, piece.kind, batch)
                table, number = _of_runs(pa.Table.from_batches([batch]), numbers)
                if table.num_rows:
                    yield piece.kind, number, table
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None


def _of_runs(table: pa.Table, numbers: Mapping[str, int]) -> tuple[pa.Table, Ints]:
    """Return the rows of the runs that are wanted, and the number of each row's run."""
    column = table.column("run").unify_dictionaries().combine_chunks()
    names = column.dictionary.to_pylist()
    number_of = np.array([numbers.get(name, -1) for name in names], dtype=np.int64)
    number = number_of[column.indices.to_numpy(zero_copy_only=False)]
    wanted = number >= 0
    if wanted.all():
        return table, number
    return table.filter(pa.array(wanted)), number[wanted]


def pieces_of(files: LocalFiles, kinds: Iterable[str], runs: Container[str]) -> list[list[Piece]]:
    """Return the parts of files that may hold events of these kinds of these runs, bundled for
    tasks of about equal weight."""
    bundles: list[list[Piece]] = []
    room = 0
    for kind in kinds:
        for name in sorted(files.rows.get(kind, ())):
            if name in files.names and name not in runs:
                continue  # it holds another run
            path = files.directory.absolute() / "events" / f"event={kind}" / f"{name}.parquet"
            footer = pq.read_metadata(path)
            for number in range(footer.num_row_groups):
                rows = footer.row_group(number).num_rows
                if rows > room:
                    bundles.append([])
                    room = ROWS_A_TASK
                room -= rows
                if bundles[-1] and bundles[-1][-1].path == str(path):
                    bundles[-1][-1].row_groups.append(number)
                else:
                    bundles[-1].append(Piece(str(path), kind, [number]))
    return bundles


def pieces_table(bundles: Iterable[list[Piece]]) -> pa.Table:
    """Return rows of PIECES, a place for each bundle."""
    rows = [
        {"place": place, "pieces": json.dumps([astuple(piece) for piece in bundle])}
        for place, bundle in enumerate(bundles)
    ]
    return pa.Table.from_pylist(rows, PIECES)


def frame_of_pieces(
    traces: TraceSet, runs: Collection[int], kinds: Iterable[str]
) -> tuple[DataFrame, dict[str, int]]:
    """Return PIECES of the files of a trace set that tasks can read, a task for each place, and the
    numbers of these runs by name."""
    assert traces.files is not None
    numbers = {traces.described[number].run: number for number in runs}
    table = pieces_table(pieces_of(traces.files, kinds, numbers))
    frame = traces.spark.createDataFrame(table)
    return frame.repartitionById(table.num_rows, f.col("place")), numbers
