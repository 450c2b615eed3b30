"""Which messages were taken: each once, whatever the order, and in bounded memory."""

from __future__ import annotations

from random import Random

import pytest

from flexgroup.core.message import message_id
from flexgroup.protocols.parts import taken_messages as part
from flexgroup.protocols.parts.taken_messages import TakenMessages, taken_messages


@pytest.mark.parametrize("seed", range(20))
def test_in_whatever_order_they_come_each_is_known_from_then_on(seed: int) -> None:
    random = Random(seed)
    messages = [message_id(origin, seq) for origin in range(3) for seq in range(40)]
    random.shuffle(messages)
    taken = TakenMessages()
    for place, m in enumerate(messages):
        assert not taken.has(m)
        taken.add(m)
        assert all(map(taken.has, messages[: place + 1]))
        assert not any(map(taken.has, messages[place + 1 :]))
        assert taken_messages(taken.count, *taken.told()) == taken
    assert taken == TakenMessages({0: 40, 1: 40, 2: 40}, {}, 120)


def test_gaps_that_stay_are_closed_behind_so_many_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second message of an origin goes to another group."""
    monkeypatch.setattr(part, "AHEAD", 8)
    taken = TakenMessages()
    for seq in range(1, 200, 2):
        taken.add(message_id(4, seq))
        assert len(taken.ahead[4]) <= 8
    assert taken.count == 100
    assert taken.last[4] == 184
    assert [seq for seq in range(200) if not taken.has(message_id(4, seq))] == list(
        range(184, 200, 2)
    )


def test_who_starts_again_leaves_a_gap_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "AHEAD", 8)
    taken = TakenMessages()
    for seq in [*range(5), *range(1 << 20, (1 << 20) + 9)]:
        taken.add(message_id(4, seq))
    assert taken == TakenMessages({4: (1 << 20) + 9}, {}, 14)
