"""Collecting a run in memory instead of in files, for small runs and tests."""

from __future__ import annotations

import numpy as np

from flexgroup.trace.history import Deliveries, Faults, History, Ints, Multicasts, Packets
from flexgroup.trace.recorder import CRASH, DELIVER, MULTICAST, RECEIVE, RECOVER, SEND, Sink
from flexgroup.trace.rows import WIDTH

(KIND, PROCESS, STEP, TIME, MESSAGE, PEER, LABEL, DEPTH, HEADER, PAYLOAD, _, _) = range(WIDTH)


class Collector(Sink):
    """Keeps the rows of a run and gives them back as a history."""

    def __init__(self) -> None:
        self._blocks: list[Ints] = []
        self._labels: list[tuple[str | None, str | None]] = []
        self._sets: list[tuple[int, ...]] = []

    def take(
        self,
        rows: bytes,
        labels: list[tuple[str | None, str | None]],
        destination_sets: list[tuple[int, ...]],
    ) -> None:
        self._blocks.append(np.frombuffer(rows, dtype="<i8").reshape(-1, WIDTH))
        self._labels = labels
        self._sets = destination_sets

    def history(self, run: str, processes: int, complete: bool) -> History:
        multicasts = self._columns(MULTICAST)
        deliveries = self._columns(DELIVER)
        sets = [self._sets[number] for number in multicasts[LABEL].tolist()]
        return History(
            run,
            processes,
            complete,
            Multicasts(
                multicasts[PROCESS],
                multicasts[STEP],
                multicasts[TIME],
                multicasts[MESSAGE],
                np.cumsum([0, *(len(members) for members in sets)], dtype=np.int64),
                np.array([member for members in sets for member in members], dtype=np.int64),
            ),
            Deliveries(
                deliveries[PROCESS],
                deliveries[STEP],
                deliveries[TIME],
                deliveries[MESSAGE],
                deliveries[DEPTH],
            ),
            self._packets(SEND),
            self._packets(RECEIVE),
            self._faults(CRASH),
            self._faults(RECOVER),
        )

    def _columns(self, kind: int) -> Ints:
        """The rows of one kind by (process, step), as one array a column."""
        found = [block[block[:, KIND] == kind] for block in self._blocks]
        rows = np.concatenate(found) if found else np.empty((0, WIDTH), dtype=np.int64)
        order = np.lexsort((rows[:, STEP], rows[:, PROCESS]))
        columns: Ints = np.ascontiguousarray(rows[order].T)
        return columns

    def _packets(self, kind: int) -> Packets:
        rows = self._columns(kind)
        return Packets(
            rows[PROCESS],
            rows[STEP],
            rows[TIME],
            rows[MESSAGE],
            rows[PEER],
            rows[DEPTH],
            rows[HEADER],
            rows[PAYLOAD],
            tuple(packet or "" for packet, _ in self._labels),
            rows[LABEL],
            tuple(detail for _, detail in self._labels),
            rows[LABEL],
        )

    def _faults(self, kind: int) -> Faults:
        rows = self._columns(kind)
        return Faults(rows[PROCESS], rows[STEP], rows[TIME])
