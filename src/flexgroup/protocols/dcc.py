"""Daisy Chain Cast (DCC), corrected.

Source: algorithms 4.1 to 4.3 of the DCC dissertation (Louzada 2024) as the start; the
names are kept. `dcc_published` is the algorithm as printed, `docs/protocols/dcc.md` shows
how it fails and why this one does not.

Assumes reliable FIFO channels, no failures, and a total order of the processes: their
numbers. Guarantees global total (acyclic) order. Partially genuine: a *fast* message
visits only its destinations, a *slow* one every process between them too. Between k-1
and n-1 messages among n processes for k destinations.

Differs from the published algorithm:
- Every *visit* is counted, at a destination or at an intermediate node, on the edge from
  the node that decided it: m.src decides the visits to the destinations, and a
  destination that goes slow decides those to the intermediate nodes before the next.
- A node handles visits in the causal order of those counters and takes over the clock
  of what it handles, whether it delivers it or only forwards it. So there is one rule
  (`can_handle`) where the paper has two.
- A destination goes fast only if the last message it *handled* has the same
  destinations (published was a comparison of clock differences, which can coincide) and
  the message entered there or came fast: one that came slow has gathered, on its way,
  dependencies that the last message did not have, and may not skip a node that could know
  more of them.

With the option `any`, the world chooses among several messages in the buffer that can be
handled; else the one that came first goes first.
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
    """m with m.src, m.mode, m.EVC and the node that decided the visits to intermediates."""

    m: Message
    src: int
    decider: int
    mode: int
    evc: tuple[int, ...]

    def detail(self) -> str | None:
        return '{"mode":"fast"}' if self.mode == FAST else '{"mode":"slow"}'


@final
class ReducedHop(Packet):
    """The same with the reduced clock of section 7.3."""

    m: Message
    src: int
    decider: int
    mode: int
    changed: tuple[int, ...]

    def detail(self) -> str | None:
        return '{"mode":"fast"}' if self.mode == FAST else '{"mode":"slow"}'


class Dcc(Layer):
    __slots__ = (
        "EVC", "any", "b", "clocks", "incoming", "last_dst", "reduced",
    )  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Enter, Hop, ReducedHop)
    RECORDS: ClassVar[tuple[type[Record], ...]] = (ReducedClocks,)
    OPTIONS: ClassVar[tuple[str, ...]] = ("rv", "any")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.EVC = [0] * edges(self.size)
        self.b: list[Hop] = []
        self.last_dst: tuple[int, ...] = ()
        """The destinations of the last message handled here."""
        # Not in the paper: the edges (s, n) into this node, and the reduced clock.
        self.incoming = incoming(self.size, self.process)
        self.any = "any" in context.options
        self.reduced = "rv" in context.options
        self.clocks = ReducedClocks()

    def on_cast(self, m: Message) -> None:
        self.send((m.destinations[0],), Enter(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Hop) and self.is_possible(packet):
            self.b.append(packet)
        elif isinstance(packet, ReducedHop):
            self.b.append(self.restore_clock(sender, packet))
        elif isinstance(packet, Enter) and packet.is_at(self):
            self.enter(packet.m)
        else:
            raise self.refuse(sender, packet)
        self.handle_enabled()

    def is_possible(self, m: Hop) -> bool:
        """Not in the paper: m came from below, is on its way up, and has a whole clock."""
        return (
            len(m.m.destinations) > 0
            and m.src == m.m.destinations[0] < self.process <= m.m.destinations[-1] < self.size
            and m.src <= m.decider < self.process
            and len(m.evc) == len(self.EVC)
        )

    def enter(self, m: Message) -> None:
        """This node is m.src: it decides the visits to all other destinations."""
        for d in m.destinations:
            if d != self.process:
                self.EVC[edge_number(self.size, self.process, d)] += 1
        self.deliver_and_forward(m, self.process, FAST)

    def handle_enabled(self) -> None:
        """Handle what is enabled; with `any`, let the world choose where there is a choice."""
        enabled = self.enabled()
        while enabled and not (self.any and len(enabled) > 1):
            self.handle(enabled[0])
            enabled = self.enabled()
        if enabled:
            self.offer("next", len(enabled))

    def is_enabled(self, m: Hop) -> bool:
        return self.can_handle(m, m.src if self.process in m.m.destinations else m.decider)

    def handle(self, position: int) -> None:
        m = self.b.pop(position)
        raise_to(self.EVC, m.evc)
        if self.process in m.m.destinations:
            self.deliver_and_forward(m.m, m.src, m.mode)
        else:
            self.accumulate_and_forward(m)

    # Not in the paper, which does not say which of several enabled messages goes next.

    def enabled(self) -> list[int]:
        """The positions of enabled messages; the first is enough if the world does not choose."""
        found: list[int] = []
        for position, m in enumerate(self.b):
            if self.is_enabled(m):
                found.append(position)
                if not self.any:
                    break
        return found

    def on_choice(self, name: str, chosen: int) -> None:
        enabled = self.enabled()
        if chosen < len(enabled):
            self.handle(enabled[chosen])
        self.handle_enabled()

    def can_handle(self, m: Hop, decided_by: int) -> bool:
        """m is the next visit that `decided_by` decided, and all earlier visits happened."""
        for s, edge in enumerate(self.incoming):
            if s == decided_by:
                if m.evc[edge] != self.EVC[edge] + 1:
                    return False
            elif m.evc[edge] > self.EVC[edge]:
                return False
        return True

    def deliver_and_forward(self, m: Message, src: int, came: int) -> None:
        self.deliver(m)
        mode = FAST if came == FAST and m.destinations == self.last_dst else SLOW
        self.last_dst = m.destinations
        if self.process == m.destinations[-1]:
            return
        next_destination = m.destinations[m.destinations.index(self.process) + 1]
        if mode == FAST:
            self.send_hop(next_destination, Hop(m, src, self.process, FAST, tuple(self.EVC)))
        else:
            for intermediate in range(self.process + 1, next_destination):
                self.EVC[edge_number(self.size, self.process, intermediate)] += 1
            self.send_hop(self.process + 1, Hop(m, src, self.process, SLOW, tuple(self.EVC)))

    def accumulate_and_forward(self, m: Hop) -> None:
        self.last_dst = m.m.destinations
        self.send_hop(self.process + 1, Hop(m.m, m.src, m.decider, m.mode, tuple(self.EVC)))

    # Section 7.3: the reduced clock.

    def send_hop(self, to: int, hop: Hop) -> None:
        if self.reduced:
            changed = self.clocks.reduce(to, hop.evc)
            self.send((to,), ReducedHop(hop.m, hop.src, hop.decider, hop.mode, changed))
        else:
            self.send((to,), hop)

    def restore_clock(self, sender: int, packet: ReducedHop) -> Hop:
        evc = self.clocks.restore(sender, packet.changed, len(self.EVC))
        hop = Hop(packet.m, packet.src, packet.decider, packet.mode, evc)
        if not self.is_possible(hop):
            raise self.refuse(sender, packet)
        self.clocks.received[sender] = evc
        return hop
