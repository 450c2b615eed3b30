"""What to check of each run: what its stack promises, unless the user names the properties."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.core.stack import guarantees_above
from flexgroup.properties.catalogue import PROPERTIES
from flexgroup.properties.promises import promised_properties
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.schema import COMPLETE
from flexgroup.worlds.simulator.networks import channel_guarantees, parse_network

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVERYTHING = tuple(PROPERTIES)

PLAN = "number int, run string, processes int, complete boolean, properties array<string>"


def known(properties: Sequence[str]) -> tuple[str, ...]:
    for name in properties:
        if name not in PROPERTIES:
            raise UsageError(
                f"there is no property {name!r}; the properties are: {', '.join(PROPERTIES)}"
            )
    return tuple(dict.fromkeys(properties))


def promised_by(stack: str, network: str | None, faults: str | None) -> list[str]:
    """What a run's stack promises over its network; everything, if this project cannot tell."""
    try:
        plan = parse_stack(stack)
        drops = any("!drop" in cut for cut in json.loads(faults or "{}").get("partitions", ()))
        given = channel_guarantees(parse_network(network or "lan"), drops)
        promised = promised_properties(
            guarantees_above(plan.layers, given), plan.top.genuine == "yes"
        )
    except (FlexGroupError, json.JSONDecodeError):
        return list(EVERYTHING)
    return promised


def planned(runs: DataFrame, properties: Sequence[str] | None) -> DataFrame:
    """A row per run: its number and name, its size, how it ended, and what to check of it."""
    chosen = None if properties is None else list(known(properties))

    def plan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.to_pylist()
            yield pa.RecordBatch.from_pydict(
                {
                    "number": pa.array([row["number"] for row in rows], pa.int32()),
                    "run": pa.array([row["run"] for row in rows], pa.string()),
                    "processes": pa.array([row["processes"] for row in rows], pa.int32()),
                    "complete": pa.array([row["outcome"] == COMPLETE for row in rows], pa.bool_()),
                    "properties": pa.array(
                        [
                            promised_by(row["stack"], row["network"], row["faults"])
                            if chosen is None
                            else chosen
                            for row in rows
                        ],
                        pa.list_(pa.string()),
                    ),
                }
            )

    told = runs.select("number", "run", "processes", "outcome", "stack", "network", "faults")
    return told.mapInArrow(plan, PLAN)
