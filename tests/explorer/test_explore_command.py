"""The command `flexgroup explore`: exit codes, what it prints and writes, and bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from flexgroup.cli.main import main
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore as run_explorer
from flexgroup.worlds.explorer.minimise import Effort, minimise
from flexgroup.worlds.explorer.scope import from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

CYCLIC = (
    "--processes 4 --message 0,2 --message 0,2 --message 1,2,3 --message 1,2,3 --message 0,3"
).split()
STUCK = (
    "--processes 4 --message 0,2 --message 0,2 --message 1,3 --message 0,1,2,3 --message 0,1,2,3"
).split()
RACE = "--channels reordering --processes 2 --message 0,1 --message 0,1".split()


def explore(*arguments: str) -> int:
    return main(["explore", *arguments])


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_the_cycle_of_published_dcc(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert explore("--protocol", "dcc-published", *CYCLIC, "--out", str(tmp_path)) == 1
    out = capsys.readouterr().out
    assert "acyclic order: violated" in out
    assert "in 11 steps and no fewer" in out
    assert out.splitlines()[-1].startswith("violated: acyclic order; ")
    script = tmp_path / "dcc-published-acyclic-order.txt"
    assert script.read_text() in out
    assert (tmp_path / "dcc-published-acyclic-order.svg").exists()
    assert main(["replay", str(script)]) == 1
    assert "acyclic order: violated" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "trace")]) == 0
    assert "agrees" in capsys.readouterr().out


def test_repaired_dcc_is_exhausted(capsys: pytest.CaptureFixture[str]) -> None:
    assert explore("--protocol", "dcc", *CYCLIC) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "exhausted: 369 states, depth 17; no property is violated"


@pytest.mark.parametrize(
    ("stack", "code"),
    [("dcc-published", 0), ("dcc-published/any", 1), ("dcc", 0), ("dcc/any", 0)],
)
def test_the_deadlock_of_published_dcc(
    stack: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explore("--protocol", stack, *STUCK, "--no-minimise") == code
    assert ("deadlock" in capsys.readouterr().out) is bool(code)


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert explore("--protocol", "dcc-published", *CYCLIC, "--json", "--no-minimise") == 1
    found = document(capsys)
    (violation,) = found["violations"]
    assert violation["property"] == "acyclic order"
    assert violation["script"].startswith("# dcc-published: acyclic order is violated")
    assert found["states"] > 100
    assert found["exhausted"]


def test_all_destinations(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--protocol dcc --beside best-effort --all-destinations 3x2".split()
    assert explore(*arguments, "--property", "acyclic order", "--json") == 0
    repaired, beside = document(capsys)["rows"]
    assert (repaired["systems"], repaired["broken"]) == (10, {})
    assert beside["broken"] == {"acyclic order": 7}
    assert explore(*"--protocol dcc --all-destinations 3x2 --all-destinations 3x3".split()) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "exhausted: every schedule of every system"
    assert len(out) == 4


def test_two_stacks_in_all_destinations(capsys: pytest.CaptureFixture[str]) -> None:
    size = "--all-destinations 3x2".split()
    assert explore("--protocol", "dcc", "--beside", "best-effort", *size) == 0
    assert capsys.readouterr().out.splitlines()[3] == (
        "  orders and verdicts are the same in 3 systems, explored whole; "
        "they differ in 7, first in 3 processes, 2 messages to {0,1} {0,1}"
    )
    groups = ["--protocol", "log skeen-cft", "--beside", "skeen"]
    assert explore(*groups, *size, "--max-states", "100", "--walks", "1", "--json") == 0
    found = document(capsys)
    assert not found["exhausted"]
    (compared,) = found["comparisons"]
    assert compared["exhausted_and_equal"] + compared["all_orders_reached"] == 10
    assert compared["walks"] == compared["all_orders_reached"] > 0


def test_what_must_sometimes_be_seen(capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--sometimes", "a<b", "--sometimes", "b < a"]
    assert explore("--protocol", "skeen", *RACE, *both) == 0
    assert "of 2 orders of two messages that meet, 2 were seen" in capsys.readouterr().out
    one_sender = "--processes 2 --message 0:1 --message 0:1 --sometimes b<a".split()
    assert explore("--protocol", "fifo", *one_sender) == 1
    assert "sometimes b < a: never seen" in capsys.readouterr().out


def test_stopped_saved_and_resumed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "search"
    stop = ["--reduction", "none", "--max-states", "300", "--save", str(file)]
    assert explore("--protocol", "skeen", *RACE, *stop) == 0
    out = capsys.readouterr().out
    assert f"go on with: flexgroup explore --resume {file}" in out
    assert "stopped at --max-states 300" in out.splitlines()[-1]
    assert explore("--resume", str(file), "--json") == 0
    resumed = document(capsys)
    assert explore("--protocol", "skeen", *RACE, "--reduction", "none", "--json") == 0
    whole = document(capsys)
    for name in ("states", "transitions", "depth", "ends", "exhausted"):
        assert resumed[name] == whole[name]


def test_a_detector_is_explored_without_messages(capsys: pytest.CaptureFixture[str]) -> None:
    scope = ["--processes", "2", "--timers", "2", "--crashes", "1"]
    assert explore("--protocol", "heartbeat", *scope) == 0
    out = capsys.readouterr().out
    assert "2 processes, no messages" in out
    assert "exhausted: 55 states" in out


def test_walks(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--walks", "1000", "--pct", "2", "--no-minimise"]
    assert explore("--protocol", "dcc-published", *CYCLIC, *arguments) == 1
    assert "PCT walks of depth 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which protocol?"),
        (["--protocol", "skeen"], "which system?"),
        (["--protocol", "nothing", *RACE], "unknown protocol 'nothing'"),
        (["--protocol", "dcc", *RACE], "missing fifo"),
        (["--protocol", "skeen", "--processes", "2", "--message", "0,2"], "destination 2"),
        (["--protocol", "skeen", "--processes", "2", "--message", "x"], "write destinations as"),
        (["--protocol", "skeen", "--processes", "0", "--message", "0"], "0 processes cannot"),
        (["--protocol", "skeen", *RACE, "--property", "beauty"], "knows no property 'beauty'"),
        (["--protocol", "skeen", *RACE, "--sometimes", "a<z"], "the messages are a, b"),
        (["--protocol", "skeen", *RACE, "--workers", "0"], "--workers: '0' is not possible"),
        (["--protocol", "dcc", *RACE, "--workers", "2"], "missing fifo"),
        (["--protocol", "skeen", *RACE, "--losses", "-1"], "cannot be negative"),
        (["--protocol", "skeen", *RACE, "--pct", "3"], "--walks N"),
        (["--protocol", "skeen", "--all-destinations", "3"], "write 4x3"),
        (["--protocol", "skeen", "--all-destinations", "3x2", "--walks", "1"], "--beside as well"),
        (["--resume", "nowhere"], "cannot read 'nowhere'"),
        (["--protocol", "skeen", *RACE, "--replicas", "3"], "do not divide 2 processes"),
        (["--protocol", "skeen", *RACE, "--replicas", "2,x"], "the sizes of the groups as 3,1"),
        (["--protocol", "skeen", "--replicas", "2,1", "--message", "1,2"], "a part of the group"),
        (["--protocol", "leader paxos", *RACE], "works in groups of replicas"),
        (
            ["--protocol", "leader paxos", "--replicas", "1,1", "--message", "0,1"],
            "one group of replicas",
        ),
        (["--protocol", "paxos", "--replicas", "2", "--message", "0,1"], "missing leader"),
        (["--protocol", "skeen", *RACE, "--crash", "one"], "write for example --crash 0"),
        (["--protocol", "skeen", *RACE, "--suspect", "0"], "write for example --suspect 1:0"),
        (["--protocol", "skeen", *RACE, "--crash", "2"], "process 2, which may crash, suspect"),
    ],
)
def test_bad_input(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert explore(*arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("flexgroup: error: ")
    assert said in err
    assert err.count("\n") == 1


def test_faults_by_name_in_groups_of_replicas(capsys: pytest.CaptureFixture[str]) -> None:
    """With anybody's crash and any wrong suspicion, there are more states."""
    system = ["--protocol", "leader paxos", "--replicas", "3", "--message", "2:0,1,2"]
    assert explore(*system, "--crash", "0") == 0
    named = capsys.readouterr().out
    assert "3 processes in groups of 3, 1 messages to {0,1,2}" in named
    assert explore(*system, "--crashes", "1") == 0
    counts = [re.search(r"exhausted: ([\d,]+) states", text) for text in (
        named, capsys.readouterr().out
    )]  # fmt: skip
    few, many = [int(found[1].replace(",", "")) for found in counts if found is not None]
    assert few < many


ALSO_PREFIX = "--protocol best-effort --channels reordering --processes 2 --message 0,1".split()


def test_a_script_judges_what_the_run_was_condemned_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Not only what every script judges: two processes may disagree without a cycle."""
    arguments = [*ALSO_PREFIX, "--message", "0,1", "--property", "prefix order"]
    assert explore(*arguments, "--out", str(tmp_path)) == 1
    capsys.readouterr()
    assert main(["replay", str(tmp_path / "best-effort-prefix-order.txt")]) == 1
    assert "prefix order: violated" in capsys.readouterr().out


class StoppedError(Exception):
    """Stands for the end of the command while it makes a counterexample smaller."""


def test_a_counterexample_is_shown_and_written_before_it_is_made_smaller(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def minimise(*arguments: object) -> None:
        raise StoppedError

    monkeypatch.setattr("flexgroup.runs.explored.shortest", minimise)
    with pytest.raises(StoppedError):
        explore("--protocol", "dcc-published", *CYCLIC, "--out", str(tmp_path))
    script = (tmp_path / "dcc-published-acyclic-order.txt").read_text()
    assert script in capsys.readouterr().out
    assert "acyclic order: violated" in script


def test_minimising_ends_within_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    """The bound has passed by the time that the violation is found."""
    assert explore("--protocol", "dcc-published", *CYCLIC, "--max-seconds", "0.001") == 0
    assert "stopped at --max-seconds" in capsys.readouterr().out.splitlines()[-1]
    plan, scope = parse_stack("dcc-published"), from_clients(4, (0, 2), (0, 2), (0, 3), (2, 3))
    found = run_explorer(plan, scope).violations[0]
    spent = minimise(plan, scope, found, SearchOptions(), Effort(seconds=1e-9))
    assert spent.violation == found
    assert spent.stopped_at == "--max-seconds 1e-09"


def test_an_interrupt_keeps_what_was_found() -> None:
    plan, scope = parse_stack("dcc-published"), from_clients(4, (0, 2), (0, 2), (0, 3), (2, 3))
    found = run_explorer(plan, scope).violations[0]
    kept = minimise(plan, scope, found, SearchOptions(), Effort(interrupted=lambda: True))
    assert (kept.violation, kept.stopped_at) == (found, "an interrupt")
