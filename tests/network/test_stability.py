"""Stability: what is kept until all have delivered it."""

from __future__ import annotations

from random import Random

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


def test_a_group_without_members_keeps_no_message_to_another_group() -> None:
    stability = Stability(0, {5: (0, 1), 6: ()})
    for seq in range(2):
        stability.sent(message(0, seq), ((5, seq), (6, seq)))
        stability.deliver(0, message(0, seq), ((5, seq), (6, seq)))
    assert stability.stable((6, 0)) == 2
    assert len(stability.own) == len(stability.kept) == 2
    stability.told(1, 5, 0, 2)
    assert not stability.own
    assert not stability.kept
    assert not stability.log


def test_what_was_sent_to_others_is_under_way_until_they_have_told() -> None:
    stability = Stability(2, TWO_GROUPS)
    stability.sent(message(2, 0), ((6, 0),))
    assert stability.under_way(6) == (1, len(b"contents"), 1)
    stability.told(0, 6, 2, 1)
    assert stability.own
    stability.told(1, 6, 2, 1)
    assert not stability.own
    assert stability.under_way(6) == (0, 0, 0)


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


def test_whoever_tells_last_all_that_everybody_has_delivered_is_forgotten() -> None:
    """Servers deliver and tell in any order, and tell also what others have told before."""
    for seed in range(50):
        random = Random(seed)
        stability = Stability(0, TWO_GROUPS)
        delivered = [0, 0, 0]
        for _ in range(60):
            server = random.choice(EVERYONE)
            delivered[server] += 1
            if server == 0:
                position = delivered[0] - 1
                stability.deliver(1, message(1, position), ((5, position),))
            else:
                stability.told(server, 5, 1, delivered[server])
                kept = [message_id(1, position) for position in range(min(delivered), delivered[0])]
                assert list(stability.kept) == kept
