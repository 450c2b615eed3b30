"""Daisy Chain Cast with a wider rule for *fast*: a message visits only who may know something new.

Source: the DCC dissertation (Louzada 2024). Section 4.3 says that its rule is stricter than it has
to be, and section 8.2 asks for a graph of dependencies that spares nodes without any relation to
the message. Here the clock is that graph: it tells which nodes messages before this one visit.

Assumes reliable FIFO channels, no failures, and a total order of the processes: their
numbers. Guarantees global total (acyclic) order. Partially genuine.

Differs from `dcc`, the corrected protocol:
- On its way to the next destination, a message visits only nodes that some message in its past
  visits, as far as the clock of the node that sends it tells. Nobody before it was at the others.
- From any node, destination or not, it goes straight to the next destination if a message went
  from here to the same one before, and the counters of all visits between them are what they were
  when that one left: that one found out, on its way, all that this one could.
- So the nodes to visit are chosen hop by hop, by clocks that grow on the way, and the visit to
  one that is no destination is counted on the edge from the node that sends the message there.

`docs/protocols/dcc-wide.md` has the argument, and shows how two yet wider rules fail.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Record
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.daisy_chain import (
    FAST,
    SLOW,
    Enter,
    ReducedClocks,
    edge_number,
    edges,
    incoming,
    raise_to,
)


@final
class Hop(Packet):
    """m with m.mode and m.EVC; m.src is its lowest destination."""

    m: Message
    mode: int
    evc: tuple[int, ...]

    def detail(self) -> str | None:
        return '{"mode":"fast"}' if self.mode == FAST else '{"mode":"slow"}'


@final
class ReducedHop(Packet):
    """The same with the reduced clock of section 7.3."""

    m: Message
    mode: int
    changed: tuple[int, ...]

    def detail(self) -> str | None:
        return '{"mode":"fast"}' if self.mode == FAST else '{"mode":"slow"}'


@final
class Visit(Record):
    """A message that waits here, and the node that decided that it comes here."""

    m: Message
    decider: int
    evc: tuple[int, ...]


class DccWide(Layer):
    __slots__ = (
        "EVC", "b", "clocks", "crossed", "incoming", "reduced",
    )  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Enter, Hop, ReducedHop)
    RECORDS: ClassVar[tuple[type[Record], ...]] = (ReducedClocks, Visit)
    OPTIONS: ClassVar[tuple[str, ...]] = ("rv",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.EVC = [0] * edges(self.size)
        self.b: list[Visit] = []
        # Not in the paper: what a message left with that went on to a destination, by that one;
        # the edges into this node, and the reduced clock.
        self.crossed: dict[int, tuple[int, ...]] = {}
        """The counters of visits to the nodes between."""
        self.incoming = incoming(self.size, self.process)
        self.reduced = "rv" in context.options
        self.clocks = ReducedClocks()

    def on_cast(self, m: Message) -> None:
        self.send((m.destinations[0],), Enter(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Hop) and self.is_possible(sender, packet.m, packet.evc):
            self.await_turn(sender, packet.m, packet.evc)
        elif isinstance(packet, ReducedHop):
            self.await_turn(sender, packet.m, self.restore_clock(sender, packet))
        elif isinstance(packet, Enter) and packet.is_at(self):
            self.enter(packet.m)
        else:
            raise self.refuse(sender, packet)
        self.handle_enabled()

    def is_possible(self, sender: int, m: Message, evc: tuple[int, ...]) -> bool:
        """Not in the paper: m is on its way up, and has a whole clock."""
        return (
            len(m.destinations) > 0
            and m.destinations[0] <= sender < self.process <= m.destinations[-1] < self.size
            and len(evc) == len(self.EVC)
        )

    def enter(self, m: Message) -> None:
        """This node is m.src: it decides the visits to all other destinations."""
        for d in m.destinations:
            if d != self.process:
                self.EVC[edge_number(self.size, self.process, d)] += 1
        self.deliver(m)
        self.forward(m)

    def await_turn(self, sender: int, m: Message, evc: tuple[int, ...]) -> None:
        decider = m.destinations[0] if self.process in m.destinations else sender
        self.b.append(Visit(m, decider, evc))

    def handle_enabled(self) -> None:
        position = self.first_enabled()
        while position is not None:
            visit = self.b.pop(position)
            raise_to(self.EVC, visit.evc)
            if self.process in visit.m.destinations:
                self.deliver(visit.m)
            self.forward(visit.m)
            position = self.first_enabled()

    def first_enabled(self) -> int | None:
        for position, visit in enumerate(self.b):
            if self.can_handle(visit):
                return position
        return None

    def can_handle(self, visit: Visit) -> bool:
        """It is the next that its decider decided, and all earlier visits happened."""
        for s, edge in enumerate(self.incoming):
            if s == visit.decider:
                if visit.evc[edge] != self.EVC[edge] + 1:
                    return False
            elif visit.evc[edge] > self.EVC[edge]:
                return False
        return True

    def forward(self, m: Message) -> None:
        higher = [d for d in m.destinations if d > self.process]
        if not higher:
            return
        hop = self.next_hop(higher[0])
        if hop != higher[0]:
            self.EVC[edge_number(self.size, self.process, hop)] += 1
        self.crossed[higher[0]] = self.visits_below(higher[0])
        self.send_hop(hop, m, FAST if hop == higher[0] else SLOW)

    def next_hop(self, destination: int) -> int:
        """The destination, if one before m knew as much; else the next node that was visited."""
        if self.crossed.get(destination) == self.visits_below(destination):
            return destination
        for node in range(self.process + 1, destination):
            if max([self.EVC[edge] for edge in incoming(self.size, node)]) > 0:
                return node
        return destination

    def visits_below(self, destination: int) -> tuple[int, ...]:
        """The counters of all visits to nodes between this one and the destination."""
        return tuple(
            [
                self.EVC[edge]
                for node in range(self.process + 1, destination)
                for edge in incoming(self.size, node)
            ]
        )

    # Section 7.3: the reduced clock.

    def send_hop(self, to: int, m: Message, mode: int) -> None:
        evc = tuple(self.EVC)
        if self.reduced:
            self.send((to,), ReducedHop(m, mode, self.clocks.reduce(to, evc)))
        else:
            self.send((to,), Hop(m, mode, evc))

    def restore_clock(self, sender: int, packet: ReducedHop) -> tuple[int, ...]:
        evc = self.clocks.restore(sender, packet.changed, len(self.EVC))
        if not self.is_possible(sender, packet.m, evc):
            raise self.refuse(sender, packet)
        self.clocks.received[sender] = evc
        return evc
