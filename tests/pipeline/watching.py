"""Runs for tests of watching: as rows that arrive, cut into parts, in any order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from flexgroup.pipeline.in_memory.event_rows import CODES
from flexgroup.pipeline.watch.follower import HOLD, Follower
from flexgroup.pipeline.watch.reassembly import ARRIVING, FOLLOWED
from flexgroup.pipeline.watch.snapshot import from_bytes, to_bytes
from flexgroup.properties.verdict import Verdict
from flexgroup.trace.schema import MULTICAST, VIEW

from ..properties.histories import Event


def rows_of(events: Sequence[Event], part: int | None = None) -> pa.Table:
    """The events that are followed, as they arrive; the place in the list is the time."""
    steps: Counter[int] = Counter()
    rows = []
    for time, event in enumerate(events):
        rows.append(
            {
                "event": CODES[event.kind],
                "process": event.process,
                "step": steps[event.process],
                "time": time,
                "message": event.message,
                "destinations": list(event.others) if event.kind in (MULTICAST, VIEW) else None,
                "part": part,
                "writer": None,
            }
        )
        steps[event.process] += 1
    followed = [row for row, event in zip(rows, events, strict=True) if event.kind in FOLLOWED]
    return pa.Table.from_pylist(followed, ARRIVING)


def parts_of(rows: pa.Table, size: int) -> list[pa.Table]:
    """The rows of each kind in numbered parts, in the order in which a writer publishes them."""
    parts: list[tuple[int, pa.Table]] = []
    event = rows.column("event").to_numpy()
    for kind in FOLLOWED:
        places = np.flatnonzero(event == CODES[kind])
        for number, first in enumerate(range(0, len(places), size)):
            chosen = rows.take(pa.array(places[first : first + size]))
            numbers = pa.array([number] * chosen.num_rows, pa.int32())
            place = ARRIVING.get_field_index("part")
            parts.append((int(places[first]), chosen.set_column(place, "part", numbers)))
    return [part for _, part in sorted(parts, key=lambda placed: placed[0])]


def displaced(parts: list[pa.Table], chance: random.Random) -> list[pa.Table]:
    """The same parts in another order, most of them not far from their places."""
    places = [place + chance.choice((0, 0, chance.uniform(-4, 4))) for place in range(len(parts))]
    return [part for _, part in sorted(zip(places, parts, strict=True), key=lambda item: item[0])]


def followed(
    batches: Sequence[pa.Table],
    complete: bool = True,
    hold: int = HOLD,
    lost: Sequence[int] = (),
    processes: int | None = None,
) -> tuple[Follower, list[Verdict], dict[str, Verdict]]:
    """Follow a run to its end, the state going through bytes between any two batches.

    What was told, in order, and the final verdicts by property.
    """
    follower = Follower("told", hold)
    follower.processes = processes
    told: list[Verdict] = []
    for batch in batches:
        told += follower.take(batch)
        follower = Follower.restored(from_bytes(to_bytes(follower)))
    new, final = follower.finish(complete, lost)
    return follower, told + new, {verdict.property: verdict for verdict in final}
