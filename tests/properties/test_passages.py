"""Whether slices, and what leads through them, tell the cyclic components of a whole run."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from flexgroup.properties.kernels.grouping import marked
from flexgroup.properties.kernels.head_merge import cyclic_components
from flexgroup.properties.kernels.passages import Joined, Passage, joined, passage
from flexgroup.trace.history import Ints

PROCESSES = 4

InSlices = tuple[Ints, Ints, Ints, Ints, int]


@st.composite
def runs_in_slices(draw: st.DrawFn) -> InSlices:
    """Deliveries of a run: process, step, and message, of which so many are taken out, the first
    ones; and the slices of the others, each of which lies behind the ones before it."""
    out = draw(st.integers(1, 3))
    rest = draw(st.integers(1, 14))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    slices = np.append(np.full(out, -1), np.repeat(np.arange(len(lengths)), lengths)[:rest])
    rows: list[tuple[int, int, int]] = []
    for each in range(PROCESSES):
        chosen = [m for m in range(len(slices)) if draw(st.booleans())]
        within = draw(st.permutations(chosen))
        queue = sorted((m for m in within if m >= out), key=lambda m: int(slices[m]))
        for m in chosen:
            if m < out:
                queue.insert(draw(st.integers(0, len(queue))), m)
        rows += ((each, at, m) for at, m in enumerate(queue))
    process, step, message = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return process, step, message, slices, out


@settings(deadline=None, max_examples=500)
@given(runs_in_slices())
def test_slices_and_what_was_taken_out_have_the_components_of_the_run(
    run: InSlices,
) -> None:
    process, step, message, slices, out = run
    whole = [set(found.tolist()) for found in cyclic_components(process, message, len(slices))]
    alone: list[set[int]] = []
    passages: list[Passage] = []
    taken = message < out
    taken_out = process[taken], step[taken]
    for each in range(int(slices.max(initial=-1)) + 1):
        rows = np.flatnonzero(marked(len(slices), np.flatnonzero(slices == each))[message])
        if len(rows) == 0:
            continue
        found = cyclic_components(process[rows], message[rows], len(slices))
        alone += (set(component.tolist()) for component in found)
        through = passage(process[rows], step[rows], message[rows], found, len(slices), taken_out)
        passages.append(Passage.of_ints(through.to_ints()))
    told = Joined(0, 0)
    if taken.any():
        told = joined(passages, (message[taken], *taken_out))
    around = [component for component in whole if min(component) < out]
    parts = [part for part in alone if any(part <= component for component in around)]
    event(f"{len(around)} around what was taken out, {len(parts)} joined")
    assert told == Joined(len(parts), len(around))
    assert len(alone) - told.parts + told.components == len(whole)
