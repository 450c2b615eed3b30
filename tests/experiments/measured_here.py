"""Runs that are simulated and measured in this process, without files and without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pyarrow as pa

from flexgroup.experiments.findings import Findings
from flexgroup.metrics.counting import count
from flexgroup.metrics.period import group_size, measured_period
from flexgroup.metrics.tables import measures, points
from flexgroup.trace.collector import Collector
from flexgroup.worlds.simulator.scenario import Scenario, description, run_scenario


def points_of(scenarios: Iterable[Scenario]) -> list[dict[str, Any]]:
    """Return the rows of `points` of these runs, whose clients multicast for a known time."""
    described, sums = [], {}
    for scenario in scenarios:
        run, collector = description(scenario), Collector()
        outcome = run_scenario(scenario, collector)
        history = collector.history(run.run, run.processes, outcome.complete, faulty=run.faulty)
        tables: dict[str, list[pa.Table]] = {}
        for kind, table in collector.tables(run.run):
            tables.setdefault(kind, []).append(table)
        described.append(run)
        sums[run.run] = count(
            history,
            partial(_of_kind, tables),
            measured_period(run, None),
            group_size(run),
            None,
            run.replicas,
        ) | {"spent": None, "most_spent": None}
    rows: list[dict[str, Any]] = points(measures(described, sums)).to_pylist()
    return rows


def _of_kind(tables: dict[str, list[pa.Table]], kind: str) -> pa.Table:
    return pa.concat_tables(tables[kind], promote_options="default")


def findings_of(scenarios: Iterable[Scenario]) -> Findings:
    return Findings.of_tables(points_of(scenarios), [])
