"""The repository works wherever it is checked out and from whatever index pip is set up for."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Taken apart, so that this file does not name what it looks for.
HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("repo1", "maven", "org"),
            ("repo", "maven", "apache", "org"),
            ("conda", "anaconda", "org"),
            ("npmjs", "org"),
            ("crates", "io"),
            ("docker", "io"),
            ("ghcr", "io"),
        )
    )
    + "|--(extra-)?index"
    + "-url|--find"
    + "-links"
)

# The root of somebody's machine: a directory that others do not have or may not write to.
PLACES = re.compile(r"(?<![\w.~$}/*<-])/(work|root|tmp|home)(?![\w.-])")

# file -> why it may name such a place
MAY_NAME_A_PLACE: dict[str, str] = {}

NOT_OURS = {".git", ".venv", "build", "dist", "runs", "__pycache__", ".hypothesis"}


def files() -> Iterator[Path]:
    """What is or would be committed; where git cannot tell, everything that is not made."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0 and listing.stdout:
        yield from (ROOT / name for name in sorted(set(listing.stdout.split("\0"))) if name)
        return
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if not any(part in NOT_OURS or part.endswith(("_cache", ".egg-info")) for part in parts):
            yield path


@cache
def lines() -> list[tuple[str, int, str]]:
    found = []
    for path in files():
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not text, so not a setting
        name = path.relative_to(ROOT).as_posix()
        found += [(name, number, line) for number, line in enumerate(text.splitlines(), start=1)]
    return found


def test_no_file_names_a_package_registry() -> None:
    found = [f"{name}:{number}: {line}" for name, number, line in lines() if HOSTS.search(line)]
    assert not found, "\n" + "\n".join(found)


def test_no_file_names_a_place_of_one_machine() -> None:
    found = [
        f"{name}:{number}: {line}"
        for name, number, line in lines()
        if PLACES.search(line) and name not in MAY_NAME_A_PLACE
    ]
    assert not found, "\n" + "\n".join(found)


def test_there_is_something_to_look_at() -> None:
    assert {"Makefile", "pyproject.toml", "src/flexgroup/core/message.py"} <= {
        name for name, _, _ in lines()
    }


def test_the_patterns_bite() -> None:
    assert HOSTS.search("from https://" + ".".join(("files", "pythonhosted", "org")))
    for place in ("/" + "tmp", "cd /" + "work/main", "'/" + "root/x'", "(/" + "home/me)"):
        assert PLACES.search(place), place
    for harmless in ("src/tmp", "https://example.com/" + "work", "a.home", "/working", "~/work"):
        assert not PLACES.search(harmless), harmless
