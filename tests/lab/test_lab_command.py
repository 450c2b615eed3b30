"""The command `flexgroup lab`: what it prints and opens, how it ends, and bad input."""

from __future__ import annotations

import builtins
import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from flexgroup.cli.main import main
from flexgroup.lab.app import HOST
from flexgroup.lab.gallery import TRIALS
from flexgroup.lab.search import MOST_AT_ONCE, Searches
from flexgroup.worlds.explorer.schedule import write_trace
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

SCRIPT = Path(__file__).parents[1] / "scripts" / "dcc_published_cycle.txt"

OWN = """
from dataclasses import replace
from flexgroup.protocols.catalogue import PROTOCOLS, register
register(replace(PROTOCOLS["skeen"], name="lab-twin"))
"""


def test_it_opens_a_script_until_it_is_interrupted(tmp_path: Path) -> None:
    """With a protocol of one's own beside it, which pages and searches know."""
    (tmp_path / "lab_twin.py").write_text(OWN)
    (tmp_path / "pyproject.toml").write_text('[tool.flexgroup]\nprotocols = ["lab_twin"]\n')
    command = [sys.executable, "-m", "flexgroup.cli.main", "lab", "--json", str(SCRIPT)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as lab:
        try:
            assert lab.stdout is not None
            address = json.loads(lab.stdout.readline())["address"]
            page = urlopen(address).read().decode()
            assert "<h1>dcc-published</h1>" in page
            base = address.partition("/run")[0]
            own = f"{base}/run?stack=lab-twin&processes=2&message=0,1"
            assert b"lab-twin" in urlopen(own).read()
            with pytest.raises(HTTPError, match="403"):
                urlopen(Request(own, headers={"Host": "evil.example"}))
        finally:
            lab.send_signal(signal.SIGINT)
        _, complaints = lab.communicate(timeout=60)
    assert "Traceback" not in complaints
    assert lab.returncode == 0


def test_it_listens_on_this_machine_alone() -> None:
    assert HOST == "127.0.0.1"


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nonsense = tmp_path / "nonsense.txt"
    nonsense.write_text("stack skeen over fifo channels, processes 2\nfly 1\n")
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)))
    traces = tmp_path / "traces"
    whole = TRIALS[0].address.whole
    for name in ("one", "two"):
        write_trace(whole.plan, whole.scope, whole.moves, traces, name)
    damaged = tmp_path / "damaged"
    write_trace(whole.plan, whole.scope, whole.moves, damaged, "one")
    (sends,) = (damaged / "events" / "event=send").iterdir()
    sends.write_bytes(sends.read_bytes()[:-100])
    for arguments, told in (
        ([str(nonsense)], "unknown command 'fly'"),
        ([str(binary)], "is not a text"),
        ([str(tmp_path / "nowhere")], "is not a text"),
        ([str(damaged)], "the file is truncated, damaged or of another kind"),
        ([str(traces), str(nonsense)], "is no trace set; give one script, or directories"),
        ([str(tmp_path)], "holds no runs"),
        ([str(traces), "--run", "three"], "Give --run and one of these"),
        (["--port", "70000"], "--port 70000 is not possible"),
    ):
        assert main(["lab", *arguments]) == 2
        assert told in capsys.readouterr().err


def first_page(*arguments: str) -> tuple[str, str]:
    """Start a lab, and return the address that it prints, without where it is, and the page."""
    command = [sys.executable, "-m", "flexgroup.cli.main", "lab", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
        try:
            assert lab.stdout is not None
            address = lab.stdout.readline().strip()
            return re.sub(r"http://[^/]+", "", address), urlopen(address).read().decode()
        finally:
            lab.send_signal(signal.SIGINT)


def test_it_opens_recorded_runs_of_any_kind(tmp_path: Path) -> None:
    """One that can be stepped through is; a long one is seen as a whole; of several one chooses."""
    whole = TRIALS[0].address.whole
    small, long = tmp_path / "small", tmp_path / "long"
    write_trace(whole.plan, whole.scope, whole.moves, small, "one")
    scenario = Scenario("skeen", 4, 4, "random:2", duration=0.01)
    name = record_scenario(scenario, long).run
    path, page = first_page(str(small))
    assert path.startswith("/run?")
    path, page = first_page(str(long))
    assert path == f"/window?traces=long&run={name}"
    assert name in page
    path, page = first_page(str(small), str(long))
    assert path == "/traces"
    assert "/window?traces=small&amp;run=one" in page
    assert first_page(str(small), str(long), "--run", name)[0] == f"/window?traces=long&run={name}"


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["lab", "--port", str(port)]) == 2
    assert f"cannot listen at {HOST}:{port}" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "uvicorn":
            raise ModuleNotFoundError("No module named 'uvicorn'", name=name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert main(["lab"]) == 2
    assert "pip install 'flexgroup[lab]'" in capsys.readouterr().err


def test_few_searches_go_on_at_a_time_and_all_end_with_the_lab() -> None:
    searches = Searches()
    address = TRIALS[4].address
    try:
        begun = [searches.get(searches.begin(address, 60.0)) for _ in range(MOST_AT_ONCE)]
        with pytest.raises(Exception, match="stop one, or wait for it"):
            searches.begin(address, 60.0)
    finally:
        searches.stop_all()
    for search in begun:
        assert search.process.wait(timeout=60) != 0
