"""`import flexgroup` offers what applications need, and loads it when it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import flexgroup
from flexgroup import errors

from ..docs.fences import ROOT


def test_everything_that_is_offered_is_there() -> None:
    for name in flexgroup.__all__:
        assert getattr(flexgroup, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'disconnect'"):
        _ = flexgroup.disconnect


def test_importing_the_package_loads_no_network() -> None:
    loaded = "import sys, flexgroup; print({'asyncio', 'msgspec', 'ssl'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_the_page_names_every_error() -> None:
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## Errors\n")
    named = set(re.findall(r"`([A-Z]\w+)`", section.partition("\n## ")[0]))
    defined = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and kind.__module__ == errors.__name__
    }
    assert defined - {"ServerError", "Refusal"} <= named
