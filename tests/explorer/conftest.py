"""Attackers that only the variants of what stands between groups need are known to the explorer
while a test wants them: the table of attackers is what the commands offer, and other tests ask it
what there is."""

from __future__ import annotations

import pytest

from flexgroup.liars.named import ATTACKERS

from .attackers_of_groups import Insisting, Inventing


@pytest.fixture
def attackers_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Insisting, Inventing):
        monkeypatch.setitem(ATTACKERS, kind.KIND, kind)
