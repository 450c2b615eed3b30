"""The envelope: what a server wraps messages of clients in before a stack multicasts them.

It says to which groups they go, and which envelope of this server to each of them it is. What
clients send to the same groups within one round of the server's event loop shares an envelope:
then the stack has one message to order instead of many.

An envelope without messages is a mark: it stands where members are told of a view.

If the stack promises causal order, it also says what precedes it. That is for the day on which its
sender has failed, and the others put in order what is left of the configuration.
"""

from __future__ import annotations

from typing import final

from flexgroup.core.errors import PeerError
from flexgroup.core.varints import Reader, varints

Past = tuple[int, ...]
"""How many envelopes of each process of the domain causally precede one: they had been multicast or
delivered where it was multicast, or they precede one of those. Those of a process are its first
ones, since causal order includes the order of senders. Empty if the stack promises no such order.
"""


@final
class Envelope:
    """Messages of clients that go to the same groups together."""

    __slots__ = ("contents", "count", "groups", "number", "view")

    def __init__(self, groups: tuple[tuple[int, int], ...], count: int, contents: bytes) -> None:
        self.groups = groups
        """Pairs of a group's number and of the position among this server's messages to it."""
        self.count = count
        self.contents = contents
        """The messages with their senders, as the server that packed them has encoded them."""
        self.number = 0
        """The number of the first message, if the group keeps its messages."""
        self.view = 0
        """The number of the view of the group that comes here, if this is a mark."""


def seal(
    groups: tuple[tuple[int, int], ...], count: int, contents: bytes, past: Past = ()
) -> bytes:
    numbers = [*past, len(groups)]
    for group, position in groups:
        numbers.append(group)
        numbers.append(position)
    numbers.append(count)
    return varints(numbers) + contents


def unseal(payload: bytes, processes: int = 0) -> Envelope:
    """Open an envelope, which tells its past with regard to so many processes."""
    reader = Reader(payload, 0, len(payload))
    for _process in range(processes):
        reader.varint()
    number = reader.varint()
    if number > len(payload):
        raise PeerError(f"an envelope of {len(payload)} bytes cannot name {number} groups")
    groups: list[tuple[int, int]] = []
    for _line in range(number):
        group = reader.varint()
        groups.append((group, reader.varint()))
    count = reader.varint()
    return Envelope(tuple(groups), count, payload[reader.position :])


def past_of(payload: bytes, processes: int) -> Past:
    """The past that an envelope tells, without opening it."""
    reader = Reader(payload, 0, len(payload))
    return tuple([reader.varint() for _process in range(processes)])


def follow_past(payload: bytes, known: list[int]) -> None:
    """Raise what is known to precede what is multicast next to what precedes this envelope."""
    reader = Reader(payload, 0, len(payload))
    for process in range(len(known)):
        count = reader.varint()
        if count > known[process]:
            known[process] = count
