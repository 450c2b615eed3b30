"""What chapters 4 and 7 of the DCC dissertation claim, of the corrected algorithm.

That the published one does not keep its central promise is shown in test_schedules.py.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import pytest

from flexgroup.core.varints import varint_size
from flexgroup.metrics.costs import costs
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome

from .planned_casts import Planned, Sent, deliveries, orders, packets, simulate

SLOW = '{"mode":"slow"}'
FAST = '{"mode":"fast"}'

SIZES = range(2, 17)


def hops(sent: list[Sent], client: int) -> list[Sent]:
    """The packets of one client's message among the processes."""
    first = next(packet for packet in sent if packet.source == client)
    return [p for p in sent if p.message == first.message and p.source != client]


@pytest.mark.parametrize("k", range(1, 7))
def test_section_4_2_the_first_message_is_slow_and_visits_everybody_between(k: int) -> None:
    """Table 7.1: between k - 1 and n - 1 packets; precisely, from the lowest to the highest."""
    n = 6
    for destinations in combinations(range(n), k):
        lowest, highest = destinations[0], destinations[-1]
        history = simulate("dcc", n, [Planned(destinations)])
        path = [(p.source, p.target) for p in hops(packets(history), client=n)]
        assert path == [(node, node + 1) for node in range(lowest, highest)]
        assert {p.detail for p in hops(packets(history), client=n)} <= {SLOW}
        measured = costs(history)
        assert measured.volume == highest - lowest
        assert k - 1 <= measured.volume <= n - 1
        assert measured.steps == highest - lowest + 1
        assert deliveries(history, 0) == {d: d - lowest + 1.0 for d in destinations}


@pytest.mark.parametrize("k", range(2, 7))
def test_section_4_2_a_repeated_destination_set_goes_fast(k: int) -> None:
    """k - 1 packets, from destination to destination, in k steps: the lower bounds of table 7.1."""
    n = 6
    for destinations in combinations(range(n), k):
        history = simulate("dcc", n, [Planned(destinations), Planned(destinations, at=100)])
        second = hops(packets(history), client=n + 1)
        path = [(p.source, p.target) for p in second]
        assert path == list(pairwise(destinations))
        assert len(path) == k - 1
        assert {p.detail for p in second} == {FAST}
        assert deliveries(history, 1) == {d: i + 1.0 for i, d in enumerate(destinations)}
        assert costs(history).fast_rate == 0.5


def test_section_4_2_other_destinations_in_between_make_it_slow_again() -> None:
    """'The same destinations as the last message' is the test, so memory goes back only one."""
    casts = [Planned((0, 3), 0), Planned((0, 1), 100), Planned((0, 3), 200)]
    history = simulate("dcc", 4, casts)
    assert [p.detail for p in hops(packets(history), client=6)] == [SLOW] * 3


def test_section_6_1_4_genuine_are_those_that_meet_no_intermediate_node() -> None:
    """One slow message with an intermediate node, one without, one fast: two of three."""
    casts = [Planned((0, 2), 0), Planned((3, 4), 0), Planned((0, 2), 100)]
    history = simulate("dcc", 5, casts)
    assert costs(history).genuine_rate == pytest.approx(2 / 3)
    assert costs(history).fast_rate == pytest.approx(1 / 3)


@pytest.mark.parametrize("n", SIZES)
def test_section_4_2_the_header_carries_a_counter_for_each_of_n_times_n_minus_1_halves_edges(
    n: int,
) -> None:
    """Numbers below 128 take one byte: n(n-1)/2 for the counters, one for how many there are,
    one for the packet's type, two for the message's identity, one for the payload's length,
    k + 1 for the destinations and their number, three for m.src, the decider and the mode.
    """
    k = 2
    history = simulate("dcc", n, [Planned((0, n - 1)), Planned((0, n - 1), at=100)])
    edges = n * (n - 1) // 2
    assert edges < 128
    expected = {edges + 1 + 1 + 2 + 1 + (k + 1) + 3}
    assert {p.header_bytes for p in packets(history) if p.source < n} == expected


def test_section_4_2_a_counter_above_127_takes_two_bytes() -> None:
    casts = [Planned((0, 1), at=number) for number in range(200)]
    sizes = [p.header_bytes for p in packets(simulate("dcc", 2, casts)) if p.source < 2]
    # Clients with numbers above 127 take another byte, in the identity.
    clients = [varint_size(2 + number) for number in range(200)]
    counters = [varint_size(number + 1) for number in range(200)]
    assert sizes == [10 + a + b for a, b in zip(clients, counters, strict=True)]
    assert counters.count(1) == 127


def headers(stack: str, n: int) -> tuple[int, int]:
    """The header bytes of the slow first and of the fast second message to {0, n-1}."""
    history = simulate(stack, n, [Planned((0, n - 1)), Planned((0, n - 1), at=100)])
    first = hops(packets(history), client=n)
    second = hops(packets(history), client=n + 1)
    return first[-1].header_bytes, second[-1].header_bytes


REDUCED = {
    # n: slow and fast with the whole clock, slow and fast with the reduced one.
    2: (12, 12, 13, 13),
    3: (14, 14, 15, 15),
    4: (17, 17, 17, 17),
    5: (21, 21, 19, 19),
    8: (39, 39, 25, 25),
    16: (131, 131, 41, 41),
}


@pytest.mark.parametrize("n", REDUCED)
def test_section_7_3_the_reduced_clock_makes_headers_smaller(n: int) -> None:
    """It tells two numbers for each counter that changed: here n - 1 of n(n-1)/2.

    So it pays from five processes on, and with sixteen a header is a third as long. The second
    message is the first in its channels (fast), so it tells the same counters again.
    """
    assert (*headers("dcc", n), *headers("dcc/rv", n)) == REDUCED[n]


@pytest.mark.parametrize("n", SIZES)
def test_section_7_3_the_reduced_clock_is_smaller_from_five_processes_on(n: int) -> None:
    whole, reduced = headers("dcc", n), headers("dcc/rv", n)
    assert (reduced < whole) == (n >= 5)


def test_table_7_1_with_locality_the_header_does_not_grow_with_n() -> None:
    """Once a set of destinations is being repeated, one counter changes for each but the lowest.

    With the whole clock, the same packet grows with the square of n.
    """
    sizes = {}
    for n in (4, 8, 16):
        casts = [Planned((0, 1, 2), at=100 * number) for number in range(4)]
        for stack in ("dcc", "dcc/rv"):
            history = simulate(stack, n, casts)
            sizes[stack, n] = hops(packets(history), client=n + 3)[0].header_bytes
    assert [sizes["dcc/rv", n] for n in (4, 8, 16)] == [16, 16, 16]
    assert [sizes["dcc", n] for n in (4, 8, 16)] == [18, 40, 132]


@pytest.mark.parametrize("seed", range(20))
def test_section_7_3_the_reduced_clock_changes_no_delivery(seed: int) -> None:
    random = Random(seed)
    pool = [tuple(sorted(random.sample(range(6), random.randint(1, 4)))) for _ in range(5)]
    casts = [Planned(random.choice(pool), at=random.random() * 20) for _ in range(60)]
    whole, reduced = simulate("dcc", 6, casts), simulate("dcc/rv", 6, casts)
    assert orders(whole) == orders(reduced)
    assert [deliveries(whole, i) for i in range(60)] == [deliveries(reduced, i) for i in range(60)]
    assert costs(reduced).header_bytes < costs(whole).header_bytes
    (verdict,) = check(reduced, ["acyclic order"])
    assert verdict.outcome is Outcome.HOLDS


def test_section_4_3_messages_do_not_wait_for_each_other() -> None:
    """A pipeline: ten messages to the same three processes, entering at the same time.

    DCC has delivered all of them when the first reaches its last destination, after k = 3
    delays. D&F lets process 0 take the next one every k delays, when END has come back.
    """
    casts = [Planned((0, 1, 2)) for _ in range(10)]
    last = {
        stack: max(max(deliveries(simulate(stack, 3, casts), i).values()) for i in range(10))
        for stack in ("dcc", "df")
    }
    assert last == {"dcc": 3.0, "df": 9 * 3.0 + 3.0}
