"""The files of `runs`, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.trace import schema
from flexgroup.trace.reader import parquet_files
from flexgroup.trace.run import unknown_words
from flexgroup.trace.validate.columns import column_problems
from flexgroup.trace.validate.problems import Findings, Place


@dataclass(frozen=True)
class Described:
    """The numbers of processes and clients that the events of a run are compared with."""

    processes: int
    clients: int


def described_runs(directory: Path, findings: Findings) -> dict[str, Described]:
    runs: dict[str, Described] = {}
    files = parquet_files(directory / "runs")
    if not files:
        Place(findings, "runs").error("there is no runs/*.parquet, so the set holds no run")
    for path in files:
        findings.files += 1
        place = Place(findings, f"runs/{path.name}")
        for group, row in _rows(path, place):
            _check_row(Place(findings, place.file, group), row, runs)
    findings.runs = len(runs)
    return runs


def _rows(path: Path, place: Place) -> list[tuple[int, dict[str, Any]]]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            found = file.schema_arrow
            wrong = column_problems(found, schema.RUN_COLUMNS, schema.REQUIRED_OF_RUNS)
            for problem in wrong:
                place.error(problem.reason)
            if wrong:
                return []
            names = [name for name in schema.RUN_COLUMNS.names if found.get_field_index(name) >= 0]
            rows = [
                (group, row)
                for group in range(file.num_row_groups)
                for row in file.read_row_group(group, columns=names).to_pylist()
            ]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        place.error(f"cannot be read as Parquet: {str(error).splitlines()[0]}")
        return []
    if not rows:
        place.error("has no row; it must have one for each run it describes")
    return rows


def _check_row(place: Place, row: dict[str, Any], runs: dict[str, Described]) -> None:
    told = {**schema.RUN_DEFAULTS, **{name: v for name, v in row.items() if v is not None}}
    empty = [name for name in schema.REQUIRED_OF_RUNS if name not in told]
    for name in empty:
        place.error(f"column '{name}' is empty")
    if empty:
        return
    run = told["run"]
    if run in runs:
        place.error(f"describes run '{run}' again")
    for problem in unknown_words(told):
        place.error(f"run '{run}': {problem}")
    if told["processes"] < 1 or told["clients"] < 0:
        place.error(f"run '{run}' has {told['processes']} processes and {told['clients']} clients")
    if told["outcome"] not in (schema.COMPLETE, schema.CUT):
        place.error(
            f"the outcome of run '{run}' is '{told['outcome']}', "
            f"not {schema.COMPLETE} or {schema.CUT}"
        )
    runs[run] = Described(told["processes"], told["clients"])
