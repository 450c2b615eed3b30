"""Bringing the rows of a run into the order in which it wrote them.

Files are listed in any order, and a listing may show a file and miss one that was there before.
Parts of a run are numbered, for each kind of event and whoever writes them, so rows of a later part
wait until all earlier parts are here. Files without a number are taken as they come; whether they
came in order shows in the steps of each process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.in_memory.event_rows import CODES, EVENT_ROWS, NOTHING, integers
from flexgroup.properties.indexed_history import Flags
from flexgroup.properties.kernels.grouping import distinct
from flexgroup.trace import schema

ARRIVING = EVENT_ROWS.append(pa.field("part", pa.int32())).append(pa.field("writer", pa.string()))
"""Rows with the number of the part they came in, or null if their file has none, and who wrote that
part, or null if one writes for all processes. Of a view, `message` is the number and `destinations`
are the members; of one that a process was only told of there is no message."""

FOLLOWED = (schema.MULTICAST, schema.DELIVER, schema.CRASH, schema.VIEW)

_ORDERED = (schema.MULTICAST, schema.DELIVER)


class RefusedError(UsageError):
    """The rows of a run contradict what following it relies on; the text says which and why."""


@dataclass
class Reassembly:
    """Knows what was read of a run so far, and keeps what came too early."""

    next_part: dict[str, int] = field(default_factory=dict)
    """The number of the next part, by the name of the sequence of parts."""
    early: pa.Table = field(default_factory=ARRIVING.empty_table)
    last_step: dict[str, int] = field(default_factory=dict)
    """The last step that was handed on, by kind of event and process, as in `deliver at 3`."""

    def in_order(self, rows: pa.Table) -> pa.Table:
        """Return the rows that can be handed on, now that these have come."""
        waiting = pa.concat_tables([self.early, rows]) if self.early.num_rows else rows
        part = integers(waiting, "part")
        ready = part == NOTHING
        for name, rows_of_sequence in _sequences(waiting):
            first = self.next_part.get(name, 0)
            here = distinct(part[rows_of_sequence])
            if here[0] < first:
                raise RefusedError(f"part {here[0]} of {name} came twice")
            gaps = np.flatnonzero(here != np.arange(first, first + len(here)))
            end = first + (int(gaps[0]) if len(gaps) else len(here))
            self.next_part[name] = end
            ready |= rows_of_sequence & (part < end)
        self.early = waiting.filter(pa.array(~ready)) if not ready.all() else rows.slice(0, 0)
        taken = waiting.filter(pa.array(ready)) if not ready.all() else waiting
        for kind in _ORDERED:
            self._refuse_disorder(kind, taken)
        return taken.drop_columns(["part", "writer"])

    def refuse_gaps(self) -> None:
        """Raise a RefusedError if a part is missing at the end of a run."""
        for name, _ in _sequences(self.early):
            raise RefusedError(f"part {self.next_part[name]} of {name} is missing")

    def _refuse_disorder(self, kind: str, rows: pa.Table) -> None:
        chosen = np.flatnonzero(integers(rows, "event") == CODES[kind])
        process, step = integers(rows, "process")[chosen], integers(rows, "step")[chosen]
        order = np.lexsort((step, process))
        process, step = process[order], step[order]
        begins = np.ones(len(process), dtype=np.bool_)
        begins[1:] = process[1:] != process[:-1]
        again = np.flatnonzero(~begins[1:] & (step[1:] == step[:-1]))
        for number in again[:1]:
            raise RefusedError(f"step {step[number]} of process {process[number]} came twice")
        firsts = np.flatnonzero(begins)
        ends = np.append(firsts[1:], len(process)) - 1
        for first, end in zip(firsts.tolist(), ends[: len(firsts)].tolist(), strict=True):
            here = f"{kind} at {process[first]}"
            last = self.last_step.get(here, -1)
            if step[first] <= last:
                where = f"process {process[first]} ({kind})"
                raise RefusedError(f"step {step[first]} of {where} came after step {last}")
            self.last_step[here] = int(step[end])


def _sequences(rows: pa.Table) -> Iterator[tuple[str, Flags]]:
    """Yield the sequences of parts that rows came in: the name of each, and which rows."""
    event = integers(rows, "event")
    is_numbered = pc.is_valid(rows.column("part")).to_numpy()
    writers = rows.column("writer")
    for kind in FOLLOWED:
        of_kind = is_numbered & (event == CODES[kind])
        if not of_kind.any():
            continue
        for writer in sorted(pc.unique(writers.filter(pa.array(of_kind))).to_pylist(), key=str):
            if writer is None:
                name, chosen = f"its {kind} events", pc.is_null(writers)
            else:
                name, chosen = f"the {kind} events of {writer}", pc.equal(writers, writer)
            yield name, of_kind & pc.fill_null(chosen, False).to_numpy()
