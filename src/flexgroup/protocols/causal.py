"""Causal order by vector clocks.

Source: Birman, Schiper and Stephenson 1991, as section 4.3.2 of the FlexGroup dissertation
tells it.

Assumes reliable channels, which may reorder. Guarantees causal order, and with it FIFO
order: no process delivers a message before one whose multicast happened before it.

Differs from the source:
- A vector counts multicasts of a whole group, so every message is sent to all processes.
  Those that are no destination count it and do not deliver it. Where that is too much,
  `causal-rst` sends a message to its destinations only.
- VT takes over VT(m) when m is delivered, as Birman and the others have it, not when it
  arrives, as step 3 says: no message would be the next one any more. Only the sender's
  entry can be higher then.
- A process delivers its own message when it multicasts it, and sends it to the others.
- A message that waits is looked at again only when what it waits for has come, not after
  every delivery.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final, final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet


@final
class Timestamped(Packet):
    """A message m with VT(m)."""

    m: Message
    vt: tuple[int, ...]


Waiting = tuple[int, Timestamped]
"""A sender and what came from it."""

NOTHING_LACKING: Final = -1


class Causal(Layer):
    __slots__ = ("VT", "waiting")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.CAUSAL, Guarantee.FIFO})
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Timestamped,)
    CLOSED: ClassVar[bool] = True
    BROADCAST: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.VT = [0] * self.size
        """How many messages of each process were delivered; the own entry counts multicasts."""
        self.waiting: dict[tuple[int, int], tuple[Waiting, ...]] = {}
        """What cannot be delivered before VT[k] is c, by (k, c)."""

    def on_cast(self, m: Message) -> None:
        i = self.process
        if i >= self.size:
            raise UsageError(
                f"client {i} cannot multicast in causal order: only members, 0 to "
                f"{self.size - 1}, have a place in the vector; let one of them multicast for it"
            )
        self.VT[i] += 1
        others = tuple([j for j in range(self.size) if j != i])
        if others:
            self.send(others, Timestamped(m, tuple(self.VT)))
        if i in m.destinations:
            self.deliver(m)

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Timestamped) or not self.can_be(sender, packet):
            raise self.refuse(sender, packet)
        arrived: deque[Waiting] = deque([(sender, packet)])
        while arrived:
            i, stamped = arrived.popleft()
            k, c = self.lacking(i, stamped.vt)
            if k != NOTHING_LACKING:
                self.waiting[k, c] = (*self.waiting.get((k, c), ()), (i, stamped))
            elif stamped.vt[i] == self.VT[i] + 1:
                self.VT[i] += 1
                if self.process in stamped.m.destinations:
                    self.deliver(stamped.m)
                arrived.extend(self.waiting.pop((i, self.VT[i]), ()))

    def can_be(self, sender: int, packet: Timestamped) -> bool:
        """It comes from another member, for the first time, and knows nothing of the future."""
        destinations, vt, me = packet.m.destinations, packet.vt, self.process
        if not destinations or destinations[-1] >= self.size or len(vt) != self.size:
            return False
        return (
            sender < self.size
            and sender != me
            and vt[sender] > self.VT[sender]
            and vt[me] <= self.VT[me]
        )

    def lacking(self, i: int, vt: tuple[int, ...]) -> tuple[int, int]:
        """The first (k, c) such that VT[k] must be c, and is not yet, before m of i may go.

        The condition of delivery: VT(m)[i] = VT[i] + 1, and VT(m)[k] <= VT[k] for all other k.
        """
        if self.VT[i] < vt[i] - 1:
            return i, vt[i] - 1
        for k, c in enumerate(vt):
            if self.VT[k] < c and k != i:
                return k, c
        return NOTHING_LACKING, 0
