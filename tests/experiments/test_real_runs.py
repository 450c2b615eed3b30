"""Runs on real servers: recorded by them, verified like simulated ones, and not made twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.experiments import network_run
from flexgroup.experiments.directory import reserved_directory
from flexgroup.experiments.experiment import HERE, SMALL, Experiment, Grid, RealRun
from flexgroup.experiments.figure import Figure, Kind, Series
from flexgroup.experiments.network_run import Given, make_real_runs
from flexgroup.experiments.real_runs import (
    Servers,
    counted_of,
    given_servers,
    is_finished,
    local_servers,
    record_real,
)
from flexgroup.load.local_cluster import LocalCluster
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import load_history, read_runs

from .tiny import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT = 0.2
SKEEN = RealRun("skeen", 2, 3, "random:N", SHORT, 1)
DCC = RealRun("dcc", 2, 3, "tpcc", SHORT, 1)


@pytest.fixture(scope="module")
def two_servers() -> Iterator[Servers]:
    with local_servers(2) as servers:
        yield servers


@pytest.mark.parametrize("real", [SKEEN, DCC])
def test_what_servers_record_keeps_all_promises(
    real: RealRun, two_servers: Servers, tmp_path: Path
) -> None:
    counted = record_real(real, two_servers, tmp_path)
    (run,) = read_runs(tmp_path)
    assert (run.run, run.world, run.network, run.workload) == (
        real.run, "network", HERE, real.workload
    )  # fmt: skip
    assert run.complete
    verdicts = check(load_history(tmp_path, run), run.promised)
    assert {verdict.outcome for verdict in verdicts} == {Outcome.HOLDS}
    told = run.told_events or {}
    assert told["multicast"] == counted.messages > 0
    assert told["deliver"] == counted.deliveries
    assert counted_of(tmp_path, real.run) == counted
    assert min(each["cpu_seconds"] for each in counted.servers) > 0


def test_runs_that_are_finished_are_not_made_again(
    two_servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def killed_after_one(real: RealRun, servers: Servers, traces: Path) -> None:
        if made:
            raise KeyboardInterrupt
        record_real(real, servers, traces)
        made.append(real.run)

    monkeypatch.setattr(network_run, "_servers", lambda size, given: Kept(two_servers))
    monkeypatch.setattr(network_run, "record_real", killed_after_one)
    with pytest.raises(KeyboardInterrupt):
        make_real_runs([SKEEN, DCC], tmp_path, None, lambda share: None)
    assert (is_finished(tmp_path, SKEEN), is_finished(tmp_path, DCC)) == (True, False)
    monkeypatch.setattr(network_run, "record_real", record_real)
    assert make_real_runs([SKEEN, DCC], tmp_path, None, lambda share: None) == 1
    assert make_real_runs([SKEEN, DCC], tmp_path, None, lambda share: None) == 0
    assert {run.run for run in read_runs(tmp_path)} == {SKEEN.run, DCC.run}


def test_measured_and_predicted_points_are_verified_and_stand_beside_each_other(
    spark: SparkSession, two_servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_run, "_servers", lambda size, given: Kept(two_servers))
    grid = Grid(("skeen",), ("random:N",), (3,), (1,), SHORT, (2,), ("machine",), entry="first")
    series = tuple(Series(where, "skeen", "random:N", 2, where) for where in (HERE, "machine"))
    figure = Figure("t", "Two servers", Kind.CURVES, series, ("throughput", "latency"))
    experiment = Experiment(
        "tiny-network", "Two servers", "a test", {SMALL: [grid]}, (figure,), real={SMALL: [SKEEN]}
    )
    with reserved_directory(experiment, SMALL, tmp_path / "out", force=False) as directory:
        make_real_runs(experiment.real[SMALL], directory.traces, None, lambda share: None)
    result = run_here(spark, experiment, tmp_path / "out")
    assert result.outcomes.keys() == {"holds"}
    points = {row["network"]: row for row in result.points}
    assert points.keys() == {HERE, "machine"}
    assert all(row["throughput"] > 0 for row in points.values())
    assert points[HERE]["steps"] == points["machine"]["steps"]
    assert "| here | machine |" in result.directory.page.read_text(encoding="utf-8")


class Kept:
    """Servers that are not stopped when they are done with."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers

    def __enter__(self) -> Servers:
        return self.servers

    def __exit__(self, *error: object) -> None:
        pass


def test_servers_that_run_elsewhere_are_used_in_the_order_of_their_ages(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    options = ["--log", "none", "--pack", "1", "--trace", str(recorded)]
    with LocalCluster(2, tmp_path / "logs", options) as cluster:
        backwards = cluster.addresses[::-1]
        with given_servers(backwards, recorded) as servers:
            assert servers.addresses == cluster.addresses
            record_real(SKEEN, servers, tmp_path / "traces")
    (run,) = read_runs(tmp_path / "traces")
    assert run.complete


def test_a_server_that_is_killed_in_the_middle_is_told_and_leaves_no_run(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    options = ["--log", "none", "--pack", "1", "--trace", str(recorded)]
    with (
        LocalCluster(2, tmp_path / "logs", options) as cluster,
        given_servers(cluster.addresses, recorded) as servers,
    ):
        cluster.servers[1].kill()
        with pytest.raises(FlexGroupError, match=r"the clients of .* have failed: cannot connect"):
            record_real(SKEEN, servers, tmp_path / "traces")
    assert not is_finished(tmp_path / "traces", SKEEN)


def test_servers_that_join_messages_are_refused(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    many = RealRun("skeen", 2, 64, "broadcast", SHORT, 1)
    options = ["--log", "none", "--trace", str(recorded)]
    with (
        LocalCluster(2, tmp_path / "logs", options) as cluster,
        given_servers(cluster.addresses, recorded) as servers,
        pytest.raises(UsageError, match="start servers with --pack 1"),
    ):
        record_real(many, servers, tmp_path / "traces")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("nowhere.invalid:7400", "cannot connect to nowhere.invalid:7400"),
        ("127.0.0.1:9", "start a server there with `flexgroup server`"),
    ],
)
def test_a_server_that_is_not_there_is_named(address: str, told: str, tmp_path: Path) -> None:
    given = Given((address,), tmp_path)
    with pytest.raises(FlexGroupError, match=told):
        make_real_runs([RealRun("skeen", 1, 1, "tpcc", SHORT, 1)], tmp_path, given, print)


def test_too_few_servers_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 servers are needed, and 1 were given"):
        make_real_runs([SKEEN], tmp_path, Given(("127.0.0.1:9",), tmp_path), print)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["demo", "--world", "network"], "--world network is for the experiment 'dcc' only"),
        (["dcc", "--machine", "x"], "--connect, --traces and --machine go with --world network"),
        (["dcc", "--world", "network", "--connect", "a:1"], "--connect and --traces go together"),
        (
            ["dcc", "--world", "network", "--connect", "a:1", "--traces", "x"],
            "predictions need the constants of the machine",
        ),
        (
            ["dcc", "--world", "network", "--machine", "missing.json"],
            "cannot read 'missing.json': No such file or directory; write it with",
        ),
    ],
)
def test_bad_input_is_answered_in_one_line(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert told in capsys.readouterr().err


def test_a_file_that_is_no_calibration_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "machine.json"
    file.write_text(json.dumps({"constants": {"cores": 2}}))
    named = ["--machine", str(file), "--out", str(tmp_path / "out")]
    assert main(["experiment", "dcc", "--world", "network", *named]) == 2
    assert "holds no calibration; write one with: flexgroup calibrate" in capsys.readouterr().err
