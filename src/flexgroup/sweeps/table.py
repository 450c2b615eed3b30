"""Sweeps that end in a table: many small jobs, each of which gives a row or some.

Jobs are done in pieces of a few. The rows of a piece are a Parquet file, which is renamed when it
is whole; a piece whose file is there is finished and not done again. The folder of these files is
the table, for whatever reads Parquet.
"""

from __future__ import annotations

import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.errors import FlexGroupError
from flexgroup.sweeps.folder import refuse_if_unseen, taken_up, write_whole
from flexgroup.sweeps.tasks import MAKING, Progress, nobody, shared_out, watched
from flexgroup.trace.run import SOFTWARE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]

ROWS = "rows"
"""The folder with the table."""


class Sweep(ABC):
    """Many jobs of one kind, as a small description that travels to the executors."""

    columns: ClassVar[pa.Schema]
    protocols: tuple[str, ...]
    """The modules that register the protocols of stacks that are not of this package."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return what tells these jobs from others, as JSON has it."""

    @abstractmethod
    def pieces(self) -> int:
        """Return how many pieces the jobs are divided into; those with low numbers begin first."""

    @abstractmethod
    def begin(self) -> Callable[[int], list[Row]]:
        """Make what all pieces need, on an executor; return what does one of them."""

    may_end_early: ClassVar[bool] = False
    """Whether there may be rows that are enough."""

    def is_enough(self, rows: list[Row]) -> bool:
        """Tell whether nothing is wanted of the pieces behind one with these rows."""
        return False


@dataclass(frozen=True)
class Filled:
    """The rows of a sweep, in the order of its pieces, and how many pieces were there before."""

    rows: list[Row]
    found: int
    done: int


def is_finished(sweep: Sweep, folder: Path) -> bool:
    """Tell whether nothing is left to do."""
    return all(_is_finished(folder, piece) for piece in _wanted(sweep, folder))


def fill_table(
    session: Callable[[], SparkSession], sweep: Sweep, folder: Path, progress: Progress = nobody
) -> Filled:
    """Do the jobs that are not finished, and return the rows of all. Spark is started if
    need be."""
    folder = folder.absolute()
    description = {**sweep.described(), "software": SOFTWARE}
    with taken_up(folder, "a sweep", description):
        (folder / ROWS).mkdir(exist_ok=True)
        shutil.rmtree(folder / MAKING, ignore_errors=True)
        wanted = _wanted(sweep, folder)
        pending = [piece for piece in wanted if not _is_finished(folder, piece)]
        if pending:
            with watched(lambda: _share_finished(folder, wanted), progress):
                _do(session(), sweep, folder, pending)
            shutil.rmtree(folder / MAKING, ignore_errors=True)
        wanted = _wanted(sweep, folder)
        unseen = [piece for piece in wanted if not _is_finished(folder, piece)]
        refuse_if_unseen(folder, len(unseen), "tables", "--spark")
        rows = [row for piece in wanted for row in _read(sweep, folder, piece)]
    return Filled(rows, len(wanted) - len(set(wanted) & set(pending)), len(pending))


def _do(spark: SparkSession, sweep: Sweep, folder: Path, pending: list[int]) -> None:
    def begin() -> Callable[[int], bool]:
        for module in sweep.protocols:
            import_module(module)
        rows_of = sweep.begin()

        def do(number: int) -> bool:
            rows = rows_of(pending[number])
            out = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows, sweep.columns), out)
            write_whole(_file(folder, pending[number]), out.getvalue())
            return sweep.is_enough(rows)

        return do

    try:
        shared_out(spark, len(pending), begin, folder, is_enough=bool)
    except FlexGroupError as problem:
        raise FlexGroupError(f"a job of the sweep failed: {problem}") from None


def _wanted(sweep: Sweep, folder: Path) -> range:
    """Return the pieces up to the first, if there is one, that is finished and enough."""
    wanted = range(sweep.pieces())
    for piece in wanted if sweep.may_end_early else ():
        if _is_finished(folder, piece) and sweep.is_enough(_read(sweep, folder, piece)):
            return range(piece + 1)
    return wanted


def _file(folder: Path, piece: int) -> Path:
    return folder / ROWS / f"{piece:06}.parquet"


def _is_finished(folder: Path, piece: int) -> bool:
    return _file(folder, piece).exists()


def _share_finished(folder: Path, wanted: range) -> float:
    return sum(1 for piece in wanted if _is_finished(folder, piece)) / len(wanted)


def _read(sweep: Sweep, folder: Path, piece: int) -> list[Row]:
    rows: list[Row] = pq.read_table(_file(folder, piece), schema=sweep.columns).to_pylist()
    return rows
