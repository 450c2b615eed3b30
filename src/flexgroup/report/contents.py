"""What a report is made of, as it lies in a directory: experiment.json, tables, runs.

Tables are read with pyarrow; of large ones, only the rows that the page shows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from flexgroup.core.errors import UsageError
from flexgroup.trace.reader import read_runs

EXPERIMENT = "experiment.json"

VERDICTS = "verdicts"
EVIDENCE = "evidence"
MEASURES = "measures"
POINTS = "points"
CLAIMS = "claims"

DESCRIPTION = (
    "run", "world", "stack", "options", "processes", "clients", "workload", "network", "faults",
    "seed", "outcome", "software",
)  # fmt: skip
"""The columns that say what a run was."""

NEEDED = {
    VERDICTS: ("run", "property", "outcome", "violations", "witness", "explanation"),
    EVIDENCE: ("run", "property", "event", "process", "step", "time", "origin", "seq"),
    MEASURES: ("run",),
    POINTS: ("stack",),
    CLAIMS: ("claim", "holds"),
}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Contents:
    """A directory as the page sees it."""

    directory: Path
    about: Row
    """experiment.json, or nothing for a plain trace set."""
    runs: pa.Table
    """The columns of DESCRIPTION, as far as they are known, for each run."""
    verdicts: pa.Table
    measures: pa.Table | None
    points: pa.Table | None
    claims: Sequence[Row]

    def evidence(self, run: str, property_: str) -> list[Row]:
        """Return the events behind one verdict."""
        wanted = (pc.field("run") == run) & (pc.field("property") == property_)
        found = _table(self.directory, EVIDENCE, wanted=wanted)
        return [] if found is None else found.to_pylist()

    def has_evidence(self) -> set[tuple[str, str]]:
        """Return the runs and properties whose events were kept."""
        found = _table(self.directory, EVIDENCE, ["run", "property"])
        if found is None:
            return set()
        keys = found.group_by(["run", "property"]).aggregate([]).to_pylist()
        return {(row["run"], row["property"]) for row in keys}

    def described(self, names: Collection[str]) -> dict[str, Row]:
        """Return what is known of these runs."""
        chosen = self.runs.filter(pc.is_in(self.runs["run"], pa.array(names, pa.string())))
        return {row["run"]: row for row in chosen.to_pylist()}


def traces_below(directory: Path) -> Path | None:
    """Return where the trace set is: in `traces`, or in the directory itself."""
    for place in (directory / "traces", directory):
        if (place / "runs").is_dir():
            return place
    return None


def has_tables(directory: Path) -> bool:
    """Tell whether there are verdicts.

    The tables of a plain trace set must be about the runs that it holds now; an experiment sees to
    that itself.
    """
    if _dataset(directory, VERDICTS) is None:
        return False
    traces = traces_below(directory)
    if traces is None or (directory / EXPERIMENT).exists():
        return True
    measures = _table(directory, MEASURES, ["run"])
    if measures is None:
        return False
    return {run.run for run in read_runs(traces)} == set(measures["run"].to_pylist())


def read_contents(directory: Path) -> Contents:
    verdicts = _table(directory, VERDICTS)
    if verdicts is None:
        raise UsageError(
            f"'{directory}' holds no verdicts (no tables/verdicts/*.parquet) and no traces to "
            "compute them from; give the directory of an experiment or of a trace set"
        )
    measures = _table(directory, MEASURES)
    return Contents(
        directory,
        _about(directory / EXPERIMENT),
        _runs(directory, measures, verdicts),
        verdicts,
        measures,
        _table(directory, POINTS),
        _claims(directory),
    )


def _about(path: Path) -> Row:
    if not path.exists():
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"cannot read '{path}' as JSON: {reason}; run the experiment again"
        ) from None
    if not isinstance(about, dict):
        raise UsageError(f"'{path}' must hold one JSON object; run the experiment again")
    return about


def _runs(directory: Path, measures: pa.Table | None, verdicts: pa.Table) -> pa.Table:
    traces = traces_below(directory)
    if measures is not None:
        runs = measures
    elif traces is not None and (files := _files(traces / "runs")):
        runs = _read(traces / "runs", _opened(traces / "runs", files))
    else:
        runs = pa.table({"run": pc.unique(verdicts["run"])})
    for name in DESCRIPTION:
        if name not in runs.column_names:
            runs = runs.append_column(name, pa.nulls(runs.num_rows, pa.string()))
    return runs.select(list(DESCRIPTION))


def _claims(directory: Path) -> list[Row]:
    found = _table(directory, CLAIMS)
    return [] if found is None else found.to_pylist()


def _files(folder: Path) -> list[str]:
    """List the Parquet files of a table; names that start with an underscore are not finished."""
    if folder.is_dir():
        return [str(path) for path in sorted(folder.glob("*.parquet")) if path.name[0] != "_"]
    single = folder.with_name(f"{folder.name}.parquet")
    return [str(single)] if single.is_file() else []


def _dataset(directory: Path, name: str) -> ds.Dataset | None:
    folder = directory / "tables" / name
    files = _files(folder)
    if not files:
        return None
    found = _opened(folder, files)
    for column in NEEDED.get(name, ()):
        if column not in found.schema.names:
            raise UsageError(
                f"the table '{folder}' has no column '{column}'; compute it again: "
                "remove the directory and run the same command"
            )
    return found


def _opened(folder: Path, files: list[str]) -> ds.Dataset:
    try:
        return ds.dataset(files, format="parquet")
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(folder, error) from None


def _table(
    directory: Path,
    name: str,
    columns: list[str] | None = None,
    wanted: pc.Expression | None = None,
) -> pa.Table | None:
    found = _dataset(directory, name)
    return None if found is None else _read(directory / "tables" / name, found, columns, wanted)


def _read(
    folder: Path,
    found: ds.Dataset,
    columns: list[str] | None = None,
    wanted: pc.Expression | None = None,
) -> pa.Table:
    try:
        return found.to_table(columns=columns, filter=wanted)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(folder, error) from None


def _unreadable(folder: Path, error: Exception) -> UsageError:
    reason = str(error).splitlines()[0]
    return UsageError(
        f"cannot read the table '{folder}': {reason}; a file of it is damaged or of another kind: "
        "remove the directory and run the same command"
    )
