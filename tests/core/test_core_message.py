"""Identities and timestamps are pairs packed into one integer; packets compare by their fields."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.message import (
    NO_MESSAGE,
    Message,
    Packet,
    clock_of,
    message_id,
    name_of,
    origin_of,
    process_of,
    seq_of,
    stamp,
)
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.df import Forward

from .small_layers import Note, message

unhurried = settings(deadline=None)

processes = st.integers(0, (1 << 20) - 1)
counts = st.integers(0, (1 << 40) - 1)


@unhurried
@given(origin=processes, seq=counts)
def test_an_identity_is_a_pair(origin: int, seq: int) -> None:
    identity = message_id(origin, seq)
    assert (origin_of(identity), seq_of(identity)) == (origin, seq)
    assert identity > NO_MESSAGE
    assert name_of(identity) == f"{origin}.{seq}"
    assert identity < 1 << 63, "identities fit the integers of a trace"


@unhurried
@given(one=st.tuples(processes, counts), other=st.tuples(processes, counts))
def test_identities_are_equal_only_if_the_pairs_are(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    assert (message_id(*one) == message_id(*other)) == (one == other)


@unhurried
@given(one=st.tuples(counts, processes), other=st.tuples(counts, processes))
def test_timestamps_compare_as_pairs_of_clock_and_process(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    assert (stamp(*one) < stamp(*other)) == (one < other)
    assert (clock_of(stamp(*one)), process_of(stamp(*one))) == one


def test_messages_are_equal_if_everything_is() -> None:
    m = message(1, 2, 0, 3, payload=b"x")
    assert m == message(1, 2, 0, 3, payload=b"x")
    assert hash(m) == hash(message(1, 2, 0, 3, payload=b"x"))
    for different in (
        message(1, 3, 0, 3, payload=b"x"),
        message(1, 2, 0, 4, payload=b"x"),
        message(1, 2, 0, 3, payload=b"y"),
        "1.2",
    ):
        assert m != different
    assert repr(m) == "Message(1.2 to (0, 3))"


def test_packets_are_equal_if_type_and_fields_are() -> None:
    m = message(1, 2, 0)
    assert Note(m, 5) == Note(m, 5)
    assert hash(Note(m, 5)) == hash(Note(m, 5))
    assert Note(m, 5) != Note(m, 6)
    assert Note(m, 5) != Note(message(1, 3, 0), 5)
    assert repr(Note(m, 5)) == "Note(m=Message(1.2 to (0,)), number=5)"


def test_packets_of_different_types_differ_even_with_equal_fields() -> None:
    m = message(1, 2, 0)
    packets: list[Packet] = [Data(m), Forward(m)]
    for one, other in product(packets, packets):
        assert (one == other) == (one is other)


def test_a_packet_says_nothing_more_unless_it_wants_to() -> None:
    assert Note(message(0, 0, 1), 1).detail() is None


@pytest.mark.parametrize("payload", [b"", b"x" * 1000])
def test_a_payload_is_opaque(payload: bytes) -> None:
    assert Message(message_id(0, 0), (1,), payload).payload == payload
