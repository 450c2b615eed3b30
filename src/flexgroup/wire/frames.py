"""Frames: how bytes on a connection become units with a beginning and an end.

A frame is its length (four bytes, big-endian, not counting these eight), its number (four
bytes) and its content. Numbers go up by one from frame to frame in either direction; the first
one is 0 until the other side has announced where to go on (`Welcome.session`), so what was
recorded on one connection is refused on another, and a frame sent twice is noticed.
"""

from __future__ import annotations

from typing import Final, TypeVar, final

import msgspec

from flexgroup.core.errors import PeerError

T = TypeVar("T")

HEADER_BYTES: Final = 8
MOST_BYTES = 16 << 20
"""The largest frame. No length of a frame begins with letters, as web requests do, so a browser
or a metrics collector that talks to the same port is recognised."""

ROOM_BESIDE_A_MESSAGE = 1 << 16
"""What a frame of a client may have more than the largest message."""

MOST_BYTES_OF_SERVERS = 256 << 20
"""The largest frame between servers, which hand over at once all that is under way when the
configuration changes."""

NUMBERS: Final = 1 << 32

SHORT_ARRAYS: Final = [bytes([0x90 | count]) for count in range(16)]
"""The first byte of a MessagePack array, by the number of its elements."""


@final
class FrameWriter:
    """Puts a header with a running number before whatever is sent."""

    __slots__ = ("_most", "_number")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._number = 0

    def begin_at(self, number: int) -> None:
        self._number = number

    def allow(self, most_bytes: int) -> None:
        self._most = most_bytes

    def frame(self, content: bytes) -> bytes:
        """Return the next frame."""
        return self.header(len(content)) + content

    def header(self, size: int) -> bytes:
        """Return the header of the next frame, whose content has `size` bytes."""
        if size > self._most:
            raise PeerError(f"a frame of {size} bytes; at most {self._most} are accepted")
        header = ((size << 32) | self._number).to_bytes(HEADER_BYTES, "big")
        self._number = (self._number + 1) % NUMBERS
        return header


@final
class FrameReader:
    """Cuts what arrives into frames, and refuses what cannot be one."""

    __slots__ = ("_at", "_data", "_missing", "_most", "_number", "_pieces")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._data = b""
        self._at = 0
        """How much of the data has been read."""
        self._pieces = bytearray()
        """The part that has arrived of a frame that comes in pieces."""
        self._missing = 0
        """How many bytes of that frame are still to come."""
        self._most = most_bytes
        self._number = 0

    def begin_at(self, number: int) -> None:
        self._number = number

    def allow(self, most_bytes: int) -> None:
        """Accept frames of up to so many bytes, from the next one on."""
        self._most = most_bytes

    @property
    def waiting(self) -> int:
        """How many bytes of an unfinished frame are held."""
        return len(self._pieces) + len(self._data) - self._at

    def feed(self, data: bytes) -> None:
        """Take what has arrived; `next_frame` then returns its frames."""
        if self._missing > 0:
            self._pieces += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = bytes(self._pieces)
            self._pieces = bytearray()
            self._missing = 0
        elif self._at < len(self._data):
            data = self._data[self._at :] + data
        self._data = data
        self._at = 0

    def next_frame(self) -> bytes | None:
        """Return the content of the next frame, or None until it is complete.

        Frames are read one at a time, because a frame may say which number the next one has.
        """
        data = self._data
        at = self._at
        start = at + HEADER_BYTES
        if len(data) < start:
            return None
        length = (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]
        if length > self._most:
            raise PeerError(f"a frame of {length} bytes; at most {self._most} are accepted")
        end = start + length
        if len(data) < end:
            self._pieces += data[at:]
            self._missing = end - len(data)
            self._data = b""
            self._at = 0
            return None
        number = (data[at + 4] << 24) | (data[at + 5] << 16) | (data[at + 6] << 8) | data[at + 7]
        if number != self._number:
            raise PeerError(
                f"frame number {number} where {self._number} was due: replayed, lost or made up"
            )
        self._number = (number + 1) % NUMBERS
        self._at = end
        return data[start:end]


def array_of(encoded: list[bytes]) -> bytes:
    """Return the MessagePack array of elements that are encoded already."""
    return array_head(len(encoded)) + b"".join(encoded)


def array_head(count: int) -> bytes:
    """Return what stands before so many elements of a MessagePack array."""
    return SHORT_ARRAYS[count] if count < 16 else b"\xdd" + count.to_bytes(4, "big")


def joined_arrays(arrays: list[bytes]) -> bytes:
    """Return the MessagePack array with the elements of all of these.

    What is no array makes none either, and is found out by who decodes it.
    """
    if len(arrays) == 1:
        return arrays[0]
    count = 0
    parts = [b""]
    for array in arrays:
        first = array[0]
        start = 1 if first < 0xDC else 3 if first == 0xDC else 5
        count += first & 15 if start == 1 else int.from_bytes(array[1:start], "big")
        parts.append(array[start:])
    parts[0] = array_head(count % NUMBERS)
    return b"".join(parts)


def decoded(decoder: msgspec.msgpack.Decoder[T], data: bytes | memoryview, what: str) -> T:
    """Return the message in this data; if it is none, the error begins with `what` it should be."""
    try:
        return decoder.decode(data)
    except UnicodeDecodeError:
        raise PeerError(f"{what}: a text is not UTF-8") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PeerError(f"{what}: {error}") from None
