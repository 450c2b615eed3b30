"""Cyclic components of a run in slices, beside which a few messages are taken out.

A message that some process delivered at the other end of the run belongs to no slice. Without such
messages each slice lies between two consistent cuts, so that whatever leads from one message to
another leads through slices in their order. A message that was taken out leads on from each of its
deliveries, and back. So it suffices to know of each slice, and each *stretch* of a process's
deliveries in it between two that were taken out, from which first messages of stretches something
leads to which last ones: the ends of stretches, and what was taken out, are a small graph with the
components of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from flexgroup.properties.kernels.grouping import distinct, marked
from flexgroup.properties.kernels.head_merge import graph, neighbours, strong_components
from flexgroup.trace.history import Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Flags2 = NDArray[np.bool_]


@dataclass(frozen=True)
class Passage:
    """What leads through a slice, between the stretches of its processes."""

    process: Ints
    begin: Ints
    """The first step of each stretch."""
    leads: Flags2
    """Whether the first message of the stretch of the row is, or is ordered before, the last one
    of the stretch of the column."""
    alike: Ints
    """How many cyclic components of the slice alone are alike in what follows."""
    reached: Flags2
    """Whether something leads to these components from the first message of each stretch."""
    reach: Flags2
    """Whether something leads from them to the last message of each stretch."""

    def to_ints(self) -> list[int]:
        tables = self.process, self.begin, self.leads, self.alike, self.reached, self.reach
        sizes = [len(self.process), len(self.alike)]
        return [*sizes, *(int(value) for table in tables for value in table.ravel().tolist())]

    @classmethod
    def of_ints(cls, told: Sequence[int]) -> Self:
        count, groups, *_ = told
        values = np.array(told[2:], dtype=np.int64)
        lengths = count, count, count * count, groups, groups * count
        process, begin, leads, alike, reached, reach = np.split(values, np.cumsum(lengths))
        return cls(
            process,
            begin,
            leads.reshape(count, count) == 1,
            alike,
            reached.reshape(groups, count) == 1,
            reach.reshape(groups, count) == 1,
        )


@dataclass(frozen=True)
class Joined:
    """What the messages that were taken out change: how many components of slices alone are parts
    of larger ones, and how many of these there are."""

    parts: int
    components: int


def passage(
    process: Ints,
    step: Ints,
    message: Ints,
    components: Sequence[Ints],
    count: int,
    out: tuple[Ints, Ints],
) -> Passage:
    """Return the passage of a slice, given its deliveries by process and step, its cyclic
    components, and the processes and steps of the deliveries that were taken out."""
    from scipy.sparse.csgraph import breadth_first_order

    begins = _beginnings(process, step, *out)
    ends = np.append(begins[1:], len(process)) - 1
    heads, tails = message[begins], message[ends]
    edges = graph(*neighbours(process, message), count)
    chosen = np.array([component[0] for component in components], dtype=np.int64)

    def reached(ways: csr_array, start: int) -> NDArray[np.bool_]:
        return marked(count, breadth_first_order(ways, start, return_predecessors=False))

    leads = np.zeros((len(heads), len(tails)), dtype=np.bool_)
    ways = np.zeros((len(chosen), 2 * len(heads)), dtype=np.bool_)
    back = edges.T.tocsr() if len(chosen) else None
    for place, (head, tail) in enumerate(zip(heads.tolist(), tails.tolist(), strict=True)):
        behind = reached(edges, head)
        leads[place] = behind[tails]
        if len(chosen):
            ways[:, place] = behind[chosen]
            ways[:, len(heads) + place] = reached(back, tail)[chosen]
    alike, numbers = np.unique(ways, axis=0, return_counts=True)
    return Passage(
        process[begins],
        step[begins],
        leads,
        numbers.astype(np.int64),
        alike[:, : len(heads)],
        alike[:, len(heads) :],
    )


def _beginnings(process: Ints, step: Ints, out_process: Ints, out_step: Ints) -> Ints:
    """Return the rows with which stretches begin."""
    is_first = np.append(True, process[1:] != process[:-1])[: len(process)]
    found = [np.flatnonzero(is_first)]
    for each in distinct(out_process).tolist():
        low, high = np.searchsorted(process, [each, each + 1])
        at = low + np.searchsorted(step[low:high], out_step[out_process == each])
        found.append(at[(at > low) & (at < high)])
    return distinct(np.concatenate(found))


def joined(passages: Iterable[Passage], out: tuple[Ints, Ints, Ints]) -> Joined:
    """Return what messages that were taken out join, given the passages of all slices, and the
    numbers of these messages, processes and steps of their deliveries."""
    number, process, step = out
    nodes = int(number.max()) + 1
    # Each end of a stretch is a node behind those of the messages: first, and then last.
    at = [(process, step, number, number)]
    edges = [np.empty((2, 0), dtype=np.int64)]
    slices = []
    for each in passages:
        first = nodes + 2 * np.arange(len(each.process))
        at.append((each.process, each.begin, first, first + 1))
        row, column = np.nonzero(each.leads)
        edges.append(np.stack([first[row], first[column] + 1]))
        slices.append((each, first))
        nodes += 2 * len(first)
    process, step, begin, end = (np.concatenate(column) for column in zip(*at, strict=True))
    order = np.lexsort((step, process))
    process, begin, end = process[order], begin[order], end[order]
    together = process[1:] == process[:-1]
    edges.append(np.stack([end[:-1][together], begin[1:][together]]))
    sources, targets = np.concatenate(edges, axis=1)
    component = strong_components(sources, targets, nodes)
    size = np.bincount(component)
    around = distinct(component[number])
    around = around[size[around] > 1]
    parts = 0
    for each, first in slices:
        for reached, reach, alike in zip(each.reached, each.reach, each.alike, strict=True):
            around_it = np.intersect1d(component[first[reached]], component[first[reach] + 1])
            if np.isin(around_it, around).any():
                parts += int(alike)
    return Joined(parts, len(around))
