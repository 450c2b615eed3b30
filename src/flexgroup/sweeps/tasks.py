"""A job of Spark with a task for each core, among which pieces of work are shared out.

A Spark task in Python takes a tenth of a second besides its work, which is more than a small piece
takes. So there are only as many tasks as cores, and whichever is done with a piece takes the next
that nobody has: by creating a file, which only one can, on a file system that all of them share.
"""

from __future__ import annotations

import gc
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from flexgroup.core.errors import FlexGroupError
from flexgroup.pipeline.spark.session import executors_are_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

SECONDS_BETWEEN_LOOKS = 0.2

MAKING = "_making"
"""Where things are while they are not whole; readers pass over the name."""

ENOUGH = "enough-"
"""What the file is called, with its number behind it, of a piece after which no more are wanted."""

Progress = Callable[[float], None]
"""Told the share of the work that is finished, from 0 to 1."""

Begin = Callable[[], Callable[[int], T]]
"""Called once in each task, where it makes what all pieces need; gives what does a piece."""


def nobody(share: float) -> None:
    """Tell nobody how far it is."""


def shared_out(
    spark: SparkSession,
    pieces: int,
    begin: Begin[T],
    folder: Path,
    *,
    is_enough: Callable[[T], bool] | None = None,
) -> list[T]:
    """Do so many pieces, begun in order by whichever task is free, and return what each gave.

    Pieces behind one that `is_enough` may be left out.
    """
    from pyspark import TaskContext
    from pyspark.errors import PySparkException

    # Of this job alone: what a killed one claimed does not count.
    claims = folder / MAKING / f"claims-{uuid4().hex}"

    def do_some(numbers: Iterable[int]) -> Iterator[T]:
        if not gc.get_freeze_count():
            # Spark's workers search all objects for garbage after each task; with ours and its
            # modules loaded that is longer than a small piece.
            gc.freeze()
        task = TaskContext.get()
        assert task is not None
        owner, is_retry = str(task.partitionId()), task.attemptNumber() > 0
        do = begin()
        for number in claimed(claims, pieces, owner, is_retry=is_retry):
            if is_enough is not None and _is_left_out(claims, number):
                return
            done = do(number)
            if is_enough is not None and is_enough(done):
                (claims / f"{ENOUGH}{number}").touch()
            yield done

    tasks = min(pieces, tasks_at_once(spark))
    try:
        return spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(do_some).collect()
    except PySparkException as problem:
        raise FlexGroupError(_cause(problem)) from None
    finally:
        shutil.rmtree(claims, ignore_errors=True)


def claimed(folder: Path, pieces: int, owner: str, *, is_retry: bool = False) -> Iterator[int]:
    """Yield the numbers of the pieces that fall to this owner, each claimed when it is asked for.

    What an owner reports is lost if it dies. So whoever tries again under the same name gets all
    that the one before had claimed, and what somebody claimed who died before writing a name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(pieces):
        claim = folder / str(number)
        if _is_created(claim, owner) or (is_retry and claim.read_text() in (owner, "")):
            yield number


def _is_created(claim: Path, owner: str) -> bool:
    try:
        with claim.open("x") as file:
            file.write(owner)
    except FileExistsError:
        return False
    return True


def _is_left_out(claims: Path, number: int) -> bool:
    return any(int(path.name.removeprefix(ENOUGH)) < number for path in claims.glob(f"{ENOUGH}*"))


def tasks_at_once(spark: SparkSession) -> int:
    """One for each core; on a cluster some more, for executors that come late. A task that finds
    nothing left to do costs little."""
    cores = spark.sparkContext.defaultParallelism
    return cores if executors_are_here(spark) else 4 * cores


@contextmanager
def watched(finished: Callable[[], float], progress: Progress) -> Iterator[None]:
    """Tell the progress while a job runs, by asking again and again which share is finished."""
    over = threading.Event()

    def look() -> None:
        share = 0.0
        while share < 1:
            share = finished()
            progress(share)
            if over.wait(SECONDS_BETWEEN_LOOKS):
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _cause(problem: Exception) -> str:
    """The last line of the executor's traceback: what went wrong there."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    errors = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    return errors[-1].partition(": ")[2] if errors else lines[0]
