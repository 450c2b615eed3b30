"""The wire codec: derived from the fields of packets, exact in its sizes, safe with any bytes."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.codec import MAX_LIST, Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Layer
from flexgroup.core.message import NO_MESSAGE, Message, MessageId, Packet, Stamp, message_id, stamp
from flexgroup.core.varints import varint_size, varints

from .small_layers import Note, Plain, message

unhurried = settings(deadline=None)


class Everything(Packet):
    """One field of every kind."""

    number: int
    other: MessageId
    ts: Stamp
    clock: tuple[int, ...]
    text: str
    m: Message


class Nothing(Packet):
    """No field at all."""


class About(Packet):
    """Only an identity: it is about a message that it does not carry."""

    other: MessageId


class Several(Packet):
    """Any number of messages, the first of which it is about."""

    batch: tuple[Message, ...]


class Talkative(Layer):
    __slots__ = ()
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Nothing, Everything, About, Several)


CODEC = Codec([Talkative])

numbers = st.integers(0, (1 << 70) - 1)
processes = st.integers(0, (1 << 20) - 1)
identities = st.builds(message_id, processes, st.integers(0, (1 << 40) - 1))
destination_sets = st.sets(processes, max_size=6).map(lambda to: tuple(sorted(to)))
messages = st.builds(Message, identities, destination_sets, st.binary(max_size=300))
packets = st.one_of(
    st.builds(Nothing),
    st.builds(About, identities),
    st.builds(Several, st.lists(messages, max_size=4).map(tuple)),
    st.builds(
        Everything,
        numbers,
        identities,
        st.builds(stamp, st.integers(0, 1 << 42), processes),
        st.lists(numbers, max_size=200).map(tuple),
        st.text(max_size=50),
        messages,
    ),
)


@unhurried
@given(packet=packets)
def test_what_is_encoded_is_decoded_again(packet: Packet) -> None:
    assert CODEC.decode(CODEC.encode(packet)) == packet


@unhurried
@given(packet=packets)
def test_the_measure_is_the_size_without_encoding(packet: Packet) -> None:
    measure = CODEC.measure(packet)
    assert measure.header_bytes + measure.payload_bytes == len(CODEC.encode(packet))
    if isinstance(packet, Everything):
        assert isinstance(packet.m.payload, bytes)
        assert measure.payload_bytes == len(packet.m.payload)
        assert measure.message == packet.m.id
    elif isinstance(packet, Several):
        payloads = [m.payload for m in packet.batch if isinstance(m.payload, bytes)]
        assert measure.payload_bytes == sum(map(len, payloads))
        assert measure.message == (packet.batch[0].id if packet.batch else NO_MESSAGE)
    elif isinstance(packet, About):
        assert (measure.payload_bytes, measure.message) == (0, packet.other)
    else:
        assert (measure.header_bytes, measure.message) == (1, NO_MESSAGE)


@unhurried
@given(value=numbers)
def test_small_numbers_are_short(value: int) -> None:
    assert len(varints([value])) == varint_size(value) == max(1, -(-value.bit_length() // 7))


def test_the_bytes_of_a_packet() -> None:
    """Tag 1; 300 in two bytes; 2.3; (4,5); two numbers; 'é' in UTF-8; 6.7 to {8,9} with 'hi'."""
    m = Message(message_id(6, 7), (8, 9), b"hi")
    packet = Everything(300, message_id(2, 3), stamp(4, 5), (0, 128), "é", m)
    assert CODEC.encode(packet).hex(" ") == (
        "01 ac 02 02 03 04 05 02 00 80 01 02 c3 a9 06 07 02 08 09 02 68 69"
    )


def test_the_bytes_of_several_messages() -> None:
    """Tag 3; two; 1.0 to {0} with nothing; 2.3 to {4} with 'a'."""
    batch = (Message(message_id(1, 0), (0,), b""), Message(message_id(2, 3), (4,), b"a"))
    assert CODEC.encode(Several(batch)).hex(" ") == "03 02 01 00 01 00 00 02 03 01 04 01 61"


def test_the_bytes_of_layers_on_top_of_each_other() -> None:
    """Tag 0; 2.301 to {0,1}; in place of a payload, tag 0; 2.300 to {0,128} with 'hi'; 5; 70000."""
    upper = Note(Message(message_id(2, 300), (0, 128), b"hi"), 5)
    packet = Note(Message(message_id(2, 301), (0, 1), upper), 70000)
    assert Codec([Plain, Plain]).encode(packet).hex(" ") == (
        "00 02 ad 02 02 00 01 00 02 ac 02 02 00 80 01 02 68 69 05 f0 a2 04"
    )


class Within(Packet):
    """A packet of a layer that another one hosts."""

    number: int
    m: Message


class Hosting(Plain):
    """Its messages carry packets of a layer inside it, and these what lies above."""

    __slots__ = ()
    HOSTED: ClassVar[tuple[type[Packet], ...]] = (Note, Within)


def test_the_bytes_of_a_hosted_layer() -> None:
    """Tag 0; 2.1 to {0}; in place of a payload, tag 1 of the hosted layer; 9; 2.0 to {1}; in place
    of a payload, tag 0 of the layer above; 2.3 to {1} with 'hi'; 5; and 7."""
    above = Note(Message(message_id(2, 3), (1,), b"hi"), 5)
    within = Within(9, Message(message_id(2, 0), (1,), above))
    packet = Note(Message(message_id(2, 1), (0,), within), 7)
    codec = Codec([Hosting, Plain])
    encoded = codec.encode(packet)
    assert encoded.hex(" ") == "00 02 01 01 00 01 09 02 00 01 01 00 02 03 01 01 02 68 69 05 07"
    assert codec.decode(encoded) == packet
    assert codec.measure(packet).header_bytes == len(encoded) - 2
    assert codec.measure(packet).message == message_id(2, 3)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "80 01"),
        (16383, "ff 7f"),
        (16384, "80 80 01"),
        ((1 << 56) - 1, "ff ff ff ff ff ff ff 7f"),
        (1 << 56, "80 80 80 80 80 80 80 80 01"),
        (1 << 62, "80 80 80 80 80 80 80 80 40"),
        ((1 << 64) - 1, "ff ff ff ff ff ff ff ff ff 01"),
        ((1 << 70) - 1, "ff ff ff ff ff ff ff ff ff 7f"),
    ],
)
def test_the_bytes_of_a_number(value: int, encoded: str) -> None:
    assert varints([value]).hex(" ") == encoded
    note = Codec([Plain]).decode(bytes.fromhex("00 00 00 00 00" + encoded))
    assert isinstance(note, Note)
    assert note.number == value


def test_a_negative_number_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="no negative integers, and a packet holds -1"):
        Codec([Plain]).encode(Note(message(0, 0, 1), -1))


# Layers on top of each other.


@unhurried
@given(m=messages, number=numbers, upper=numbers)
def test_a_layer_carries_the_packet_of_the_layer_above(m: Message, number: int, upper: int) -> None:
    codec = Codec([Plain, Plain])
    inner = Note(m, upper)
    packet = Note(Message(message_id(1, 2), (0,), inner), number)
    assert codec.decode(codec.encode(packet)) == packet
    measure = codec.measure(packet)
    assert measure.message == m.id, "a packet is about the application's message"
    assert isinstance(m.payload, bytes)
    assert measure.payload_bytes == len(m.payload)
    assert measure.header_bytes + measure.payload_bytes == len(codec.encode(packet))


# Bytes from a peer.


@unhurried
@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_packet_or_the_fault_of_the_peer(data: bytes) -> None:
    for codec in (CODEC, Codec([Plain, Plain])):
        try:
            packet = codec.decode(data)
        except PeerError:
            continue
        assert codec.decode(codec.encode(packet)) == packet


@unhurried
@given(packet=packets, data=st.data())
def test_a_packet_that_is_cut_off_is_the_fault_of_the_peer(
    packet: Packet, data: st.DataObject
) -> None:
    encoded = CODEC.encode(packet)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(PeerError):
        CODEC.decode(encoded[:cut])


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("", "ends in the middle of a number"),
        ("04", "packet type 4 at level 0; there are 4 types"),
        ("00 00", "1 bytes are left over"),
        ("02 ff", "ends in the middle of a number"),
        ("02 " + "ff " * 10, "a number has more than 10 bytes"),
        ("01 00 00 00 00 00 ff ff ff 7f", f"at most {MAX_LIST} are accepted"),
        ("01 00 00 00 00 00 00 02 c3 28", "a text is not UTF-8"),
        ("01 00 00 00 00 00 00 00 00 00 02 09 08 00", "not in ascending order"),
        ("01 00 00 00 00 00 00 00 00 00 02 08 08 00", "not in ascending order"),
        ("01 00 00 00 00 00 00 00 00 00 00 05 68", "5 bytes are announced, with 1 left"),
        (
            "01 00 00 00 00 00 00 00 00 00 00 " + "ff " * 9 + "7f",
            f"{(1 << 70) - 1} bytes are announced",
        ),
    ],
)
def test_what_is_wrong_with_bytes_from_a_peer(data: str, complaint: str) -> None:
    with pytest.raises(PeerError, match=complaint):
        CODEC.decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("02 80 80 40 00", "origin"),
        ("02 00 80 80 80 80 80 80 80 80 40", "seq"),
        ("01 00 00 00 00 80 80 40 00 00 00 00 00 00", "process of a timestamp"),
    ],
    ids=lambda value: value.replace(" ", "-"),
)
def test_a_pair_that_does_not_fit_is_not_taken_for_another(data: str, what: str) -> None:
    """Packed into one integer, the first would be the identity 0.1 of another process."""
    with pytest.raises(PeerError):
        CODEC.decode(bytes.fromhex(data))


def test_a_packet_ends_where_it_is_said_to_end() -> None:
    """What follows belongs to another: a number, a list or a payload that goes on is cut off."""
    codec = Codec([Plain])
    note = Note(message(0, 1, 2), 300)
    encoded = codec.encode(note)
    data = b"before" + encoded + encoded
    start, end = len(b"before"), len(b"before" + encoded)
    assert codec.decode_part(data, start, end) == note
    assert codec.decode_part(data, end, len(data)) == note
    for cut in range(start, end):
        with pytest.raises(PeerError):
            codec.decode_part(data, start, cut)
    with pytest.raises(PeerError, match="1 bytes are left over"):
        codec.decode_part(data, start, end + 1)


# Where messages go.


def destinations(codec: Codec, data: str) -> tuple[int, ...]:
    note = codec.decode(bytes.fromhex(data))
    assert isinstance(note, Note)
    return note.m.destinations


def test_messages_to_the_same_processes_share_the_list() -> None:
    codec = Codec([Plain])
    first = destinations(codec, "00 00 00 02 08 09 00 00")
    assert first == (8, 9)
    assert destinations(codec, "00 03 07 02 08 09 00 00") is first


def test_lists_that_begin_alike_are_not_confused() -> None:
    codec = Codec([Plain])
    assert destinations(codec, "00 00 00 00 00 00") == ()
    assert destinations(codec, "00 00 00 02 08 09 00 00") == (8, 9)
    assert destinations(codec, "00 00 00 02 08 89 01 00 00") == (8, 137)
    assert destinations(codec, "00 00 00 03 08 09 0a 00 00") == (8, 9, 10)
    assert destinations(codec, "00 00 00 01 08 00 00") == (8,)


def test_a_list_that_was_refused_is_refused_again() -> None:
    codec = Codec([Plain])
    for _ in range(2):
        assert destinations(codec, "00 00 00 02 08 09 00 00") == (8, 9)
        with pytest.raises(PeerError, match="not in ascending order"):
            codec.decode(bytes.fromhex("00 00 00 02 09 08 00 00"))
