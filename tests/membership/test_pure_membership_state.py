"""The state of a membership is plain data: it can be copied, and equal ones behave alike."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from flexgroup.membership.machine import Membership

from .random_schedules import run_schedule
from .virtual_cluster import Cluster, Life

EVENTS = (
    "found join contact_lost propose received heard link_lost replaced frozen drained tick".split()
)
PLAIN = int | float | str | bytes | None
"""Immutable, or made of what is: messages and effects are frozen."""


def parts(value: object) -> list[object]:
    """What a value of the state consists of; fails for what does not belong there."""
    module = type(value).__module__
    if isinstance(value, PLAIN | msgspec.Struct):
        return []
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set) or type(value).__name__ == "deque":
        return list(value)  # type: ignore[call-overload, no-any-return]
    assert module.startswith("flexgroup.membership."), f"{value!r} in the state"
    names = [*getattr(value, "__slots__", ()), *getattr(value, "__dict__", ())]
    return [getattr(value, name) for name in names if hasattr(value, name)]


def picture(value: object) -> object:
    """The same for equal states, whatever objects they are made of."""
    if isinstance(value, dict):
        return [(key, picture(item)) for key, item in value.items()]
    if isinstance(value, PLAIN | msgspec.Struct | set):
        return value
    return type(value).__name__, [picture(part) for part in parts(value)]


@pytest.mark.parametrize("seed", [0, 4])
def test_a_copy_is_told_the_same_and_asks_for_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a random schedule, at every event: a copy made before shares nothing that changes."""
    twins: dict[int, Membership] = {}

    def watched(name: str) -> None:
        original = getattr(Membership, name)

        def event(self: Membership, *told: Any) -> object:
            if self in twins.values():
                return original(self, *told)
            untouched = picture(self)
            twin = twins[id(self)] = deepcopy(self)
            getattr(twin, name)(*told)
            assert picture(self) == untouched
            result = original(self, *told)
            assert picture(twin) == picture(self)
            return result

        monkeypatch.setattr(Membership, name, event)

    for name in EVENTS:
        watched(name)
    assert run_schedule(seed)["carried out"] > 0
    assert len(twins) > 1


def test_the_state_holds_nothing_but_data(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Membership] = []
    original = Cluster.send

    def send(self: Cluster, sender: Life, *rest: Any) -> None:
        todo: list[object] = [sender.membership]
        while todo:
            todo += parts(todo.pop())
        seen.append(sender.membership)
        original(self, sender, *rest)

    monkeypatch.setattr(Cluster, "send", send)
    run_schedule(3)
    assert len(seen) > 100
