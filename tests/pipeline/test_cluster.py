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
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from flexgroup.pipeline.spark.java import FAST_START, spark_environment

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
            "JDK_JAVA_OPTIONS": FAST_START,
            # Else they would find what is installed here, which is the same: see test_shipped.py.
            "FLEXGROUP_PURE": "1",
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


pytestmark = [pytest.mark.slow, pytest.mark.spark]

VERIFY_AND_LOOK_AROUND = """
import sys
from pathlib import Path
import pyarrow as pa
from flexgroup.cli.main import main

status = main(["verify", *sys.argv[2:]])

def where(batches):
    import flexgroup.core.stack
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [flexgroup.core.stack.__file__]})

from pyspark.sql import SparkSession
spark = SparkSession.active()
rows = spark.range(4).repartition(2).mapInArrow(where, "file string").distinct().collect()
Path(sys.argv[1]).write_text("\\n".join(row.file for row in rows))
sys.exit(status)
"""
"""The command, and then, in the session that it has left, where executors find the package."""


@dataclass(frozen=True)
class Verified:
    done: subprocess.CompletedProcess[str]
    found: Path
    """The file in which stands where executors found the package."""


@pytest.fixture(scope="module")
def verified(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """In a process of its own, as a user starts it."""
    traces, found = tmp_path_factory.mktemp("traces"), cluster.directory / "found"
    record(traces)
    environment = {
        **os.environ,
        **spark_environment(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": FAST_START,
        "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.shuffle.partitions=2 pyspark-shell",
    }
    done = subprocess.run(
        [
            sys.executable, "-c", VERIFY_AND_LOOK_AROUND, str(found),
            str(traces), "--json", "--master", cluster.master,
        ],
        capture_output=True, text=True, cwd=traces, env=environment, timeout=400,
    )  # fmt: skip
    return Verified(done, found)


def test_verify_on_two_workers(cluster: Cluster, verified: Verified) -> None:
    assert verified.done.returncode == 0, verified.done.stderr[-2000:]
    verdicts = json.loads(verified.done.stdout)["verdicts"]
    assert {verdict["run"] for verdict in verdicts} == {SCENARIO.run}
    assert {verdict["outcome"] for verdict in verdicts} == {"holds"}
    applications = list((cluster.directory / "work").glob("app-*"))
    executors = [path for app in applications for path in app.iterdir() if path.name.isdigit()]
    assert len(executors) == 2


def test_spark_says_nothing_if_nothing_is_wrong(verified: Verified) -> None:
    assert re.search(r"\bWARN\b|log level|log4j", verified.done.stderr) is None


def test_the_package_comes_with_the_job(verified: Verified) -> None:
    files = verified.found.read_text().splitlines()
    assert files
    assert all("flexgroup.zip" in file for file in files)
