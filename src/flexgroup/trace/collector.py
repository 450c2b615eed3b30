"""Collecting a run in memory instead of in files, for small runs and tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from flexgroup.trace import schema
from flexgroup.trace.blocks import Block, blocks_by_kind
from flexgroup.trace.history import (
    Deliveries,
    Faults,
    History,
    Ints,
    Multicasts,
    Packets,
    Views,
    no_ints,
    views_of,
)
from flexgroup.trace.recorder import Sink
from flexgroup.trace.rows import COLUMNS
from flexgroup.trace.views import parse_view
from flexgroup.trace.writer import event_table


class Collector(Sink):
    """Keeps the rows of a run and gives them back as a history."""

    def __init__(self) -> None:
        self._blocks: dict[str, list[Block]] = {}
        self._labels: list[tuple[str | None, str | None]] = []
        self._sets: list[tuple[int, ...]] = []

    def take(
        self,
        columns: list[bytes],
        labels: list[tuple[str | None, str | None]],
        destination_sets: list[tuple[int, ...]],
    ) -> None:
        for kind, block in blocks_by_kind(columns):
            self._blocks.setdefault(kind, []).append(block)
        self._labels = labels
        self._sets = destination_sets

    def history(self, run: str, processes: int, complete: bool) -> History:
        multicasts = self._columns(schema.MULTICAST)
        deliveries = self._columns(schema.DELIVER)
        sets = [self._sets[number] for number in multicasts["label"].tolist()]
        return History(
            run,
            processes,
            complete,
            Multicasts(
                multicasts["process"],
                multicasts["step"],
                multicasts["time"],
                multicasts["message"],
                np.cumsum([0, *(len(members) for members in sets)], dtype=np.int64),
                np.array([member for members in sets for member in members], dtype=np.int64),
            ),
            Deliveries(
                deliveries["process"],
                deliveries["step"],
                deliveries["time"],
                deliveries["message"],
                deliveries["depth"],
            ),
            self._packets(schema.SEND),
            self._packets(schema.RECEIVE),
            self._faults(schema.CRASH),
            self._faults(schema.RECOVER),
            self._views(),
        )

    def tables(self, run: str = "") -> Iterator[tuple[str, pa.Table]]:
        """The rows of each kind, as a table with the columns of a trace."""
        for kind, blocks in self._blocks.items():
            for block in blocks:
                yield kind, event_table(run, kind, block, self._labels, self._sets)

    def _columns(self, kind: str) -> dict[str, Ints]:
        """Return the rows of one kind, sorted by process and step."""
        blocks = self._blocks.get(kind, [])
        columns: dict[str, Ints] = {
            name: np.concatenate([block[name] for block in blocks] or [no_ints()]).astype(np.int64)
            for name in COLUMNS
        }
        order = np.lexsort((columns["step"], columns["process"]))
        return {name: column[order] for name, column in columns.items()}

    def _packets(self, kind: str) -> Packets:
        columns = self._columns(kind)
        return Packets(
            columns["process"],
            columns["step"],
            columns["time"],
            columns["message"],
            columns["peer"],
            columns["depth"],
            columns["header_bytes"],
            columns["payload_bytes"],
            tuple(packet or "" for packet, _ in self._labels),
            columns["label"],
            tuple(detail for _, detail in self._labels),
            columns["label"],
        )

    def _faults(self, kind: str) -> Faults:
        columns = self._columns(kind)
        return Faults(columns["process"], columns["step"], columns["time"])

    def _views(self) -> Views:
        columns = self._columns(schema.VIEW)
        installed = [parse_view(self._labels[label][1]) for label in columns["label"].tolist()]
        return views_of(columns["process"], columns["step"], columns["time"], installed)
