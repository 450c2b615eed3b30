"""Real server processes on this machine, started and stopped together."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flexgroup import blocking
from flexgroup.core.errors import UsageError
from flexgroup.load.local_cluster import LocalCluster

pytestmark = pytest.mark.slow

PARENT = """
import sys
from pathlib import Path
from flexgroup.load.local_cluster import LocalCluster
with LocalCluster(1, Path(sys.argv[1])) as cluster:
    print(cluster.addresses[0], flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(2, tmp_path_factory.mktemp("cluster"), ["--log", "json"]) as running:
        yield running


def test_its_servers_know_each_other(cluster: LocalCluster) -> None:
    for address in cluster.addresses:
        with blocking.connect(address) as link:
            names = sorted(server["name"] for server in link.inspect()["servers"])
            assert names == ["server-0", "server-1"]


def test_what_is_sent_at_one_server_is_received_at_another(cluster: LocalCluster) -> None:
    here, there = cluster.addresses
    with blocking.connect(here) as sender, blocking.connect(there) as receiver:
        inbox = receiver.join("letters", stack="reliable atomic")
        sender.join("letters").send(b"a letter")
        assert inbox.receive(timeout=30).body == b"a letter"


def test_each_server_has_a_log(cluster: LocalCluster) -> None:
    for server in cluster.servers:
        events = [json.loads(line)["event"] for line in server.log.read_text().splitlines()]
        assert "installed" in events


def test_no_server_outlives_whoever_started_it(tmp_path: Path) -> None:
    """Even one that was killed, and could stop nothing."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        host, port = parent.stdout.readline().split(":")
        with socket.create_connection((host, int(port)), timeout=60) as watching:
            os.kill(parent.pid, signal.SIGKILL)
            assert watching.recv(1) == b""  # the server has closed it


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    cluster = LocalCluster(2, tmp_path, ["--patience", "very"])
    with pytest.raises(UsageError, match=r"server-0 did not start: .*'very' is not possible"):
        cluster.__enter__()
    assert cluster.servers == []


@pytest.mark.parametrize("size", [0, -1, 65])
def test_sizes_that_are_impossible(size: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{size} servers cannot be started here; give 1 to 64"):
        LocalCluster(size, tmp_path)
