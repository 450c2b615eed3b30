"""Causal order by vector times: what Schiper, Eggli and Sandoz claim, and that it is the same order
as that of the matrix."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.message import Message, message_id
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.causal_ses import Timed, flat, pairs
from flexgroup.testing.orders import undelivered, wrongly_delivered
from flexgroup.worlds.bench import Bench

from .causal_history import EVERYONE, SIZE, Historian

SES = parse_stack("causal-ses")

destinations = st.sets(st.integers(0, SIZE - 1), min_size=1).map(sorted).map(tuple)
casts = st.tuples(st.integers(0, SIZE - 1), destinations)
schedules = st.lists(st.one_of(casts, st.integers(0, 1000)), max_size=50)


def layer_of(bench: Bench, process: int) -> Any:
    return bench.hosts[process].stack.layers[0]


def perform(name: str, steps: list[Any]) -> Bench:
    """A schedule: each step is a cast, or the number of a packet that arrives."""
    bench = Bench(parse_stack(name), SIZE)
    for step in steps:
        if isinstance(step, tuple):
            bench.cast(*step)
        elif bench.channels:
            in_flight = sorted(
                (channel, place)
                for channel, packets in bench.channels.items()
                for place in range(len(packets))
            )
            (source, target), place = in_flight[step % len(in_flight)]
            bench.deliver(source, target, place)
    return bench


@settings(max_examples=300, deadline=None)
@given(steps=schedules)
def test_it_delivers_what_the_matrix_does_at_the_same_moments(steps: list[Any]) -> None:
    """Neither waits for more than it must, after any step of a schedule to any destinations."""
    times, matrix = perform("causal-ses", steps), perform("causal-rst", steps)
    assert times.delivered == matrix.delivered
    assert sorted(times.channels) == sorted(matrix.channels)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_to_any_destinations_all_is_delivered_in_causal_order(seed: int) -> None:
    historian = Historian(SES, seed)
    historian.run()
    assert not historian.violations()
    bench = historian.bench
    assert not undelivered(bench.delivered, list(bench.messages.values()))
    assert not wrongly_delivered(bench.delivered)
    assert all(not layer_of(bench, process).waiting for process in EVERYONE)


def test_a_message_without_a_pair_for_its_destination_is_delivered_at_once() -> None:
    bench = Bench(SES, SIZE)
    bench.cast(0, (1, 2))
    bench.deliver(0, 1)
    m = bench.cast(1, (3,))
    bench.deliver(1, 3)
    assert bench.delivered[3] == [m]


def test_a_message_waits_while_the_time_of_its_pair_is_not_reached() -> None:
    bench = Bench(SES, SIZE)
    first, second = bench.cast(0, (1,)), bench.cast(0, (1,))
    bench.deliver(0, 1, 1)
    assert bench.delivered[1] == []
    bench.deliver(0, 1)
    assert bench.delivered[1] == [first, second]


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_the_number_of_pairs_is_bounded_by_that_of_processes(count: int) -> None:
    """However many messages were sent, and though nothing arrives."""
    bench = Bench(SES, SIZE)
    for number in range(count):
        bench.cast(0, (1 + number % 3,))
    packet = bench.channels[0, 1][-1].packet
    assert isinstance(packet, Timed)
    assert sorted(pairs(packet.vm, SIZE) or {}) == [1, 2, 3]


def test_nobody_notes_what_was_sent_to_itself() -> None:
    """What it has not delivered it waits for, and what it has delivered its time tells."""
    historian = Historian(SES, 1)
    historian.run()
    for process in EVERYONE:
        assert process not in layer_of(historian.bench, process).V


def test_only_destinations_get_packets() -> None:
    bench = Bench(SES, SIZE)
    bench.cast(0, (0, 2))
    assert sorted(bench.channels) == [(0, 2)]


def test_a_message_to_oneself_alone_is_delivered_at_once() -> None:
    bench = Bench(SES, 1)
    m = bench.cast(0, (0,))
    assert bench.delivered == [[m]]
    assert not bench.channels


def test_a_client_has_no_place_in_the_vector() -> None:
    client = SES.build(SIZE, SIZE)
    with pytest.raises(UsageError, match="let one of them multicast for it"):
        client.cast(Message(message_id(SIZE, 0), EVERYONE, b""))


@given(st.dictionaries(st.integers(0, 4), st.tuples(*[st.integers(0, 300)] * 5)))
def test_pairs_that_were_written_down_are_read(noted: dict[int, tuple[int, ...]]) -> None:
    assert pairs(flat(noted), 5) == noted


SENT = Message(message_id(0, 0), (1, 2), b"")


@pytest.mark.parametrize(
    ("sender", "packet"),
    [
        (0, Timed(SENT, (1, 0), ())),
        (0, Timed(SENT, (0, 0, 0), ())),
        (0, Timed(SENT, (1, 1, 0), ())),
        (0, Timed(SENT, (1, 0, 0), (1, 0, 0))),
        (0, Timed(SENT, (2, 0, 0), (2, 1, 0, 0, 1, 1, 0, 0))),
        (0, Timed(SENT, (1, 0, 0), (3, 0, 0, 0))),
        (0, Timed(SENT, (1, 0, 0), (0, 0, 0, 0))),
        (0, Timed(SENT, (1, 0, 0), (1, 1, 0, 0))),
        (0, Timed(SENT, (2, 0, 0), (1, 1, 0, 7))),
        (1, Timed(SENT, (0, 1, 0), ())),
        (7, Timed(SENT, (1, 0, 0), ())),
    ],
    ids=[
        "too short",
        "sent before the first",
        "from the future",
        "half a pair",
        "pairs out of order",
        "a stranger in a pair",
        "a pair for the sender",
        "it waits for itself",
        "it waits for what did not precede it",
        "from oneself",
        "from a stranger",
    ],
)
def test_what_no_correct_peer_sends_is_refused(sender: int, packet: Timed) -> None:
    stack = SES.build(1, 3)
    with pytest.raises(PeerError):
        stack.receive(sender, packet)
    assert not stack.take_effects()


def test_a_message_that_was_delivered_does_not_come_again() -> None:
    """Channels are reliable: a second copy is a peer's fault. One that waits is dropped."""
    bench = Bench(SES, 2)
    first = bench.cast(0, (1,))
    second = bench.cast(0, (1,))
    bench.duplicate(0, 1, 1)
    for _ in range(2):
        bench.deliver(0, 1, 1)
    bench.deliver(0, 1)
    assert bench.delivered[1] == [first, second]
    stack = bench.hosts[1].stack
    with pytest.raises(PeerError):
        stack.receive(0, Timed(first, (1, 0), ()))
