"""The commands, run as people run them: what they print, what they return."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flexgroup import __version__
from flexgroup.cli.main import main
from flexgroup.cli.parser import COMMANDS
from flexgroup.protocols.catalogue import PROTOCOLS

SCRIPTS = Path(__file__).parents[1] / "scripts"

SMALL = "--processes 4 --clients 3 --workload random:2 --duration 0.005 --network unit".split()


def simulate(*more: str) -> int:
    return main(["simulate", "--protocol", "skeen", *SMALL, *more])


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    """Standard output as one JSON document; nothing else may have been said."""
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_protocols(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols"]) == 0
    out = capsys.readouterr().out
    for protocol in PROTOCOLS.values():
        assert f"{protocol.name:14} {protocol.summary}" in out
        assert f"source: {protocol.source}" in out
    assert "options: dcc/rv" in out


def test_protocols_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols", "--json"]) == 0
    rows = document(capsys)
    assert [row["name"] for row in rows] == list(PROTOCOLS)
    dcc = next(row for row in rows if row["name"] == "dcc")
    assert (dcc["needs"], dcc["gives"], dcc["options"]) == (
        "fifo, reliable",
        "reliable, total",
        ["rv", "any"],
    )


def test_simulate_prints_a_summary_and_the_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate() == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("run skeen-random-2-4p-3c-s1-")
    assert "multicasts" in out[1]
    assert out[1].endswith("complete")
    assert out[2].strip() == (
        "throughput 750 messages/s, mean latency 2.000 ms until the last delivery, "
        "both from 0.001 to 0.005 s"
    )
    assert out[3].strip().startswith("2.00 steps, 4.00 packets a message")
    verdicts = [line for line in out if line.endswith(": holds")]
    assert verdicts == [
        f"{name}: holds"
        for name in (
            "integrity",
            "validity",
            "agreement",
            "local order",
            "pairwise order",
            "prefix order",
            "acyclic order",
            "minimality",
        )
    ]


def test_simulate_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--json") == 0
    told = document(capsys)
    assert told["complete"] is True
    assert told["multicasts"] == told["answered"] == told["deliveries"] // 2
    assert told["costs"]["steps"] == 2.0
    assert told["costs"]["volume"] == 4.0
    assert {verdict["outcome"] for verdict in told["verdicts"]} == {"holds"}
    assert told["out"] is None


@pytest.mark.parametrize(
    ("check", "names"),
    [
        ("none", []),
        ("promised", ["integrity", "validity", "agreement"]),
        ("all", ["integrity", "uniform agreement", "causal order", "real-time order"]),
    ],
)
def test_simulate_checks_what_is_asked_for(
    check: str, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    simulate("--json", "--check", check)
    checked = [verdict["property"] for verdict in document(capsys)["verdicts"]]
    assert set(names) <= set(checked)
    assert bool(checked) == bool(names)


def test_simulate_finds_what_best_effort_does_not_promise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 1: a property is violated; the witness is printed."""
    arguments = ["simulate", "--protocol", "best-effort", *SMALL, "--network", "lan"]
    assert main([*arguments, "--clients", "20"]) == 0
    capsys.readouterr()
    assert main([*arguments, "--clients", "20", "--check", "all"]) == 1
    out = capsys.readouterr().out
    assert "acyclic order: violated" in out
    assert ", because process " in out


def test_a_stack_of_layers(capsys: pytest.CaptureFixture[str]) -> None:
    stack = ["simulate", "--stack", "FIFO  Dcc/RV", *SMALL, "--network", "lan:fifo=no", "--json"]
    assert main(stack) == 0
    assert document(capsys)["run"].startswith("fifo-dcc-rv-")


def test_simulate_then_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "traces")
    assert simulate("--out", out) == 0
    assert capsys.readouterr().out.endswith(f"trace written to {out}\n")
    assert main(["simulate", "--protocol", "dcc", *SMALL, "--out", out]) == 0
    capsys.readouterr()
    assert main(["replay", out]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.endswith(" events replayed, agrees")
    assert main(["replay", out, "--json"]) == 0
    told = document(capsys)
    assert [row["divergence"] for row in told] == [None, None]
    assert all(row["events"] > 30 for row in told)


def test_overwriting_needs_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--out", str(tmp_path)) == 0
    capsys.readouterr()
    assert simulate("--out", str(tmp_path)) == 2
    assert "choose another --out, or add --force" in capsys.readouterr().err
    assert simulate("--out", str(tmp_path), "--force") == 0


def test_faults_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "--protocol best-effort --processes 4 --clients 3 --workload random:2 --duration 0.02"
        " --network lan --rate 1000 --crash 1@5ms --recover 1@10ms --partition 0|2,3@2ms-4ms"
        " --suspect 0:2@1ms-2ms --detection 1ms --view 0,2,3@7ms --json"
    )
    assert main(["simulate", *arguments.split(), "--out", str(tmp_path)]) in (0, 1)
    document(capsys)
    kinds = {path.name for path in (tmp_path / "events").iterdir()}
    assert {"event=crash", "event=recover", "event=suspect", "event=view"} <= kinds


def test_replay_a_script_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands, each with its answer: the golden text without rules and comments."""
    path = SCRIPTS / "skeen_two_race.txt"
    assert main(["replay", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["stack skeen over fifo channels, processes 2", "ok"]
    assert out[-5:] == ["delivered", "  0: b a", "  1: b a", "verdict", "holds"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("best_effort_cycle", "acyclic order: violated"),
        ("dcc_published_cycle", "acyclic order: violated"),
        ("dcc_published_stuck", "validity: violated"),
    ],
)
def test_a_script_that_violates_a_property_gives_exit_code_1(
    name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(SCRIPTS / f"{name}.txt")]) == 1
    assert kind in capsys.readouterr().out
    assert main(["replay", str(SCRIPTS / f"{name}.txt"), "--json"]) == 1
    told = document(capsys)
    assert told["violated"] is True
    assert told["steps"][-1]["command"] == "verdict"
    assert any(kind in line for line in told["steps"][-1]["answer"])


def test_a_script_that_holds_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(SCRIPTS / "df_convoy.txt"), "--json"]) == 0
    told = document(capsys)
    assert told["violated"] is False
    assert told["steps"][0] == {
        "command": "stack df over fifo channels, processes 5",
        "answer": ["ok"],
    }


@pytest.mark.parametrize("command", ["protocols", "simulate", "replay", "experiment"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert f"example:\n  flexgroup {command}" in out
    assert "--json" in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"flexgroup {__version__}\n"


# As a process of its own; in the pure form, so that nothing is said about the compiled one.

QUIET = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {
    "FLEXGROUP_PURE": "1"
}


def flexgroup(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flexgroup.cli.main", *arguments],
        capture_output=True,
        text=True,
        env=QUIET,
    )


def test_exit_codes_reach_the_shell(tmp_path: Path) -> None:
    assert flexgroup("protocols").returncode == 0
    assert flexgroup("replay", str(SCRIPTS / "dcc_published_cycle.txt")).returncode == 1
    failed = flexgroup("replay", str(tmp_path / "nothing"))
    assert failed.returncode == 2
    assert len(failed.stderr.splitlines()) == 1


def exit_code_without_a_reader(*arguments: str) -> int:
    """Nothing is complained of, either."""
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUIET
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    return process.wait()


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """As in `flexgroup protocols | head -1`, where what is left is written when Python ends."""
    assert exit_code_without_a_reader("-m", "flexgroup.cli.main", "protocols") == 0


def test_a_reader_that_leaves_before_the_verdict_is_not_told_that_all_is_well() -> None:
    """As in `flexgroup replay SCRIPT | head -1`, if what is violated comes after the first line."""
    script = str(SCRIPTS / "dcc_published_cycle.txt")
    assert exit_code_without_a_reader("-u", "-m", "flexgroup.cli.main", "replay", script) != 0


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        ("--protocol skeen", "skeen tolerates no crash (faults tolerated: none)"),
        (
            "--protocol all2all-atomic --workload broadcast",
            "all2all-atomic tolerates crashes, with a perfect detector, and nobody was told of the"
            " crash: add --detection 10ms",
        ),
    ],
)
def test_simulate_says_what_a_violation_after_a_crash_is_worth(
    arguments: str, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small = "simulate --processes 4 --workload random:2 --clients 4 --duration 0.01 --crash 1@2ms"
    assert main([*small.split(), *arguments.split()]) == 1
    assert f"note: {note}" in capsys.readouterr().out


def test_simulate_says_nothing_about_a_crash_that_violates_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = "simulate --processes 4 --workload random:2 --clients 4 --duration 0.01 --crash 1@2ms"
    assert main([*small.split(), "--protocol", "best-effort"]) == 0
    assert "tolerates" not in capsys.readouterr().out


@pytest.fixture
def module_of_protocols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that is somewhere else, and registers `twin`, Skeen under another name."""
    (tmp_path / "twin_protocols.py").write_text(
        "from dataclasses import replace\n"
        "from flexgroup.protocols.catalogue import PROTOCOLS, register\n"
        "register(replace(PROTOCOLS['skeen'], name='twin'))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "twin_protocols", raising=False)
    yield "twin_protocols"
    PROTOCOLS.pop("twin", None)


@pytest.mark.parametrize(
    "command",
    [
        "explore --protocol twin --processes 2 --message 0,1",
        "simulate --protocol twin --processes 2 --clients 1 --workload broadcast --duration 0.001",
        "replay script.txt",
        "protocols",
    ],
    ids=lambda command: command.split()[0],
)
def test_protocols_of_a_module(
    command: str,
    module_of_protocols: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.txt").write_text("stack twin over fifo channels, processes 2\ncast 0 a to=0,1\n")
    assert main([*command.split(), "--protocols", module_of_protocols]) == 0
    assert "twin" in capsys.readouterr().out or command.startswith("replay")


def test_a_counterexample_is_checked_for_what_its_stack_promises(tmp_path: Path) -> None:
    """Not for everything: DCC never promised that only destinations take part."""
    from flexgroup.trace.reader import read_runs

    messages = "--message 0,2 --message 0,2 --message 0,3 --message 2,3".split()
    found = ["explore", "--protocol", "dcc-published", "--processes", "4", *messages]
    assert main([*found, "--out", str(tmp_path)]) == 1
    (run,) = read_runs(tmp_path / "trace")
    promised = run.promised
    assert "acyclic order" in promised
    assert "minimality" not in promised


@pytest.mark.parametrize("command", [command.__name__.split(".")[-1] for command in COMMANDS])
def test_help_fits_a_terminal_up_to_the_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told, _, example = capsys.readouterr().out.partition("example:\n")
    assert max(map(len, told.splitlines())) <= 80
    assert example.startswith("  flexgroup ")
