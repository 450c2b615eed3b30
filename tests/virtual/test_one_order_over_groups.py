"""Clients in groups that overlap: the order in which a server delivers spans all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from flexgroup.server.settings import Limits, Settings
from flexgroup.virtual import execution as executions
from flexgroup.virtual.checks import OrderRecord, problems
from flexgroup.virtual.clients import Life
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Load, draw_schedule

STACKS = ["RELIABLE ATOMIC", "CAUSAL-RST"]
LOAD = Load(messages=150, seconds=0.2, changes=6)


def executed(seed: int, stack: str, load: Load = LOAD) -> Execution:
    execution = Execution(draw_schedule(seed, stack, load))
    execution.run()
    return execution


def lives_of(execution: Execution) -> list[Life]:
    return [life for client in execution.clients.values() for life in client.lives]


def in_order(life: Life) -> list[str]:
    """What a client was given in whichever group, in the order of positions."""
    given = {
        position: item
        for membership in life.memberships
        for position, (_, item) in zip(membership.positions, membership.items, strict=True)
        if isinstance(item, str)
    }
    return [name for _, name in sorted(given.items())]


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that hold back all but two messages of each group."""

    def settings(**given: Any) -> Settings:
        limits = replace(given.pop("limits", Limits()), window=2)
        return Settings(**given, limits=limits)

    monkeypatch.setattr(executions, "Settings", settings)


def test_all_clients_agree_on_the_order_of_what_they_have_in_common() -> None:
    for seed in range(4):
        lives = lives_of(executed(seed, "RELIABLE ATOMIC"))
        for one, other in combinations([in_order(life) for life in lives], 2):
            common = set(one) & set(other)
            assert [n for n in one if n in common] == [n for n in other if n in common]


@pytest.mark.parametrize("stack", STACKS)
def test_orders_over_all_groups_hold_while_messages_are_held_back(
    stack: str, small_windows: None
) -> None:
    for seed in range(6):
        found = problems(executed(seed, stack))
        assert not found, "\n".join([f"seed {seed}", *map(str, found[:10])])


@pytest.mark.parametrize("stack", STACKS)
def test_putting_groups_together_by_the_times_of_reading_loses_the_order(
    stack: str, small_windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was, without positions: every other client reads its groups apart."""

    def by_time(record: OrderRecord, life: Life) -> dict[str, float]:
        times = {i: at for m in life.memberships for at, i in m.items if isinstance(i, str)}
        return dict(sorted(times.items(), key=lambda item: item[1]))

    monkeypatch.setattr(OrderRecord, "_in_order", by_time)
    assert any(
        "order is violated" in str(problem)
        for seed in range(6)
        for problem in problems(executed(seed, stack))
    )
