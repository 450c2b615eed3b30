"""Daisy Chain Cast (DCC), exactly as published. It is neither safe nor live: see `dcc`.

Source: algorithms 4.1 to 4.3 of the DCC dissertation (Louzada 2024), the same as
algorithms 1 to 3 of Louzada and Dotti's paper. Handlers and variables carry its names,
comments the lines of algorithm 4.3 (or 4.2, where said).

Assumes reliable FIFO channels, no failures, and a total order of the processes: their
numbers. Promises global total (acyclic) order with messages that walk up the order of
processes without waiting for each other. A message is *fast* when it visits only its
destinations; else it is *slow* and visits every process between them. Between k-1 and
n-1 messages among n processes for k destinations.

What is written is implemented; where the text is silent:
- A message stops at its last destination (lines 8 and 10 do not say so).
- `cacheEVC` starts at zero, so a process's first message is slow.
- Several enabled messages in the buffer are handled in the order of their arrival; with
  the option `any`, in whichever order the world chooses.
- With the option `rv`, section 7.3's reduced clock: a channel transmits only the
  counters that changed since the message before it in the same channel.
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
    """m with m.src, m.mode and m.EVC, from another node."""

    m: Message
    src: int
    mode: int
    evc: tuple[int, ...]

    def detail(self) -> str | None:
        return '{"mode":"fast"}' if self.mode == FAST else '{"mode":"slow"}'


@final
class ReducedHop(Packet):
    """The same with the reduced clock."""

    m: Message
    src: int
    mode: int
    changed: tuple[int, ...]

    def detail(self) -> str | None:
        return '{"mode":"fast"}' if self.mode == FAST else '{"mode":"slow"}'


class DccPublished(Layer):
    __slots__ = (
        "EVC", "any", "b", "cacheEVC", "clocks", "incoming", "reduced",
    )  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    """What it promises; that the promise is broken is for the checks to find."""
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Enter, Hop, ReducedHop)
    RECORDS: ClassVar[tuple[type[Record], ...]] = (ReducedClocks,)
    OPTIONS: ClassVar[tuple[str, ...]] = ("rv", "any")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.EVC = [0] * edges(self.size)
        self.cacheEVC = [0] * edges(self.size)
        self.b: list[Hop] = []
        # Not in the paper: the edges (s, n) into this node, and the reduced clock.
        self.incoming = incoming(self.size, self.process)
        self.any = "any" in context.options
        self.reduced = "rv" in context.options
        self.clocks = ReducedClocks()

    # Algorithm 4.2.

    def on_cast(self, m: Message) -> None:
        self.send((m.destinations[0],), Enter(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Enter) and packet.is_at(self):
            self.deliver_and_forward(Hop(packet.m, self.process, SLOW, ()), external=True)
        elif isinstance(packet, Hop) and self.is_possible(packet):
            self.b.append(packet)
        elif isinstance(packet, ReducedHop):
            self.b.append(self.restore_clock(sender, packet))
        else:
            raise self.refuse(sender, packet)
        self.handle_enabled()

    def is_possible(self, m: Hop) -> bool:
        """Not in the paper: m came from below, is on its way up, and has a whole clock."""
        return (
            len(m.m.destinations) > 0
            and m.src == m.m.destinations[0] < self.process <= m.m.destinations[-1] < self.size
            and len(m.evc) == len(self.EVC)
        )

    def handle_enabled(self) -> None:
        """Lines 8 to 19 of algorithm 4.2."""
        enabled = self.enabled()
        while enabled and not (self.any and len(enabled) > 1):
            self.handle(enabled[0])
            enabled = self.enabled()
        if enabled:
            self.offer("next", len(enabled))

    def is_enabled(self, m: Hop) -> bool:
        if self.process in m.m.destinations:
            return self.can_deliver_and_forward(m)
        return self.can_forward(m)

    def handle(self, position: int) -> None:
        m = self.b.pop(position)
        if self.process in m.m.destinations:
            self.deliver_and_forward(m, external=False)
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

    # Algorithm 4.3.

    def fast_or_slow(self, m: Message, src: int, mode: int) -> None:
        """Lines 5 to 10."""
        if self.process == m.destinations[-1]:
            return
        hop = Hop(m, src, mode, tuple(self.EVC))
        self.send_hop(self.next_fast_hop(m) if mode == FAST else self.process + 1, hop)

    def next_fast_hop(self, m: Message) -> int:
        return m.destinations[m.destinations.index(self.process) + 1]

    def check_last_destination(self, difference: list[int]) -> int:
        """Lines 11 to 14."""
        same = self.cacheEVC == difference
        self.cacheEVC = difference
        return FAST if same else SLOW

    def update_compare_evc(self, m: Hop, external: bool) -> int:
        """Lines 15 to 23."""
        old = list(self.EVC)
        if external:
            for d in m.m.destinations:
                if d != self.process:
                    self.EVC[edge_number(self.size, self.process, d)] += 1
        else:
            raise_to(self.EVC, m.evc)
        return self.check_last_destination(
            [now - before for now, before in zip(self.EVC, old, strict=True)]
        )

    def accumulate_and_forward(self, m: Hop) -> None:
        """Lines 24 to 27."""
        evc = list(m.evc)
        raise_to(evc, tuple(self.EVC))
        self.send_hop(self.process + 1, Hop(m.m, m.src, m.mode, tuple(evc)))

    def deliver_and_forward(self, m: Hop, external: bool) -> None:
        """Lines 28 to 31."""
        self.deliver(m.m)
        mode = self.update_compare_evc(m, external)
        self.fast_or_slow(m.m, m.src, mode)

    def can_forward(self, m: Hop) -> bool:
        """Lines 32 to 35."""
        for s, edge in enumerate(self.incoming):
            if s != m.src and m.evc[edge] > self.EVC[edge]:
                return False
        return True

    def can_deliver_and_forward(self, m: Hop) -> bool:
        """Lines 36 to 39."""
        edge = self.incoming[m.src]
        return m.evc[edge] == self.EVC[edge] + 1 and self.can_forward(m)

    # Section 7.3: the reduced clock.

    def send_hop(self, to: int, hop: Hop) -> None:
        if self.reduced:
            changed = self.clocks.reduce(to, hop.evc)
            self.send((to,), ReducedHop(hop.m, hop.src, hop.mode, changed))
        else:
            self.send((to,), hop)

    def restore_clock(self, sender: int, packet: ReducedHop) -> Hop:
        evc = self.clocks.restore(sender, packet.changed, len(self.EVC))
        hop = Hop(packet.m, packet.src, packet.mode, evc)
        if not self.is_possible(hop):
            raise self.refuse(sender, packet)
        self.clocks.received[sender] = evc
        return hop
