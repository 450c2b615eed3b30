"""What a message's causal past requires of each of its destinations."""

from __future__ import annotations

import numpy as np

from flexgroup.properties.kernels.layered_clocks import LayeredClocks
from flexgroup.trace.history import Ints

CLOCK_BYTES = 1 << 29
"""The clocks of all messages may take so many bytes at a time."""

NOTHING = -1


def latest_in_causal_past(
    precedence: LayeredClocks,
    copy_message: Ints,
    copy_process: Ints,
    copy_position: Ints,
    clock_bytes: int = CLOCK_BYTES,
) -> Ints:
    """Return, for each copy of a message, the largest of its own position and those of the messages
    it must wait for; NOTHING for messages that wait for themselves.

    The graph is that of causal precedence of messages. A copy is a message at one of its
    destinations. A copy's position is the row in which its destination delivered it, or a larger
    number below 2^31 if it did not.

    A message's clock holds, for every process d, the largest position at d of the message itself
    and of all in its causal past that are addressed to d: an entry per destination, however many
    clients multicast, and exact although precedence also passes through messages that d never sees.

    Time O((edges + messages) * processes), in numpy; memory bounded by clock_bytes, beyond which
    processes are handled in blocks of columns.
    """
    count = len(precedence.order)
    processes, column = np.unique(copy_process, return_inverse=True)
    row = precedence.row[copy_message]
    block = max(1, min(len(processes), clock_bytes // (4 * max(1, count))))
    latest = np.full(len(copy_message), NOTHING, dtype=np.int64)
    for first in range(0, len(processes), block):
        chosen = np.flatnonzero((column >= first) & (column < first + block) & (row != NOTHING))
        at = row[chosen], column[chosen] - first
        clocks = np.full((count, block), NOTHING, dtype=np.int32)
        clocks[at] = copy_position[chosen]
        precedence.grow(clocks)
        latest[chosen] = clocks[at]
    return latest
