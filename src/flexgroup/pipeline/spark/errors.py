"""What Spark says about files it cannot read, as an error that a person can act upon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import unquote

from flexgroup.core.errors import UsageError

T = TypeVar("T")

_FILE = re.compile(r"while reading file (\S.*?\.parquet)\.")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ?(.*)")
_OURS = re.compile(r"^flexgroup\.core\.errors\.UsageError: (.+)$", re.MULTILINE)
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


def explained(error: Exception, path: str) -> UsageError:
    """Return an error that says what to do about what Spark said."""
    text, condition = str(error), condition_of(error)
    told_by_a_task = _OURS.search(text)
    if told_by_a_task:
        return UsageError(told_by_a_task[1])
    if condition == "PATH_NOT_FOUND":
        return UsageError(f"'{path}' does not exist; give the directory of a trace set")
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
    return UsageError(
        f"Spark cannot read '{path}': {_reason(text)}; "
        "check the path, and that this Spark can reach it"
    )


def _reason(text: str) -> str:
    found = _CONDITION.search(text)
    if found:
        return found[2].strip() or found[1]
    java = _JAVA.search(text)
    return (java[1] if java else text.strip().splitlines()[0]).rstrip(".")
