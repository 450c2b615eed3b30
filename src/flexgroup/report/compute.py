"""The tables of a trace set that has none yet, computed on Spark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.report.contents import EVIDENCE, MEASURES, POINTS, VERDICTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def compute_tables(spark: SparkSession, traces: Path, tables: Path) -> None:
    """Verdicts with their evidence, and measures, each table whole or not at all."""
    from flexgroup.pipeline.measure import measure_runs, points
    from flexgroup.pipeline.read import open_trace_set
    from flexgroup.pipeline.spark_errors import readable
    from flexgroup.pipeline.verify import evidence, verify

    with readable(str(traces)):
        found = open_trace_set(spark, str(traces))
        measures = _written(measure_runs(found), tables / MEASURES)
        _written(points(measures), tables / POINTS)
        # Verdicts come last and are made visible last: a directory that has them has the rest.
        verdicts = _draft(verify(found), tables / VERDICTS)
        _written(evidence(found, verdicts), tables / EVIDENCE)
        _publish(tables / VERDICTS)


def _written(frame: DataFrame, folder: Path) -> DataFrame:
    draft = _draft(frame, folder)
    _publish(folder)
    return draft.sparkSession.read.parquet(f"file:{folder.absolute()}")


def _draft(frame: DataFrame, folder: Path) -> DataFrame:
    """Write a table under a name that readers pass over, and read it back."""
    place = f"file:{_draft_of(folder).absolute()}"
    frame.coalesce(1).write.mode("overwrite").parquet(place)
    return frame.sparkSession.read.parquet(place)


def _publish(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _draft_of(folder).rename(folder)


def _draft_of(folder: Path) -> Path:
    return folder.with_name(f"_{folder.name}")
