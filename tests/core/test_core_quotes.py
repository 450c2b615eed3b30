"""Packets that quote others: bytes, and packets within packets of the same layer."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.codec import MAX_QUOTES, Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Layer
from flexgroup.core.message import NO_MESSAGE, Message, Packet, message_id, payload_size
from flexgroup.core.state import write_canonically
from flexgroup.core.stored_state import decode_state, encode_state

from .small_layers import Note, Plain, message

unhurried = settings(deadline=None)


class Vote(Packet):
    """What a member votes for, and its seal."""

    digest: bytes
    seal: bytes


class Certificate(Packet):
    """The votes of several members, with what they voted for."""

    voters: tuple[int, ...]
    seals: tuple[bytes, ...]
    proposal: Packet
    votes: tuple[Packet, ...]


class Voting(Layer):
    __slots__ = ()
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Note, Vote, Certificate)
    ONE_SIDED: ClassVar[tuple[type[Packet], ...]] = (Vote,)


CODEC = Codec([Voting])

notes = st.builds(
    Note, st.builds(message, st.integers(0, 9), st.integers(0, 9), st.just(3)), st.integers(0, 9)
)
votes = st.builds(Vote, st.binary(max_size=200), st.binary(max_size=3))


def certificates(within: st.SearchStrategy[Packet]) -> st.SearchStrategy[Packet]:
    return st.builds(
        Certificate,
        st.lists(st.integers(0, 300), max_size=3).map(tuple),
        st.lists(st.binary(max_size=140), max_size=3).map(tuple),
        within,
        st.lists(within, max_size=3).map(tuple),
    )


packets = st.recursive(notes | votes, certificates, max_leaves=6)


@unhurried
@given(packet=packets)
def test_what_is_quoted_survives_the_wire_and_storage(packet: Packet) -> None:
    encoded = CODEC.encode(packet)
    assert CODEC.decode(encoded) == packet
    measured = CODEC.measure(packet)
    assert measured.header_bytes + measured.payload_bytes == len(encoded)
    assert decode_state(encode_state(packet, Voting.PACKETS), Voting.PACKETS) == packet


@unhurried
@given(one=packets, other=packets)
def test_packets_are_told_apart_by_what_they_quote(one: Packet, other: Packet) -> None:
    canonical = [bytearray(), bytearray()]
    for out, packet in zip(canonical, (one, other), strict=True):
        write_canonically(out, packet)
    assert (one == other) == (canonical[0] == canonical[1])
    assert (one == other) == (CODEC.encode(one) == CODEC.encode(other))


def test_the_bytes_of_a_certificate() -> None:
    """Tag 2; voters 1 and 2; two seals, 'a' and none; tag 1, a vote; no other vote."""
    certificate = Certificate((1, 2), (b"a", b""), Vote(b"hi", b"s"), ())
    assert CODEC.encode(certificate).hex(" ") == "02 02 01 02 02 01 61 00 01 02 68 69 01 73 00"


def quoting(depth: int) -> Packet:
    packet: Packet = Vote(b"", b"")
    for _ in range(depth):
        packet = Certificate((), (), packet, ())
    return packet


def test_a_peer_cannot_exhaust_the_stack_with_packets_in_packets() -> None:
    deepest = quoting(MAX_QUOTES)
    assert CODEC.decode(CODEC.encode(deepest)) == deepest
    with pytest.raises(PeerError, match="more than 8 deep"):
        CODEC.decode(CODEC.encode(quoting(MAX_QUOTES + 1)))
    with pytest.raises(PeerError, match="more than 8 deep"):
        CODEC.decode(bytes.fromhex("02 00 00") * 100_000)
    assert CODEC.decode(CODEC.encode(deepest)) == deepest, "an error before is forgotten"


@pytest.mark.parametrize("data", ["01 05 68", "02 00 03 01 61", "02 00 00 07", "02 00 00 01"])
def test_what_is_cut_off_is_the_fault_of_the_peer(data: str) -> None:
    with pytest.raises(PeerError):
        CODEC.decode(bytes.fromhex(data))


def test_a_packet_is_about_the_messages_that_it_quotes() -> None:
    first, second = (Note(message(number, 0, 3, payload=b"four"), 0) for number in (1, 2))
    measured = CODEC.measure(Certificate((), (), first, (second, second)))
    assert (measured.message, measured.others) == (message_id(1, 0), (message_id(2, 0),))
    assert measured.payload_bytes == 12
    assert CODEC.measure(quoting(2)).message == NO_MESSAGE


def test_what_adapters_do_with_a_packet_says_nothing_of_one_that_quotes_it() -> None:
    vote = Vote(b"", b"")
    assert CODEC.measure(vote).work_of != CODEC.measure(Note(message(0, 0, 1), 0)).work_of
    quoting_it = CODEC.measure(Certificate((), (), vote, (vote,)))
    assert quoting_it.work_of == CODEC.measure(Note(message(0, 0, 1), 0)).work_of


def test_quoted_payloads_count_as_what_a_message_carries() -> None:
    note = Note(message(1, 0, 3, payload=b"four"), 0)
    carrying = Message(message_id(2, 0), (3,), Certificate((), (), note, (note,)))
    assert payload_size(carrying) == 8


def test_packets_of_the_layer_above_are_quoted_with_their_messages() -> None:
    codec = Codec([Voting, Plain])
    above = Note(message(4, 0, 1, payload=b"hi"), 7)
    certificate = Certificate((), (), Note(Message(message_id(4, 9), (1,), above), 1), ())
    assert codec.decode(codec.encode(certificate)) == certificate
    assert codec.measure(certificate).message == message_id(4, 0)
