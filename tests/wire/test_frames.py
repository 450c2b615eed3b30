"""Frames come out as they went in, however a connection cuts what it carries."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from flexgroup.core.errors import PeerError
from flexgroup.wire.frames import HEADER_BYTES, FrameReader, FrameWriter, joined_arrays


def read(reader: FrameReader, data: bytes) -> list[bytes]:
    reader.feed(data)
    frames = []
    while (content := reader.next_frame()) is not None:
        frames.append(content)
    return frames


def written(contents: list[bytes]) -> bytes:
    writer = FrameWriter()
    return b"".join([writer.frame(content) for content in contents])


@given(st.lists(st.binary(max_size=40), max_size=6), st.data())
def test_pieces_of_any_size_give_the_same_frames(
    contents: list[bytes], data: st.DataObject
) -> None:
    stream = written(contents)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    reader = FrameReader()
    frames = []
    for start, end in pairwise(sorted([0, *cuts, len(stream)])):
        frames += read(reader, stream[start:end])
    assert frames == contents
    assert reader.waiting == 0


def test_what_is_there_of_a_frame_waits_for_the_rest() -> None:
    stream = written([b"first", b"second"])
    reader = FrameReader()
    assert read(reader, stream[:-2]) == [b"first"]
    assert reader.waiting == HEADER_BYTES + len(b"second") - 2
    assert read(reader, stream[-2:]) == [b"second"]


def test_a_header_in_two_pieces() -> None:
    stream = written([b"content"])
    reader = FrameReader()
    assert read(reader, stream[:3]) == []
    assert reader.waiting == 3
    assert read(reader, stream[3:]) == [b"content"]


def test_a_frame_that_is_too_long_is_refused_before_it_has_come() -> None:
    reader = FrameReader(most_bytes=10)
    with pytest.raises(PeerError, match="a frame of 11 bytes; at most 10 are accepted"):
        read(reader, written([bytes(11)])[:HEADER_BYTES])


def test_a_frame_out_of_turn_is_refused() -> None:
    one, other = FrameWriter(), FrameReader()
    first = one.frame(b"x")
    assert read(other, first) == [b"x"]
    with pytest.raises(PeerError, match="frame number 0 where 1 was due"):
        read(other, first)


def test_numbers_go_on_where_the_other_side_says_and_begin_again_after_the_last() -> None:
    writer, reader = FrameWriter(), FrameReader()
    writer.begin_at(2**32 - 1)
    reader.begin_at(2**32 - 1)
    assert read(reader, writer.frame(b"last") + writer.frame(b"first")) == [b"last", b"first"]


def test_a_writer_refuses_what_no_reader_takes() -> None:
    with pytest.raises(PeerError, match="a frame of 11 bytes; at most 10"):
        FrameWriter(most_bytes=10).frame(bytes(11))


@given(arrays=st.lists(st.lists(st.binary(max_size=3), max_size=40), min_size=1, max_size=4))
def test_encoded_arrays_are_joined(arrays: list[list[bytes]]) -> None:
    joined = joined_arrays([msgpack.encode(array) for array in arrays])
    assert msgpack.decode(joined) == [element for array in arrays for element in array]


@pytest.mark.parametrize("count", [15, 16, 0xFFFF, 0x10000])
def test_arrays_of_every_size_are_joined(count: int) -> None:
    joined = joined_arrays([msgpack.encode([0] * count), msgpack.encode([1])])
    assert msgpack.decode(joined) == [*[0] * count, 1]


@given(arrays=st.lists(st.binary(min_size=1), min_size=1))
def test_joining_what_is_no_array_fails_nowhere_but_at_who_decodes_it(arrays: list[bytes]) -> None:
    assert len(joined_arrays(arrays)) <= sum(len(array) for array in arrays) + 5
    assert joined_arrays([b"\xdd" + b"\xff" * 4, b"\x91"])[:1] == b"\x90"
