"""What Spark says when it fails, as an error that a person can act upon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

from flexgroup.core.errors import UsageError

T = TypeVar("T")

_FILE = re.compile(r"while reading file (\S.*?\.parquet)\.")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ?(.*)")
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_OURS = re.compile(r"^flexgroup\.core\.errors\.UsageError: (.+)$", re.MULTILINE)
_PYTHON = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)$", re.MULTILINE
)
"""A traceback of Python, with the line that says what happened."""

_JAVA = re.compile(r"^: ([\w.$]+(?:Exception|Error)(?:: .*)?)", re.MULTILINE)


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn Spark's complaints about what it reads from `path` into a UsageError."""
    try:
        yield
    except Exception as error:
        if not _is_of_spark(error):
            raise
        raise explained(error, path) from None


def _is_of_spark(error: Exception) -> bool:
    # By name, because py4j is there only where Spark runs in this process.
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def condition_of(error: Exception) -> str:
    """Return the name that Spark gives this kind of error, or nothing."""
    found = _CONDITION.search(str(error))
    return found[1] if found else ""


def unless_missing(read: Callable[[], T]) -> T | None:
    """Return what this function reads, or None if there is nothing at its path."""
    try:
        return read()
    except Exception as error:
        if condition_of(error) != "PATH_NOT_FOUND":
            raise
        return None


@dataclass(frozen=True)
class Cause:
    """A cause of failure that has nothing to do with what was read."""

    sign: str
    """What is found in what Spark says, as a regular expression."""
    told: str
    """What is wrong, and what to do."""


MORE_MEMORY = (
    "give it more (spark.driver.memory, spark.executor.memory, and for Python"
    " spark.executor.pyspark.memory), use fewer cores at a time, or check fewer properties with"
    " --property"
)

CAUSES = (
    Cause(
        r"No space left on device|Errno 28\b|Disk quota exceeded",
        "a disk is full where Spark works: make room, or name another folder in spark.local.dir"
        " or SPARK_LOCAL_DIRS",
    ),
    Cause(
        r"OutOfMemoryError|GC overhead limit|beyond (?:physical|virtual) memory limits"
        r"|exceeding memory limits|OOMKilled",
        f"Java has run out of memory: {MORE_MEMORY}",
    ),
    Cause(
        r"^(?:[\w.]+\.)?_?(?:Array|Arrow)?MemoryError\b|malloc of size \d+ failed",
        f"a Python worker has run out of memory: {MORE_MEMORY}",
    ),
    Cause(
        r"Python worker exited unexpectedly|exit(?:ed with)? (?:code|status):? 137",
        "a worker was killed, as the system does with what takes the most memory when there is no"
        f" more: {MORE_MEMORY}",
    ),
    Cause(
        r"ModuleNotFoundError: No module named '([\w.]+)'",
        "Python on the executors has no module '{0}': install what FlexGroup needs there (numpy,"
        " scipy, pyarrow), and name that Python in spark.pyspark.python or PYSPARK_PYTHON",
    ),
    Cause(
        r"PYTHON_VERSION_MISMATCH",
        "the executors have another version of Python than the driver: name one in"
        " spark.pyspark.python or PYSPARK_PYTHON",
    ),
    Cause(
        r"(?:AccessControlException|AccessDenied\w*|Permission denied)(?:[:,] *(.{1,200}))?",
        "Spark may not read or write that ({0}): see to the permissions of the user that Spark"
        " runs as, or to its credentials",
    ),
)
"""What may go wrong on the way, whatever is read; the first that fits is told."""

_UNREACHABLE = re.compile(
    r"UnsupportedFileSystemException|No FileSystem for scheme|UnknownHostException"
    r"|ConnectException|NoRouteToHost|ClassNotFoundException.*FileSystem|FileSystem not found"
)


def explained(error: Exception, path: str) -> UsageError:
    """Return an error that says what to do about what Spark said."""
    text, condition = _all_that_it_says(error), condition_of(error)
    told_by_a_task = _OURS.search(text)
    if told_by_a_task:
        return UsageError(told_by_a_task[1])
    # Where several stages fail, Spark says only how many did, and the trace below says why.
    raised = _RAISED.search(text)
    if raised:
        return UsageError(raised[1])
    if condition == "PATH_NOT_FOUND":
        return UsageError(f"'{path}' does not exist; give the directory of a trace set")
    for cause in CAUSES:
        found = re.search(cause.sign, text, re.MULTILINE)
        if found:
            what = cause.told.format(*(group or "permission denied" for group in found.groups()))
            return UsageError(f"Spark failed while it worked on '{path}': {what}")
    file = _FILE.search(text)
    if file and condition.endswith("COLUMN_DATA_TYPE_MISMATCH"):
        mismatch = re.search(r"column \[(\w+)\]. Expected Spark type (\S+), actual .* (\w+)", text)
        what = f"column '{mismatch[1]}' is {mismatch[3]}, not {mismatch[2]}" if mismatch else ""
        return UsageError(
            f"'{unquote(file[1])}': {what or 'a column has another type'}; "
            "see docs/trace.md for the columns"
        )
    if file:
        return UsageError(
            f"cannot read '{unquote(file[1])}' as Parquet; the file is truncated, damaged or of "
            "another kind: remove it or record the run again"
        )
    if _UNREACHABLE.search(text):
        return UsageError(
            f"Spark cannot read '{path}': {_reason(text)}; "
            "check the path, and that this Spark can reach it"
        )
    return UsageError(f"Spark failed while it worked on '{path}', and said: {_reason(text)}")


def _all_that_it_says(error: Exception) -> str:
    """Return the text of an error with the traces of Java that PySpark keeps apart."""
    return f"{error}\n{getattr(error, '_stackTrace', None) or ''}"


def _reason(text: str) -> str:
    python = _PYTHON.findall(text)
    if python:
        return str(python[-1])
    found = _CONDITION.search(text)
    if found:
        return found[2].strip() or found[1]
    java = _JAVA.search(text)
    return (java[1] if java else text.strip().splitlines()[0]).rstrip(".")
