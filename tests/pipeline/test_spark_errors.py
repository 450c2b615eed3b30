"""Each cause for which Spark fails has an error of its own, which says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.spark.errors import explained, readable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Batches = Iterator[pa.RecordBatch]

JOB = "Job aborted due to stage failure: Task 3 in stage 7.0 failed 4 times, most recent failure: "
WORKER = JOB + "Lost task 3.3 in stage 7.0 (TID 40) (10.0.0.7 executor 2): "


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            WORKER + "java.lang.OutOfMemoryError: Java heap space",
            "Java has run out of memory",
        ),
        (
            JOB
            + "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: "
            "Container from a bad node: exit status: 137. Diagnostics: Killed by external signal",
            "a worker was killed, as the system does",
        ),
        (
            WORKER + "java.io.IOException: No space left on device\n\tat java.base/java.io.File",
            "a disk is full where Spark works: make room",
        ),
        (
            WORKER + "org.apache.spark.api.python.PythonException: Traceback (most recent call "
            'last):\n  File "worker.py", line 5, in main\nModuleNotFoundError: No module named '
            "'numpy'\n",
            "Python on the executors has no module 'numpy': install",
        ),
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file hdfs://n/a.parquet. "
            "SQLSTATE: KD001\nCaused by: org.apache.hadoop.security.AccessControlException: "
            "Permission denied: user=ann, access=READ",
            "Spark may not read or write that (Permission denied: user=ann, access=READ): see to",
        ),
        (
            "An error occurred while calling o1.parquet.\n: java.net.UnknownHostException: nowhere",
            "Spark cannot read 'traces': java.net.UnknownHostException: nowhere; check the path",
        ),
        ("[SOMETHING_ELSE] The moon is full. SQLSTATE: 12345", "said: The moon is full."),
    ],
)
def test_what_is_known_is_told(said: str, told: str) -> None:
    error = str(explained(RuntimeError(said), "traces"))
    assert told in error
    assert "\n" not in error
    assert ("check the path" in error) == ("check the path" in told)


def test_what_a_row_breaks_is_told_though_several_stages_failed_of_it() -> None:
    error = RuntimeError("Multiple failures (5) in stage materialization:")
    reason = "run 'r': column 'step' of a deliver event is -1, and must not be negative"
    trace = f"\tat org.apache.spark\nCaused by: java.lang: [USER_RAISED_EXCEPTION] {reason}"
    error._stackTrace = trace + " SQLSTATE: P0001\n"  # type: ignore[attr-defined]
    assert str(explained(error, "traces")) == reason


def out_of_memory(batches: Batches) -> Batches:
    raise MemoryError


def killed(batches: Batches) -> Batches:
    import os

    os._exit(137)


def wrong(batches: Batches) -> Batches:
    yield pa.RecordBatch.from_pydict({"id": [len(None)]})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (out_of_memory, "a Python worker has run out of memory: give it more"),
        (killed, "a worker was killed, as the system does with what takes the most memory"),
        (wrong, "and said: TypeError: object of type 'NoneType' has no len()"),
    ],
)
def test_what_happens_in_a_worker_is_told(
    spark: SparkSession, work: Callable[[Batches], Batches], told: str
) -> None:
    with pytest.raises(UsageError) as caught, readable("traces"):
        spark.range(1).mapInArrow(work, "id long").collect()
    assert str(caught.value).startswith("Spark failed while it worked on 'traces'")
    assert told in str(caught.value)
