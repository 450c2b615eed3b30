"""Causal order by counting messages between every two processes.

Source: Raynal, Schiper and Toueg 1991, section 3.2.

Assumes reliable channels, which may reorder. Guarantees causal order, and with it FIFO
order, for messages to any sets of processes: no process delivers a message before one to
it whose multicast happened before.

Differs from the source:
- A message goes to a set of destinations, with one and the same matrix. A destination counts
  it for all of them when it delivers it, or else it could tell another destination about
  the message without saying that there was one.
- A process that is a destination of its own message delivers it when it multicasts it.
- A message that waits is looked at again only when what it waits for has come.
- On the wire, a run of zeros in the matrix is one zero and its length.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet

Matrix = tuple[int, ...]
"""SENT[k, l] is at place k * n + l."""


@final
class Informed(Packet):
    """(M, ST): a message with the matrix SENT of its sender, shortened."""

    m: Message
    st: tuple[int, ...]


Waiting = tuple[int, Message, Matrix]
"""A sender, and what came from it."""

NOTHING_LACKING: Final = -1


class CausalRst(Layer):
    __slots__ = ("DELIV", "SENT", "waiting")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.CAUSAL, Guarantee.FIFO})
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Informed,)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.DELIV = [0] * self.size
        """DELIV[j]: how many messages of j were delivered here."""
        self.SENT = [0] * (self.size * self.size)
        """SENT[k, l]: how many messages from k to l this process knows of."""
        self.waiting: dict[tuple[int, int], tuple[Waiting, ...]] = {}
        """What cannot be delivered before DELIV[k] is c, by (k, c)."""

    def on_cast(self, m: Message) -> None:
        i = self.process
        if i >= self.size:
            raise UsageError(
                f"client {i} cannot multicast in causal order: only members, 0 to "
                f"{self.size - 1}, have a place in the matrix; let one of them multicast for it"
            )
        others = tuple([j for j in m.destinations if j != i])
        if others:
            self.send(others, Informed(m, shortened(self.SENT)))
        for j in m.destinations:
            self.SENT[i * self.size + j] += 1
        if i in m.destinations:
            self.deliver(m)
            self.DELIV[i] += 1

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Informed) or not self.is_for_me(packet.m):
            raise self.refuse(sender, packet)
        st = restored(packet.st, self.size * self.size)
        if not st or not self.can_be(sender, st):
            raise self.refuse(sender, packet)
        arrived: deque[Waiting] = deque([(sender, packet.m, st)])
        while arrived:
            j, m, st = arrived.popleft()
            k, c = self.lacking(j, st)
            if k != NOTHING_LACKING:
                self.waiting[k, c] = (*self.waiting.get((k, c), ()), (j, m, st))
            elif st[j * self.size + self.process] == self.DELIV[j]:
                self.deliver(m)
                self.DELIV[j] += 1
                self.take_over(j, m, st)
                arrived.extend(self.waiting.pop((j, self.DELIV[j]), ()))

    def can_be(self, sender: int, st: Matrix) -> bool:
        """It comes from another member, for the first time, and knows nothing of the future."""
        n, me = self.size, self.process
        if sender >= n or sender == me or st[sender * n + me] < self.DELIV[sender]:
            return False
        return all(st[me * n + k] <= self.SENT[me * n + k] for k in range(n))

    def lacking(self, j: int, st: Matrix) -> tuple[int, int]:
        """The first (k, c) such that DELIV[k] must be c, and is not yet, before M of j may go.

        The condition of delivery: DELIV[k] >= ST[k, i] for all k.
        """
        n, i = self.size, self.process
        if self.DELIV[j] < st[j * n + i]:
            return j, st[j * n + i]
        for k in range(n):
            if self.DELIV[k] < st[k * n + i]:
                return k, st[k * n + i]
        return NOTHING_LACKING, 0

    def take_over(self, j: int, m: Message, st: Matrix) -> None:
        """SENT[k, l] := max(SENT[k, l], ST[k, l]), and m counts for each of its destinations."""
        for place, count in enumerate(st):
            if count > self.SENT[place]:
                self.SENT[place] = count
        for d in m.destinations:
            place = j * self.size + d
            if st[place] + 1 > self.SENT[place]:
                self.SENT[place] = st[place] + 1


def shortened(matrix: list[int]) -> tuple[int, ...]:
    """A run of zeros as one zero and its length."""
    short: list[int] = []
    zeros = 0
    for count in matrix:
        if count and zeros:
            short += (0, zeros)
            zeros = 0
        if count:
            short.append(count)
        else:
            zeros += 1
    if zeros:
        short += (0, zeros)
    return tuple(short)


def restored(short: tuple[int, ...], length: int) -> Matrix:
    """The matrix that was shortened; empty if it has not this many entries."""
    entries: list[int] = []
    place = 0
    while place < len(short) and len(entries) < length:
        if short[place]:
            entries.append(short[place])
            place += 1
        elif place + 1 < len(short) and 0 < short[place + 1] <= length - len(entries):
            entries += [0] * short[place + 1]
            place += 2
        else:
            return ()
    return tuple(entries) if len(entries) == length and place == len(short) else ()
