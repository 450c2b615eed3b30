"""The validator names the file, the row group and the reason of whatever is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.core.promises import PROPERTIES
from flexgroup.trace import schema
from flexgroup.trace.reader import read_runs
from flexgroup.trace.validate.problems import LISTED
from flexgroup.trace.validate.report import validate
from flexgroup.trace.writer import STARTED
from flexgroup.worlds.simulator.scenario import Scenario

from .damages import Damage, cut_in_half, make_empty, make_text, with_null, with_type, without
from .recorded import SCENARIO, event_file, record, rows, run_file, tamper

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recorded")
    for seed in (1, 2):
        record(directory, replace(SCENARIO, seed=seed))
    return directory


@pytest.fixture
def traces(recorded: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded, tmp_path / "traces")
    return tmp_path / "traces"


def first_run(directory: Path) -> str:
    return read_runs(directory)[0].run


def told(directory: Path) -> list[str]:
    findings = validate(directory)
    assert findings.errors + findings.warnings == len(findings.problems)
    return [str(problem) for problem in findings.problems]


def in_row_groups(path: Path, rows: int) -> None:
    """The same file with row groups of so many rows."""
    table = pq.ParquetFile(path).read()
    pq.write_table(table, path, row_group_size=rows)


def test_nothing_is_wrong_with_what_we_record(recorded: Path) -> None:
    findings = validate(recorded)
    assert findings.problems == []
    assert (findings.runs, findings.files) == (2, 10)
    assert findings.rows > 500


def test_adapters_need_not_wait_for_processors(tmp_path: Path) -> None:
    """Completions of writes leave when these arrive, and busy processes hear of them later."""
    scenario = Scenario(
        "leader protected-memory ramcast", 6, 16, "random:2", duration=0.005, groups="2x3"
    )
    run = record(tmp_path, scenario)
    assert validate(tmp_path).problems == []
    sent = rows(event_file(tmp_path, schema.SEND, run))
    by_step = sorted(sent, key=lambda row: (row["process"], row["step"]))
    early = [
        row
        for before, row in pairwise(by_step)
        if before["process"] == row["process"] and before["time"] > row["time"]
    ]
    assert early
    assert {row["detail"] for row in early} == {'{"by":"adapter"}'}


@pytest.mark.parametrize("damage", [cut_in_half, make_empty, make_text])
@pytest.mark.parametrize("kind", ["runs", "deliver"])
def test_a_file_that_is_not_whole(traces: Path, damage: Damage, kind: str) -> None:
    run = first_run(traces)
    path = run_file(traces, run) if kind == "runs" else event_file(traces, kind, run)
    damage(path)
    name = path.relative_to(traces).as_posix()
    assert told(traces)[0].startswith(f"error: {name}: cannot be read as Parquet: ")


def test_damage_inside_is_told_by_row_group_and_the_rest_is_read(traces: Path) -> None:
    path = event_file(traces, "receive", first_run(traces))
    in_row_groups(path, 40)
    metadata = pq.read_metadata(path)
    data = bytearray(path.read_bytes())
    for group in (1, 3):
        column = metadata.row_group(group).column(0)
        start = column.dictionary_page_offset or column.data_page_offset
        data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(bytes(data))
    found = told(traces)
    assert len(found) == 2
    for group, line in zip((1, 3), found, strict=True):
        assert f"receive/{path.name}, row group {group}: cannot be read: " in line


@pytest.mark.parametrize(
    ("kind", "damage", "reason"),
    [
        ("deliver", without("step"), "has no column 'step'"),
        ("multicast", without("destinations"), "has no column 'destinations'"),
        ("send", with_type("time", pa.float64()), "column 'time' is double, not int64"),
        ("runs", without("processes"), "has no column 'processes'"),
        ("runs", with_type("seed", pa.string()), "column 'seed' is string, not int64"),
    ],
)
def test_columns(traces: Path, kind: str, damage: Damage, reason: str) -> None:
    run = first_run(traces)
    path = run_file(traces, run) if kind == "runs" else event_file(traces, kind, run)
    damage(path)
    assert f"error: {path.relative_to(traces).as_posix()}: {reason}" in told(traces)


def change(column: str, value: object, row: int = 0) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        rows[row][column] = value

    return apply


def again(rows: Rows) -> None:
    rows.append(rows[0])


def swap_times(rows: Rows) -> None:
    of_one = [row for row in rows if row["process"] == rows[0]["process"]]
    of_one[0]["time"], of_one[-1]["time"] = of_one[-1]["time"], of_one[0]["time"]


@pytest.mark.parametrize(
    ("kind", "tampering", "expected"),
    [
        ("deliver", change("origin", None), "error: column 'origin' is empty in 1 row"),
        ("deliver", change("process", -2), "error: column 'process' is negative in 1 row"),
        ("send", change("step", -7), "error: column 'step' is negative in 1 row, the least is -7"),
        ("deliver", change("origin", 1 << 20), "error: column 'origin' goes up to 1048576, at"),
        ("deliver", again, "error: process {process} has once a step that it had before, step"),
        ("multicast", again, "error: 1 row of a message that was multicast before, {origin}.{seq}"),
        ("multicast", change("destinations", []), "error: 1 row without a destination"),
        ("multicast", change("destinations", [1, 2, 1]), "error: 1 row with a destination twice"),
        ("multicast", change("destinations", [1, None]), "error: 'destinations' has 1 empty entr"),
        ("multicast", change("destinations", [-1, 1]), "error: 'destinations' has 1 negative entr"),
        ("multicast", change("destinations", [1, 9]), "warning: destination 9, and processes are"),
        ("multicast", change("origin", 3), "warning: 1 row of a message whose origin is another"),
        ("deliver", change("process", 7), "warning: process 7, and `runs` tells of 4 processes"),
        ("receive", change("sent", 10**6), "error: 1 row of packets that process {peer} did not"),
        ("send", swap_times, "warning: the time of process {process} goes back"),
    ],
)
def test_rows(traces: Path, kind: str, tampering: Callable[[Rows], None], expected: str) -> None:
    path = event_file(traces, kind, first_run(traces))
    first = pq.ParquetFile(path).read().slice(0, 1).to_pylist()[0]
    tamper(path, tampering)
    severity, _, reason = expected.format(**first).partition(": ")
    where = f"{severity}: events/event={kind}/{path.name}, row group 0: {reason}"
    assert any(line.startswith(where) for line in told(traces)), told(traces)


def test_a_step_twice_in_different_kinds(traces: Path) -> None:
    run = first_run(traces)
    sent = pq.ParquetFile(event_file(traces, "send", run)).read().slice(0, 1).to_pylist()[0]
    path = event_file(traces, "deliver", run)
    tamper(path, lambda rows: rows[0].update(process=sent["process"], step=sent["step"]))
    expected = f"deliver/{path.name}, row group 0: process {sent['process']} has once a step"
    assert any(expected in line for line in told(traces))


def test_missing_steps_are_a_warning_for_the_run(traces: Path) -> None:
    run = first_run(traces)
    event_file(traces, "send", run).unlink()
    lines = [line for line in told(traces) if line.startswith(f"warning: run '{run}': ")]
    assert len(lines) == 1
    assert "steps are missing at " in lines[0]


def test_events_of_a_run_that_is_not_told_of(traces: Path) -> None:
    run = first_run(traces)
    run_file(traces, run).unlink()
    (line,) = told(traces)  # one for all of its files
    assert line.startswith("warning: ")
    assert f"has events of run '{run}', which `runs` does not tell of" in line
    assert validate(traces).errors == 0


def test_a_run_that_was_cut_by_killing_all_that_recorded_it(traces: Path) -> None:
    """What one had received is there, what another had sent is not: neither is an error."""
    for run in read_runs(traces):
        sends = event_file(traces, "send", run.run)
        pq.write_table(pq.read_table(sends, partitioning=None).slice(0, 1), sends)
        (traces / STARTED).mkdir(exist_ok=True)
        run_file(traces, run.run).rename(traces / STARTED / f"{run.run}.parquet")
    findings = validate(traces)
    assert findings.errors == 0
    assert findings.problems[0].file == "runs"
    assert findings.problems[0].reason == "no run has ended, so readers find none yet"


def test_two_runs_of_the_same_name(traces: Path) -> None:
    run = first_run(traces)
    path = event_file(traces, "deliver", run)
    shutil.copy(path, path.with_name("zz.parquet"))
    shutil.copy(run_file(traces, run), run_file(traces, "zz"))
    lines = told(traces)
    assert f"error: runs/zz.parquet, row group 0: describes run '{run}' again" in lines
    assert (
        f"error: events/event=deliver/zz.parquet, row group 0: has events of run '{run}', which "
        f"has a file of its own, '{run}.parquet': two runs with the same name are mixed"
    ) in lines


def test_a_file_with_the_name_of_another_run(traces: Path) -> None:
    one, other = (run.run for run in read_runs(traces))
    shutil.copy(event_file(traces, "send", one), event_file(traces, "send", other))
    expected = f"row group 0: has events of run '{one}', and the name of run '{other}'"
    assert any(line.endswith(expected) for line in told(traces))


def test_kinds_that_do_not_exist_and_files_nobody_reads(traces: Path) -> None:
    events = traces / "events"
    (events / "event=deliver").rename(events / "event=delivery")
    (events / "notes.txt").write_text("of somebody")
    (events / "event=send" / "_half.parquet").write_text("in the making")
    lines = told(traces)
    assert lines[0].startswith("error: events/event=delivery: there are no such events; the kinds")
    assert lines[1] == (
        "warning: events/notes.txt: is not part of a trace set, and nobody reads it"
    )


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (
            "schema_version",
            3,
            "run '{run}': it was written by a newer version (schema 3, this one reads 2); "
            "upgrade flexgroup",
        ),
        (
            "schema_version",
            0,
            "run '{run}': there is no schema version 0; the first one is 1",
        ),
        (
            "schema_version",
            -1,
            "run '{run}': there is no schema version -1; the first one is 1",
        ),
        (
            "schema_version",
            1,
            "run '{run}': column 'promises' has a value, and schema version 1 has no such column",
        ),
        (
            "cost_model",
            "lan:send_ns=-1,receive_ns=15000,byte_ps=100000,answers=all",
            "run '{run}': the cost model 'lan:send_ns=-1,receive_ns=15000,byte_ps=100000,"
            "answers=all' is no name with figures such as "
            "lan:send_ns=15000,receive_ns=15000,byte_ps=100000,answers=all",
        ),
        (
            "channels",
            ["reliable", "quick"],
            "run '{run}': 'quick' in column 'channels' is none of: reliable, fifo, causal, total,"
            " uniform, virtual-synchrony, leader, protected-memory",
        ),
        (
            "promises",
            ["no order"],
            "run '{run}': 'no order' in column 'promises' is none of: " + ", ".join(PROPERTIES),
        ),
        ("faulty", [1, 9], "run '{run}': there is no process 9, which column 'faulty' names"),
        ("outcome", "done", "run '{run}': its outcome is 'done', not complete or cut"),
        ("processes", 0, "run '{run}': it has 0 processes and 3 clients"),
    ],
)
def test_rows_of_runs(traces: Path, column: str, value: object, reason: str) -> None:
    run = first_run(traces)
    tamper(run_file(traces, run), change(column, value))
    assert f"error: runs/{run}.parquet, row group 0: {reason.format(run=run)}" in told(traces)


def test_an_empty_cell_of_runs(traces: Path) -> None:
    run = first_run(traces)
    with_null("stack")(run_file(traces, run))
    assert f"error: runs/{run}.parquet, row group 0: column 'stack' is empty" in told(traces)


def test_columns_of_texts_that_nobody_needs_may_be_missing(traces: Path) -> None:
    without("packet")(event_file(traces, "deliver", first_run(traces)))
    assert told(traces) == []


def test_a_view_that_says_nothing(traces: Path) -> None:
    run = first_run(traces)
    row = {"run": run, "process": 0, "step": 1000, "time": 0, "detail": "{}"}
    path = event_file(traces, "view", run)
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist([row], schema=schema.EVENT_COLUMNS), path)
    assert "the detail of a view row is '{}'; it must have a number" in told(traces)[0]


def test_an_empty_directory_holds_no_run(tmp_path: Path) -> None:
    assert told(tmp_path) == ["error: runs: there is no runs/*.parquet, so the set holds no run"]
    with pytest.raises(UsageError, match="is not a directory; give the directory of a trace set"):
        validate(tmp_path / "nowhere")


def test_a_run_without_events_is_strange(traces: Path) -> None:
    run = first_run(traces)
    for path in traces.glob(f"events/*/{run}.parquet"):
        path.unlink()
    tamper(run_file(traces, run), change("events", None))
    (line,) = told(traces)
    assert line.startswith(f"warning: run '{run}': has no events: whatever is checked holds")


def test_several_runs_in_one_file_are_told_apart(traces: Path) -> None:
    """As Spark, or another system, may write them; the order of kinds and rows does not matter."""
    for folder in (traces / "events").iterdir():
        paths = sorted(folder.iterdir())
        together = pa.concat_tables([pq.ParquetFile(path).read() for path in paths])
        for path in paths:
            path.unlink()
        shuffled = np.random.default_rng(1).permutation(together.num_rows)
        pq.write_table(together.take(pa.array(shuffled)), folder / "part-0.parquet")
    findings = validate(traces)
    assert findings.errors == 0


def test_problems_without_end_are_counted_and_the_first_ones_told(traces: Path) -> None:
    path = event_file(traces, "send", first_run(traces))
    rows = [*pq.ParquetFile(path).read().to_pylist() * 3]
    for row in rows:
        row["depth"] = -1
    table = pa.Table.from_pylist(rows, schema=schema.EVENT_COLUMNS)
    pq.write_table(table, path, row_group_size=1)
    findings = validate(traces)
    assert findings.errors > len(rows)
    assert len(findings.problems) <= 2 * LISTED


# The command.


def test_the_command_says_that_all_is_well(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(recorded)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 runs, 10 files, ")
    assert out.endswith(" rows of events: 0 errors, 0 warnings\n")


def test_the_command_ends_with_code_2_if_something_is_wrong(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = event_file(traces, "deliver", first_run(traces))
    tamper(path, change("seq", None))
    assert main(["validate", str(traces)]) == 2
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == (
        f"error: events/event=deliver/{path.name}, row group 0: column 'seq' is empty in 1 row"
    )
    assert ": 1 errors, " in last
    assert main(["validate", str(traces), "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["errors"] == 1
    assert document["problems"][0] == {
        "severity": "error",
        "file": f"events/event=deliver/{path.name}",
        "row_group": 0,
        "reason": "column 'seq' is empty in 1 row",
    }


def test_the_command_needs_a_directory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["validate", str(tmp_path / "nowhere")]) == 2
    assert "is not a directory" in capsys.readouterr().err
