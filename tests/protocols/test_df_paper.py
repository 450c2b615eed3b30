"""What section 3.1.2 and table 7.1 of the DCC dissertation claim of D&F."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from flexgroup.metrics.costs import costs
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome

from .planned_casts import Planned, deliveries, latency, packets, simulate

SIZES = range(1, 17)


@pytest.mark.parametrize("k", SIZES)
def test_section_3_1_2_the_last_of_k_destinations_delivers_after_k_steps(k: int) -> None:
    """One from the origin to the lowest, then k-1 from each to the next."""
    history = simulate("df", 16, [Planned(tuple(range(k)))])
    assert costs(history).steps == k
    assert deliveries(history, 0) == {process: process + 1.0 for process in range(k)}


@pytest.mark.parametrize("k", SIZES[1:])
def test_table_7_1_k_plus_1_steps_until_everybody_has_end(k: int) -> None:
    """END leaves with the last delivery, after k steps, and takes one more."""
    history = simulate("df", 16, [Planned(tuple(range(k)))])
    ends = [sent for sent in packets(history) if sent.packet == "End"]
    assert {sent.time for sent in ends} == {float(k)}
    received = history.receives
    assert max(received.time.tolist()) / 1_000_000 == k + 1
    assert max(received.depth.tolist()) == k + 1


@pytest.mark.parametrize("k", SIZES)
def test_section_3_1_2_2k_minus_2_packets_among_the_destinations(k: int) -> None:
    history = simulate("df", 16, [Planned(tuple(range(16 - k, 16)))])
    counted = Counter(sent.packet for sent in packets(history) if sent.source < 16)
    assert counted == Counter({"Forward": k - 1, "End": k - 1})
    assert costs(history).volume == 2 * (k - 1)


def test_algorithm_3_2_the_destinations_take_the_message_in_ascending_order() -> None:
    history = simulate("df", 8, [Planned((1, 4, 6))])
    path = [(sent.source, sent.target) for sent in packets(history) if sent.packet == "Forward"]
    assert path == [(8, 1), (1, 4), (4, 6)]


def test_section_2_7_genuine() -> None:
    random = Random(3)
    casts = [
        Planned(tuple(sorted(random.sample(range(8), 3))), at=random.random() * 4)
        for _ in range(100)
    ]
    history = simulate("df", 8, casts)
    assert costs(history).genuine_rate == 1.0
    (verdict,) = check(history, ["minimality"])
    assert verdict.outcome is Outcome.HOLDS


GLOBAL_THEN_LOCAL = [Planned((0, 1, 2, 3, 4)), Planned((0,))]


@pytest.mark.parametrize(("stack", "delays"), [("df", 6.0), ("skeen", 2.0), ("dcc", 1.0)])
def test_section_3_1_2_convoy_effect(stack: str, delays: float) -> None:
    """A message to process 0 alone, right behind one to all five.

    D&F: process 0 waits for END, which it gets after k + 1 = 6 delays. Skeen: it waits for the
    final timestamp of the other, which takes two. DCC: it does not wait.
    """
    alone = simulate(stack, 5, [Planned((0,))])
    assert latency(alone, 0) == 1.0
    history = simulate(stack, 5, GLOBAL_THEN_LOCAL)
    assert latency(history, 1) == delays


@pytest.mark.parametrize(
    ("stack", "delays"),
    [
        ("df", [2.0, 3.0, 4.0, 5.0]),
        ("skeen", [2.0, 2.0, 2.0, 2.0]),
        ("dcc", [2.0, 2.0, 2.0, 2.0]),
    ],
)
def test_figure_3_2_the_convoy_stops_those_who_have_nothing_to_do_with_its_cause(
    stack: str, delays: list[float]
) -> None:
    """Four messages at once, each of which shares a process with the next.

    D&F: each waits at that process for the END of the one before; the last, to {0,1}, waits
    for the first, to {3,4}. The script df_convoy shows it packet by packet.
    """
    casts = [Planned((3, 4)), Planned((2, 3)), Planned((1, 2)), Planned((0, 1))]
    history = simulate(stack, 5, casts)
    assert [latency(history, number) for number in range(4)] == delays
