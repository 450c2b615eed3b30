"""Stability: what is kept until all have delivered it."""

from __future__ import annotations

from flexgroup.core.message import Message, message_id
from flexgroup.worlds.network.stability import Stability

EVERYONE = (0, 1, 2)
TWO_GROUPS = {5: EVERYONE, 6: (0, 1)}


def message(origin: int, seq: int) -> Message:
    return Message(message_id(origin, seq), EVERYONE, b"contents")


def test_a_message_is_kept_until_the_last_has_told() -> None:
    stability = Stability(0, TWO_GROUPS)
    stability.deliver(1, message(1, 0), ((5, 0),))
    stability.told(1, 5, 1, 1)
    assert list(stability.kept) == [message_id(1, 0)]
    stability.told(2, 5, 1, 1)
    assert not stability.kept


def test_what_comes_after_a_gap_does_not_count() -> None:
    stability = Stability(0, TWO_GROUPS)
    stability.deliver(1, message(1, 1), ((5, 1),))
    assert stability.low((5, 1)) == 0
    assert stability.is_delivered(1, ((5, 1),))
    stability.deliver(1, message(1, 0), ((5, 0),))
    assert stability.lows() == [((5, 1), 2)]
    assert stability.changed == {(5, 1)}


def test_a_message_to_two_groups_is_kept_until_it_is_stable_in_both() -> None:
    stability = Stability(0, TWO_GROUPS)
    stability.deliver(1, message(1, 0), ((5, 0), (6, 0)))
    stability.told(1, 6, 1, 1)
    assert stability.kept
    stability.told(1, 5, 1, 1)
    stability.told(2, 5, 1, 1)
    assert not stability.kept


def test_what_was_sent_to_others_is_under_way_until_they_have_told() -> None:
    stability = Stability(2, TWO_GROUPS)
    stability.sent(message(2, 0), ((6, 0),))
    assert stability.own_bytes == len(b"contents")
    stability.told(0, 6, 2, 1)
    assert stability.own
    stability.told(1, 6, 2, 1)
    assert not stability.own
    assert stability.own_bytes == 0


def test_what_others_told_before_it_came_is_not_kept_at_all() -> None:
    stability = Stability(2, TWO_GROUPS)
    stability.told(0, 6, 2, 1)
    stability.told(1, 6, 2, 1)
    stability.sent(message(2, 0), ((6, 0),))
    assert not stability.own


def test_who_is_not_among_the_servers_of_a_group_is_not_listened_to() -> None:
    stability = Stability(2, TWO_GROUPS)
    stability.sent(message(2, 0), ((6, 0),))
    for teller in (1, 2, 7):
        stability.told(teller, 6, 2, 1)
    assert stability.own
