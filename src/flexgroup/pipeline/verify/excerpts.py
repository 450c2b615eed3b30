"""A few messages of large cyclic components, from which the verdicts are those on all of them.

One message that a process delivered far too late may put a whole run into one component. Verdicts
on it show the first disagreement of each two processes, and nothing else; so the messages of these
are enough. Whether they are is tried: among them alone, the same disagreements must be found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flexgroup.properties.kernels.disagreement import disagreements
from flexgroup.properties.kernels.grouping import distinct, marked
from flexgroup.trace.history import Ints

KEPT = 20_000
"""Components with at most so many messages together are kept whole."""


@dataclass(frozen=True)
class Compared:
    """Deliveries of messages in cyclic components, by process and step, that some property
    compares; only messages with the same label are compared with each other."""

    process: Ints
    message: Ints
    label: Ints

    def among(self, messages: Ints) -> Compared:
        kept = marked(len(self.label), messages)[self.message]
        return Compared(self.process[kept], self.message[kept], self.label)

    def found(self) -> Ints:
        """Return a column for each disagreement: two processes, and two messages at both."""
        lines = disagreements(self.process, self.message, self.label)
        rows = (lines.first, lines.then, lines.other_first, lines.other_then)
        processes = [self.process[row] for row in (lines.first, lines.other_first)]
        return np.stack([*processes, *(self.message[row] for row in rows)])


def excerpt(compared: Iterable[Compared]) -> Ints | None:
    """Return messages that tell as much as all, sorted; None if only all of them do.

    The first of what is compared are all deliveries of all messages. If no two processes disagree
    on these, a cycle is longer, and its messages are not known here.
    """
    ways = list(compared)
    found = [way.found() for way in ways]
    if found[0].shape[1] == 0:
        return None
    messages = distinct(np.concatenate([lines[2:].ravel() for lines in found]))
    for way, lines in zip(ways, found, strict=True):
        if not np.array_equal(way.among(messages).found(), lines):
            return None
    return messages
