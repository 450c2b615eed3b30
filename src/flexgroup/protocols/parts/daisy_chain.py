"""What both forms of DCC share: messages that enter, their modes, and edge vector clocks (EVC).

Source: chapter 4 of the DCC dissertation (Louzada 2024), section 7.3 for the reduced form of the
clock (DCC/RV), in which only what changed is transmitted.

The processes 0 .. n-1 are totally ordered, and there is an edge from each to every
higher one: n(n-1)/2 edges, one counter each. A clock is a list of counters in the order
of `edge_number`; on the wire it is a tuple.
"""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Layer, Record
from flexgroup.core.message import Message, Packet

SLOW: Final = 0
FAST: Final = 1


@final
class Enter(Packet):
    """m with mode = bottom: an external message, from the client."""

    m: Message

    def is_at(self, layer: Layer) -> bool:
        """Not in the paper: m enters here, and all its destinations exist."""
        return self.m.destinations[:1] == (layer.process,) and layer.is_for_me(self.m)


def edges(n: int) -> int:
    return n * (n - 1) // 2


def edge_number(n: int, source: int, target: int) -> int:
    """The position of the edge (source, target), source < target, in a clock."""
    return source * (2 * n - source - 1) // 2 + target - source - 1


def incoming(n: int, target: int) -> tuple[int, ...]:
    """The positions of the edges (0, target), (1, target), ..., (target - 1, target)."""
    return tuple([edge_number(n, source, target) for source in range(target)])


def raise_to(clock: list[int], other: tuple[int, ...]) -> None:
    """Set each counter to the greater of the two."""
    for position, counter in enumerate(other):
        if counter > clock[position]:
            clock[position] = counter


def changes(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """The reduced clock: for each counter that differs, the gap since the last one, and how much.

    A message may carry a lower counter than the message before it in the same channel
    (an intermediate node of the published algorithm does not keep what it forwards), so
    differences are signed; they are folded into naturals: 0, -1, 1, -2, 2, ...
    """
    found: list[int] = []
    expected = 0
    for position in range(len(after)):
        difference = after[position] - before[position]
        if difference:
            found.append(position - expected)
            found.append(2 * difference if difference > 0 else -2 * difference - 1)
            expected = position + 1
    return tuple(found)


def apply_changes(before: tuple[int, ...], reduced: tuple[int, ...]) -> tuple[int, ...]:
    """The inverse of `changes`; empty where a peer sent what `changes` cannot produce."""
    after = list(before)
    position = 0
    if len(reduced) % 2:
        return ()
    for index in range(0, len(reduced), 2):
        position += reduced[index]
        folded = reduced[index + 1]
        if position >= len(after):
            return ()
        after[position] += -(folded + 1) // 2 if folded & 1 else folded // 2
        position += 1
    return tuple(after)


@final
class ReducedClocks(Record):
    """The clocks that a process sent and received last, of which only changes are transmitted."""

    sent: dict[int, tuple[int, ...]] = {}
    """The last clock that went to each process."""
    received: dict[int, tuple[int, ...]] = {}
    """The last clock that came from each process."""

    def reduce(self, to: int, evc: tuple[int, ...]) -> tuple[int, ...]:
        """What has changed in the clock since the last one that went there."""
        before = self.sent.get(to) or (0,) * len(evc)
        self.sent[to] = evc
        return changes(before, evc)

    def restore(self, sender: int, changed: tuple[int, ...], length: int) -> tuple[int, ...]:
        """The clock of which a process sent what has changed; empty if that makes no sense."""
        return apply_changes(self.received.get(sender) or (0,) * length, changed)
