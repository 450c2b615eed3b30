"""What is written into a trace set is what happened, and is read back as it was."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace import schema
from flexgroup.trace.collector import Collector
from flexgroup.trace.cost_models import CostModel, parse_cost_model
from flexgroup.trace.history import History, Packets
from flexgroup.trace.reader import load_history, read_run, read_runs
from flexgroup.trace.writer import TraceWriter
from flexgroup.worlds.explorer.schedule import ScheduleStep, write_trace
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario, run_scenario

from .recorded import SCENARIO, event_file, record, rows, run_file

FAULTY = replace(
    SCENARIO,
    stack="best-effort",
    rate=5000.0,
    network="lan:loss=0.2,fifo=no",
    faults=Faults(crashes=("1@0.5ms",), recoveries=("1@1ms",), detection="0.1ms"),
)


def collected(scenario: Scenario) -> History:
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    return collector.history(outcome.run, scenario.processes, outcome.complete)


def names(packets: Packets) -> list[tuple[str, str | None]]:
    """Packet types and details, spelled out."""
    return [
        (packets.packet[packet], packets.detail[detail])
        for packet, detail in zip(packets.packet_code, packets.detail_code, strict=True)
    ]


@pytest.mark.parametrize("scenario", [SCENARIO, replace(SCENARIO, stack="dcc"), FAULTY])
def test_reading_back_gives_what_the_collector_has(tmp_path: Path, scenario: Scenario) -> None:
    run = record(tmp_path, scenario)
    kept, read = collected(scenario), load_history(tmp_path, read_run(tmp_path, run))
    assert (read.run, read.processes, read.complete) == (kept.run, kept.processes, kept.complete)
    compared = 0
    for part in ("multicasts", "deliveries", "sends", "receives", "crashes", "recoveries"):
        one, other = getattr(kept, part), getattr(read, part)
        for column in fields(one):
            if column.name.endswith("_code") or column.name in ("packet", "detail"):
                continue
            left, right = getattr(one, column.name), getattr(other, column.name)
            assert np.array_equal(left, right), f"{part}.{column.name}"
            compared += len(left)
    assert names(kept.sends) == names(read.sends)
    assert names(kept.receives) == names(read.receives)
    assert compared > 100


def test_without_packets_only_the_rest_is_read(tmp_path: Path) -> None:
    run = read_run(tmp_path, record(tmp_path))
    history = load_history(tmp_path, run, packets=False)
    assert len(history.sends.process) == len(history.receives.process) == 0
    assert len(history.deliveries.process) > 0


def test_the_row_of_a_run_tells_what_was_simulated(tmp_path: Path) -> None:
    record(tmp_path, FAULTY)
    (run,) = read_runs(tmp_path)
    assert (run.run, run.world, run.stack) == (FAULTY.run, "simulator", "best-effort")
    assert (run.processes, run.clients, run.seed) == (4, 3, 1)
    assert (run.workload, run.network) == ("random:2", "lan:loss=0.2,fifo=no")
    assert run.options == '{"drain":10.0,"duration":0.002,"rate":5000.0}'
    assert '"crashes":["1@0.5ms"]' in (run.faults or "")
    assert (run.outcome, run.schema_version) == (schema.COMPLETE, schema.VERSION)
    assert run.software.startswith("flexgroup ")
    assert run.started is None, "virtual time has no date, and equal runs are equal files"


def test_the_files_have_the_columns_of_the_schema(tmp_path: Path) -> None:
    run = record(tmp_path, FAULTY)
    assert pq.read_schema(run_file(tmp_path, run)) == schema.RUN_COLUMNS
    kinds = sorted(path.name for path in (tmp_path / "events").iterdir())
    assert kinds == [
        f"event={kind}"
        for kind in ("crash", "deliver", "multicast", "receive", "recover", "send", "suspect")
    ]
    for kind in kinds:
        found = pq.read_schema(tmp_path / "events" / kind / f"{run}.parquet")
        assert found.names == schema.RECORDED.names
        assert [field.nullable for field in found] == [field.nullable for field in schema.RECORDED]


def test_steps_count_the_events_of_a_process_without_gaps(tmp_path: Path) -> None:
    run = record(tmp_path, FAULTY)
    steps: dict[int, list[int]] = {}
    for kind in schema.KINDS:
        path = event_file(tmp_path, kind, run)
        for row in rows(path) if path.exists() else []:
            steps.setdefault(row["process"], []).append(row["step"])
    assert set(steps) == set(range(7))
    for of_process in steps.values():
        assert sorted(of_process) == list(range(len(of_process)))


def test_a_receive_row_names_the_step_of_its_send_and_how_long_it_queued(tmp_path: Path) -> None:
    run = record(tmp_path, replace(SCENARIO, clients=20))
    sends = {(row["process"], row["step"]): row for row in rows(event_file(tmp_path, "send", run))}
    queued = 0
    for row in rows(event_file(tmp_path, "receive", run)):
        sent = sends[row["peer"], row["sent"]]
        assert sent["peer"] == row["process"]
        for column in ("origin", "seq", "packet", "depth", "header_bytes", "payload_bytes"):
            assert sent[column] == row[column]
        assert row["time"] - row["queued"] >= sent["time"]
        queued += row["queued"] > 0
    assert queued > 0


def test_only_what_a_kind_concerns_is_filled_in(tmp_path: Path) -> None:
    run = record(tmp_path)
    expected = {
        "multicast": {"origin", "seq", "destinations", "payload_bytes"},
        "deliver": {"origin", "seq", "depth", "payload_bytes"},
        "send": {"origin", "seq", "peer", "packet", "depth", "header_bytes", "payload_bytes"},
    }
    expected["receive"] = expected["send"] | {"sent", "queued"}
    for kind, columns in expected.items():
        for row in rows(event_file(tmp_path, kind, run)):
            filled = {name for name, value in row.items() if value is not None}
            assert filled == {"run", "process", "step", "time", *columns}, kind


def test_several_runs_in_one_trace_set(tmp_path: Path) -> None:
    scenarios = [replace(SCENARIO, seed=seed) for seed in (3, 1, 2)]
    recorded = [record(tmp_path, scenario) for scenario in scenarios]
    assert [run.run for run in read_runs(tmp_path)] == sorted(recorded)
    for scenario in scenarios:
        history = load_history(tmp_path, read_run(tmp_path, scenario.run))
        assert np.array_equal(history.deliveries.time, collected(scenario).deliveries.time)


# Writing.


def test_a_run_is_not_overwritten_unless_forced(tmp_path: Path) -> None:
    run = record(tmp_path)
    before = event_file(tmp_path, "deliver", run).read_bytes()
    with pytest.raises(UsageError) as caught:
        record(tmp_path)
    assert str(caught.value) == (
        f"'{tmp_path}' already holds run '{run}'; choose another --out, or add --force"
    )
    record_scenario(SCENARIO, tmp_path, force=True)
    assert event_file(tmp_path, "deliver", run).read_bytes() == before


class _StopError(Exception):
    pass


def stop(share: float) -> None:
    raise _StopError


LONG = replace(SCENARIO, clients=30, duration=0.1)
"""Long enough to be asked for its progress, which is when the tests interrupt it."""


def files(directory: Path) -> list[str]:
    return sorted(
        path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()
    )


def test_an_interrupted_write_leaves_nothing_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(_StopError):
        record_scenario(LONG, tmp_path, progress=stop)
    assert files(tmp_path) == []
    with pytest.raises(UsageError, match="holds no runs"):
        read_runs(tmp_path)


def test_what_was_written_of_a_run_that_failed_is_removed(tmp_path: Path) -> None:
    def fail() -> None:
        with TraceWriter(tmp_path, SCENARIO.run) as writer:
            run_scenario(SCENARIO, writer)
            assert f"events/event=deliver/_{SCENARIO.run}.parquet" in files(tmp_path)
            raise _StopError

    with pytest.raises(_StopError):
        fail()
    assert files(tmp_path) == []


def test_an_interrupted_overwrite_keeps_what_was_there(tmp_path: Path) -> None:
    record(tmp_path, LONG)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    with pytest.raises(_StopError):
        record_scenario(LONG, tmp_path, force=True, progress=stop)
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_a_write_that_was_killed_is_not_taken_for_a_run(tmp_path: Path) -> None:
    """Files in the making have names that readers pass over, and the run's row comes last."""
    run = record(tmp_path)
    for kind in ("send", "deliver"):
        path = event_file(tmp_path, kind, run)
        path.rename(path.with_name("_" + path.name))
    run_file(tmp_path, run).unlink()
    with pytest.raises(UsageError, match="holds no runs"):
        read_runs(tmp_path)
    other = record(tmp_path, replace(SCENARIO, seed=5))
    assert [row.run for row in read_runs(tmp_path)] == [other]
    record(tmp_path)
    assert len(read_runs(tmp_path)) == 2


def test_a_directory_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(UsageError) as caught:
        record(tmp_path / "file" / "below")
    assert str(caught.value) == (
        f"cannot write a trace into '{tmp_path / 'file' / 'below'}': Not a directory; "
        "choose a directory that you may write to"
    )


@pytest.mark.parametrize(
    ("scenario", "channels", "missing"),
    [
        (SCENARIO, ("reliable", "fifo"), ()),
        (replace(SCENARIO, network="lan:fifo=no"), ("reliable",), ()),
        (FAULTY, (), ("validity", "agreement", "fifo order")),
        (replace(FAULTY, network="lan", faults=Faults(partitions=("0|1@1ms-2ms!drop",))),
         ("fifo",), ("validity", "agreement")),
    ],
)  # fmt: skip
def test_the_row_of_a_run_says_what_was_below_and_what_was_promised(
    tmp_path: Path, scenario: Scenario, channels: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    run = read_run(tmp_path, record(tmp_path, scenario))
    assert run.channels == channels
    assert run.promises == parse_stack(scenario.stack).promises(
        frozenset(Guarantee(name) for name in channels)
    )
    assert not set(missing) & set(run.promises)
    assert run.cost_model == "lan:send_ns=15000,receive_ns=15000,byte_ps=100000,answers=all"
    assert run.faulty == ()


@pytest.mark.parametrize(
    ("bounds", "fifo", "channels"),
    [
        (Bounds(), True, ("reliable", "fifo")),
        (Bounds(losses=1), True, ("fifo",)),
        (Bounds(duplicates=1), False, ()),
    ],
)
def test_the_explorer_says_it_in_the_same_words(
    tmp_path: Path, bounds: Bounds, fifo: bool, channels: tuple[str, ...]
) -> None:
    """So what is not promised over channels that lose is not asked for."""
    plan = parse_stack("best-effort")
    scope = Scope(2, (PlannedCast(2, (0, 1)),), fifo, bounds=bounds)
    write_trace(plan, scope, (ScheduleStep("cast", 2),), tmp_path, "explored")
    run = read_run(tmp_path, "explored")
    assert run.channels == channels
    assert run.promises == plan.promises(scope.channels)
    assert ("validity" in run.promised) == ("reliable" in channels)
    assert run.cost_model is None


@pytest.mark.parametrize("answers", ["all", "last", "last-group"])
def test_a_cost_model_is_read_back(answers: str) -> None:
    model = CostModel("rack", 1, 2, 3, answers)
    assert parse_cost_model(model.text) == model
    assert parse_cost_model("rack") is None
    assert parse_cost_model(None) is None
