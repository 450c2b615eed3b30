"""Where two runs part: the first event of each process that is another in the other run.

The histories of a process are compared event by event: what kind, about which message, to or from
whom, which packet, and what the detail says. Times are no part of it, so two runs of one schedule
are alike however long things took.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from flexgroup.trace import schema
from flexgroup.trace.history import Ints, by_pairs, no_ints
from flexgroup.trace.reader import ints, messages, read_columns

COMPARED = ("process", "step", "origin", "seq", "peer")
TEXTS = ("packet", "detail")


@dataclass(frozen=True)
class Difference:
    """The first event of a process that is another in the other run, or that it does not have."""

    process: int
    ours: int | None
    """The step at which it is in one run; None, if the process does nothing more there."""
    theirs: int | None
    alike: int
    """How many events of the process come before it, which are the same in both runs."""


def differences(ours: tuple[Path, str], theirs: tuple[Path, str]) -> list[Difference]:
    """Return the differences of two runs, each a trace set and a name, by process."""
    codes: dict[object, int] = {}
    return list(_differences(_Histories(*ours, codes), _Histories(*theirs, codes)))


class _Histories:
    """What the processes of a run did, as numbers, by process and step."""

    def __init__(self, directory: Path, run: str, codes: dict[object, int]) -> None:
        columns: list[list[Ints]] = [[] for _ in range(6)]
        for number, kind in enumerate(schema.KINDS):
            table = read_columns(directory, run, kind, [*COMPARED, *TEXTS, "destinations"])
            if table.num_rows:
                told = _told(table, kind, codes)
                found = [
                    ints(table, "process"), ints(table, "step"),
                    np.full(table.num_rows, number), messages(table), ints(table, "peer", -1),
                    told,
                ]  # fmt: skip
                for column, more in zip(columns, found, strict=True):
                    column.append(more)
        process, step, *rest = (np.concatenate(c) if c else no_ints() for c in columns)
        order = by_pairs(process, step)
        self.step: Ints = step[order]
        self.columns: list[Ints] = [column[order] for column in rest]
        sizes = np.bincount(process) if len(process) else no_ints()
        self.processes = len(sizes)
        self._begins = np.concatenate(([0], np.cumsum(sizes)))

    def of(self, process: int) -> range:
        """Return where the events of a process are."""
        if process >= self.processes:
            return range(0)
        return range(int(self._begins[process]), int(self._begins[process + 1]))


def _told(table: pa.Table, kind: str, codes: dict[object, int]) -> Ints:
    """Return for each row a number that stands for all it tells besides numbers."""
    if kind == schema.MULTICAST:
        sets = table.column("destinations").to_pylist()
        return np.array([codes.setdefault(tuple(sorted(each)), len(codes)) for each in sets])
    told = np.zeros(table.num_rows, dtype=np.int64)
    for name in TEXTS:
        if name in table.column_names:
            column = table.column(name)
            if not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
            column = column.unify_dictionaries().combine_chunks()
            own = [codes.setdefault((name, text), len(codes)) for text in
                   [*column.dictionary.to_pylist(), None]]  # fmt: skip
            places = column.indices.fill_null(len(own) - 1).to_numpy(zero_copy_only=False)
            told = (told << 31) | np.array(own, dtype=np.int64)[places]
    return told


def _differences(ours: _Histories, theirs: _Histories) -> Iterator[Difference]:
    for process in range(max(ours.processes, theirs.processes)):
        own, other = ours.of(process), theirs.of(process)
        both = min(len(own), len(other))
        unlike = np.zeros(both, dtype=np.bool_)
        for ours_, theirs_ in zip(ours.columns, theirs.columns, strict=True):
            unlike |= ours_[own.start :][:both] != theirs_[other.start :][:both]
        alike = int(unlike.argmax()) if unlike.any() else both
        if alike < max(len(own), len(other)):
            yield Difference(
                process,
                int(ours.step[own.start + alike]) if alike < len(own) else None,
                int(theirs.step[other.start + alike]) if alike < len(other) else None,
                alike,
            )
