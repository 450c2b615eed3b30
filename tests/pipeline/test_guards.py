"""The rules about rows of events are the same in plain Python and on Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.measure import Measured
from flexgroup.pipeline.reading.guards import broken
from flexgroup.pipeline.reading.trace_set import TraceSet, open_remote
from flexgroup.pipeline.spark.errors import readable
from flexgroup.pipeline.verify import SizeLimits, verify
from flexgroup.trace import schema
from flexgroup.trace.rules import LARGEST, NATURAL, broken_rules

from ..trace.recorded import event_file, record, tamper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOUND: dict[str, Any] = {"run": "r", "time": 5, "destinations": [0, 2], "detail": "{}"}

LISTS: list[list[int | None] | None] = [[], [0], [2, 1, 2], [1, None], [None], [-1, 0], None]


def odd_rows() -> pa.Table:
    """A sound row, and rows with one odd value each, some of them allowed."""
    sound = {**dict.fromkeys(schema.EVENT_COLUMNS.names), **dict.fromkeys(NATURAL, 3), **SOUND}
    odd: list[dict[str, Any]] = [{}]
    odd += [{name: value} for name in NATURAL for value in (None, -1, 0)]
    odd += [{name: most + more} for name, most in LARGEST.items() for more in (0, 1)]
    odd += [{"destinations": destinations} for destinations in LISTS]
    odd += [{"detail": None}, {"run": None}, {"time": -1}, {"time": None}]
    fields = [field.with_nullable(True) for field in schema.EVENT_COLUMNS]
    return pa.Table.from_pylist([{**sound, **row} for row in odd], pa.schema(fields))


def test_spark_objects_to_the_same_rows_as_plain_python(spark: SparkSession) -> None:
    rows = odd_rows()
    names = rows.column_names
    frame = spark.createDataFrame(rows.append_column("row", pa.array(range(len(rows)))))
    flags = frame.select(
        "row",
        *(broken(kind, name).alias(f"{kind} {name}") for kind in schema.KINDS for name in names),
    )
    found = flags.orderBy("row").toArrow()
    for kind in schema.KINDS:
        plain = {name: np.zeros(len(rows), dtype=np.bool_) for name in names}
        for rule in broken_rules(kind, rows):
            plain[rule.column] |= rule.rows
        for name in names:
            assert found[f"{kind} {name}"].to_pylist() == plain[name].tolist(), (kind, name)


def alias(rows: list[dict[str, Any]]) -> None:
    """Another number that would be packed into the identity of the same message."""
    rows[0]["seq"] += 1 << 44


def cast_again(rows: list[dict[str, Any]]) -> None:
    rows[1].update(origin=rows[0]["origin"], seq=rows[0]["seq"])


PROPERTIES = ["integrity", "acyclic order"]

WAYS: dict[str, Callable[[TraceSet], object]] = {
    "whole": lambda traces: verify(traces, PROPERTIES).collect(),
    "in pieces": lambda traces: verify(traces, PROPERTIES, SizeLimits(0, 0, 100)).collect(),
    "measured": lambda traces: Measured(traces).measures,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("kind", "spoil", "words"),
    [
        ("deliver", alias, r"run '.*': column 'seq' of a deliver event is 1759\d+, at most"),
        ("multicast", cast_again, r"in run '.*' message \d+\.\d+ was multicast twice"),
    ],
    ids=["alias", "twice"],
)
def test_what_only_spark_can_read_is_refused_as_well(
    spark: SparkSession, tmp_path: Path, kind: str, spoil: Any, words: str, way: str
) -> None:
    tamper(event_file(tmp_path, kind, record(tmp_path)), spoil)
    traces = open_remote(spark, f"file:{tmp_path}")
    with pytest.raises(UsageError, match=words), readable(str(tmp_path)):
        WAYS[way](traces)


def test_what_is_missing_elsewhere_is_found_in_footers(spark: SparkSession, tmp_path: Path) -> None:
    name = record(tmp_path)
    event_file(tmp_path, "send", name).unlink()
    with pytest.raises(UsageError, match=f"run '{name}' has 0 send events, and `runs` tells of"):
        open_remote(spark, f"file:{tmp_path}")


def test_guards_move_and_read_no_rows_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    record(tmp_path)
    traces = open_remote(spark, f"file:{tmp_path}")
    plan = traces.events("deliver", "seq").agg(f.sum("seq"))._jdf.queryExecution().toString()
    physical = plan.partition("== Physical Plan ==")[2]
    assert "raise_error" in physical
    assert physical.count("FileScan") == 1
    assert physical.count("Exchange") == 1  # the sum: with few runs, none is broadcast
