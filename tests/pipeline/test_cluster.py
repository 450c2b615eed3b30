"""The pipeline on a real cluster: a master and two workers, as processes of their own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from flexgroup.pipeline.spark.java import spark_environment

from ..trace.recorded import SCENARIO, record

PATIENCE = 120
"""Seconds until a cluster that does not start counts as broken."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Cluster:
    """A standalone Spark cluster from the installed PySpark."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.master = f"spark://127.0.0.1:{self.port}"
        # Executors find the package only where it was shipped to them.
        bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.environment = {
            **bare,
            **spark_environment(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_WORKER_DIR": str(directory / "work"),
            "SPARK_LOG_DIR": str(directory),
        }
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._launch(
            "master", "org.apache.spark.deploy.master.Master",
            "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0",
        )  # fmt: skip
        self._wait_for("master", "I have been elected leader")
        for name in ("worker-1", "worker-2"):
            self._launch(
                name, "org.apache.spark.deploy.worker.Worker", self.master,
                "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0",
            )  # fmt: skip
        for name in ("worker-1", "worker-2"):
            self._wait_for(name, "Successfully registered with master")

    def _launch(self, name: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-class"), *arguments]
        with (self.directory / f"{name}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    command, stdout=log, stderr=subprocess.STDOUT, env=self.environment,
                    cwd=self.directory,
                )
            )  # fmt: skip

    def _wait_for(self, name: str, words: str) -> None:
        log, deadline = self.directory / f"{name}.log", time.monotonic() + PATIENCE
        while words not in log.read_text(errors="replace"):
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            assert self.processes[-1].poll() is None, log.read_text(errors="replace")[-2000:]
            time.sleep(0.2)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def on(cluster: Cluster, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, as a user starts it."""
    environment = {**os.environ, **spark_environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True, text=True, cwd=directory, env=environment, timeout=400,
    )  # fmt: skip


pytestmark = [pytest.mark.slow, pytest.mark.spark]

WHERE_EXECUTORS_FIND_IT = """
import sys
import pyarrow as pa
from flexgroup.pipeline.spark.session import start

def where(batches):
    import flexgroup.core.stack
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [flexgroup.core.stack.__file__]})

spark = start(sys.argv[1]).spark
for row in spark.range(4).repartition(2).mapInArrow(where, "file string").distinct().collect():
    print(row.file)
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    record(directory)
    return directory


@pytest.fixture(scope="module")
def verified(cluster: Cluster, traces: Path) -> subprocess.CompletedProcess[str]:
    command = ["-m", "flexgroup.cli.main", "verify", str(traces), "--json"]
    return on(cluster, traces, *command, "--master", cluster.master)


def test_verify_on_two_workers(
    cluster: Cluster, verified: subprocess.CompletedProcess[str]
) -> None:
    assert verified.returncode == 0, verified.stderr[-2000:]
    verdicts = json.loads(verified.stdout)["verdicts"]
    assert {verdict["run"] for verdict in verdicts} == {SCENARIO.run}
    assert {verdict["outcome"] for verdict in verdicts} == {"holds"}
    applications = list((cluster.directory / "work").glob("app-*"))
    executors = [path for app in applications for path in app.iterdir() if path.name.isdigit()]
    assert len(executors) == 2


def test_spark_says_nothing_if_nothing_is_wrong(
    verified: subprocess.CompletedProcess[str],
) -> None:
    assert re.search(r"\bWARN\b|log level|log4j", verified.stderr) is None


def test_the_package_comes_with_the_job(cluster: Cluster, tmp_path: Path) -> None:
    done = on(cluster, tmp_path, "-c", WHERE_EXECUTORS_FIND_IT, cluster.master)
    assert done.returncode == 0, done.stderr[-2000:]
    found = done.stdout.split()
    assert found
    assert all("flexgroup.zip" in file for file in found)
