"""Knots: largest sets of messages that precede each other in circles."""

from __future__ import annotations

import numpy as np

from flexgroup.properties.kernels.head_merge import neighbours
from flexgroup.properties.kernels.rows import grouped
from flexgroup.trace.history import Ints


def knots(process: Ints, message: Ints, count: int) -> list[Ints]:
    """The knots among deliveries sorted by process and order of delivery, each sorted.

    The same as those of the head merge, several times faster, and without an order of the rest.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sources, targets = neighbours(process, message)
    edges = coo_array(
        (np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(count, count)
    )
    components, label = connected_components(edges.tocsr(), directed=True, connection="strong")
    if components == count:
        return []
    members, starts = grouped(label.astype(np.int64), components)
    large = np.flatnonzero(np.diff(starts) > 1).tolist()
    found = [members[starts[which] : starts[which + 1]] for which in large]
    return sorted(found, key=lambda knot: int(knot[0]))
