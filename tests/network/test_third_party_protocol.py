"""The protocol of the tutorial, in a module of its own, on real servers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..docs.fences import ROOT, fences
from .servers import LAST_RESORT, Cluster, ServerProcess

PAGE = ROOT / "docs" / "tutorial.md"


def section(heading: str) -> range:
    """The lines from this heading to the next of its rank."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"## {heading}") + 1
    ends = [number for number, line in enumerate(lines[start:], start) if line.startswith("## ")]
    return range(start, min(ends, default=len(lines)) + 1)


def code_under(heading: str, language: str) -> list[str]:
    lines = section(heading)
    return [
        fence.text for fence in fences(PAGE) if fence.line in lines and fence.language == language
    ]


def write_module(folder: Path) -> None:
    """`sequencer.py`, from the pieces that the tutorial names."""
    pieces = [
        *code_under("Packets", "python"),
        *code_under("The layer", "python"),
        *code_under("In the commands", "py"),
    ]
    (folder / "sequencer.py").write_text("\n\n".join(pieces))


def test_the_tutorials_protocol_in_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(tmp_path)
    (commands,) = code_under("In the commands", "")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    printed = subprocess.run(
        ["sh", "-e", "-c", commands], capture_output=True, text=True, cwd=tmp_path, check=True
    ).stdout
    assert "exhausted: 82 states, depth 10; no property is violated" in printed
    assert "acyclic order: holds" in printed
    assert "events replayed, agrees" in printed


def test_the_tutorials_protocol_runs_on_real_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (application,) = code_under("On real servers", "py")
    write_module(tmp_path)
    program = tmp_path / "talk.py"
    program.write_text(application)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Cluster(tmp_path, 2, "--protocols", "sequencer") as cluster:
        monkeypatch.delenv("PYTHONPATH")  # the application needs the name only
        printed = subprocess.run(
            [sys.executable, str(program), *cluster.addresses],
            capture_output=True,
            text=True,
            timeout=LAST_RESORT,
            check=True,
        ).stdout.splitlines()
    assert len(printed) == 2
    assert printed[0] == printed[1]
    assert sorted(printed[0].strip("[]").split(", ")) == [
        f"'{name} {number}'" for name in ("ann", "bob") for number in range(3)
    ]


def test_a_module_that_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flexgroup.cli.main", "server", "--protocols", "nowhere"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 2
    assert "cannot import 'nowhere'" in ended.stderr


def test_a_server_with_other_protocols_cannot_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or groups could be created that some servers cannot serve."""
    (tmp_path / "extra.py").write_text(
        "from dataclasses import replace\n"
        "from flexgroup.protocols.catalogue import PROTOCOLS, register\n"
        "register(replace(PROTOCOLS['skeen'], name='skeen-two'))\n"
    )
    with Cluster(tmp_path, 1) as cluster:
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        other = ServerProcess(
            "other", tmp_path, "--join", cluster.addresses[0], "--protocols", "extra", wait=False
        )
        assert other.process.wait(LAST_RESORT) == 2
        other.end()
        assert "only one of two servers has the protocols skeen-two" in other.log.read_text()
