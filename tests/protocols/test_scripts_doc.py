"""The examples in docs/scripts.md are executed, and the table there names every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.testing.script import Script, check

DOCUMENT = Path(__file__).parents[2] / "docs" / "scripts.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```script\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0])
def test_examples_go_as_written(example: str) -> None:
    assert [str(mismatch) for mismatch in check(example)] == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 2
    assert "holds" in EXAMPLES[0]
    assert "violated" in EXAMPLES[1]


def test_the_table_names_every_command() -> None:
    with pytest.raises(UsageError) as caught:
        Script().run("nonsense")
    commands = set(str(caught.value).partition("commands: ")[2].split(", "))
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    documented = {word for row in rows for word in re.findall(r"`([a-z-]+)", row)}
    assert documented == commands
    assert len(commands) > 10
