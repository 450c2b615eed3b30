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
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import parquet_files, read_runs
from flexgroup.trace.run import Run

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

CHANNELS = "channels"
"""The column with the guarantees of the channels in words, from the traces."""

NODES = "nodes"
"""The column with what processes and clients are called where the run comes from, from the traces,
too."""

NEEDED = {
    VERDICTS: ("run", "property", "outcome", "violations", "witness", "explanation"),
    EVIDENCE: ("run", "property", "event", "process", "step", "time", "origin", "seq"),
    MEASURES: ("run",),
    POINTS: ("stack",),
    CLAIMS: ("claim", "holds"),
}

Row = Mapping[str, Any]

UNNAMED = "unnamed stack"


def stack_told(stack: str | None) -> str:
    """Return a stack as the page calls it: `unknown` would pass for a verdict."""
    return UNNAMED if stack is None or stack == Outcome.UNKNOWN else stack


@dataclass(frozen=True)
class Contents:
    """A directory as the page sees it."""

    directory: Path
    about: Row
    """experiment.json, or nothing for a plain trace set."""
    runs: pa.Table
    """The columns of DESCRIPTION, CHANNELS and NODES, as far as they are known, for each run."""
    verdicts: pa.Table
    measures: pa.Table | None
    points: pa.Table | None
    claims: Sequence[Row]

    def evidence(self, run: str, property_: str) -> list[Row]:
        """Return the events behind one verdict."""
        wanted = (pc.field("run") == run) & (pc.field("property") == property_)
        found = _table(self.directory / "tables" / EVIDENCE, wanted=wanted)
        return [] if found is None else found.to_pylist()

    def has_evidence(self) -> set[tuple[str, str]]:
        """Return the runs and properties whose events were kept."""
        found = _table(self.directory / "tables" / EVIDENCE, ["run", "property"])
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
    if not _files(directory / "tables" / VERDICTS):
        return False
    traces = traces_below(directory)
    if traces is None or (directory / EXPERIMENT).exists():
        return True
    measures = _table(directory / "tables" / MEASURES, ["run"])
    if measures is None:
        return False
    return {run.run for run in read_runs(traces)} == set(measures["run"].to_pylist())


def read_contents(directory: Path) -> Contents:
    tables = directory / "tables"
    verdicts = _table(tables / VERDICTS)
    if verdicts is None:
        raise UsageError(
            f"'{directory}' holds no verdicts (no tables/verdicts/*.parquet) and no traces to "
            "compute them from; give the directory of an experiment or of a trace set"
        )
    measures = _table(tables / MEASURES)
    claims = _table(tables / CLAIMS)
    return Contents(
        directory,
        _about(directory / EXPERIMENT),
        _runs(directory, measures, verdicts),
        verdicts,
        measures,
        _table(tables / POINTS),
        [] if claims is None else claims.to_pylist(),
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
    told = [] if traces is None or not _files(traces / "runs") else read_runs(traces)
    runs = pa.table({"run": pc.unique(verdicts["run"])})
    if measures is not None:
        runs = measures.select([name for name in DESCRIPTION if name in measures.column_names])
    elif told:
        runs = pa.Table.from_pylist(
            [{name: getattr(run, name) for name in DESCRIPTION} for run in told]
        )
    for name in DESCRIPTION:
        if name not in runs.column_names:
            runs = runs.append_column(name, pa.nulls(runs.num_rows, pa.string()))
    channels = {run.run: _channels(run) for run in told}
    names = runs["run"].to_pylist()
    known = [channels.get(name) for name in names]
    runs = runs.append_column(CHANNELS, pa.array(known, pa.string()))
    nodes = {run.run: run.nodes for run in told}
    called = [nodes.get(name) for name in names]
    return runs.append_column(NODES, pa.array(called, pa.list_(pa.string())))


def _channels(run: Run) -> str | None:
    """Return the guarantees of a run's channels in words, if they are known."""
    return None if run.channels is None else " and ".join(run.channels) or "no guarantees"


def _files(folder: Path) -> list[Path]:
    """List the Parquet files of a table."""
    if folder.is_dir():
        return parquet_files(folder)
    single = folder.with_name(f"{folder.name}.parquet")
    return [single] if single.is_file() else []


def _table(
    folder: Path, columns: list[str] | None = None, wanted: pc.Expression | None = None
) -> pa.Table | None:
    files = _files(folder)
    if not files:
        return None
    try:
        found = ds.dataset([str(file) for file in files], format="parquet")
        missing = [name for name in NEEDED[folder.name] if name not in found.schema.names]
        if not missing:
            return found.to_table(columns=columns, filter=wanted)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"cannot read the table '{folder}': {reason}; a file of it is damaged or of another "
            "kind: remove the directory and run the same command"
        ) from None
    raise UsageError(
        f"the table '{folder}' has no column '{missing[0]}'; compute it again: "
        "remove the directory and run the same command"
    )
