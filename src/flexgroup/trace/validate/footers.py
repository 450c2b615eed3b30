"""A quick look at every file of a trace set, before anyone relies on them.

Only footers and the first rows are read, a millisecond or so a file: whether the file is whole,
whether its columns are those of the schema, and whether two files tell of the same events. Damage
further inside is left to the validator, and to whoever reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.trace import schema
from flexgroup.trace.reader import parquet_files, refuse_bad_columns, unreadable

LOOKED_AT = 256
"""Rows at the beginning of a file. Two recordings under one name begin alike: with a multicast at
step 0 of some process."""


@dataclass(frozen=True)
class Beginning:
    """The first rows of a file: the run of the first, and process and step of all of that run."""

    path: Path
    run: str
    events: frozenset[tuple[int, int]]


def checked_kinds(directory: Path, runs: Iterable[str]) -> frozenset[str]:
    """The kinds of events that have files, all of which were looked at."""
    files = event_files(directory)
    todo = [(kind, path) for kind, paths in files.items() for path in paths]
    with ThreadPoolExecutor() as threads:
        beginnings = list(threads.map(_beginning, *zip(*todo, strict=True))) if todo else []
    names = frozenset(runs)
    for kind in files:
        _refuse_mixed(
            [
                beginning
                for (of_kind, _), beginning in zip(todo, beginnings, strict=True)
                if of_kind == kind and beginning is not None
            ],
            names,
        )
    return frozenset(files)


def event_files(directory: Path) -> dict[str, list[Path]]:
    """Return the finished files of each kind of event that has any."""
    found = {}
    for folder in sorted((directory / "events").glob("event=*")):
        kind = folder.name.removeprefix("event=")
        paths = parquet_files(folder)
        if paths and kind not in schema.KINDS:
            raise UsageError(unknown_kind(str(folder), kind))
        if paths:
            found[kind] = paths
    return found


def unknown_kind(folder: str, kind: str) -> str:
    return (
        f"'{folder}': there are no events of kind '{kind}'; the kinds are: "
        f"{', '.join(schema.KINDS)}; rename the directory, or remove it"
    )


def _beginning(kind: str, path: Path) -> Beginning | None:
    try:
        with pq.ParquetFile(path, buffer_size=1 << 16) as file:
            required = schema.required_columns(kind)
            refuse_bad_columns(path, file.schema_arrow, schema.EVENT_COLUMNS, required)
            batches = file.iter_batches(LOOKED_AT, columns=["run", "process", "step"])
            rows = next(batches, None)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None
    if rows is None or rows.num_rows == 0:
        return None
    columns = (rows.column(name).to_pylist() for name in ("run", "process", "step"))
    runs, processes, steps = columns
    events = zip(runs, processes, steps, strict=True)
    return Beginning(path, runs[0], frozenset((p, s) for run, p, s in events if run == runs[0]))


def _refuse_mixed(beginnings: list[Beginning], runs: frozenset[str]) -> None:
    """Refuse files of one kind that tell of the same run, unless they are parts of it."""
    by_run: dict[str, list[Beginning]] = {}
    for beginning in beginnings:
        by_run.setdefault(beginning.run, []).append(beginning)
        name = beginning.path.name.removesuffix(".parquet")
        if name in runs and beginning.run != name:
            raise UsageError(
                f"'{beginning.path}' begins with events of run '{beginning.run}', and run '{name}' "
                "has its name; a file with the name of a run holds that run: rename the file"
            )
    for run, files in by_run.items():
        seen: dict[tuple[int, int], Path] = {}
        for file in files:
            own = file.path.with_name(f"{run}.parquet")
            if len(files) > 1 and any(other.path == own for other in files if other is not file):
                raise UsageError(
                    f"'{file.path}' holds events of run '{run}', and so does '{own}'; two runs "
                    "with the same name are mixed: keep one of them"
                )
            for event in sorted(file.events):
                if event in seen:
                    raise UsageError(
                        f"'{seen[event]}' and '{file.path}' both hold step {event[1]} of process "
                        f"{event[0]} of run '{run}'; two runs with the same name are mixed: keep "
                        "one of them"
                    )
                seen[event] = file.path
