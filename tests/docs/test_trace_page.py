"""docs/trace.md describes the schema that the code has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from flexgroup.trace import schema
from flexgroup.trace.reader import read_events
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

from .fences import ROOT, tables

PAGE = ROOT / "docs" / "trace.md"

TYPES = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "list of int32": pa.list_(pa.int32()),
    "list of string": pa.list_(pa.string()),
}


def column_tables() -> list[list[dict[str, str]]]:
    found = [table for table in tables(PAGE) if "column" in table[0]]
    assert len(found) == 2
    return found


def described(table: list[dict[str, str]]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(row["column"].strip("`"), TYPES[row["type"]], nullable=row["null"] != "never")
            for row in table
        ]
    )


def test_the_columns_of_events() -> None:
    assert described(column_tables()[0]) == schema.EVENT_COLUMNS


def test_the_columns_of_runs() -> None:
    assert described(column_tables()[1]) == schema.RUN_COLUMNS


def test_what_readers_take_where_runs_say_nothing() -> None:
    missing = "missing or null in `runs`"
    (table,) = [table for table in tables(PAGE) if missing in table[0]]
    told = {row[missing].strip("`"): row["read as"].split("`")[1] for row in table[:-1]}
    assert told == {name: str(value) for name, value in schema.RUN_DEFAULTS.items()}


def test_the_kinds_of_events() -> None:
    (table,) = [table for table in tables(PAGE) if "kind" in table[0]]
    assert tuple(row["kind"] for row in table) == schema.KINDS


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run with every kind of event that the simulator can be made to write here."""
    directory = tmp_path_factory.mktemp("traces")
    faults = Faults(crashes=("0@5ms",), recoveries=("0@8ms",), suspicions=("2:3@4ms-5ms",))
    scenario = Scenario("dcc", 4, 3, "random:3", "lan", duration=0.01, drain=0.0, faults=faults)
    return directory, record_scenario(scenario, directory).run


SEEN = ("multicast", "send", "receive", "deliver", "suspect", "crash", "recover")


@pytest.mark.parametrize("kind", SEEN)
def test_a_column_is_filled_in_the_rows_that_the_page_says(
    recorded: tuple[Path, str], kind: str
) -> None:
    table = read_events(*recorded, kind)
    assert table.num_rows > 0
    for row in column_tables()[0]:
        if row["column"].strip("`") not in schema.RECORDED.names:
            continue  # our own worlds have none of it
        values = table.column(row["column"].strip("`"))
        if row["in rows of"] == "all" or kind in row["in rows of"].split(", "):
            assert values.null_count < table.num_rows
        else:
            assert values.null_count == table.num_rows
