"""The envelope: what a server wraps messages of clients in before a stack multicasts them.

It says to which groups they go, and which envelope of this server to each of them it is. What
clients send to the same groups within one round of the server's event loop shares an envelope:
then the stack has one message to order instead of many.
"""

from __future__ import annotations

from typing import final

from flexgroup.core.codec import varints
from flexgroup.core.errors import PeerError


@final
class Envelope:
    """Messages of clients that go to the same groups together."""

    __slots__ = ("contents", "count", "groups")

    def __init__(self, groups: tuple[tuple[int, int], ...], count: int, contents: bytes) -> None:
        self.groups = groups
        """Pairs of a group's number and of the position among this server's messages to it."""
        self.count = count
        self.contents = contents
        """The messages with their senders, as the server that packed them has encoded them."""


def seal(groups: tuple[tuple[int, int], ...], count: int, contents: bytes) -> bytes:
    numbers = [len(groups)]
    for group, position in groups:
        numbers.append(group)
        numbers.append(position)
    numbers.append(count)
    return varints(numbers) + contents


def unseal(payload: bytes) -> Envelope:
    number, at = read_varint(payload, 0)
    if number > len(payload):
        raise PeerError(f"an envelope for {number} groups in {len(payload)} bytes")
    groups: list[tuple[int, int]] = []
    for _line in range(number):
        group, at = read_varint(payload, at)
        position, at = read_varint(payload, at)
        groups.append((group, position))
    count, at = read_varint(payload, at)
    return Envelope(tuple(groups), count, payload[at:])


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    if at < len(data):
        byte = data[at]
        if byte < 128:  # most are
            return byte, at + 1
    return _read_long_varint(data, at)


def _read_long_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    shift = 0
    end = len(data)
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise PeerError("a number that does not end")
