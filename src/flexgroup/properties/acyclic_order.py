"""Global total order, or acyclic order (Hadzilacos & Toueg 1994; Guerraoui & Schiper 2001).

The relation "some process, correct or not, delivered m and then m'" has no cycles.

Violations are counted in knots: largest sets of messages that precede each other in circles. The
witness is a shortest cycle, except in knots of very many messages without a cycle of length
two, where not every message is tried as a starting point.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.indexed import IndexedHistory
from flexgroup.properties.kernels.paths import Link, shortest_cycle
from flexgroup.properties.opposite import earliest
from flexgroup.properties.verdict import Verdict
from flexgroup.properties.wording import Cast, at, holds, violated

NAME = "acyclic order"

SEARCHED_ROWS = 2_000_000


def check(run: IndexedHistory) -> Verdict:
    knots = run.merge.knots
    if not knots:
        return holds(run, NAME)
    links = _cycle(run)
    letter = Cast(run, [int(run.delivered[first]) for first, _ in links])
    lines = [letter.let()]
    witness = []
    for first, then in links:
        before, after = run.delivery(first), run.delivery(then)
        a, b = letter[int(run.delivered[first])], letter[int(run.delivered[then])]
        lines.append(
            f"{a} < {b}, because process {before.process} delivered"
            f" {a} {at(before)} and then {b} {at(after)}"
        )
        witness += [before, after]
    return violated(NAME, len(knots), witness, lines)


def _cycle(run: IndexedHistory) -> list[Link]:
    """The delivery rows of a cycle, from its message of smallest identity on."""
    if len(run.opposed.first):
        first, then, other_first, other_then = earliest(run, run.opposed)
        links = [(first, then), (other_then, other_first)]
    else:
        rows = run.knotted.row
        found = shortest_cycle(
            run.knotted.process, run.knotted.message, run.merge.knots, 3, SEARCHED_ROWS
        )
        links = [(int(rows[first]), int(rows[then])) for first, then in found]
    start = int(np.argmin([run.delivered[first] for first, _ in links]))
    return links[start:] + links[:start]
