"""Trace sets from DataFrames, or from tables of the session's catalogue, of whatever format.

What cannot be relied upon is refused here as it is where files are opened, as far as columns and
rows of `runs` tell. What is wrong with single events shows when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.errors import readable
from flexgroup.pipeline.spark.frames import spark_schema, with_columns
from flexgroup.trace import schema
from flexgroup.trace.reader import runs_by_name

Table = DataFrame | str
"""A DataFrame, or the name of a table as `spark.table` takes it."""

KIND = "event"
"""The column that tells the kind of an event, where all kinds are in one table."""

SEE = "see docs/trace.md for the columns"


def trace_set_of(spark: SparkSession, runs: Table, events: Table | Mapping[str, Table]) -> TraceSet:
    """Return the trace set of a table of runs and one of events, which has a column `event` for
    their kind; or several of events, by kind."""
    with readable("the tables of the trace"):
        told = _checked(spark, "runs", runs, schema.RUN_COLUMNS, schema.REQUIRED_OF_RUNS)
        rows = [row.asDict() for row in told.collect()]
        for row in rows:
            _refuse_empty(row)
        described = tuple(runs_by_name([("the table of runs", rows)]))
        if not described:
            raise UsageError("the table of runs is empty; it must have a row for each run")
        named = events if isinstance(events, Mapping) else _by_kind(spark, events)
        for kind in named.keys() - set(schema.KINDS):
            raise UsageError(
                f"there are no events of kind '{kind}'; the kinds are: {', '.join(schema.KINDS)}"
            )
        frames = {
            kind: _checked(
                spark, f"{kind} events", table, schema.EVENT_COLUMNS, schema.required_columns(kind)
            )
            for kind, table in named.items()
        }
    return TraceSet(spark, "", described, frozenset(frames), frames=frames)


def _frame(spark: SparkSession, table: Table) -> DataFrame:
    return spark.table(table) if isinstance(table, str) else table


def _by_kind(spark: SparkSession, events: Table) -> dict[str, Table]:
    """Take one table of events apart; one job finds out which kinds there are."""
    together = _frame(spark, events)
    if KIND not in together.columns:
        raise UsageError(
            f"the table of events has no column '{KIND}' that tells their kinds; add it, or give"
            " a table for each kind"
        )
    kinds = [row[KIND] for row in together.select(KIND).distinct().collect()]
    return {kind: together.where(f.col(KIND) == kind) for kind in kinds if kind is not None}


def _checked(
    spark: SparkSession, what: str, table: Table, wanted: pa.Schema, required: tuple[str, ...]
) -> DataFrame:
    """Return the wanted columns, null where there are none; refuse others of the same names."""
    frame = _frame(spark, table)
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    for field in spark_schema(wanted):
        if field.name in required and field.name not in types:
            raise UsageError(f"the table of {what} has no column '{field.name}'; {SEE}")
        expected = field.dataType.simpleString()
        if types.get(field.name, expected) != expected:
            raise UsageError(
                f"the table of {what}: column '{field.name}' is {types[field.name]}, not "
                f"{expected}; {SEE}"
            )
    return with_columns(frame, wanted)


def _refuse_empty(row: Mapping[str, object]) -> None:
    for name in schema.REQUIRED_OF_RUNS:
        if row[name] is None:
            raise UsageError(f"the table of runs has empty rows in column '{name}'; {SEE}")
