"""The validator: every file of a trace set, every row group, everything that is wrong.

Files are read batch by batch. Of each run it remembers which steps, sends and multicasts it has
seen, a bit each. Where every run has files of its own it is forgotten when these are done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.trace import schema
from flexgroup.trace.reader import column_problems, parquet_file, parquet_files
from flexgroup.trace.run import Run, row_problems
from flexgroup.trace.run_files import file_problems
from flexgroup.trace.validate.event_rows import RunSeen, check_cells, check_rows
from flexgroup.trace.validate.problems import Findings, Place
from flexgroup.trace.writer import STARTED

BATCH = 1 << 16

UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)

# Sends come first, because receives refer to them.
ORDER = (schema.SEND, schema.RECEIVE, *schema.KINDS)

Progress = Callable[[float], None]


def validate(directory: Path, progress: Progress = lambda share: None) -> Findings:
    """Find everything that is wrong with a trace set, and everything that is strange."""
    if not directory.is_dir():
        raise UsageError(f"'{directory}' is not a directory; give the directory of a trace set")
    findings = Findings()
    described = _described_runs(directory, findings)
    files = list(_event_files(directory, findings))
    _Validator(findings, described, files).run(progress)
    return findings


def _opened(
    place: Place, path: Path, wanted: pa.Schema, required: Collection[str]
) -> pq.ParquetFile | None:
    """Open a file; report what is wrong with it as a whole, and return None if anything is."""
    try:
        file = parquet_file(path, buffer_size=1 << 16, page_checksum_verification=True)
    except UNREADABLE as error:
        place.error(f"cannot be read as Parquet: {str(error).splitlines()[0]}")
        return None
    wrong = column_problems(file.schema_arrow, wanted, required)
    for problem in wrong:
        place.error(problem.reason)
    return None if wrong else file


def _known_columns(file: pq.ParquetFile, wanted: pa.Schema) -> list[str]:
    return [name for name in wanted.names if name in file.schema_arrow.names]


def _described_runs(directory: Path, findings: Findings) -> dict[str, Run]:
    """Check the files of `runs`, row by row, and return the runs that they tell of."""
    runs: dict[str, Run] = {}
    paths = parquet_files(directory / "runs")
    if not paths and parquet_files(directory / STARTED):
        Place(findings, "runs").warning("no run has ended, so readers find none yet")
    elif not paths:
        Place(findings, "runs").error("there is no runs/*.parquet, so the set holds no run")
    for path in paths:
        findings.files += 1
        place = Place(findings, f"runs/{path.name}")
        for group, row in _rows_of_runs(place, path):
            _check_run(Place(findings, place.file, group), row, runs)
    findings.runs = len(runs)
    return runs


def _rows_of_runs(place: Place, path: Path) -> list[tuple[int, dict[str, Any]]]:
    file = _opened(place, path, schema.RUN_COLUMNS, schema.REQUIRED_OF_RUNS)
    if file is None:
        return []
    try:
        with file:
            rows = [
                (group, row)
                for group in range(file.num_row_groups)
                for row in file.read_row_group(
                    group, columns=_known_columns(file, schema.RUN_COLUMNS)
                ).to_pylist()
            ]
    except UNREADABLE as error:
        place.error(f"cannot be read as Parquet: {str(error).splitlines()[0]}")
        return []
    if not rows:
        place.error("has no row; it must have one for each run it describes")
    return rows


def _check_run(place: Place, row: dict[str, Any], runs: dict[str, Run]) -> None:
    told = {name: value for name, value in row.items() if value is not None}
    empty = [name for name in schema.REQUIRED_OF_RUNS if name not in told]
    for name in empty:
        place.error(f"column '{name}' is empty")
    if empty:
        return
    run = Run(**{**schema.RUN_DEFAULTS, **told})
    if run.run in runs:
        place.error(f"describes run '{run.run}' again")
    for problem in row_problems(told):
        place.error(f"run '{run.run}': {problem}")
    runs[run.run] = run


@dataclass(frozen=True)
class EventFile:
    kind: str
    path: Path
    name: str
    """The path, relative to the trace set."""

    @property
    def run(self) -> str:
        return self.path.name.removesuffix(".parquet")


def _event_files(directory: Path, findings: Findings) -> Iterator[EventFile]:
    known = {f"event={kind}": kind for kind in ORDER}
    folder = directory / "events"
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        name = f"events/{path.name}"
        if path.name in known or path.name[0] in "_.":
            continue
        if path.name.startswith("event=") and parquet_files(path):
            kinds = ", ".join(schema.KINDS)
            Place(findings, name).error(f"there are no such events; the kinds are: {kinds}")
        else:
            Place(findings, name).warning("is not part of a trace set, and nobody reads it")
    for name, kind in known.items():
        for path in parquet_files(folder / name):
            yield EventFile(kind, path, f"events/{name}/{path.name}")


class _Validator:
    """Goes through the files of events, with what it remembers of each run."""

    def __init__(
        self, findings: Findings, described: dict[str, Run], files: list[EventFile]
    ) -> None:
        self.findings = findings
        self.described = described
        self.own = {(file.kind, file.run) for file in files if file.run in described}
        # One run after the other if each has its own files; else any file may hold any run.
        self.one_by_one = all(file.run in described for file in files)
        self.files = sorted(files, key=lambda file: file.run) if self.one_by_one else files
        self.seen: dict[str, RunSeen] = {}
        self.rows: dict[str, dict[str, int | None]] = {kind: {} for kind in schema.KINDS}
        self.silent = set(described)
        """Runs of which no events were found."""
        self.strangers: set[str] = set()
        """Runs of which `runs` does not tell."""

    def run(self, progress: Progress) -> None:
        for number, file in enumerate(self.files):
            if self.one_by_one and number and file.run != self.files[number - 1].run:
                self._finish(self.files[number - 1].run)
            self.findings.files += 1
            self._check_file(file)
            progress((number + 1) / len(self.files))
        for run in list(self.seen):
            self._finish(run)
        for problem in file_problems(self.described.values(), self.rows, self.strangers):
            place = Place(self.findings, f"events/event={problem.kind}")
            place.error(f"run '{problem.run}' {problem.reason}")
        for run in sorted(self.silent):
            Place(self.findings, f"run '{run}'").warning(
                "has no events: whatever is checked holds, because nothing happened"
            )

    def _seen_of(self, run: str) -> RunSeen:
        self.silent.discard(run)
        return self.seen.setdefault(run, RunSeen(self.described.get(run)))

    def _check_file(self, file: EventFile) -> None:
        required = schema.required_columns(file.kind)
        place = Place(self.findings, file.name)
        parquet = _opened(place, file.path, schema.EVENT_COLUMNS, required)
        self.rows[file.kind][file.run] = parquet and parquet.metadata.num_rows
        if parquet is None:
            self._seen_of(file.run).unread = True
            return
        with parquet:
            runs: set[str] = set()
            for group in range(parquet.num_row_groups):
                self._check_group(file, parquet, group, runs)

    def _check_group(
        self, file: EventFile, parquet: pq.ParquetFile, group: int, runs: set[str]
    ) -> None:
        """Check one row group; `runs` are those that were met in the file before."""
        place = Place(self.findings, file.name, group)
        names = _known_columns(parquet, schema.EVENT_COLUMNS)
        try:
            for batch in parquet.iter_batches(BATCH, row_groups=[group], columns=names):
                batch.validate(full=True)
                self.findings.rows += batch.num_rows
                sound = check_cells(place, file.kind, batch)
                for run, rows in _by_run(batch.filter(pa.array(sound))):
                    if run not in runs:
                        runs.add(run)
                        self._check_whose(place, file, run)
                    check_rows(place, file.kind, self._seen_of(run), rows)
        except UNREADABLE as error:
            place.error(f"cannot be read: {str(error).splitlines()[0]}")
            self._seen_of(file.run).unread = True

    def _check_whose(self, place: Place, file: EventFile, run: str) -> None:
        if run not in self.described and run not in self.strangers:
            self.strangers.add(run)
            place.warning(
                f"has events of run '{run}', which `runs` does not tell of: it is still being "
                "written, or all that wrote it were killed, and readers leave it out"
            )
        if file.run in self.described and file.run != run:
            place.error(f"has events of run '{run}', and the name of run '{file.run}'")
        elif file.run != run and (file.kind, run) in self.own:
            place.error(
                f"has events of run '{run}', which has a file of its own, '{run}.parquet': "
                "two runs with the same name are mixed"
            )

    def _finish(self, run: str) -> None:
        """Warn of steps that are missing, now that all of a run was seen."""
        seen = self.seen.pop(run, None)
        if seen is None or seen.unread or seen.described is None:
            return
        gaps = [
            (process, missing)
            for process, steps in sorted(seen.steps.items())
            if (missing := steps.first_missing()) is not None
        ]
        if gaps:
            process, missing = gaps[0]
            Place(self.findings, f"run '{run}'").warning(
                f"steps are missing at {len(gaps)} of {len(seen.steps)} processes, first step "
                f"{missing} of process {process}; checks do without, replay does not"
            )


def _by_run(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    runs = batch.column("run").unique().to_pylist()
    for run in runs:
        chosen = batch
        if len(runs) > 1:
            chosen = batch.filter(pc.equal(batch.column("run").cast(pa.string()), run))
        yield run, chosen
