"""Causal order by piggybacking: what Birman and Joseph claim of CBCAST, and what is said of it in
section 3.1 of Raynal, Schiper and Toueg."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.message import Message, Packet, message_id, origin_of
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.protocols.causal_isis import Received, Stable, Transfer, flat, parted
from flexgroup.testing.orders import undelivered, wrongly_delivered
from flexgroup.worlds.bench import Bench

from ..explorer.variants_causal import isis_that_does_not_send_on
from .causal_history import EVERYONE, SIZE, Historian

ISIS = parse_stack("causal-isis")


def layer_of(bench: Bench, process: int) -> Any:
    return bench.hosts[process].stack.layers[0]


def everything_arrives(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*min(bench.channels))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_to_any_destinations_all_is_delivered_in_causal_order_and_forgotten(seed: int) -> None:
    historian = Historian(ISIS, seed)
    historian.run()
    assert not historian.violations()
    bench = historian.bench
    assert not undelivered(bench.delivered, list(bench.messages.values()))
    assert not wrongly_delivered(bench.delivered)
    for process in EVERYONE:
        layer = layer_of(bench, process)
        assert (layer.BUF, layer.early) == ([], set())


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_nothing_waits(seed: int) -> None:
    """A message is delivered as soon as any packet with it has arrived."""
    historian = Historian(ISIS, seed)
    bench = historian.bench
    came: list[set[int]] = [set() for _ in EVERYONE]
    for _ in range(12):
        historian.cast()
        for _ in range(historian.random.randint(0, 5) if bench.channels else 0):
            if not bench.channels:
                break
            source, target = historian.random.choice(sorted(bench.channels))
            packet = bench.deliver(source, target)
            if isinstance(packet, Transfer):
                came[target] |= {m.id for m in (*packet.before, packet.m)}
            for process in EVERYONE:
                there = {m.id for m in bench.delivered[process] if origin_of(m.id) != process}
                due = {m for m in came[process] if process in bench.messages[m].destinations}
                assert there == {m for m in due if origin_of(m) != process}


def test_a_packet_carries_the_messages_that_precede_it() -> None:
    """Also those to others, for the receiver may be the next to send something there."""
    bench = Bench(ISIS, 4)
    a, b = bench.cast(0, (3,)), bench.cast(0, (1,))
    bench.deliver(0, 1)
    c = bench.cast(1, (2,))
    bench.deliver(1, 2)
    d = bench.cast(2, (3,))
    bench.deliver(2, 3)
    assert bench.delivered == [[], [b], [c], [a, d]]


def test_what_has_arrived_everywhere_is_not_carried() -> None:
    bench = Bench(ISIS, 3)
    bench.cast(0, (0, 1, 2))
    everything_arrives(bench)
    for origin in range(3):
        bench.cast(origin, ((origin + 1) % 3,))
        packet = bench.channels[origin, (origin + 1) % 3][0].packet
        assert isinstance(packet, Transfer)
        assert packet.before == ()


@pytest.mark.parametrize("count", [10, 20, 100])
def test_what_a_packet_carries_is_not_bounded(count: int) -> None:
    """One destination that does not respond is enough."""
    bench = Bench(ISIS, 3)
    for _ in range(count):
        bench.cast(0, (1, 2))
        bench.deliver(0, 1)
        bench.deliver(1, 0)
    packet = bench.channels[0, 2][-1].packet
    assert isinstance(packet, Transfer)
    assert len(packet.before) == count - 1


@pytest.mark.parametrize(("k", "packets"), [(1, 0), (2, 2), (3, 6), (4, 9)])
def test_a_message_costs_a_transfer_a_response_and_a_word_to_each_that_keeps_it(
    k: int, packets: int
) -> None:
    """The last destination of two knows at once that nobody else may miss the message."""
    bench = Bench(ISIS, SIZE)
    bench.cast(0, EVERYONE[:k])
    count = 0
    while bench.channels:
        bench.deliver(*min(bench.channels))
        count += 1
    assert count == packets


def test_a_message_to_oneself_alone_is_delivered_at_once() -> None:
    bench = Bench(ISIS, 1)
    m = bench.cast(0, (0,))
    assert bench.delivered == [[m]]
    assert not bench.channels


def test_a_client_keeps_nothing_for_others() -> None:
    client = ISIS.build(SIZE, SIZE)
    with pytest.raises(UsageError, match="let one of them multicast for it"):
        client.cast(Message(message_id(SIZE, 0), EVERYONE, b""))


# Crashes: some of what is in flight from a process is lost as it stops, and all others are told.


def crash(historian: Historian, crashed: int) -> None:
    bench, random = historian.bench, historian.random
    bench.crash(crashed)
    bench.lose(crashed)
    for channel in [channel for channel in bench.channels if channel[0] == crashed]:
        for place in reversed(range(len(bench.channels[channel]))):
            if random.random() < 0.5:
                bench.remove(*channel, place)


def with_crashes(plan: StackPlan, seed: int, crashes: int) -> tuple[Historian, list[int]]:
    """A run in which processes crash, after which others are told at any moment."""
    historian = Historian(plan, seed)
    bench, random = historian.bench, historian.random
    living, untold = list(EVERYONE), list[tuple[int, int]]()
    times = sorted(random.sample(range(12), crashes))
    for turn in range(12):
        origin = random.choice(living)
        to = tuple(sorted(random.sample(EVERYONE, random.randint(1, SIZE))))
        identity = bench.next_id(origin)
        historian.past[identity] = set(historian.known[origin])
        historian.known[origin].add(identity)
        bench.cast(origin, to)
        historian.look()
        if turn in times:
            crashed = living.pop(random.randrange(len(living)))
            crash(historian, crashed)
            untold = [(p, s) for p, s in untold if p != crashed]
            untold += [(process, crashed) for process in living]
        for _ in range(random.randint(0, 5)):
            step(historian, untold)
    while bench.channels or untold:
        step(historian, untold)
    return historian, living


def step(historian: Historian, untold: list[tuple[int, int]]) -> None:
    bench, random = historian.bench, historian.random
    if untold and random.random() < 0.3:
        bench.suspect(*untold.pop(random.randrange(len(untold))))
        historian.look()
    elif bench.channels:
        historian.move()


def divided(historian: Historian, living: list[int]) -> list[tuple[int, int]]:
    """Messages that some process that lives has delivered, and another that should have not."""
    orders = {process: {m.id for m in historian.bench.delivered[process]} for process in living}
    return [
        (m.id, process)
        for m in historian.bench.messages.values()
        if any(m.id in orders[other] for other in living) or origin_of(m.id) in living
        for process in living
        if process in m.destinations and m.id not in orders[process]
    ]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 100_000), crashes=st.integers(1, 2))
def test_all_that_live_on_deliver_what_one_of_them_does(seed: int, crashes: int) -> None:
    historian, living = with_crashes(ISIS, seed, crashes)
    assert divided(historian, living) == []
    assert not [broken for broken in historian.violations() if broken[0] in living]
    for process in living:
        assert layer_of(historian.bench, process).BUF == []


def test_the_crashes_bite() -> None:
    """Without sending on, agreement is lost in some of these runs."""
    plan = isis_that_does_not_send_on()
    assert any(divided(*with_crashes(plan, seed, 1)) for seed in range(100))


# What no correct peer sends.

SENT = Message(message_id(0, 0), (1, 2), b"")


@pytest.mark.parametrize(
    ("sender", "packet"),
    [
        (1, Transfer(SENT, (), (), 0)),
        (7, Transfer(SENT, (), (), 0)),
        (0, Transfer(Message(message_id(0, 0), (2,), b""), (), (), 0)),
        (0, Transfer(Message(message_id(7, 0), (1,), b""), (), (), 0)),
        (0, Transfer(Message(message_id(1, 5), (1,), b""), (), (), 0)),
        (0, Transfer(SENT, (Message(message_id(2, 0), (), b""),), (0,), 0)),
        (0, Transfer(SENT, (Message(message_id(2, 0), (7,), b""),), (0,), 0)),
        (0, Transfer(SENT, (Message(message_id(1, 0), (2,), b""),), (1, 2), 0)),
        (0, Transfer(SENT, (), (1, 2), 0)),
        (0, Transfer(SENT, (Message(message_id(2, 0), (0, 1), b""),), (2, 1), 0)),
        (0, Transfer(SENT, (Message(message_id(2, 0), (0, 1), b""),), (1, 2), 0)),
        (0, Received(message_id(1, 0), 0)),
        (0, Stable(message_id(7, 0))),
    ],
    ids=[
        "from oneself",
        "from a stranger",
        "to others",
        "of a stranger",
        "of this process, in the future",
        "it brings what goes nowhere",
        "it brings what goes to a stranger",
        "it brings what this process has not sent",
        "remaining destinations of nothing",
        "remaining destinations without an end",
        "remaining destinations that are none",
        "a response to nothing",
        "a stranger's message is stable",
    ],
)
def test_what_no_correct_peer_sends_is_refused(sender: int, packet: Packet) -> None:
    stack = ISIS.build(1, 3)
    with pytest.raises(PeerError):
        stack.receive(sender, packet)
    assert not stack.take_effects()


def test_a_second_copy_of_a_packet_does_no_harm() -> None:
    bench = Bench(ISIS, 2)
    m = bench.cast(0, (1,))
    bench.duplicate(0, 1)
    everything_arrives(bench)
    assert bench.delivered[1] == [m]


@given(st.lists(st.lists(st.integers(0, 9), max_size=4).map(tuple)))
def test_lists_that_were_written_down_are_read(lists: list[tuple[int, ...]]) -> None:
    assert parted(flat(lists)) == lists
