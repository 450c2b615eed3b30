"""A failure detector by heartbeats: everybody tells everybody else that it is there.

Source: folklore; Cachin, Guerraoui and Rodrigues 2011, section 2.6.5, "increasing timeout".
Every process sends ALIVE to all others, every INTERVAL. Who is not heard of until a time-out
after one's own is suspected; if it is heard of after all, it is trusted again, and the time-out
grows. So suspicions are right in the end if delays are bounded, known or not: it is eventually
perfect. It is perfect if ALIVE never takes longer than the time-out. n(n-1) packets a round.

Tells the layers above `Suspect` and `Trust`, and carries their messages as best-effort multicast
does. The same interval and time-out as in `vcube-detector`.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Stored, Suspect, Trust
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.detection import INTERVAL, PATIENT, TIMEOUT, Data, first_timeout


@final
class Alive(Packet):
    """I am here."""


class Heartbeat(Layer):
    __slots__ = ("alive", "patience", "suspected")

    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Alive)
    OPTIONS: ClassVar[tuple[str, ...]] = (PATIENT,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.alive: set[int] = set()
        """Who was heard of since the last time-out."""
        self.suspected: set[int] = set()
        self.patience = first_timeout(context.options)

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_start(self) -> None:
        if self.process < self.size:
            self.set_timer("beat", INTERVAL)

    def on_restart(self, stored: Stored) -> None:
        self.on_start()

    def others(self) -> tuple[int, ...]:
        return tuple([j for j in range(self.size) if j != self.process])

    def on_timer(self, name: str) -> None:
        if name == "beat":
            if self.size > 1:
                self.send(self.others(), Alive())
            self.set_timer("time-out", self.patience)
            self.set_timer("beat", max(INTERVAL, self.patience + 1))
        else:
            for j in self.others():
                if j not in self.alive and j not in self.suspected:
                    self.suspected.add(j)
                    self.pass_on(Suspect(j))
            self.alive.clear()

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data) and self.is_for_me(packet.m):
            self.deliver(packet.m)
        elif isinstance(packet, Alive) and sender < self.size and sender != self.process:
            self.on_alive(sender)
        else:
            raise self.refuse(sender, packet)

    def on_alive(self, j: int) -> None:
        self.alive.add(j)
        if j in self.suspected:
            self.suspected.remove(j)
            self.patience += TIMEOUT
            self.pass_on(Trust(j))
