"""What is claimed of Skeen's algorithm: section 3.1.1 of the DCC dissertation, and latency.

The bounds on latency are those of Gotsman, Lefort and Chockler ("White-Box Atomic Multicast",
DSN 2019): two delays without collisions, four in the worst case without failures.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from flexgroup.core.message import Packet
from flexgroup.metrics.costs import costs
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.skeen import Start
from flexgroup.worlds.simulator.network import Network

from .planned_casts import DELAY, Planned, deliveries, latency, packets, simulate

SIZES = range(1, 17)


def network(fifo: bool) -> dict[str, Any]:
    """The arguments of a network of one delay everywhere, for subclasses with other delays."""
    return {
        "name": "test",
        "region_delays": [[DELAY]],
        "jitter": [],
        "fifo": fifo,
        "send_cost": 0,
        "receive_cost": 0,
        "byte_cost_ps": 0,
        "sync_cost": 0,
        "stored_byte_cost_ps": 0,
        "loss": 0.0,
        "duplication": 0.0,
        "contention": True,
        "links": {},
    }


@pytest.mark.parametrize("k", SIZES)
def test_section_3_1_1_two_communication_steps(k: int) -> None:
    """START and LOCAL-TS, also to oneself; but what a process sends itself takes no time."""
    history = simulate("skeen", 16, [Planned(tuple(range(k)))])
    assert costs(history).steps == 2
    assert deliveries(history, 0) == dict.fromkeys(range(k), 2.0 if k > 1 else 1.0)


@pytest.mark.parametrize("k", SIZES)
def test_section_3_1_1_k_squared_packets(k: int) -> None:
    """k START from the origin, k^2 LOCAL-TS among the destinations, k of them to oneself."""
    history = simulate("skeen", 16, [Planned(tuple(range(16 - k, 16)))])
    sent = packets(history)
    assert Counter(packet.packet for packet in sent) == {"Start": k, "LocalTs": k * k}
    assert sum(packet.source == packet.target for packet in sent) == k
    assert costs(history).volume == k * k


def test_section_2_7_genuine() -> None:
    """Only the origin and the destinations take part, under contention as well."""
    random = Random(3)
    casts = [
        Planned(tuple(sorted(random.sample(range(8), 3))), at=random.random() * 4)
        for _ in range(100)
    ]
    history = simulate("skeen", 8, casts)
    assert costs(history).genuine_rate == 1.0
    (verdict,) = check(history, ["minimality"])
    assert verdict.outcome is Outcome.HOLDS


def test_section_3_1_1_a_message_waits_for_those_with_a_lower_proposal() -> None:
    """b, to {0} alone, would take one delay; a, before it at 0, needs two for its timestamp."""
    alone = simulate("skeen", 2, [Planned((0,))])
    assert latency(alone, 0) == 1.0
    behind = simulate("skeen", 2, [Planned((0, 1)), Planned((0,), at=0.25)])
    assert latency(behind, 0) == 2.0
    assert latency(behind, 1) == 1.75


class PromptToProcess0(Network):
    """A START to process 0 takes no time at all; everything else takes the longest, one delay."""

    def delay(self, source: int, target: int, packet: Packet | None, random: Random) -> int:
        return 0 if target == 0 and isinstance(packet, Start) else DELAY


class Uneven(Network):
    """Every packet takes any time up to one delay."""

    def delay(self, source: int, target: int, packet: Packet | None, random: Random) -> int:
        return int(random.random() * (DELAY + 1))


# Process 1 has handled three messages before, so it proposes a high timestamp for the message
# that is watched, and everything that process 0 handles until it knows that is in its way.
PAST = [Planned((1,), at=0.0) for _ in range(3)]
WATCHED = len(PAST)
AT = 10.0


def latency_with_another_at(offset: float, among: Network | None) -> float:
    """Of a message to {0,1}, while one to {0,2} is multicast so long after it."""
    casts = [*PAST, Planned((0, 1), at=AT), Planned((0, 2), at=AT + offset)]
    return latency(simulate("skeen", 3, casts, among), WATCHED)


def test_latency_is_almost_four_delays_in_the_worst_case() -> None:
    """The other message comes to process 0 just before the final timestamp is known there.

    It gets a lower local timestamp, and it takes two more delays to know that it may follow.
    """
    offsets = [step / 100 for step in range(301)]
    found = {
        offset: latency_with_another_at(offset, PromptToProcess0(**network(fifo=True)))
        for offset in offsets
    }
    worst = max(found, key=found.__getitem__)
    assert 3.9 < found[worst] < 4
    assert (worst, found[worst]) == (1.99, 3.99)
    # Without the collision, two delays.
    assert found[0.0] == found[3.0] == 2.0


def test_latency_is_three_delays_at_most_if_all_delays_are_equal() -> None:
    """The other message is multicast one delay earlier to be there at the same time."""
    offsets = [step / 100 for step in range(301)]
    found = {offset: latency_with_another_at(offset, None) for offset in offsets}
    assert max(found.values()) == 3.0
    assert found[0.0] == found[3.0] == 2.0


def test_no_latency_exceeds_four_delays_however_delays_and_multicasts_fall() -> None:
    """What is in the way at a process came before two delays, and needs two at most."""
    longest = 0.0
    for seed in range(60):
        random = Random(seed)
        casts = [
            Planned(tuple(sorted(random.sample(range(5), 2))), at=random.random() * 6)
            for _ in range(40)
        ]
        history = simulate("skeen", 5, casts, Uneven(**network(fifo=False)), seed)
        longest = max(longest, *(latency(history, number) for number in range(len(casts))))
    assert 2.5 < longest <= 4
