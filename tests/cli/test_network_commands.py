"""`flexgroup cluster`, `bench`, `probe` and `certificates`, run as people run them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flexgroup import blocking
from flexgroup.cli.main import main

STACK = "reliable atomic"


class Cluster:
    """`flexgroup cluster --json` in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.addresses = [server["address"] for server in self.next_line()["ready"]]

    def next_line(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def state_when(self, key: str, value: int) -> Any:
        """Of the first server, as soon as it says so."""
        while (row := self.next_line()["servers"][0])[key] != value:
            pass
        return row


@contextmanager
def cluster_of(*options: str) -> Iterator[Cluster]:
    command = [sys.executable, "-m", "flexgroup.cli.main", "cluster", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Cluster(process)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.stdout is not None
            process.stdout.read()  # to its end, so that it can end


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of("--size", "2", "--stack", STACK) as running:
        yield running


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


@pytest.mark.slow
def test_cluster_tells_what_happens(cluster: Cluster) -> None:
    assert len(cluster.addresses) == 2
    with blocking.connect(cluster.addresses[0], name="alice") as link:
        link.join("demo")
        row = cluster.state_when("members", 1)
        assert (row["server"], row["state"], row["groups"]) == ("server-0", "running", 1)
        assert row["clients"] == 1


@pytest.mark.slow
def test_probe(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    with blocking.connect(cluster.addresses[1], name="[b]alice[/b]") as link:
        group = link.join("demo")
        group.send(b"hello")
        group.receive(timeout=30)
        assert main(["probe", cluster.addresses[1]]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert main(["probe", cluster.addresses[1], "--json"]) == 0
    assert lines[0].startswith(f"server-1 at {cluster.addresses[1]}, cluster ")
    assert any("demo" in line and "[b]alice[/b]@server-1" in line for line in lines)
    told = document(capsys)
    assert told["totals"]["multicasts"] >= 1
    (stack,) = told["stacks"]
    assert [layer["layer"] for layer in stack["layers"]] == ["Reliable", "Atomic"]


@pytest.mark.slow
def test_bench_on_running_servers(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = cluster.addresses
    small = "--clients 3 --payload 40 --duration 0.3 --json".split()
    assert main(["bench", "--connect", first, "--connect", second, *small]) == 0
    told = document(capsys)
    assert (told["servers"], told["clients"], told["payload"]) == (2, 3, 40)
    assert told["load"]["completed"] > 0
    assert told["load"]["delivered"] >= told["load"]["completed"]
    assert 0 < told["p50_ms"] <= told["p99_ms"]
    assert told["messages_a_second"] == pytest.approx(told["load"]["completed"] / 0.3)
    with blocking.connect(first) as link:
        groups = [group["name"] for group in link.inspect()["groups"]]
    assert groups == ["demo"]  # it has destroyed its own


@pytest.mark.slow
def test_bench_starts_servers_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("bench --servers 1 --clients 2 --duration 0.2".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "RELIABLE ATOMIC: 1 servers, 2 clients, 64 bytes, 0.2 s"
    assert "messages/s" in lines[1]
    assert lines[2].startswith("  latency p50 ")
    assert lines[3].startswith("  processor time a message: servers ")


@pytest.mark.slow
def test_cluster_stops_in_good_order_on_ctrl_c(tmp_path: Path) -> None:
    with cluster_of("--size", "2", "--dir", str(tmp_path)) as running:
        running.process.send_signal(signal.SIGINT)
    assert running.process.returncode == 0
    for log in ("server-0.log", "server-1.log"):
        (*_, last) = (tmp_path / log).read_text().splitlines()
        assert json.loads(last)["reason"] == "stopped"


@pytest.mark.slow
def test_everything_with_certificates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path)
    assert main(["certificates", folder, "--client", "probe", "--json"]) == 0
    made = [Path(path).name for path in document(capsys)["made"]]
    assert made == ["authority.pem", "server.pem", "probe.pem"]
    with cluster_of("--size", "2", "--tls", folder) as running:
        assert running.state_when("configuration", 2)["state"] == "running"
        assert main(["probe", running.addresses[0], "--tls", folder, "--json"]) == 0
        linked = [server["linked"] for server in document(capsys)["servers"]]
        assert linked.count(True) == 1


def test_certificates_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path)
    assert main(["certificates", folder]) == 0
    assert "server.pem, valid for 365 days" in capsys.readouterr().out
    assert main(["certificates", folder]) == 0
    assert "has an authority and a certificate for servers already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bench", "--stack", "paxos"], "unknown protocol 'paxos'"),
        (["bench", "--clients", "0"], "0 clients send nothing; give a number from 1 on"),
        (["bench", "--payload", "5"], "a payload of 5 bytes has no room for whose it is"),
        (["bench", "--duration", "0"], "a duration of 0.0 s is not possible; give seconds above"),
        (["bench", "--servers", "0"], "0 servers cannot be started here; give 1 to 64"),
        (["bench", "--connect", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["cluster", "--size", "0"], "0 servers cannot be started here; give 1 to 64"),
        (["cluster", "--stack", "paxos"], "unknown protocol 'paxos'"),
        (["probe", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["probe", "nowhere:x"], "'nowhere:x' is no address; write host:port or unix:PATH"),
        (["probe", "localhost", "--tls", "no-such-folder"], "is missing; make it: flexgroup"),
        (["certificates", "no-such-folder", "--client", "server"], "is not for a client"),
    ],
)
def test_bad_input(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert told in line
