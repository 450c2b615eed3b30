"""Causal order by vector and by matrix: what the papers claim, and that the two agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.message import Message, message_id
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.causal import Causal, Timestamped
from flexgroup.protocols.causal_rst import CausalRst, Informed, restored, shortened
from flexgroup.testing.orders import undelivered, wrongly_delivered
from flexgroup.worlds.bench import Bench

from .causal_history import EVERYONE, SIZE, Historian

both = pytest.mark.parametrize("name", ["causal", "causal-rst"])


def perform(name: str, steps: list[int]) -> Bench:
    """A schedule: each number is a cast by that process, or else the arrival of some packet."""
    bench = Bench(parse_stack(name), SIZE)
    for step in steps:
        if step < SIZE:
            bench.cast(step, EVERYONE)
        elif bench.channels:
            in_flight = sorted(
                (channel, place)
                for channel, packets in bench.channels.items()
                for place in range(len(packets))
            )
            (source, target), place = in_flight[step % len(in_flight)]
            bench.deliver(source, target, place)
    return bench


schedules = st.lists(st.one_of(st.integers(0, SIZE - 1), st.integers(SIZE, 1000)), max_size=60)


@settings(max_examples=300, deadline=None)
@given(steps=schedules)
def test_vector_and_matrix_deliver_the_same_in_the_same_order(steps: list[int]) -> None:
    """On broadcast traffic, and not only when all is over: after every schedule."""
    vector, matrix = perform("causal", steps), perform("causal-rst", steps)
    assert vector.delivered == matrix.delivered
    assert sorted(vector.channels) == sorted(matrix.channels)


@both
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_to_any_destinations_all_is_delivered_in_causal_order(name: str, seed: int) -> None:
    historian = Historian(name, seed)
    historian.run()
    assert not historian.violations()
    bench = historian.bench
    assert not undelivered(bench.delivered, list(bench.messages.values()))
    assert not wrongly_delivered(bench.delivered)
    for process in EVERYONE:
        layer = bench.hosts[process].stack.layers[0]
        assert isinstance(layer, Causal | CausalRst)
        assert not layer.waiting


def test_the_historian_bites() -> None:
    """Channels that reorder break causal order in most of these runs."""
    historians = [Historian("best-effort", seed) for seed in range(20)]
    for historian in historians:
        historian.run()
    assert sum(bool(historian.violations()) for historian in historians) > 10


def test_a_subset_costs_a_vector_everybody_and_a_matrix_its_destinations() -> None:
    for name, channels in (("causal", [(0, 1), (0, 2), (0, 3)]), ("causal-rst", [(0, 2)])):
        bench = Bench(parse_stack(name), SIZE)
        bench.cast(0, (2,))
        assert sorted(bench.channels) == channels


@both
def test_a_message_to_oneself_alone_is_delivered_at_once(name: str) -> None:
    bench = Bench(parse_stack(name), 1)
    m = bench.cast(0, (0,))
    assert bench.delivered == [[m]]
    assert not bench.channels


@both
def test_a_client_has_no_place_among_the_members(name: str) -> None:
    client = parse_stack(name).build(SIZE, SIZE)
    with pytest.raises(UsageError, match="let one of them multicast for it"):
        client.cast(Message(message_id(SIZE, 0), EVERYONE, b""))


def test_proposition_4() -> None:
    """ST[k, l] is the number of messages from k to l that were sent before this one."""
    bench = Bench(parse_stack("causal-rst"), 3)
    for to in ((1,), (1, 2), (2,)):
        bench.cast(0, to)
    for _ in range(2):
        bench.deliver(0, 1)
    bench.cast(1, (2,))
    packet = bench.channels[1, 2][0].packet
    assert isinstance(packet, Informed)
    st_matrix = restored(packet.st, 9)
    assert st_matrix[0 * 3 + 1] == 2  # both messages to process 1
    assert st_matrix[0 * 3 + 2] == 1  # not the third one, of which process 1 has not heard


@given(st.lists(st.sampled_from([0, 0, 0, 1, 7, 300]), max_size=49))
def test_what_was_shortened_is_restored(matrix: list[int]) -> None:
    short = shortened(matrix)
    assert restored(short, len(matrix)) == tuple(matrix)
    assert len(short) <= len(matrix) + matrix.count(0)


@pytest.mark.parametrize("short", [(0,), (0, 0), (0, 10), (0, 8), (1, 0, 9), (0, 9, 1), (1,) * 10])
def test_what_cannot_have_been_a_matrix_is_refused(short: tuple[int, ...]) -> None:
    stack = parse_stack("causal-rst").build(1, 3)
    with pytest.raises(PeerError):
        stack.receive(0, Informed(Message(message_id(0, 0), (1,), b""), short))


def test_few_correspondents_make_a_short_matrix() -> None:
    """Of 400 counters, two are not zero: the matrix takes a dozen bytes on the wire."""
    plan = parse_stack("causal-rst")
    bench = Bench(plan, 20)
    bench.cast(3, (4, 5))
    bench.cast(3, (4, 5))
    packet = bench.channels[3, 4][1].packet
    assert Codec(plan.layers).measure(packet).header_bytes < 20
    assert isinstance(bench.hosts[3].stack.layers[0], CausalRst)


ASKED = Message(message_id(0, 0), (1, 2), b"")


@pytest.mark.parametrize(
    ("sender", "packet"),
    [
        (0, Timestamped(ASKED, (1, 0))),
        (0, Timestamped(ASKED, (0, 0, 0))),
        (0, Timestamped(ASKED, (1, 5, 0))),
        (1, Timestamped(ASKED, (0, 1, 0))),
        (7, Timestamped(ASKED, (1, 0, 0))),
    ],
    ids=["too short", "sent before the first", "from the future", "from oneself", "a stranger"],
)
def test_a_vector_that_cannot_be_is_refused(sender: int, packet: Timestamped) -> None:
    stack = parse_stack("causal").build(1, 3)
    with pytest.raises(PeerError):
        stack.receive(sender, packet)
    assert not stack.take_effects()


@both
def test_a_message_that_was_delivered_does_not_come_again(name: str) -> None:
    """Channels are reliable; a second copy is a peer's fault."""
    bench = Bench(parse_stack(name), 2)
    bench.cast(0, (0, 1))
    bench.duplicate(0, 1)
    bench.deliver(0, 1)
    with pytest.raises(PeerError):
        bench.deliver(0, 1)
