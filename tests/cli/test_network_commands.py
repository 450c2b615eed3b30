"""`flexgroup cluster`, `bench`, `probe` and `certificates`, run as people run them."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from flexgroup import blocking
from flexgroup.cli.cluster import Row, table
from flexgroup.cli.main import main
from flexgroup.cli.parser import build_parser
from flexgroup.cli.server import settings_of
from flexgroup.membership import timings
from flexgroup.membership.timings import Timings

from .test_cli_bad_input import complaint

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
    assert "latencies" not in told["load"]  # there are as many as one likes
    assert 0 < told["p50_ms"] <= told["p90_ms"] <= told["p99_ms"] <= told["max_ms"]
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
def test_bench_over_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = "bench --servers 1 --clients 2 --duration 0.2 --json --tls".split()
    assert main([*few, str(tmp_path)]) == 0
    assert document(capsys)["load"]["completed"] > 0
    assert (tmp_path / "member-0.pem").exists()


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
        (["bench", "--stack", "oracle"], "unknown protocol 'oracle'"),
        (["bench", "--clients", "0"], "--clients: '0' is not possible; give a whole number from 1"),
        (["bench", "--payload", "5"], "a payload of 5 bytes has no room for whose it is"),
        (["bench", "--duration", "0"], "--duration: '0' is not possible; give seconds above 0"),
        (["bench", "--servers", "0"], "0 servers cannot be started here; give 1 to 64"),
        (["bench", "--connect", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["cluster", "--size", "0"], "0 servers cannot be started here; give 1 to 64"),
        (["cluster", "--stack", "oracle"], "unknown protocol 'oracle'"),
        (["probe", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["probe", "nowhere:x"], "'nowhere:x' is no address; write host:port or unix:PATH"),
        (["probe", "localhost", "--tls", "no-such-folder"], "is missing; make it: flexgroup"),
        (["certificates", "no-such-folder", "--client", "server"], "is not for a client"),
        (
            ["certificates", "/dev/null"],
            "cannot write into '/dev/null': File exists; choose another",
        ),
        (["bench", "--clients", "70000"], "70000 clients are too many; give up to 65536"),
        (["cluster", "--dir", "/dev/null"], "cannot write into '/dev/null': File exists"),
        (["cluster", "--port", "65534"], "--port 65534 is not possible; give 1 to 65533"),
        (["server", "--queue", "0"], "--queue: '0' is not possible; give a whole number from 1 on"),
        (["server", "--largest-message", "-1"], "--largest-message: '-1' is not possible; give"),
        (["server", "--pack", "0"], "--pack: '0' is not possible; give a whole number from 1 on"),
        (["server", "--patience", "-1"], "--patience: '-1' is not possible; give seconds above 0"),
        (
            ["server", "--patience", "0.02"],
            "0.02 s is not possible, since servers look at the clock",
        ),
        (
            ["server", "--slow-seconds", "nan"],
            "--slow-seconds: 'nan' is not possible; give seconds",
        ),
        (["server", "--join", "127.0.0.1:7400"], "a server cannot join itself"),
        (["server", "--protocols", "no_such_module"], "cannot import 'no_such_module'"),
        (
            ["server", "--listen", "127.0.0.1:0", "--unix", "/dev/null/socket"],
            "cannot listen on unix:/dev/null/socket: Not a directory; choose another",
        ),
        (
            ["server", "--listen", "127.0.0.1:0", "--join", "127.0.0.1:1"],
            "if one runs there, give both --tls with certificates of one authority, or neither",
        ),
        (
            ["server", "--listen", "127.0.0.1:0", "--join", "127.0.0.1:1", "--join", "127.0.0.1:2"],
            "none of these lets this server in: no FlexGroup server answers at 127.0.0.1:1",
        ),
    ],
)
def test_bad_input(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in complaint(arguments, capsys)


def test_a_host_that_a_certificate_cannot_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certificates", str(tmp_path), "--host", "not a host!"]) == 2
    assert "'not a host!' is not the name or the address of a host" in capsys.readouterr().err


def test_a_module_of_protocols_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_protocols.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["server", "--protocols", "broken_protocols"]) == 2
    told = "cannot import 'broken_protocols', which fails with ZeroDivisionError"
    assert told in capsys.readouterr().err


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["server", "--listen", address, "--log", "none"]) == 2
    assert capsys.readouterr().err == (
        f"flexgroup: error: cannot listen on {address}: Address already in use; "
        "choose another address or port\n"
    )


def test_a_server_of_the_command_beats_as_often_as_its_patience_asks_for() -> None:
    options = build_parser().parse_args(["server", "--patience", "0.5", "--least-patience", "0.3"])
    assert settings_of(options).timings == Timings.of(0.5, 0.3)


def test_what_is_joined_does_not_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timings, "SHORTEST_PATIENCE", 0.02)  # or it takes five seconds
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        command = ["server", "--listen", "127.0.0.1:0", "--join", address, "--patience", "0.02"]
        assert main(command) == 2
    assert f"{address} has not admitted this server within 0.2 s" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["server-1", "server_1"])
def test_a_name_that_another_server_has(cluster: Cluster, name: str) -> None:
    """Files of a trace do not tell them apart."""
    command = [sys.executable, "-m", "flexgroup.cli.main", "server", "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [*command, "--join", cluster.addresses[0], "--name", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "there is another server 'server-1'; choose another --name"
    )


@pytest.mark.slow
def test_the_server_that_is_joined_has_other_protocols(cluster: Cluster, tmp_path: Path) -> None:
    """The reason is in the last line, and not only in the log."""
    (tmp_path / "more_protocols.py").write_text(
        "from dataclasses import replace\n"
        "from flexgroup.protocols.catalogue import PROTOCOLS, register\n"
        "register(replace(PROTOCOLS['skeen'], name='twin'))\n"
    )
    command = [sys.executable, "-m", "flexgroup.cli.main", "server", "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [*command, "--join", cluster.addresses[0], "--protocols", "more_protocols"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 2
    assert "only one of two servers has the protocols twin" in done.stderr.splitlines()[-1]


def test_the_table_of_a_cluster_shows_addresses_on_a_narrow_terminal() -> None:
    rows = [
        Row(f"server-{n}", f"127.0.0.1:{60_000 + n}", "running", members=100) for n in range(12)
    ]
    console = Console(width=80, file=io.StringIO())
    with console.capture() as capture:
        console.print(table(rows, console.width))
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= 80
    for row in rows:
        assert any(f"{row.server} " in line and row.address in line for line in lines)
