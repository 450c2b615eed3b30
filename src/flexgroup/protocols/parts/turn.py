"""What a layer sends in one turn: what goes the same way shares a packet.

A new leader tells at once what piled up while nobody led. With a packet for each message, and for
each of its acknowledgements, recovery would take as long as it takes to handle all of these, and
not a few delays. So a layer handles what came, and sends at the end of that turn; what it has for
the same process travels together. Who gets it takes it in in one turn as well, and so what it
answers travels together, too.

A protocol says which of its packets do that, and in which order they may come: the order in which
they were asked for, of packets of one kind, stays as it is for each process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import Packet

Targets = tuple[int, ...]
Sent = tuple[Targets, Packet]

Kind = tuple[int, tuple[int, ...]]
"""When the packets of a turn come, the lowest first, and what those that share one have alike."""

ALONE: Final[Kind] = (0, ())
"""These come first, as they are."""


@final
class Outgoing(Record):
    """What waits for the end of a turn, in the order in which it was asked for."""

    waiting: list[Sent] = []

    def add(self, to: Targets, packet: Packet) -> None:
        if to:
            self.waiting.append((to, packet))

    def take(
        self, kind_of: Callable[[Packet], Kind], together: Callable[[list[Packet]], Packet]
    ) -> list[Sent]:
        """All of it, with as few packets as possible."""
        waiting, self.waiting = self.waiting, []
        if len(waiting) < 2:
            return waiting
        alike: dict[Kind, list[Sent]] = {}
        for to, packet in waiting:
            alike.setdefault(kind_of(packet), []).append((to, packet))
        taken: list[Sent] = []
        for kind in sorted(alike, key=_place_of):
            some = alike[kind]
            taken += some if kind == ALONE or len(some) == 1 else _shared(some, together)
        return taken


def _place_of(kind: Kind) -> int:
    return kind[0]


def _shared(some: list[Sent], together: Callable[[list[Packet]], Packet]) -> list[Sent]:
    """One packet for each process, and the same for those that are to get the same."""
    wanted: dict[int, list[int]] = {}
    for place, (to, _) in enumerate(some):
        for process in to:
            wanted.setdefault(process, []).append(place)
    targets: dict[tuple[int, ...], list[int]] = {}
    for process in sorted(wanted):
        targets.setdefault(tuple(wanted[process]), []).append(process)
    return [
        (
            tuple(to),
            together([some[place][1] for place in places]) if places[1:] else some[places[0]][1],
        )
        for places, to in targets.items()
    ]
