"""Sets of messages that are few intervals, because an origin numbers its messages without gaps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK
from flexgroup.properties.indexed_history import Flags
from flexgroup.properties.kernels.grouping import distinct
from flexgroup.trace.history import Ints, no_ints

SEQ_BITS = 63 - ORIGIN_BITS


@dataclass
class MessageIntervals:
    """Messages as intervals [start, end) of integers that count up with an origin's numbers."""

    starts: Ints = field(default_factory=no_ints)
    ends: Ints = field(default_factory=no_ints)

    def holds(self, messages: Ints) -> Flags:
        """Tell, for each message, whether it is in the set."""
        places = _places(messages)
        before = np.searchsorted(self.starts, places, side="right") - 1
        held: Flags = before >= 0
        held[held] = places[held] < self.ends[before[held]]
        return held

    def following(self, origin: int) -> int:
        """Return the number after the largest of an origin's messages, 0 if it has none."""
        of_origin = self.ends[self.starts >> SEQ_BITS == origin]
        return int((of_origin & ((1 << SEQ_BITS) - 1)).max(initial=0))

    def add(self, messages: Ints) -> None:
        """Put in messages that are not in it yet."""
        if len(messages) == 0:
            return
        places = distinct(_places(messages))
        starts = np.concatenate([self.starts, places])
        ends = np.concatenate([self.ends, places + 1])
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        apart = starts[1:] != ends[:-1]
        self.starts = starts[np.concatenate([[True], apart])]
        self.ends = ends[np.concatenate([apart, [True]])]


def _places(messages: Ints) -> Ints:
    places: Ints = ((messages & ORIGIN_MASK) << SEQ_BITS) | (messages >> ORIGIN_BITS)
    return places
