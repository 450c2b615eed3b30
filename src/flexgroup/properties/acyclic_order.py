"""Global total order, or acyclic order (Hadzilacos & Toueg 1994; Guerraoui & Schiper 2001).

The relation "some process, correct or not, delivered m and then m'" has no cycles.

Violations are counted in cyclic components: largest sets of messages that precede each other in
circles. The witness is a shortest cycle, except in components of very many messages without a cycle
of length two, where not every message is tried as a starting point.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.explanations import Letters, holds, violated
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.kernels.shortest_paths import RowPair, shortest_cycle
from flexgroup.properties.opposite_orders import earliest
from flexgroup.properties.verdict import Verdict

NAME = "acyclic order"

SEARCHED_ROWS = 2_000_000


def check(run: IndexedHistory) -> Verdict:
    components = run.merge.components
    if not components:
        return holds(run, NAME)
    links = _cycle(run)
    letter = Letters(run, [int(run.delivered[first]) for first, _ in links])
    witness, lines = letter.chain(links)
    return violated(run, NAME, len(components), witness, [letter.let(), *lines])


def _cycle(run: IndexedHistory) -> list[RowPair]:
    """Return the delivery rows of a cycle, from its message of smallest identity on."""
    if len(run.opposed.first):
        first, then, other_first, other_then = earliest(run, run.opposed)
        links = [(first, then), (other_then, other_first)]
    else:
        rows = run.cyclic.row
        found = shortest_cycle(
            run.cyclic.process, run.cyclic.message, run.merge.components, 3, SEARCHED_ROWS
        )
        links = [(int(rows[first]), int(rows[then])) for first, then in found]
    start = int(np.argmin([run.delivered[first] for first, _ in links]))
    return links[start:] + links[:start]
