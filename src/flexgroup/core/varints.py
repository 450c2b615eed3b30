"""Integers of variable length: seven bits a byte, low bits first, and a bit that says more follows.

Packets, envelopes and what servers tell each other are made of them: small numbers cost one byte,
and no counter overflows.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64, mypyc_attr

from flexgroup.core.errors import PeerError

MAX_BYTES: Final = 10


def varint_size(value: int) -> int:
    if value < 128:
        return 1
    return (value.bit_length() + 6) // 7


def append_varint(out: BytesWriter, value: int) -> None:
    if value < 0:
        raise ValueError(f"the wire has no negative integers, and a packet holds {value}")
    while value > 127:
        out.append((value & 127) | 128)
        value >>= 7
    out.append(value)


def varints(values: list[int]) -> bytes:
    """Encode these numbers, one after the other."""
    out = BytesWriter()
    for value in values:
        append_varint(out, value)
    return out.getvalue()


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Reader:
    """Reads what a peer sent; anything that is not right is the peer's fault."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position: i64 = position
        self.end: i64 = end

    def varint(self) -> int:
        at = self.position
        if at < self.end:
            byte = self.data[at]
            if byte < 128:  # most are
                self.position = at + 1
                return byte
        return self._long_varint()

    def _long_varint(self) -> int:
        """A number of up to eight bytes, whose bits fit in a machine word."""
        value: i64 = 0
        shift: i64 = 0
        while shift < 56:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        return self._longest_varint(value)

    def _longest_varint(self, low: int) -> int:
        value = low
        for shift in range(56, 7 * MAX_BYTES, 7):
            byte: int = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise PeerError(f"a number has more than {MAX_BYTES} bytes")

    def _byte(self) -> i64:
        at = self.position
        if at >= self.end:
            raise PeerError("the packet ends in the middle of a number")
        self.position = at + 1
        return self.data[at]

    def bytes(self) -> bytes:
        """The bytes that follow a number which says how many they are."""
        length = self.varint()
        start = self.position
        there: int = self.end - start  # not a machine word, which the length may exceed
        if length > there:
            raise PeerError(f"{length} bytes are announced, with {there} left")
        self.position = start + length
        return self.data[start : self.position]
