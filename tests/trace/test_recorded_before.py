"""Traces that were recorded before say what they said, and equal seeds still give equal rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.core.promises import PROPERTIES
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.run import run_of
from flexgroup.trace.validate.report import validate
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

from .recorded import replay_again
from .recorded_before import EXPLORED, LIVE, SCENARIOS, SIMULATED

SETS = [SIMULATED, EXPLORED, LIVE]


def said(traces: Path, command: str) -> Any:
    """What a command printed about a trace set when it was recorded."""
    return json.loads(traces.with_suffix(".json").read_text(encoding="utf-8"))[command]


def says(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    """What a command prints today."""
    main([*command, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_equal_seeds_give_equal_rows_in_all_columns_that_existed(
    scenario: Scenario, tmp_path: Path
) -> None:
    run = record_scenario(scenario, tmp_path).run
    before = sorted(path.relative_to(SIMULATED) for path in SIMULATED.rglob(f"{run}.parquet"))
    now = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob(f"{run}.parquet"))
    assert now == before
    assert len(before) > 4
    for file in before:
        old, new = pq.read_table(SIMULATED / file), pq.read_table(tmp_path / file)
        for column in old.column_names:
            if column not in ("schema_version", "software"):
                assert new.column(column).equals(old.column(column)), (file, column)


def test_the_recorded_runs_are_those_of_the_scenarios() -> None:
    assert {run.run for run in read_runs(SIMULATED)} == {s.run for s in SCENARIOS.values()}


@pytest.mark.parametrize("traces", SETS, ids=lambda traces: traces.name)
def test_they_are_of_version_1_and_valid(traces: Path) -> None:
    assert {run.schema_version for run in read_runs(traces)} == {1}
    assert validate(traces).to_json() == said(traces, "validate")


@pytest.mark.parametrize("traces", [SIMULATED, EXPLORED], ids=lambda traces: traces.name)
def test_they_are_replayed(traces: Path) -> None:
    found = []
    for run in read_runs(traces):
        result = replay_again(traces, run)
        found.append({"run": run.run, "events": result.events, "divergence": result.divergence})
    assert found == said(traces, "replay")


@pytest.mark.parametrize("traces", SETS, ids=lambda traces: traces.name)
def test_they_are_read(traces: Path) -> None:
    deliveries = {verdict["run"] for verdict in said(traces, "verify")}
    assert {run.run for run in read_runs(traces)} == deliveries
    assert any(len(load_history(traces, run).deliveries.process) for run in read_runs(traces))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("traces", SETS, ids=lambda traces: traces.name)
def test_they_are_verified(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = says(capsys, "verify", str(traces))["verdicts"]
    for verdict in found:
        del verdict["explanation"]
    expected = said(traces, "verify")
    if traces == EXPLORED:
        # Then nobody understood channels that lose, and everything was checked.
        promised = {run.run: run.promised for run in read_runs(traces)}
        expected = [
            verdict for verdict in expected if verdict["property"] in promised[verdict["run"]]
        ]
    assert found == expected


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("traces", SETS, ids=lambda traces: traces.name)
def test_they_are_measured(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was not measured then does not count."""
    before = said(traces, "measure")["points"]
    points = says(capsys, "measure", str(traces))["points"]
    assert [{name: point[name] for name in before[0]} for point in points] == before


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("traces", SETS, ids=lambda traces: traces.name)
def test_they_are_reported(traces: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    main(["report", str(traces), "--out", str(page)])
    told = page.read_text(encoding="utf-8")
    for verdict in said(traces, "verify"):
        assert verdict["run"] in told
        assert verdict["property"] in told


def test_what_was_below_and_what_was_promised_is_worked_out() -> None:
    runs = {run.stack: run for traces in SETS for run in read_runs(traces)}
    assert runs["skeen"].channels == ("reliable", "fifo")
    assert "acyclic order" in runs["skeen"].promised
    assert runs["skeen"].cost_model == (
        "lan:send_ns=15000,receive_ns=15000,byte_ps=100000,answers=all"
    )
    assert (runs["df"].cost_model or "").endswith("answers=last")
    assert runs["fifo dcc"].channels == ("reliable",)
    assert runs["reliable atomic"].channels == ("reliable", "fifo")
    assert runs["reliable atomic"].cost_model is None
    lossy = {run.run: run for run in read_runs(EXPLORED)}
    assert lossy["one-loss"].channels == ("fifo",)
    assert lossy["one-loss"].promised == ("integrity", "fifo order", "minimality")
    assert lossy["one-duplicate"].channels == ()
    (drops,) = [run for run in read_runs(SIMULATED) if "!drop" in (run.faults or "")]
    assert drops.channels == ("fifo",)


@pytest.mark.parametrize(
    ("stack", "network"),
    [("their protocol", None), ("skeen", "ten gigabits"), ("skeen", "lan:loss=0.1"), ("", None)],
)
def test_of_what_nobody_knows_everything_is_checked(stack: str, network: str | None) -> None:
    row = {"run": "theirs", "stack": stack, "network": network, "processes": 3, "schema_version": 1}
    run = run_of(row)
    assert (run.channels, run.promises, run.cost_model) == (None, None, None)
    assert run.promised == PROPERTIES


def test_faults_of_version_1_that_are_no_object_plan_nothing() -> None:
    row = {**read_row(SIMULATED), "faults": "[]"}
    assert run_of(row).promises is not None


def test_nobody_cannot_be_faulty() -> None:
    row = {**read_row(SIMULATED), "schema_version": 2, "faulty": [None]}
    with pytest.raises(UsageError, match="there is no process None, which column 'faulty' names"):
        run_of(row)


@pytest.mark.parametrize(
    ("column", "value"), [("promises", ["validity"]), ("faulty", [0]), ("cost_model", "lan")]
)
def test_version_1_has_no_columns_of_version_2(column: str, value: object) -> None:
    row = {**read_row(SIMULATED), column: value}
    with pytest.raises(UsageError, match=f"'{column}' has a value, and schema version 1 has no"):
        run_of(row)


def read_row(traces: Path) -> dict[str, Any]:
    (row, *_) = pq.read_table(sorted((traces / "runs").glob("*.parquet"))[0]).to_pylist()
    return dict(row)
