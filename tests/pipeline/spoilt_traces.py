"""Trace sets that are no valid ones: one thing is wrong with the files, of a run of any size."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..trace.damages import cut_in_half, flip_a_bit_of, with_type, without
from ..trace.recorded import event_file, run_file
from .tampered_runs import with_views_and_packets
from .written_histories import write_history

RUN = "spoilt"

Row = dict[str, Any]


@dataclass(frozen=True)
class Spoilt:
    """What is wrong with a trace set, and the words by which everybody has to say so."""

    name: str
    spoil: Callable[[Path], None]
    words: str
    """A pattern: the least that an error has to tell."""


def record(directory: Path, deliveries: int) -> None:
    """Write a valid trace set, of one run with all that a run can have."""
    write_history(directory, with_views_and_packets(deliveries, RUN), "somebody else's")


def in_the_middle(path: Path, change: Callable[[Row], Row | None]) -> None:
    """Let `change` alter the row in the middle of a file; what it returns is added."""
    table = pq.ParquetFile(path).read()
    place = table.num_rows // 2
    (row,) = table.slice(place, 1).to_pylist()
    added = change(row)
    fields = [field.with_nullable(True) for field in table.schema]
    changed = pa.Table.from_pylist([row, *([added] if added else [])], pa.schema(fields))
    parts = [part.cast(changed.schema) for part in (table.slice(0, place), table.slice(place + 1))]
    pq.write_table(pa.concat_tables([parts[0], changed, parts[1]]), path, write_page_checksum=True)


def with_value(kind: str, column: str, value: object) -> Callable[[Path], None]:
    def spoil(traces: Path) -> None:
        in_the_middle(event_file(traces, kind, RUN), lambda row: row.update({column: value}))

    return spoil


def with_fact(column: str, value: object) -> Callable[[Path], None]:
    def spoil(traces: Path) -> None:
        in_the_middle(run_file(traces, RUN), lambda row: row.update({column: value}))

    return spoil


def damaged(kind: str, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda traces: damage(event_file(traces, kind, RUN))


def multicast_again(traces: Path) -> None:
    path = event_file(traces, "multicast", RUN)
    in_the_middle(path, lambda row: {**row, "step": row["step"] + 1})


def delivered_at_one_step(traces: Path) -> None:
    path = event_file(traces, "deliver", RUN)
    in_the_middle(path, lambda row: {**row, "seq": row["seq"] + 1})


def one_step_for_two_kinds(traces: Path) -> None:
    sent = pq.ParquetFile(event_file(traces, "send", RUN)).read(columns=["process", "step"])
    (row,) = sent.slice(sent.num_rows // 2, 1).to_pylist()
    in_the_middle(event_file(traces, "deliver", RUN), lambda delivery: {**delivery, **row})


def in_parts(traces: Path) -> None:
    """Cut the deliveries into parts, and lose one in the middle."""
    path = event_file(traces, "deliver", RUN)
    table = pq.ParquetFile(path).read()
    size = -(-table.num_rows // 5)
    for number in (0, 1, 3, 4):
        part = path.with_name(f"{RUN}-part-{number:06}.parquet")
        pq.write_table(table.slice(number * size, size), part)
    path.unlink()


def events_lost(traces: Path) -> None:
    """Lose the last tenth of the deliveries, though the run tells how many there are."""
    path = event_file(traces, "deliver", RUN)
    table = pq.ParquetFile(path).read()
    counts = ", ".join(
        f'"{folder.name.removeprefix("event=")}": {rows}'
        for folder in (traces / "events").iterdir()
        for rows in [sum(pq.read_metadata(each).num_rows for each in folder.iterdir())]
    )
    with_fact("events", f"{{{counts}}}")(traces)
    pq.write_table(table.slice(0, table.num_rows * 9 // 10), path)


def two_runs_mixed(traces: Path) -> None:
    path = event_file(traces, "deliver", RUN)
    shutil.copy(path, path.with_name("another.parquet"))


def described_twice(traces: Path) -> None:
    shutil.copy(run_file(traces, RUN), run_file(traces, "another"))


def unknown_kind(traces: Path) -> None:
    (traces / "events" / "event=deliver").rename(traces / "events" / "event=delivery")


SPOILT = (
    Spoilt("null-seq", with_value("deliver", "seq", None), "column 'seq' is empty"),
    Spoilt("null-time", with_value("multicast", "time", None), "column 'time' is empty"),
    Spoilt("null-destinations", with_value("multicast", "destinations", None),
           "column 'destinations' is empty"),
    Spoilt("negative-process", with_value("deliver", "process", -3), "column 'process' .*is .*-3"),
    Spoilt("negative-step", with_value("multicast", "step", -1), "column 'step' .*is .*-1"),
    Spoilt("seq-out-of-range", with_value("deliver", "seq", 1 << 43),
           f"column 'seq' .*{1 << 43}, at most {(1 << 43) - 1} is possible"),
    Spoilt("origin-out-of-range", with_value("deliver", "origin", 1 << 20),
           f"column 'origin' .*{1 << 20}, at most {(1 << 20) - 1} is possible"),
    Spoilt("no-destinations", with_value("multicast", "destinations", []),
           "without a destination"),
    Spoilt("repeated-destinations", with_value("multicast", "destinations", [1, 2, 1]),
           "with a destination twice"),
    Spoilt("negative-destination", with_value("multicast", "destinations", [-1, 2]),
           "negative entries"),
    Spoilt("null-destination", with_value("multicast", "destinations", [None, 2]),
           "empty entries"),
    Spoilt("multicast-twice", multicast_again, "was multicast (twice|before)"),
    Spoilt("one-step-twice", delivered_at_one_step, "process .* step"),
    Spoilt("one-step-for-two-kinds", one_step_for_two_kinds, "process .* step"),
    Spoilt("two-runs-mixed", two_runs_mixed, "two runs with the same name are mixed"),
    Spoilt("part-lost", in_parts, "lacks part 2 of its deliver events"),
    Spoilt("events-lost", events_lost, "deliver events, and `runs` tells of"),
    Spoilt("flipped-bit", damaged("deliver", flip_a_bit_of("step")), "(?i)(CRC|checksum)"),
    Spoilt("half-a-file", damaged("deliver", cut_in_half), "read"),
    Spoilt("no-column", damaged("multicast", without("destinations")), "destinations"),
    Spoilt("other-type", damaged("deliver", with_type("time", pa.float64())),
           "column 'time' is double, not (int64|bigint)"),
    Spoilt("never-sent", with_value("receive", "sent", 3), "did not send"),
    Spoilt("wrong-outcome", with_fact("outcome", "done"), "outcome is 'done', not complete or cut"),
    Spoilt("no-processes", with_fact("processes", 0), "it has 0 processes"),
    Spoilt("unknown-promise", with_fact("promises", ["no order"]), "'no order' in column 'promis"),
    Spoilt("newer-version", with_fact("schema_version", 9), "written by a newer version"),
    Spoilt("described-twice", described_twice, f"describes run '{RUN}' again"),
    Spoilt("unknown-kind", unknown_kind, "there are no (such )?events"),
    Spoilt("view-of-nobody", with_value("view", "detail", '{"number":1}'),
           "it must have a number and members"),
)  # fmt: skip


def spoilt_copy(valid: Path, spoilt: Spoilt, room: Path) -> Path:
    """Return a copy of a valid trace set that is spoilt in this way."""
    traces = room / spoilt.name
    shutil.copytree(valid, traces)
    spoilt.spoil(traces)
    return traces
