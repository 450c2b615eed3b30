"""What the linter and the type checker do not look at."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "flexgroup"
SOURCES = sorted(PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(PACKAGE).as_posix() for path in SOURCES]

# A name that fits anything attracts everything.
NO_NAMES = frozenset("util utils utilities helper helpers manager managers common misc".split())

LONGEST = 450
LONGEST_PROTOCOL = 300


def test_modules_are_named_after_what_they_hold() -> None:
    vague = [
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if NO_NAMES & {*path.relative_to(ROOT).with_suffix("").parts, *path.stem.split("_")}
    ]
    assert not vague


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_files_can_be_read_in_one_go(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    limit = LONGEST_PROTOCOL if path.parent.name == "protocols" else LONGEST
    assert lines <= limit


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_every_module_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text))
