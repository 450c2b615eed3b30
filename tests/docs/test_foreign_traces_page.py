"""docs/foreign-traces.md, followed from the first command to the last."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest

from flexgroup.cli.main import main

from .fences import ROOT, Fence, fences

PAGE = ROOT / "docs" / "foreign-traces.md"


def run_command(line: str) -> str:
    """What a command prints, on standard error if it fails."""
    program, *arguments = shlex.split(line)
    if program == "flexgroup":
        printed = StringIO()
        with redirect_stdout(printed):
            assert main(arguments) == 0
        return printed.getvalue()
    command = [sys.executable if program == "python" else program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout or "".join(done.stderr.splitlines(keepends=True)[-1:])


def run_fence(fence: Fence, namespace: dict[str, object]) -> str:
    if fence.language == "sh":
        return "".join(map(run_command, fence.text.splitlines()))
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(fence.text, PAGE.name, "exec", dont_inherit=True), namespace)
    return printed.getvalue()


def test_the_page_goes_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.symlink(ROOT / "examples", tmp_path / "examples")
    namespace: dict[str, object] = {"__name__": "page"}
    found = fences(PAGE)
    ran = 0
    for fence, behind in pairwise(found):
        if fence.language in ("sh", "py"):
            assert behind.language == "text", f"line {fence.line}"
            assert run_fence(fence, namespace) == behind.text, f"line {fence.line}"
            ran += 1
    assert ran == 8
