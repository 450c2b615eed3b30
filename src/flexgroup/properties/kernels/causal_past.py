"""What a message's causal past requires of each of its destinations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flexgroup.properties.kernels.grouping import grouped
from flexgroup.trace.history import Ints

CLOCK_BYTES = 1 << 29
"""The clocks of all messages may take so many bytes at a time."""


def latest_in_causal_past(
    order: Ints,
    sources: Ints,
    targets: Ints,
    copy_message: Ints,
    copy_process: Ints,
    copy_position: Ints,
    count: int,
    clock_bytes: int = CLOCK_BYTES,
) -> Ints:
    """Return, for each copy of a message, the largest position of the messages it must wait for.

    The edges (source, target) generate causal precedence of messages, which are numbered below
    `count`; `order` is a topological order of it, without the messages that have none. A copy
    is a message at one of its destinations; copies are sorted by message. A copy's position is
    the row in which its destination delivered it, or a larger number below 2^31 if it did not.

    A message's clock holds, for every process d, the largest position at d of all messages
    addressed to d in its causal past: an entry per destination, however many clients multicast,
    and exact although precedence also passes through messages that d never sees. -1 stands for
    an empty past.

    Time O((edges + messages) * processes), in numpy rows; memory bounded by clock_bytes,
    beyond which processes are handled in blocks of columns.
    """
    input_rows, input_starts = grouped(targets, count)
    inputs = sources[input_rows]
    input_bounds: list[int] = input_starts.tolist()
    turns: list[int] = order.tolist()
    processes, column = np.unique(copy_process, return_inverse=True)
    block = max(1, min(len(processes), clock_bytes // (4 * max(1, count))))
    latest = np.full(len(copy_message), -1, dtype=np.int64)
    for first in range(0, len(processes), block):
        chosen = np.flatnonzero((column >= first) & (column < first + block))
        columns = column[chosen] - first
        positions = copy_position[chosen].astype(np.int32)
        copy_bounds: list[int] = np.searchsorted(
            copy_message[chosen], np.arange(count + 1)
        ).tolist()
        before = np.full(len(chosen), -1, dtype=np.int32)
        clocks: NDArray[np.int32] = np.full((count, block), -1, dtype=np.int32)
        for node in turns:
            clock = clocks[node]
            start, end = input_bounds[node], input_bounds[node + 1]
            if end - start > 1:
                np.maximum.reduce(clocks.take(inputs[start:end], axis=0), axis=0, out=clock)
            elif end > start:
                clock[:] = clocks[inputs[start]]
            start, end = copy_bounds[node], copy_bounds[node + 1]
            if end > start:
                addressed = columns[start:end]
                past = clock[addressed]
                before[start:end] = past
                clock[addressed] = np.maximum(past, positions[start:end])
        latest[chosen] = before
    return latest
