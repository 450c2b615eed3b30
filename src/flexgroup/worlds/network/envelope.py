"""The envelope: what a server wraps messages of clients in before a stack multicasts them.

It says to which groups they go, and which envelope of this server to each of them it is. What
clients send to the same groups within one round of the server's event loop shares an envelope:
then the stack has one message to order instead of many.
"""

from __future__ import annotations

from typing import final

from flexgroup.core.errors import PeerError
from flexgroup.core.varints import Reader, varints


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
    reader = Reader(payload, 0, len(payload))
    number = reader.varint()
    if number > len(payload):
        raise PeerError(f"an envelope of {len(payload)} bytes cannot name {number} groups")
    groups: list[tuple[int, int]] = []
    for _line in range(number):
        group = reader.varint()
        groups.append((group, reader.varint()))
    count = reader.varint()
    return Envelope(tuple(groups), count, payload[reader.position :])
