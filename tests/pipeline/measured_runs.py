"""Runs to measure, of every sort: with fast and slow messages, with crashes, cut short, without a
message, of other systems, and with gaps in what was recorded."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.trace import schema
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

from .made_up_runs import nonsense, write_all

BASE = Scenario("skeen", 4, 6, "tpcc", duration=0.008)
SCENARIOS = {
    "skeen": BASE,
    "skeen repeated": replace(BASE, seed=2),
    "df": replace(BASE, stack="df", workload="tpcc@0.2"),
    "dcc": replace(BASE, stack="dcc", workload="partitioned:2x2@0.3"),
    "dcc/rv": replace(BASE, stack="dcc/rv", workload="random:N", clients=12),
    "crash": replace(BASE, workload="random:2", faults=Faults(crashes=("1@4ms",))),
    "df crash": replace(BASE, stack="df", workload="random:N", faults=Faults(crashes=("2@5ms",))),
    "cut": replace(BASE, stack="dcc", workload="random:2", drain=0.0),
    "lossy": replace(BASE, stack="best-effort", network="lan:loss=0.2,duplication=0.1"),
    "empty": replace(BASE, rate=0.001),
    "groups": replace(BASE, groups="2x2", workload="random:N"),
    "paxos": replace(BASE, stack="leader paxos", processes=6, groups="2x3", workload="random:1"),
    "paxos alone": replace(
        BASE,
        stack="leader paxos",
        processes=3,
        clients=1,
        groups="1x3",
        workload="random:1",
        network="unit",
        duration=0.03,
    ),
    "last group": replace(
        BASE,
        stack="leader best-effort",
        processes=6,
        groups="3x2",
        workload="random:2",
        answers="last",
    ),
    "groups crash": replace(
        BASE,
        stack="best-effort",
        processes=6,
        groups="3x2",
        workload="random:2",
        rate=2000.0,
        faults=Faults(crashes=("1@3ms", "2@4ms", "3@5ms"), detection="1ms"),
    ),
    "twin": replace(
        BASE,
        stack="pbft dcc-bft",
        processes=8,
        groups="2x4",
        workload="random:2",
        faults=Faults(liars=("3:twin",)),
    ),
    "liar": replace(
        BASE, stack="best-effort", workload="random:2", faults=Faults(liars=("1:silent", "2:skip"))
    ),
}

PLANNED = replace(BASE, stack="best-effort", clients=0, workload="broadcast", casts="all@2ms 0@9ms")
"""Without clients, and so measured whole."""

FOREIGN = "theirs"
PATCHY = "patchy"
PATCHY_GROUPS = "patchy groups"
NONSENSE = 12
TICK = 20_000

START = 1_700_000_000 * 10**9


def record_all(directory: Path) -> None:
    for scenario in (*SCENARIOS.values(), PLANNED, replace(PLANNED, stack="df")):
        record_scenario(scenario, directory)
    write_all(directory, [nonsense(seed) for seed in range(NONSENSE)])
    for seed in range(0, NONSENSE, 2):
        divide(directory, nonsense(seed).run)
    write_foreign(directory)
    write_patchy(directory, SCENARIOS["dcc"].run, PATCHY)
    write_patchy(directory, SCENARIOS["groups"].run, PATCHY_GROUPS)


def write_foreign(directory: Path) -> None:
    """Six messages, one each microsecond of a clock that started long ago, delivered 500 ns later
    at process 1 and 700 ns later at process 2; no packets."""
    multicasts = [
        {"process": 0, "step": n, "time": START + n * 1000, "seq": n, "destinations": [1, 2]}
        for n in range(6)
    ]
    deliveries = [
        {"process": process, "step": n, "time": START + n * 1000 + delay, "seq": n}
        for n in range(6)
        for process, delay in ((1, 500), (2, 700))
    ]
    for kind, rows in ((schema.MULTICAST, multicasts), (schema.DELIVER, deliveries)):
        _write_events(directory, FOREIGN, kind, [{"origin": 0, **row} for row in rows])
    description = {
        **schema.RUN_DEFAULTS,
        "run": FOREIGN,
        "stack": "their protocol",
        "processes": 3,
        "schema_version": schema.VERSION,
    }
    _write_run(directory, description)


def divide(directory: Path, run: str) -> None:
    """Let the row of a run say that processes 0 and 1 are replicas, and nothing of the others."""
    description = pq.ParquetFile(directory / "runs" / f"{run}.parquet").read().to_pylist()[0]
    _write_run(directory, {**description, "groups": "[[0,1]]"})


def write_patchy(directory: Path, run: str, name: str) -> None:
    """A run once more, with holes in all columns that may have them, some messages to more than
    deliver them, and with clocks that tick so slowly that much happens at the same time, and one
    of them late."""
    chance = random.Random(1)
    optional = ("peer", "packet", "depth", "header_bytes", "payload_bytes", "queued", "detail")
    for kind in (schema.MULTICAST, schema.SEND, schema.RECEIVE, schema.DELIVER):
        path = directory / "events" / f"event={kind}" / f"{run}.parquet"
        rows = pq.ParquetFile(path).read().to_pylist()
        names = optional if kind in schema.REQUIRED_IN else (*optional, "origin")
        for row in rows:
            row |= {name: None for name in names if chance.random() < 0.1}
            if row["destinations"] and chance.random() < 0.05:
                row["destinations"] = [0, 1, 2, 3]
            row["time"] = row["time"] // TICK * TICK
            if row["process"] == 3:
                row["time"] -= 200_000
        _write_events(directory, name, kind, rows)
    description = pq.ParquetFile(directory / "runs" / f"{run}.parquet").read().to_pylist()[0]
    _write_run(directory, {**description, "run": name})


def _write_events(directory: Path, run: str, kind: str, rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist([{**row, "run": run} for row in rows], schema.EVENT_COLUMNS)
    pq.write_table(table, directory / "events" / f"event={kind}" / f"{run}.parquet")


def _write_run(directory: Path, description: dict[str, Any]) -> None:
    table = pa.Table.from_pylist([description], schema.RUN_COLUMNS)
    pq.write_table(table, directory / "runs" / f"{description['run']}.parquet")
