"""ft-abcast: what algorithm 3.3 and section 3.2.3 of the DCC dissertation say of it."""

from __future__ import annotations

from collections import Counter

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.message import Message
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.ft_abcast import End, FtAbcast
from flexgroup.protocols.paxos import WINDOW
from flexgroup.trace.history import History
from flexgroup.worlds.bench import Bench

from .planned_casts import Planned, deliveries, packets, simulate

STACK = "leader paxos ft-abcast"


def run(n: int, k: int, *casts: Planned) -> History:
    """Messages of clients to some of k groups of n replicas each."""
    return simulate(STACK, n * k, casts, replicas=replicas_of_sizes([n] * k))


def bench_of(*sizes: int) -> Bench:
    return Bench(parse_stack(STACK), sum(sizes), replicas=replicas_of_sizes(sizes))


def top(bench: Bench, process: int) -> FtAbcast:
    layer = bench.hosts[process].stack.layers[-1]
    assert isinstance(layer, FtAbcast)
    return layer


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [3, 5])
def test_three_delays_for_each_group(n: int, k: int) -> None:
    """Send, and two for consensus: lines 21, 14 and 15."""
    times = deliveries(run(n, k, Planned(tuple(range(n * k)))), 0)
    for group in range(k):
        members = [times[process] for process in range(n * group, n * group + n)]
        assert (min(members), max(members)) == (3.0 * (group + 1), 3.0 * (group + 1) + 1)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [3, 5])
def test_all_members_send_on_and_all_members_of_the_last_group_send_end(n: int, k: int) -> None:
    """n copies in each log but the first, in WINDOW + 1 batches; n END to each earlier member."""
    history = run(n, k, Planned(tuple(range(n * k))))
    sent = sum(1 for packet in packets(history) if packet.source < n * k)
    copies = n * n + 3 * (n - 1) * (WINDOW + 1)
    assert sent == 3 * (n - 1) + (k - 1) * (copies + n * n)


def test_the_first_group_waits_for_the_end() -> None:
    """Section 3.2.3: the next message is not handled before the last group has delivered. With
    three groups, the first takes one every 3k + 1 - 3 delays: the END comes one after the last."""
    everyone = tuple(range(9))
    history = run(3, 3, Planned(everyone), Planned(everyone, at=0.5))
    assert deliveries(history, 0)[0] == 3.0
    assert deliveries(history, 1)[0] == pytest.approx(3 * 3 + 1 - 0.5)


def test_messages_to_other_groups_do_not_wait() -> None:
    history = run(3, 3, Planned(tuple(range(6))), Planned((6, 7, 8), at=0.0))
    assert deliveries(history, 1)[6] == 3.0


def test_every_copy_but_the_first_is_dropped() -> None:
    bench = bench_of(3, 3)
    for _ in range(5):
        bench.cast(6, tuple(range(6)))
    settle(bench)
    assert Counter(len(order) for order in bench.delivered) == {5: 6}
    assert all(not top(bench, process).Rec for process in range(6))


def test_an_end_that_comes_before_the_message_is_remembered_once() -> None:
    bench = bench_of(3, 1)
    m = bench.cast(4, (0, 1, 2, 3))
    late = top(bench, 2)
    late.on_packet(3, End(m.id))
    assert late.ended == {m.id}
    settle(bench)
    assert late.ended == set()
    assert [len(order) for order in bench.delivered] == [1, 1, 1, 1]


def test_a_message_to_a_part_of_a_group_is_refused() -> None:
    with pytest.raises(UsageError, match="a part of the group 0,1,2"):
        top(bench_of(3, 1), 0).on_cast(Message(0, (0, 1, 3), b""))
