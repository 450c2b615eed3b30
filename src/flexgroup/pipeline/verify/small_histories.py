"""Verdicts on histories small enough for one task, by the plain-Python properties.

A *topic* is what one task is to judge: a whole run, or those messages of a run that a distributed
check has found to matter for a property. All events about a topic's messages come together in
one group; a row of its own says what to check, and how many violations the whole run has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.event_rows import history_of_rows, integers
from flexgroup.pipeline.in_memory.verdict_table import VERDICTS, verdict_row, verdict_table
from flexgroup.pipeline.spark.frames import spark_schema, with_columns
from flexgroup.pipeline.verify.check_plans import CheckPlan
from flexgroup.pipeline.verify.event_rows import EXPLAINED_COLUMNS
from flexgroup.properties import integrity, missing_deliveries, prefix_order
from flexgroup.properties.catalogue import PROPERTIES
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.history import RunFacts
from flexgroup.trace.run_events import refuse_repeated_multicasts, refuse_repeated_steps

TOPIC = -1
"""Stands in place of an event's code in the row that says what to do."""

WHOLE = "whole run"

Totals = Mapping[str, int]
"""Violations in the whole run, by kind; empty if the topic is the whole run."""


TOPIC_COLUMNS = pa.schema([*EXPLAINED_COLUMNS, ("topic", pa.string()), ("task", pa.string())])


def judge_groups(groups: DataFrame) -> DataFrame:
    """Return the verdicts on groups of rows with TOPIC_COLUMNS, by number and topic."""
    return groups.groupBy("number", "topic").applyInArrow(judge, spark_schema(VERDICTS))


def judge(table: pa.Table) -> pa.Table:
    is_task = integers(table, "event") == TOPIC
    if not is_task.any():  # events of a run that nothing is asked about
        return verdict_table([])
    task = json.loads(table.column("task")[int(np.flatnonzero(is_task)[0])].as_py())
    about = RunFacts(**task["about"])
    history = history_of_rows(table, about)
    refuse_repeated_multicasts(about.run, history.multicasts.message)
    if any(not totals for totals in task["checks"].values()):
        kept = (history.multicasts, history.deliveries, history.crashes, history.recoveries)
        process, step = ([getattr(rows, name) for rows in kept] for name in ("process", "step"))
        refuse_repeated_steps(about.run, np.concatenate(process), np.concatenate(step))
    run = IndexedHistory(history)
    verdicts = [
        prefix_order.check_part(run, prefix_order.SkippedFirst(**task["skipped"]))
        if name == prefix_order.NAME and task["skipped"]
        else _check(run, name, totals)
        for name, totals in task["checks"].items()
    ]
    if task["seen"] is not None:
        verdicts = [
            replace(verdict, explanation=task["seen"])
            if verdict.outcome is Outcome.HOLDS
            else verdict
            for verdict in verdicts
        ]
    return verdict_table([verdict_row(about.run, verdict) for verdict in verdicts])


def _check(run: IndexedHistory, name: str, totals: Totals) -> Verdict:
    if not totals:
        return PROPERTIES[name](run)
    if name == integrity.NAME:
        return integrity.check(run, totals)
    total = sum(totals.values())
    if name in missing_deliveries.FIND:
        return missing_deliveries.check(run, name, total)
    return replace(PROPERTIES[name](run), violations=total)


Task = tuple[int, str, str]
"""The number of a run, the topic, and what to do."""

TASK_COLUMNS = pa.schema({"number": pa.int32(), "topic": pa.string(), "task": pa.string()})


def task_of(
    plan: CheckPlan,
    topic: str,
    checks: Mapping[str, Totals],
    seen: str | None = None,
    skipped: prefix_order.SkippedFirst | None = None,
) -> Task:
    """Return the task of checking these properties of a run, each with the totals of the whole run
    if the topic is a part of it; `seen` tells how much was looked at in the whole run, `skipped`
    what processes skipped in it."""
    what = {"about": plan.facts(), "checks": checks, "seen": seen}
    what["skipped"] = vars(skipped) if skipped else None
    return plan.number, topic, json.dumps(what)


def task_rows(tasks: DataFrame) -> DataFrame:
    """Return rows with TOPIC_COLUMNS from TASK_COLUMNS."""
    return with_topic(tasks.withColumn("event", f.lit(TOPIC)))


def with_topic(rows: DataFrame) -> DataFrame:
    """Return rows of events that have a topic, with TOPIC_COLUMNS."""
    return with_columns(rows, TOPIC_COLUMNS)
