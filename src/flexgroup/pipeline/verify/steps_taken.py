"""Which steps the processes of a run took, as bits: a step taken twice shows without a sort.

Steps of a process are gathered in blocks of 64, each a bit of one integer. Where events lie close
together, as in a sound trace, that is a fraction of the events. Two runs that were mixed under one
name have steps in common.
"""

from __future__ import annotations

import numpy as np

from flexgroup.trace.history import Ints, by_pairs
from flexgroup.trace.run_events import mixed_runs

BLOCK_BITS = 6

STEPS = "steps"
"""The kind of packed rows that hold processes, blocks, and the bits of the steps taken."""

STRETCH_BITS = 10
"""So many blocks of a process are looked at together, two to the power of this."""

MIX = 7919

DENSE = 16
"""A table of flags has room for at most so many times the steps."""


def steps_taken(process: Ints, step: Ints) -> tuple[Ints, Ints, Ints]:
    """Return processes, blocks of steps, and which steps of each block were taken.

    A block comes again for a step that was taken again, so that no step is in a line twice.
    """
    return _from_table(process, step) or _from_order(process, step)


def _from_table(process: Ints, step: Ints) -> tuple[Ints, Ints, Ints] | None:
    """Return the same, unless steps lie far apart or are there twice: there is no sort in it."""
    first = int(step.min()) >> BLOCK_BITS
    blocks = (int(step.max()) >> BLOCK_BITS) - first + 1
    span = blocks << BLOCK_BITS
    size = (int(process.max()) + 1) * span
    if size > DENSE * len(step):
        return None
    taken = np.zeros(size, dtype=np.bool_)
    taken[process * span + (step - (first << BLOCK_BITS))] = True
    if np.count_nonzero(taken) < len(step):
        return None
    words = np.packbits(taken, bitorder="little").view("<i8").astype(np.int64, copy=False)
    lines = np.flatnonzero(words)
    process, block = np.divmod(lines, blocks)
    return process, block + first, words[lines]


def _from_order(process: Ints, step: Ints) -> tuple[Ints, Ints, Ints]:
    order = by_pairs(process, step)
    process, step = process[order], step[order]
    block = step >> BLOCK_BITS
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (process[1:] != process[:-1]) | (block[1:] != block[:-1]) | (step[1:] == step[:-1])
    first = np.flatnonzero(begins)
    bits = np.left_shift(np.int64(1), step & ((1 << BLOCK_BITS) - 1))
    return process[first], block[first], np.bitwise_or.reduceat(bits, first)


def part_of_steps(process: Ints, block: Ints, parts: int) -> Ints:
    """Assign the blocks of each process to parts, neighbours to the same one."""
    return (process * MIX + (block >> STRETCH_BITS)) % parts


def refuse_steps_taken_twice(run: str, process: Ints, block: Ints, bits: Ints) -> None:
    """Raise a UsageError if some step is in two of these lines, which hold all that there is about
    their blocks."""
    if len(process) == 0:
        return
    order = by_pairs(process, block)
    process, block, bits = process[order], block[order], bits[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (process[1:] != process[:-1]) | (block[1:] != block[:-1])
    first = np.flatnonzero(begins)
    unsigned = bits.view(np.uint64)
    taken = np.add.reduceat(np.bitwise_count(unsigned).astype(np.int64), first)
    distinct = np.bitwise_count(np.bitwise_or.reduceat(unsigned, first))
    crowded = np.flatnonzero(taken > distinct)
    if len(crowded) == 0:
        return
    start = int(first[crowded[0]])
    lines = bits[(process == process[start]) & (block == block[start])].view(np.uint64)
    for bit in range(1 << BLOCK_BITS):
        rows = int(np.count_nonzero(lines & np.uint64(1 << bit)))
        if rows > 1:
            raise mixed_runs(run, int(process[start]), int(block[start] << BLOCK_BITS) + bit, rows)
