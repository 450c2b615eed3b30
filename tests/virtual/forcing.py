"""Changes in which nothing is brought to its end by the stacks, as when servers fail."""

from __future__ import annotations

import pytest

from flexgroup.membership.leader import Leader


def freeze_at_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if something that is under way never arrived, whenever somebody joins or leaves."""
    begin = Leader._begin

    def begin_with_freezing(self: Leader, party: tuple[int, ...], now: float) -> None:
        self._to_freeze.update(domain.number for domain in self._configuration.domains)
        begin(self, party, now)

    monkeypatch.setattr(Leader, "_begin", begin_with_freezing)
