"""Frames: how bytes on a connection become units with a beginning and an end.

A frame is its length (four bytes, big-endian, not counting these eight), its number (four
bytes) and its content. Numbers go up by one from frame to frame in either direction; the first
one is 0 until the other side has announced where to go on (`Welcome.session`), so what was
recorded on one connection is refused on another, and a frame sent twice is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from flexgroup.core.errors import PeerError

HEADER = Struct(">II")
MOST_BYTES = 16 << 20
"""The largest frame. No length of a frame begins with the bytes of `GET `, so a browser or a
metrics collector that talks to the same port is recognised."""

MOST_BYTES_OF_SERVERS = 256 << 20
"""Between servers, which hand over at once all that is under way when they change."""

NUMBERS = 1 << 32


class FrameWriter:
    """Numbers what is sent."""

    __slots__ = ("_most", "_number")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._number = 0

    def begin_at(self, number: int) -> None:
        self._number = number

    def allow(self, most_bytes: int) -> None:
        self._most = most_bytes

    def frame(self, content: bytes) -> bytes:
        if len(content) > self._most:
            raise PeerError(f"a frame of {len(content)} bytes; at most {self._most} are accepted")
        header = HEADER.pack(len(content), self._number)
        self._number = (self._number + 1) % NUMBERS
        return header + content


class FrameReader:
    """Cuts what arrives into frames, and refuses what cannot be one."""

    __slots__ = ("_data", "_most", "_number")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._data = bytearray()
        self._most = most_bytes
        self._number = 0

    def begin_at(self, number: int) -> None:
        self._number = number

    def allow(self, most_bytes: int) -> None:
        """From the next frame on."""
        self._most = most_bytes

    @property
    def waiting(self) -> int:
        """How many bytes of an unfinished frame are held."""
        return len(self._data)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The contents of all frames that are complete now.

        Lazy, so that what one frame changes (its successor's number) counts for the next.
        """
        held = self._data
        held += data
        start = 0
        try:
            while len(held) - start >= HEADER.size:
                length, number = HEADER.unpack_from(held, start)
                if length > self._most:
                    raise PeerError(f"a frame of {length} bytes; at most {self._most} are accepted")
                end = start + HEADER.size + length
                if len(held) < end:
                    break
                if number != self._number:
                    raise PeerError(
                        f"frame number {number} where {self._number} was due: "
                        "replayed, lost or made up"
                    )
                self._number = (number + 1) % NUMBERS
                content = bytes(held[start + HEADER.size : end])
                start = end
                yield content
        finally:
            del held[:start]
