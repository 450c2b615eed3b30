"""docs/environment.md names tests and messages that exist: a promise without a test is a wish."""

from __future__ import annotations

import re

from flexgroup.membership import messages, operations
from flexgroup.wire import requests

from .fences import ROOT, code_words, tables

PAGE = ROOT / "docs" / "environment.md"


def test_every_test_that_the_page_names_exists() -> None:
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    named = re.findall(r"`(test_\w+)`", PAGE.read_text())
    assert len(named) > 50
    assert [name for name in named if name not in defined] == []


def test_messages_that_stand_for_those_of_the_text_exist() -> None:
    named = {
        word.partition("(")[0].partition(".")[0]
        for table in tables(PAGE)
        if {"from", "here"} <= set(table[0])
        for row in table
        for word in code_words(row["here"])
        if word[0].isupper()
    }
    assert len(named) > 8
    for name in named:
        assert any(hasattr(m, name) for m in (messages, operations, requests)), name
