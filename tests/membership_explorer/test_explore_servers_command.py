"""The command `flexgroup explore --servers`: what it prints, exit codes, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flexgroup.cli.main import main

from ..membership.broken_memberships import puts_what_nobody_delivered_last

OVERLAP = "--servers 3 --protocol fifo --group 2 --group 2,3 --message 1:A --message 1:B".split()


def explore(*arguments: str) -> int:
    return main(["explore", *arguments])


def test_what_was_exhausted_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert explore(*OVERLAP, "--join", "3:A") == 0
    out = capsys.readouterr().out
    assert out.startswith("fifo on 3 servers, A={2} B={2,3}; cast 1 A, cast 1 B, join 3 A\n")
    assert out.splitlines()[-1].startswith("exhausted: ")


def test_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert explore(*OVERLAP, "--breaks", "1", "--max-states", "100", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["stopped_at"] == "--max-states 100"
    assert document["violations"] == []


def test_a_counterexample_is_as_small_as_can_be_and_is_performed_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        puts_what_nobody_delivered_last(patch)
        assert explore(*OVERLAP, "--message", "3:B", "--breaks", "1", "--out", str(tmp_path)) == 1
        out = capsys.readouterr().out
        script = tmp_path / "servers-fifo-order.txt"
        assert script.read_text() in out
        assert "plan b cast 1 B" in script.read_text()
        assert "plan c" not in script.read_text()
        assert "# 2 delivers b; 2 delivers a; 2 installs configuration 2 of 1,2,3" in out.replace(
            "Commit; ", ""
        )
        assert explore("--replay", str(script)) == 1
        assert "violated: fifo order" in capsys.readouterr().out
    assert explore("--replay", str(script)) == 0
    assert "no property is violated" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("--servers 2 --group 1,2", "which stack"),
        ("--servers 2 --protocol fifo", "give 1 to 8 groups"),
        ("--servers 9 --protocol fifo --group 1", "give 1 to 5"),
        ("--servers 2 --protocol fifo --group 1,3", "servers are 1 to 2"),
        ("--servers 2 --protocol fifo --group 1 --message 1:B", "the groups are A"),
        ("--servers 2 --protocol fifo --group 1 --message 0,1", "write a server and a group"),
        ("--servers 2 --protocol fifo --group 1 --join 3:A", "servers are 1 to 2"),
        ("--servers 2 --protocol fifo --group 1 --losses 1", "--losses is not for --servers"),
        ("--servers 2 --protocol fifo --group 1 --cuts -1", "cannot be negative"),
    ],
)
def test_what_is_wrong_is_named(
    arguments: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explore(*arguments.split()) == 2
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("explode 3", "line 6 of the script is 'explode 3'"),
        ("deliver 1->2", "'deliver 1->2' is not possible"),
    ],
)
def test_a_script_that_is_wrong_is_refused(
    line: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.txt"
    script.write_text(
        f"servers 2\nstack fifo\ngroup A 1,2\nplan a cast 1 A\nbounds crashes=0\n{line}\n"
    )
    assert explore("--replay", str(script)) == 2
    assert what in capsys.readouterr().err
