"""Writing the report of a directory, after computing its tables where there are none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flexgroup.core.errors import UsageError
from flexgroup.properties.verdict import Outcome
from flexgroup.report.contents import (
    EVIDENCE,
    MEASURES,
    POINTS,
    VERDICTS,
    has_tables,
    read_contents,
    traces_below,
)
from flexgroup.report.page import GENERATOR, page
from flexgroup.report.verdicts import totals

NAME = "report.html"


@dataclass(frozen=True)
class Written:
    """A page, and what it says in short."""

    path: Path
    runs: int
    outcomes: dict[str, int]
    """How many verdicts hold, are violated, and are unknown."""


def write_report(directory: Path) -> Path:
    """Write `report.html` into the directory of an experiment or a trace set; return its path."""
    return write_page(directory, directory / NAME).path


def write_page(
    directory: Path, target: Path, master: str | None = None, force: bool = False
) -> Written:
    """Write the page to any file, with Spark on this master if tables have to be computed."""
    if not directory.is_dir():
        raise UsageError(
            f"'{directory}' is not a directory; give that of an experiment or of a trace set"
        )
    _refuse_to_replace(target, force)
    if not has_tables(directory):
        _compute(directory, master)
    contents = read_contents(directory)
    written = page(contents)
    draft = target.with_name(f"_{target.name}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(written, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        raise UsageError(
            f"cannot write '{target}': {error.strerror}; choose another place with --out"
        ) from None
    counted = totals(contents)
    outcomes = {name.value: counted[name] for name in Outcome}
    return Written(target, contents.runs.num_rows, outcomes)


def _refuse_to_replace(target: Path, force: bool) -> None:
    """Refuse to replace a file that is not a page of ours, which is as old as its tables."""
    if force or not target.exists():
        return
    try:
        with target.open(encoding="utf-8", errors="replace") as file:
            ours = GENERATOR in file.read(1000)
    except OSError:
        ours = False
    if not ours:
        raise UsageError(
            f"'{target}' exists and is not a report; choose another file with --out, "
            "or replace it with --force"
        )


def _compute(directory: Path, master: str | None) -> None:
    """Compute verdicts with their evidence, and measures, on Spark."""
    traces = traces_below(directory)
    if traces is None:
        raise UsageError(
            f"'{directory}' holds neither tables (tables/verdicts) nor traces (runs, events); give "
            "the directory of an experiment, or record a run with: "
            f"flexgroup simulate --protocol skeen --out {directory}"
        )
    from flexgroup.pipeline.reading.local_files import look_here, settings_for
    from flexgroup.pipeline.result_tables import in_order, write_tables
    from flexgroup.pipeline.spark.session import start

    files = look_here(str(traces))
    spark = start(master, "flexgroup report", settings_for(files, master)).spark
    # Only now: without Spark, start has said what to do about it.
    from flexgroup.pipeline.measure import Measured
    from flexgroup.pipeline.reading.trace_set import open_trace_set
    from flexgroup.pipeline.spark.errors import readable
    from flexgroup.pipeline.verify import evidence, verify

    with readable(str(traces)):
        found = open_trace_set(spark, str(traces), files)
        measured = Measured(found)
        verdicts = in_order(verify(found).toArrow(), "run", "property")
        events = evidence(found, verdicts.to_pylist())
        computed = {
            MEASURES: measured.measures,
            POINTS: measured.points,
            EVIDENCE: events,
            # Made visible last: a directory that has verdicts has the rest.
            VERDICTS: verdicts,
        }
    write_tables(computed, directory / "tables")
