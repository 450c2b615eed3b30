"""A few messages of large cyclic components, from which the verdicts are those on all of them.

One message that a process delivered far too late may put a whole run into one component. Verdicts
on it show the first disagreement of each two processes, and nothing else; so the messages of these
are enough. Before its first disagreement, what two processes delivered is in order, and so is any
part of it: among messages that include those of first disagreements, the same ones are the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flexgroup.properties.kernels.disagreement import disagreements
from flexgroup.properties.kernels.grouping import distinct
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

    def disagreed_on(self) -> Ints:
        """Return the messages of first disagreements."""
        lines = disagreements(self.process, self.message, self.label)
        found: Ints = self.message[np.concatenate([lines.first, lines.then])]
        return found


def excerpt(compared: Iterable[Compared]) -> Ints | None:
    """Return messages that tell as much as all, sorted; None if only all of them do.

    The first of what is compared are all deliveries of all messages. If no two processes disagree
    on these, a cycle is longer, and its messages are not known here.
    """
    found = [way.disagreed_on() for way in compared]
    return distinct(np.concatenate(found)) if len(found[0]) else None
