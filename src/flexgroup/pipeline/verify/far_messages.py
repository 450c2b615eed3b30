"""Messages that belong to no slice, as their deliveries lie at both ends of a run.

If they are few, they are taken out, and the run is cut without them. Each slice tells how it leads
from one of them to another, and what stands next to them; so no slice has to be larger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flexgroup.pipeline.verify.message_checks import NO_LABEL, WIDE
from flexgroup.pipeline.verify.notes import Note
from flexgroup.properties.indexed_history import Flags
from flexgroup.properties.kernels.disagreement import disagreements
from flexgroup.properties.kernels.grouping import distinct, numbered, scattered
from flexgroup.properties.kernels.passages import Joined, Passage, joined, passage
from flexgroup.trace.history import Ints, by_key, by_pairs, no_ints

PASSAGE = "passage"
"""What a note is about whose rank tells how a slice is passed through."""

OPPOSED = "opposed"
"""The kind of such a note if two processes delivered a message of the slice, and one that was taken
out, in opposite orders."""

WIDTH = 3
"""Message, process and step of a delivery."""


@dataclass(frozen=True)
class RowsOfSlice:
    """Deliveries by process and step, and what properties that compare orders ask about them."""

    process: Ints
    step: Ints
    message: Ints
    label: Ints | None
    """A number for the destinations of each message."""
    expected: Ints | None

    @property
    def is_wide(self) -> bool:
        """Whether destinations have no numbers."""
        return self.label is not None and bool((self.label == WIDE).any())

    def chosen(self, which: Flags) -> RowsOfSlice:
        return RowsOfSlice(
            self.process[which],
            self.step[which],
            self.message[which],
            self.label,
            None if self.expected is None else self.expected[which],
        )

    def with_label(self, label: int) -> RowsOfSlice:
        assert self.label is not None
        return self.chosen(self.label[self.message] == label)

    def at_destinations(self) -> RowsOfSlice:
        assert self.expected is not None
        return self.chosen(self.expected == 1)


def passage_of(
    number: int, rows: RowsOfSlice, components: Sequence[Ints], count: int, far: RowsOfSlice
) -> tuple[Note, Ints]:
    """Return the note on how this slice of a run is passed through, and those of its messages that
    stand next to the ones that were taken out."""
    found = passage(
        rows.process, rows.step, rows.message, components, count, (far.process, far.step)
    )
    ways = [(rows, far)]
    if rows.label is not None and far.label is not None:
        labels = distinct(far.label[far.label != NO_LABEL]).tolist()
        ways += ((rows.with_label(label), far.with_label(label)) for label in labels)
    if rows.expected is not None:
        ways.append((rows.at_destinations(), far.at_destinations()))
    neighbours, opposed = [no_ints()], False
    for some, of_far in ways:
        for shared in _shared(some, of_far, count):
            neighbours.append(shared.neighbours())
            opposed = opposed or shared.is_opposed()
    note = Note(number, PASSAGE, OPPOSED if opposed else "", 0, found.to_ints(), [])
    return note, distinct(np.concatenate(neighbours))


@dataclass(frozen=True)
class _Shared:
    """Messages of a slice that two processes delivered, in the order of the one, with steps at
    both; and the steps of those that were taken out."""

    message: Ints
    here: Ints
    there: Ints
    far_here: Ints
    far_there: Ints

    def neighbours(self) -> Ints:
        """Return the messages next to those that were taken out, which may be the first or the last
        one of a slice."""
        place = np.searchsorted(self.here, self.far_here)
        last = len(self.message) - 1
        wanted = [np.array([0, last]), np.maximum(place - 1, 0), np.minimum(place, last)]
        found: Ints = self.message[np.concatenate(wanted)]
        return found

    def is_opposed(self) -> bool:
        return any(
            bool(((self.here < here) != (self.there < there)).any())
            for here, there in zip(self.far_here.tolist(), self.far_there.tolist(), strict=True)
        )


def _shared(rows: RowsOfSlice, far: RowsOfSlice, count: int) -> Iterator[_Shared]:
    """Yield what any two processes share that both delivered a message that was taken out."""
    steps: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for _, same in by_key(far.message):
        at = list(zip(far.process[same].tolist(), far.step[same].tolist(), strict=True))
        for one, here in at:
            for other, there in at:
                if one != other:
                    steps[one, other].append((here, there))
    for (one, other), of_far in sorted(steps.items()):
        low, high = np.searchsorted(rows.process, [one, one + 1])
        first, end = np.searchsorted(rows.process, [other, other + 1])
        row_there = scattered(count, rows.message[first:end], np.arange(first, end))
        there = row_there[rows.message[low:high]]
        here = low + np.flatnonzero(there >= 0)
        if len(here):
            step_there = rows.step[there[there >= 0]]
            far_steps = np.array(of_far, dtype=np.int64).T
            yield _Shared(rows.message[here], rows.step[here], step_there, *far_steps)


def joined_by_far(
    far: Sequence[Sequence[int]], passages: Mapping[str, Sequence[Sequence[int]]]
) -> Joined | None:
    """Return what messages that were taken out of a run join, given the ranks of notes about them,
    and about passages by kind; None if slices alone do not tell how."""
    rows = np.concatenate([np.array(rank, dtype=np.int64).reshape(-1, WIDTH) for rank in far])
    _, _, number = numbered(rows[:, 0])
    order = by_pairs(rows[:, 1], rows[:, 2])
    number, process, step = number[order], rows[order, 1], rows[order, 2]
    through = (Passage.of_ints(rank) for ranks in passages.values() for rank in ranks)
    found = joined(through, (number, process, step))
    alike = np.zeros(len(number), dtype=np.int64)
    is_opposed = OPPOSED in passages or len(disagreements(process, number, alike).first) > 0
    # If no two processes disagree, a cycle is longer, and its messages are not known here.
    return found if is_opposed or not found.components else None
