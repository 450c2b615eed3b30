"""The pipeline through a real Spark Connect server, and what cannot be served there."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from flexgroup.cli.main import main
from flexgroup.pipeline.spark.java import FAST_START, spark_environment

from ..trace.recorded import record

PATIENCE = 120
"""Seconds until a server that does not start counts as broken."""

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server, started from the installed PySpark."""
    folder, port = tmp_path_factory.mktemp("connect"), free_port()
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [str(home / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[1]"]
    command += ["--driver-java-options", FAST_START]
    command += [f"--conf={key}={value}" for key, value in settings.items()]
    # The package is found only where it was shipped to.
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment = {**bare, **spark_environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while "Spark Connect server started" not in log.read_text(errors="replace"):
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def flexgroup(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: one that has a Spark of its own cannot have one over Connect."""
    command = ["-m", "flexgroup.cli.main", *arguments, "--json"]
    bare = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    return subprocess.run(
        [spark_environment()["PYSPARK_DRIVER_PYTHON"], *command],
        capture_output=True, text=True, timeout=400, env=bare,
    )  # fmt: skip


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recorded") / "traces"
    record(directory)
    return directory


@pytest.mark.slow
@pytest.mark.spark
def test_verify_over_spark_connect(server: str, traces: Path) -> None:
    chosen = ("--property", "integrity", "--property", "acyclic order")
    done = flexgroup("verify", str(traces), "--master", server, *chosen)
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = {verdict["outcome"] for verdict in json.loads(done.stdout)["verdicts"]}
    assert outcomes == {"holds"}


@pytest.mark.slow
@pytest.mark.spark
def test_measure_over_spark_connect(server: str, traces: Path) -> None:
    done = flexgroup("measure", str(traces), "--master", server)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["points"][0]["throughput"] > 0


@pytest.mark.parametrize(
    "command", [["watch", "."], ["experiment", "demo", "--out", "runs"]], ids=lambda words: words[0]
)
def test_what_needs_the_driver_here_is_refused(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--master", "sc://host"]) == 2
    assert "which Spark Connect (sc://) has elsewhere" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_answer_is_told_at_once(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"sc://127.0.0.1:{free_port()}"
    assert main(["verify", str(traces), "--master", address]) == 2
    assert f"no Spark Connect server answers at '{address}'" in capsys.readouterr().err
