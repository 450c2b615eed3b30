"""Causal order by vector times: a message tells what was sent to its destinations before it.

Source: Schiper, Eggli and Sandoz 1989; section 3.1 of Raynal, Schiper and Toueg 1991.

A process keeps a vector time T, and a list V of pairs (destination, vector time): the latest
messages that it knows to have been sent to others. A message carries T and V of its sender, and
waits where V has a pair for the destination with a time that T there has not reached.

Assumes reliable channels, which may reorder. Guarantees causal order, and with it FIFO order, for
messages to any sets of processes.

Differs from the source:
- A message goes to a set of destinations, with one time and one list. Each of them notes it for all
  the others when it delivers it, or else it could tell another one something that followed from
  the message, without saying that there was one.
- Only multicasts count in a vector time; deliveries are no events of their own.
- A process that is a destination of its own message delivers it when it multicasts it.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet

VectorTime = tuple[int, ...]


@final
class Timed(Packet):
    """(M, T_M, V_M): a message with the vector time and the pairs of its sender, flat."""

    m: Message
    tm: tuple[int, ...]
    vm: tuple[int, ...]


Waiting = tuple[int, Timed]
"""A sender and what came from it."""


class CausalSes(Layer):
    __slots__ = ("T", "V", "waiting")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.CAUSAL, Guarantee.FIFO})
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Timed,)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.T: VectorTime = (0,) * self.size
        """How many multicasts of each process precede what happens here next."""
        self.V: dict[int, VectorTime] = {}
        """A time that no message known here is later than, by the process that it went to."""
        self.waiting: list[Waiting] = []
        """What came and cannot be delivered yet."""

    def on_cast(self, m: Message) -> None:
        i = self.process
        if i >= self.size:
            raise UsageError(
                f"client {i} cannot multicast in causal order: only members, 0 to "
                f"{self.size - 1}, have a place in the vector; let one of them multicast for it"
            )
        self.T = tuple([count + (k == i) for k, count in enumerate(self.T)])
        others = tuple([d for d in m.destinations if d != i])
        if others:
            self.send(others, Timed(m, self.T, flat(self.V)))
        self.insert(others, self.T)
        if i in m.destinations:
            self.deliver(m)

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Timed) or not self.can_be(sender, packet):
            raise self.refuse(sender, packet)
        self.waiting.append((sender, packet))
        place = 0
        while place < len(self.waiting):
            j, timed = self.waiting[place]
            place += 1
            if self.is_deliverable(timed):
                place -= 1
                del self.waiting[place]
                if self.T[j] < timed.tm[j]:  # else it is a second copy
                    self.take(j, timed)
                    place = 0

    def is_deliverable(self, timed: Timed) -> bool:
        """V_M has no pair for this process, or one whose time T has reached."""
        time = (pairs(timed.vm, self.size) or {}).get(self.process)
        return time is None or is_reached(time, self.T)

    def take(self, j: int, timed: Timed) -> None:
        """Deliver a message of j, and know what its sender knew."""
        self.deliver(timed.m)
        for d, time in (pairs(timed.vm, self.size) or {}).items():
            self.insert((d,), time)
        self.insert(tuple([d for d in timed.m.destinations if d != j]), timed.tm)
        self.T = latest(self.T, timed.tm)

    def insert(self, destinations: tuple[int, ...], time: VectorTime) -> None:
        """Note that a message of this time went there; what comes here needs no note."""
        for d in destinations:
            if d != self.process:
                self.V[d] = latest(self.V.get(d, time), time)

    def can_be(self, sender: int, packet: Timed) -> bool:
        """It comes from another member, for the first time, and knows nothing of the future; what
        it knows to have been sent was sent before it."""
        n, me, tm = self.size, self.process, packet.tm
        noted = pairs(packet.vm, n)
        if not self.is_for_me(packet.m) or sender >= n or sender == me or len(tm) != n:
            return False
        if noted is None or sender in noted or tm[sender] <= self.T[sender] or tm[me] > self.T[me]:
            return False
        return all(is_reached(time, tm) and time[sender] < tm[sender] for time in noted.values())


def is_reached(time: VectorTime, by: VectorTime) -> bool:
    return all(count <= reached for count, reached in zip(time, by, strict=True))


def latest(one: VectorTime, other: VectorTime) -> VectorTime:
    return tuple([max(both) for both in zip(one, other, strict=True)])


def flat(V: dict[int, VectorTime]) -> tuple[int, ...]:
    """Each destination and its time, in ascending order of destinations."""
    out: list[int] = []
    for d in sorted(V):
        out += (d, *V[d])
    return tuple(out)


def pairs(vm: tuple[int, ...], n: int) -> dict[int, VectorTime] | None:
    """The reverse of `flat`; None if it makes no sense among n processes."""
    noted = {vm[at]: vm[at + 1 : at + 1 + n] for at in range(0, len(vm), n + 1)}
    if len(vm) != len(noted) * (n + 1) or list(noted) != sorted(noted):
        return None
    return noted if max(noted, default=0) < n else None
