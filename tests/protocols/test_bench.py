"""The bench, its verdicts and its schedules: what every other test of a protocol rests on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from random import Random
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Stored
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.precedence import find_cycle
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, parse_stack
from flexgroup.testing.orders import undelivered, wrongly_delivered
from flexgroup.testing.schedules import random_system
from flexgroup.testing.script import check
from flexgroup.worlds.bench import Bench

unhurried = settings(deadline=None)


class Offered(Packet):
    """A message, and nothing else."""

    m: Message


class Hesitant(Layer):
    """Saves a message that comes, waits for a timer, lets the world choose, and delivers.

    Chosen 0, it delivers what it holds; chosen 1, it sets the timer again.
    """

    __slots__ = ("held",)
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Offered,)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Offered,)
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.held: list[Message] = []

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Offered(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Offered)
        self.held.append(packet.m)
        self.save(packet)
        self.set_timer("patience", 3)

    def on_timer(self, name: str) -> None:
        self.offer("deliver", 2)

    def on_choice(self, name: str, chosen: int) -> None:
        if chosen:
            self.set_timer("patience", 3)
        else:
            self.deliver(self.held.pop(0))

    def on_restart(self, stored: Stored) -> None:
        assert isinstance(stored.saved, Offered)
        self.deliver(stored.saved.m)


@pytest.fixture(autouse=True)
def hesitant(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue with this layer in it."""
    row = Protocol("hesitant", Hesitant, "", "")
    monkeypatch.setitem(PROTOCOLS, "hesitant", row)


def test_timers_choices_crashes_and_recoveries_in_a_script() -> None:
    script = """
stack hesitant over fifo channels, processes 2
cast 0 a to=1
cast 0 b to=1
----
ok
  0->1 Offered a
  0->1 Offered b

deliver 0->1
timer 1 patience
choose 1 1
timer 1 patience
choose 1 0
----
> 0->1 Offered a
> 1 timer patience
> 1 gets 1
> 1 timer patience
> 1 gets 0
  1 delivers a

# It crashes with b in its hands, loses its timer, and recovers with what it saved.
deliver 0->1
crash 1
recover 1
----
> 0->1 Offered b
> 1 crashes
> 1 recovers
  1 delivers b

delivered
verdict
----
  0: -
  1: a b
holds
"""
    assert [str(mismatch) for mismatch in check(script)] == []


def test_what_comes_to_a_crashed_process_is_gone() -> None:
    bench = Bench(parse_stack("best-effort"), 2)
    bench.cast(0, (1,))
    bench.crash(1)
    bench.deliver(0, 1)
    assert bench.delivered == [[], []]
    assert bench.quiet


def test_a_timer_is_pending_once_and_not_after_a_crash() -> None:
    bench = Bench(parse_stack("hesitant"), 1)
    for _ in range(2):
        bench.cast(0, (0,))
        bench.deliver(0, 0)
    assert bench.timers == {0: [(0, "patience")]}
    bench.crash(0)
    with pytest.raises(UsageError, match="process 0 has not set a timer 'patience'"):
        bench.end_timer(0, 0, "patience")


def test_packets_wait_in_their_channel() -> None:
    bench = Bench(parse_stack("best-effort"), 3)
    for _ in range(3):
        bench.cast(0, (1, 2))
    first, second, third = bench.channels[0, 1]
    assert bench.remove(0, 1, 1) is second.packet
    assert bench.duplicate(0, 1, 1) is third.packet
    assert bench.channels[0, 1] == [first, third, third]
    assert bench.deliver(0, 1) is first.packet
    with pytest.raises(UsageError, match="there is no packet 2 in flight from 0 to 1"):
        bench.deliver(0, 1, 2)
    assert len(bench.channels[0, 2]) == 3


# Verdicts on orders of deliveries.


def brute_force_cycle(orders: Sequence[Sequence[int]]) -> int:
    """The length of a shortest cycle, by trying all; 0 if there is none."""
    before = {
        (one, other)
        for order in orders
        for place, one in enumerate(order)
        for other in order[place + 1 :]
    }
    names = sorted({name for order in orders for name in order})
    for length in range(2, len(names) + 1):
        for path in permutations(names, length):
            if all(pair in before for pair in zip(path, (*path[1:], path[0]), strict=True)):
                return length
    return 0


@unhurried
@given(
    orders=st.lists(st.lists(st.integers(0, 4), unique=True, max_size=4), min_size=1, max_size=4)
)
def test_a_cycle_is_found_if_there_is_one_and_is_a_shortest(orders: list[list[int]]) -> None:
    found = find_cycle(orders) or []
    assert len(found) == brute_force_cycle(orders)
    for one, other in zip(found, [*found[1:], *found[:1]], strict=True):
        assert any(
            one in order and other in order and order.index(one) < order.index(other)
            for order in orders
        )


def test_missing_and_wrong_deliveries() -> None:
    a = Message(message_id(0, 0), (0, 1), b"")
    b = Message(message_id(0, 1), (1,), b"")
    assert undelivered([[a], [b]], [a, b]) == [(a.id, 1)]
    assert undelivered([[a], [a, b]], [a, b]) == []
    assert wrongly_delivered([[a], [a, b]]) == []
    assert wrongly_delivered([[a, a], [b]]) == [(a.id, 0)]
    assert wrongly_delivered([[b], [b]]) == [(b.id, 0)]


# Systems.


def test_random_systems_are_what_they_say() -> None:
    with_locality, without = [
        [random_system(Random(seed), locality) for seed in range(300)] for locality in (True, False)
    ]
    for system in (*with_locality, *without):
        assert 3 <= system.processes <= 6
        assert 4 <= len(system.messages) <= 14
        for destinations in system.messages:
            assert list(destinations) == sorted(set(destinations))
            assert set(destinations) <= set(range(system.processes))
    assert all(len(set(system.messages)) <= 5 for system in with_locality)
    assert any(len(set(system.messages)) > 5 for system in without)
