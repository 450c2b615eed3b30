"""Real server processes on this machine, started and stopped together."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flexgroup import blocking
from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.load.local_cluster import LocalCluster

pytestmark = pytest.mark.slow

LAST_RESORT = 240.0
"""Seconds after which a test gives up waiting for what should have happened long ago."""

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


def servers_told_by(address: str) -> list[str]:
    """The servers of the cluster, as the one at this address knows them."""
    with blocking.connect(address) as link:
        return sorted(server["name"] for server in link.inspect()["servers"])


def wait_until_told(address: str, *names: str) -> None:
    until = time.monotonic() + LAST_RESORT
    while servers_told_by(address) != list(names):
        assert time.monotonic() < until, f"{address} knows {servers_told_by(address)}"
        time.sleep(0.05)


def test_a_server_is_cut_off_and_mended_and_another_killed_and_started_again(
    tmp_path: Path,
) -> None:
    """The others go on without it, and take it in again; its own clients reach it all the time."""
    everybody = "server-0", "server-1", "server-2"
    with LocalCluster(3, tmp_path, ["--patience", "1", "--cut-by-input"]) as cluster:
        first, second, third = cluster.servers
        wait_until_told(first.address, *everybody)
        third.cut(True)
        wait_until_told(first.address, "server-0", "server-1")
        assert third.is_cut
        assert servers_told_by(third.address) == list(everybody)
        third.cut(False)
        wait_until_told(first.address, *everybody)
        wait_until_told(third.address, *everybody)
        with pytest.raises(UsageError, match="server-0 is running"):
            cluster.start_again(0)
        first.kill()
        wait_until_told(second.address, "server-1", "server-2")
        again = cluster.start_again(0)
        assert again.address == first.address
        wait_until_told(second.address, *everybody)


def test_cuts_need_an_input_to_follow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", "--cut-by-input"]) == 2
    assert "give --until-input-ends, too" in capsys.readouterr().err
