"""Real-time order (Sutra 2022; the idea is Herlihy & Wing's, 1990).

If m is delivered somewhere before m' is multicast, m' is not ordered before m.

"Ordered before" is the transitive closure of "some process delivered the one and then the
other"; "before" compares the times of the trace, which therefore must come from one clock. Nobody
knows when a process that is faulty by design multicast its messages. Violations are counted in
messages m that were delivered too early for a message ordered before them.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.explanations import Letters, at, holds, violated
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.grouping import places, scattered
from flexgroup.properties.kernels.head_merge import latest_ancestor
from flexgroup.properties.kernels.shortest_paths import QueueSearch, RowPair
from flexgroup.properties.verdict import Verdict

NAME = "real-time order"


def check(run: IndexedHistory) -> Verdict:
    multicasts, deliveries, queues = run.history.multicasts, run.history.deliveries, run.queues
    by_time = np.argsort(multicasts.time, kind="stable")
    multicast = np.flatnonzero((run.multicast_row != NONE) & ~run.of_faulty)
    rank_of_row = places(by_time)
    rank = scattered(run.message_count, multicast, rank_of_row[run.multicast_row[multicast]])
    latest = latest_ancestor(run.merge, queues.process, queues.message, rank)

    first = run.earliest(queues.row)
    suspects = np.flatnonzero((first != NONE) & (latest != NONE))
    late = multicasts.time[by_time[latest[suspects]]] > deliveries.time[first[suspects]]
    wrong = suspects[late]
    if len(wrong) == 0:
        return holds(run, NAME)
    early = int(wrong[np.argmin(deliveries.time[first[wrong]])])
    row = int(by_time[latest[early]])
    ancestor = int(np.searchsorted(run.identities, multicasts.message[row]))
    return violation(run, len(wrong), ancestor, early, int(first[early]))


def violation(
    run: IndexedHistory, violations: int, ancestor: int, early: int, first_row: int
) -> Verdict:
    path = _path(run, ancestor, early)
    letter = Letters(run, [ancestor, *(int(run.delivered[then]) for _, then in path)])
    witness, lines = letter.chain(path)
    first, multicast = run.delivery(first_row), run.multicast(ancestor)
    delivered_at = int(run.history.deliveries.time[first_row])
    multicast_at = int(run.history.multicasts.time[run.multicast_row[ancestor]])
    lines.append(
        f"but {run.node(first.process)} delivered {letter[early]} {at(first)} at time"
        f" {delivered_at}, before {run.node(multicast.process)} multicast {letter[ancestor]}"
        f" {at(multicast)} at time {multicast_at}"
    )
    return violated(run, NAME, violations, [*witness, first, multicast], [letter.let(), *lines])


def _path(run: IndexedHistory, ancestor: int, early: int) -> list[RowPair]:
    if ancestor == early:
        return []
    queues = run.queues
    search = QueueSearch(queues.process, queues.message, run.message_count)
    links = search.shortest_path(ancestor, early) or []
    return [(int(queues.row[row]), int(queues.row[later])) for row, later in links]
