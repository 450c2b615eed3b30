"""docs/environment.md names tests that exist: a promise without one is a wish."""

from __future__ import annotations

import re

from .fences import ROOT

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
