"""What pairs of processes skipped is found part by part of the messages."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.properties.kernels import pairs_of_processes
from flexgroup.properties.kernels.pairs_of_processes import MISSING, first_skipped, last_shared
from flexgroup.trace.history import Ints

Copies = tuple[Ints, Ints, Ints]


def copies(seed: int) -> Copies:
    """Messages to some processes, delivered in any order or not at all."""
    chance = random.Random(seed)
    processes = chance.randint(2, 5)
    lost = chance.choice([0.1, 0.5])
    steps = [chance.sample(range(100), 30) for _ in range(processes)]
    rows = [
        (message, process, MISSING if chance.random() < lost else steps[process][message])
        for message in range(chance.randint(1, 12))
        for process in sorted(chance.sample(range(processes), chance.randint(1, processes)))
    ]
    message, process, step = np.array(rows, dtype=np.int64).T
    return message, process, step


def at(found: Copies) -> dict[tuple[int, int], int]:
    return {
        (message, process): step
        for message, process, step in zip(*(column.tolist() for column in found), strict=True)
    }


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 7, 1000]))
def test_the_first_that_was_skipped_and_the_last_that_was_shared(seed: int, at_once: int) -> None:
    given_ = copies(seed)
    message, process, step = given_
    steps = at(given_)
    skipped: dict[tuple[int, int], tuple[int, int]] = {}
    shared: dict[tuple[int, int], tuple[int, int]] = {}
    for (one_of, one), here in steps.items():
        for (other_of, other), there in steps.items():
            if one_of != other_of or one == other or here == MISSING:
                continue
            pair = one, other
            if there == MISSING:
                skipped[pair] = min(skipped.get(pair, (here, one_of)), (here, one_of))
            else:
                shared[pair] = max(shared.get(pair, (here, one_of)), (here, one_of))
    old = pairs_of_processes.PAIRS_AT_ONCE
    pairs_of_processes.PAIRS_AT_ONCE = at_once
    try:
        first = first_skipped(*given_)
        ends = np.array(list(skipped), dtype=np.int64).reshape(-1, 2).T
        last = last_shared(*given_, (ends[0], ends[1]))
    finally:
        pairs_of_processes.PAIRS_AT_ONCE = old

    def told(found: tuple[Ints, Ints]) -> dict[tuple[int, int], tuple[int, int]]:
        assert (message[found[0]] == message[found[1]]).all()
        pairs = zip(process[found[0]].tolist(), process[found[1]].tolist(), strict=True)
        values = zip(step[found[0]].tolist(), message[found[0]].tolist(), strict=True)
        return dict(zip(pairs, values, strict=True))

    assert told(first) == skipped
    assert told(last) == {pair: value for pair, value in shared.items() if pair in skipped}
