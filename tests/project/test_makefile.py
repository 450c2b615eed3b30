"""`make` explains itself, and continuous integration runs what developers run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    # What an outer make passes down must not steer this one.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
    )


@needs_make
def test_make_lists_every_public_target() -> None:
    public = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert public
    listed = make()
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[1] for line in listed.stdout.splitlines()] == public[1].split()


@needs_make
def test_a_python_that_is_too_old_is_refused_clearly(tmp_path: Path) -> None:
    old = tmp_path / "python3.6"
    old.write_text(
        "#!/bin/sh\necho 'FlexGroup needs Python 3.11 or newer; this is 3.6' >&2\nexit 1\n"
    )
    old.chmod(0o755)
    refused = make(f"PYTHON={old}", f"VENV={tmp_path / 'env'}", "install")
    assert refused.returncode != 0
    assert "needs Python 3.11 or newer" in refused.stderr
    assert not (tmp_path / "env").exists()


@needs_make
def test_no_python_at_all_is_said_clearly(tmp_path: Path) -> None:
    refused = make("PYTHON=", f"VENV={tmp_path / 'env'}", "install")
    assert refused.returncode != 0
    assert "No Python 3.11 or newer was found" in refused.stderr


@needs_make
def test_every_long_step_says_how_long_it_takes(tmp_path: Path) -> None:
    """From nothing, as somebody sees it who has just got the repository."""
    steps = make("--dry-run", f"PYTHON={sys.executable}", f"VENV={tmp_path / 'env'}", "run").stdout
    told = [line for line in steps.splitlines() if line.startswith("echo ") and "usually" in line]
    assert [line.split()[1].strip('"') for line in told] == ["Creating", "Installing", "Running"]
    assert "takes three to five minutes" in steps
    assert "pip install -q" not in steps  # what it fetches is seen


def test_continuous_integration_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")
