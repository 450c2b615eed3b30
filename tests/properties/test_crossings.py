"""Order in real time across slices is that of the whole run, wherever it is cut."""

from __future__ import annotations

import random

import numpy as np

from flexgroup.properties.kernels.consistent_cuts import smallest_cut
from flexgroup.properties.kernels.crossings import Crossing, crossing, is_too_late
from flexgroup.trace.history import Ints

PROCESSES = 4


def made_up(chance: random.Random) -> tuple[Ints, Ints, Ints, Ints]:
    """Deliveries by process, mostly in one order, though some lag behind; and the first delivery
    and the multicast of each message, which rarely came after its first delivery."""
    count = chance.randint(2, 14)
    slack = chance.choice([0, 0, 1, 3])
    process, message = [], []
    first = np.full(count, 10**6, dtype=np.int64)
    for at in range(PROCESSES):
        lag = chance.choice([0, 0, 30, 60])
        mine = [number for number in range(count) if chance.random() < 0.5]
        mine.sort(key=lambda number: number + slack * chance.random())
        process += [at] * len(mine)
        message += mine
        for number in mine:
            first[number] = min(first[number], 10 * number + lag + chance.randint(5, 20))
    late = chance.choice([2, 20, 60])
    sent = np.array([10 * number + chance.randint(-5, late) for number in range(count)])
    times = sent if chance.random() < 0.1 else np.minimum(first, sent)
    return np.array(process, dtype=np.int64), np.array(message, dtype=np.int64), first, times


def brute_force(process: Ints, message: Ints, first: Ints, multicast: Ints) -> bool:
    """Whether a message was multicast after the first delivery of one that is ordered behind it."""
    count = len(first)
    before = np.eye(count, dtype=bool)
    for row in range(len(message) - 1):
        if process[row] == process[row + 1]:
            before[message[row], message[row + 1]] = True
    for middle in range(count):
        before |= before[:, [middle]] & before[middle]
    delivered = np.isin(np.arange(count), message)
    wrong = before & (multicast[:, None] > first[None, :])
    return bool(wrong[np.ix_(delivered, delivered)].any())


def in_slices(
    process: Ints, message: Ints, first: Ints, multicast: Ints, cuts: list[int], clock_bytes: int
) -> tuple[bool, bool]:
    """Whether a slice between cuts finds something within itself, and whether all do together."""
    done = np.zeros(len(first), dtype=bool)
    crossings, within = [], False
    for cut in [*cuts, len(first)]:
        inside, _ = smallest_cut(process, message, done | (np.arange(len(first)) < cut))
        chosen = np.flatnonzero((inside & ~done)[message])
        members = np.unique(message[chosen])
        done |= inside
        rows = process[chosen], np.searchsorted(members, message[chosen])
        times = first[members], multicast[members]
        within |= brute_force(*rows, *times)
        found = crossing(*rows, *times, PROCESSES, clock_bytes)
        crossings.append(Crossing.of_ints(found.to_ints(), PROCESSES))
    return within, is_too_late(crossings)


def test_slices_tell_what_the_whole_run_tells_in_thousands_of_random_cuts() -> None:
    chance = random.Random(1)
    found = {"nothing": 0, "within": 0, "across": 0}
    for _ in range(1200):
        run = made_up(chance)
        cuts = sorted(chance.choices(range(len(run[2])), k=chance.randint(1, 6)))
        within, across = in_slices(*run, cuts, chance.choice([1, 20, 1 << 20]))
        assert (within or across) == brute_force(*run), (run, cuts)
        found["within" if within else "across" if across else "nothing"] += 1
    assert min(found.values()) > 25, found
