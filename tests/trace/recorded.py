"""Small recorded runs, and ways to tamper with their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.codec import Codec
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.replay import Replay, replay
from flexgroup.trace.run import Run
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

SCENARIO = Scenario("skeen", 4, 3, "random:2", "lan", duration=0.002)


def record(directory: Path, scenario: Scenario = SCENARIO) -> str:
    """Write a run; its name."""
    return record_scenario(scenario, directory).run


def event_file(directory: Path, kind: str, run: str) -> Path:
    return directory / "events" / f"event={kind}" / f"{run}.parquet"


def run_file(directory: Path, run: str) -> Path:
    return directory / "runs" / f"{run}.parquet"


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return found


def tamper(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Let `change` alter the rows of a file, and write them back."""
    table = pq.ParquetFile(path).read()
    changed = table.to_pylist()
    change(changed)
    pq.write_table(pa.Table.from_pylist(changed, schema=table.schema), path)


def replay_again(directory: Path, run: Run) -> Replay:
    plan = parse_stack(run.stack)
    return replay(
        directory,
        run,
        plan.builder(run.processes, replicas=run.replicas),
        Codec(plan.layers),
    )
