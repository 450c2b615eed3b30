"""How a large run is cut into pieces that tasks can check apart.

Messages are ranked by their first delivery anywhere. Ranks are cut into *cells* of about equally
many deliveries, and consecutive cells form a *slice*. A slice's task gets, besides its own cells,
a margin of cells of both neighbours: enough, as a rule, to find the consistent cuts at its ends.
What the margin did not show is found afterwards, and the run is cut into larger slices then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from flexgroup.pipeline.verify.check_plans import CheckPlan
from flexgroup.trace.history import Ints

CELL_DELIVERIES = 1 << 16
CELLS_A_SLICE = 16
MARGIN_CELLS = 1
WIDEN = 4

SLICED = {"acyclic order", "pairwise order", "local order", "prefix order", "real-time order"}
"""The properties that are checked by slice."""

MOST_PROCESSES = 62
"""Messages that belong to no slice are taken out of runs of at most so many processes."""

SHARE_DELIVERIES = 1_000_000
"""How many deliveries a task has that checks destinations, at least."""


@dataclass(frozen=True)
class Layout:
    """A large run: what to check of it, and where it is cut."""

    plan: CheckPlan
    """What to check, without minimality."""
    deliveries: int
    """How many deliveries the run has, roughly."""
    crashed: tuple[int, ...]
    bounds: Ints
    """The times of first deliveries at which cells but the first begin, ascending."""
    first_place: int = 0
    """Places name the tasks of all runs: first those of this run's slices, then those that share
    its destinations."""
    cells_a_slice: int = CELLS_A_SLICE
    margin: int = MARGIN_CELLS

    @property
    def by_destination(self) -> bool:
        return not {"fifo order", "causal order"}.isdisjoint(self.plan.properties)

    @property
    def by_slice(self) -> bool:
        return not SLICED.isdisjoint(self.plan.properties)

    @property
    def in_real_time(self) -> bool:
        return "real-time order" in self.plan.properties

    @property
    def takes_out(self) -> bool:
        """Whether messages whose deliveries lie far apart are taken out, where they are few. Order
        in real time needs all that is ordered before a message in slices."""
        is_as_narrow_as_can_be = self.slices > 1 and self.margin == MARGIN_CELLS
        return (
            is_as_narrow_as_can_be
            and not self.in_real_time
            and self.plan.processes <= MOST_PROCESSES
        )

    @property
    def places(self) -> int:
        return self.slices + (self.shares if self.by_destination else 0)

    @property
    def shares(self) -> int:
        """How many tasks share the destinations: as many as have enough to do."""
        return max(1, min(self.plan.processes, self.deliveries // SHARE_DELIVERIES))

    def share_of_destination(self, process: Ints) -> Ints:
        return process % self.shares

    @property
    def slices(self) -> int:
        return -(-(len(self.bounds) + 1) // self.cells_a_slice)

    def cell(self, first_delivery: Ints) -> Ints:
        return np.searchsorted(self.bounds, first_delivery, side="right")

    def widened(self, reach: int, is_last: bool = False) -> Layout:
        """Return the layout with larger slices: several times as large as what has to be seen
        together, which reaches over so many slices of now; or only one slice."""
        factor = WIDEN
        while factor < WIDEN * reach and factor < self.slices:
            factor *= WIDEN
        cells = self.cells_a_slice * (self.slices if is_last else factor)
        return replace(self, cells_a_slice=cells, margin=self.margin * factor)


def placed(layouts: Iterable[Layout]) -> dict[int, Layout]:
    """Return the layouts by number, with a place of its own for each task."""
    result, place = {}, 0
    for layout in layouts:
        result[layout.plan.number] = replace(layout, first_place=place)
        place += layout.places
    return result


def cell_bounds(sample: Ints, deliveries: int, cell_deliveries: int) -> Ints:
    """Return where to cut, from the times of some of the deliveries, sorted."""
    cells = max(1, round(deliveries / cell_deliveries))
    inner = np.linspace(0, len(sample) - 1, min(cells, len(sample)) + 1)[1:-1]
    return np.unique(sample[inner.round().astype(np.int64)])
