"""The tables of a trace set that has none yet, computed on Spark."""

from __future__ import annotations

from pathlib import Path

from flexgroup.report.contents import EVIDENCE, MEASURES, POINTS, VERDICTS


def compute_tables(traces: Path, tables: Path, master: str | None) -> None:
    """Verdicts with their evidence, and measures."""
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
    write_tables(computed, tables)
