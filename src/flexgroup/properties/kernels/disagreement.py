"""Pairs of processes that delivered two messages in opposite orders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexgroup.properties.kernels.grouping import grouped, places, runs
from flexgroup.trace.history import Ints


@dataclass(frozen=True)
class Disagreements:
    """One line per pair of processes that disagree, as delivery rows.

    `first` and `then` are the rows of two messages at one process, in this order;
    `other_first` and `other_then` those of the same two messages at the other process,
    where the second came before the first.
    """

    first: Ints
    then: Ints
    other_first: Ints
    other_then: Ints


def disagreements(process: Ints, message: Ints, label: Ints) -> Disagreements:
    """Compare every two processes on the messages that both delivered.

    Only messages with the same label (one per message number) are compared with each other. The
    line of two processes is about the first two messages, in the order of the process whose rows
    come first, that follow each other there among those that both delivered. Processes that
    delivered the same messages in the same order are compared with others only once. The cost is
    that of sorting, for each message, the pairs of its deliveries at processes that differ.
    """
    is_first = np.ones(len(process), dtype=np.bool_)
    is_first[1:] = process[1:] != process[:-1]
    starts = np.append(np.flatnonzero(is_first), len(process))
    alike: dict[bytes, list[int]] = {}
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        alike.setdefault(message[start:end].tobytes(), []).append(start)
    queues = [np.array(same) for same in alike.values()]
    lengths = np.array([len(content) // message.itemsize for content in alike], dtype=np.int64)
    firsts = np.array([same[0] for same in queues], dtype=np.int64)
    rows, queue = runs(firsts, firsts + lengths)
    # Those alike may come before some of the others, and behind some.
    both_ways = len(queues) < len(starts) - 1
    found = _between_queues(queue, message[rows], label, both_ways)
    lines = [
        _for_all_alike(
            rows[line], firsts[queue[line]], queues[queue[line[0]]], queues[queue[line[2]]]
        )
        for line in found.T
    ]
    return Disagreements(*np.concatenate([np.empty((4, 0), dtype=np.int64), *lines], axis=1))


def _between_queues(queue: Ints, message: Ints, label: Ints, both_ways: bool) -> Ints:
    """Return the fields of Disagreements as lines, for queues that all differ: one for two queues,
    in the order of the one that comes first, or one in the order of each.

    Two sequences of the same messages differ in order if and only if two neighbours of one come
    in the opposite order in the other, so only neighbours are looked at.
    """
    holders, bounds = grouped(message, len(label))
    place = places(holders)
    labels = int(label.max(initial=0)) + 1
    found = [np.empty((4, 0), dtype=np.int64)]
    for number in range(int(queue.max(initial=-1)) + 1):
        own = np.arange(*np.searchsorted(queue, [number, number + 1]))
        begins = bounds[message[own]] if both_ways else place[own] + 1
        at, owner = runs(begins, bounds[message[own] + 1])
        here, there = own[owner], holders[at]
        if both_ways:
            others = here != there
            here, there = here[others], there[others]
        key = queue[there] * labels + label[message[there]]
        turn = np.argsort(key, kind="stable")
        here, there, key = here[turn], there[turn], key[turn]
        opposed = np.flatnonzero((key[1:] == key[:-1]) & (there[1:] < there[:-1]))
        opposed = opposed[np.argsort(here[opposed], kind="stable")]
        _, one_per_queue = np.unique(queue[there[opposed]], return_index=True)
        opposed = opposed[one_per_queue]
        then = opposed + 1
        found.append(np.stack([here[opposed], here[then], there[opposed], there[then]]))
    return np.concatenate(found, axis=1)


def _for_all_alike(line: Ints, starts: Ints, alike: Ints, other_alike: Ints) -> Ints:
    """Return a line for every process like the one and every process like the other behind it."""
    here = np.repeat(alike, len(other_alike))
    there = np.tile(other_alike, len(alike))
    behind = here < there
    here, there = here[behind], there[behind]
    moved: Ints = np.stack([here, here, there, there]) + (line - starts)[:, np.newaxis]
    return moved
