"""Runs of any length in the order of time: counted in windows, and read event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.message import message_id
from flexgroup.trace import schema
from flexgroup.trace.reader import read_run, read_runs
from flexgroup.trace.timeline import Chosen, Row, Timeline, events_told_of, open_timeline
from flexgroup.trace.writer import write_run
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

from .damages import cut_in_half
from .recorded import event_file, record, rows, tamper

CRASHING = Scenario(
    "vcube-atomic", 5, 2, "random:3", duration=0.01, faults=Faults(("1@4ms",), detection="1ms")
)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    record(directory, CRASHING)
    return directory


@pytest.fixture(scope="module")
def timeline(traces: Path) -> Timeline:
    return opened(traces)


@pytest.fixture(scope="module")
def events(traces: Path) -> list[Row]:
    """All events as their files have them."""
    (run,) = read_runs(traces)
    return [
        {**row, "event": kind}
        for kind in schema.KINDS
        if event_file(traces, kind, run.run).exists()
        for row in rows(event_file(traces, kind, run.run))
    ]


def opened(directory: Path, run: str | None = None) -> Timeline:
    found = {each.run: each for each in read_runs(directory)}
    return open_timeline(directory, found[run or next(iter(found))])


def test_every_event_is_there_in_the_order_of_time(timeline: Timeline, events: list[Row]) -> None:
    first, last = timeline.span
    read = timeline.read(timeline.rows(first, last))
    assert len(timeline) == len(read) == len(events)
    times = [row["time"] for row in read]
    assert times == sorted(times)
    assert (first, last) == (times[0], times[-1] + 1)
    by_place = {(row["process"], row["step"]): row for row in events}
    assert all(by_place[row["process"], row["step"]] == row for row in read)


def test_windows_are_counted_by_band_column_and_kind(timeline: Timeline, events: list[Row]) -> None:
    edges = [0, 1_000_000, 2_500_000, 4_000_001, timeline.span[1]]
    bands = [[0, 1], [3], [5, 6]]
    counts = timeline.counts(edges, bands)
    assert sum(counts[0][2]) > 0
    for band, members in enumerate(bands):
        for column, (begin, end) in enumerate(pairwise(edges)):
            own = Counter(
                row["event"]
                for row in events
                if row["process"] in members and begin <= row["time"] < end
            )
            assert counts[band][column] == [own[kind] for kind in schema.KINDS]
    assert timeline.totals(*timeline.span) == Counter(row["event"] for row in events)


MESSAGE = {(5, 0)}
CHOICES: dict[str, tuple[Chosen, Callable[[Row], bool]]] = {
    "processes": (Chosen(processes=(1, 6, 99)), lambda row: row["process"] in (1, 6)),
    "kinds": (Chosen(kinds=("crash", "suspect")), lambda row: row["event"] in ("crash", "suspect")),
    "messages": (
        Chosen(messages=(message_id(5, 0), message_id(5, 4711))),
        lambda row: (row["origin"], row["seq"]) in MESSAGE,
    ),
    "all of it": (
        Chosen((0, 1, 2), ("deliver",), (message_id(5, 0),)),
        lambda row: (
            (row["origin"], row["seq"]) in MESSAGE
            and row["event"] == "deliver"
            and row["process"] < 3
        ),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_events_are_chosen(timeline: Timeline, events: list[Row], name: str) -> None:
    chosen, is_wanted = CHOICES[name]
    wanted = [row for row in events if is_wanted(row)]
    assert wanted
    found = timeline.read(timeline.rows(*timeline.span, chosen))
    assert sorted(found, key=place) == sorted(wanted, key=place)
    assert sum(timeline.totals(*timeline.span, chosen).values()) == len(wanted)
    times = [row["time"] for row in wanted]
    assert timeline.span_of(chosen) == (min(times), max(times) + 1)


def place(row: Row) -> tuple[int, int]:
    return row["process"], row["step"]


def test_messages_to_the_same_processes_are_a_group(timeline: Timeline, events: list[Row]) -> None:
    sets = {
        message_id(row["origin"], row["seq"]): tuple(row["destinations"])
        for row in events
        if row["event"] == "multicast"
    }
    assert dict(timeline.groups) == Counter(sets.values())
    sizes = [count for _, count in timeline.groups]
    assert sizes == sorted(sizes, reverse=True)
    for message, destinations in sets.items():
        assert timeline.destinations_of(message) == destinations
    group, count = timeline.groups[0]
    chosen = timeline.rows(*timeline.span, Chosen(destinations=group, kinds=("multicast",)))
    assert len(chosen) == count
    assert not len(timeline.rows(*timeline.span, Chosen(destinations=(0, 99))))


def test_the_other_end_of_a_packet_is_found(timeline: Timeline) -> None:
    everything = timeline.read(timeline.rows(*timeline.span))
    sends = {place(row): number for number, row in enumerate(everything) if row["event"] == "send"}
    receives = [row for row in everything if row["event"] == "receive"]
    for row in receives[:50]:
        (number,) = timeline.other_ends([row])
        assert number == sends[row["peer"], row["sent"]]
        assert row in timeline.read(timeline.other_ends(timeline.read([number])))
    lost = [row for row in everything if row["event"] == "send" and not timeline.other_ends([row])]
    assert {row["peer"] for row in lost} == {1}  # which has crashed


def test_a_step_that_was_not_recorded_has_no_event(timeline: Timeline) -> None:
    assert timeline.row_at(0, 10**9) is None
    assert timeline.row_at(99, 0) is None
    assert timeline.row_at(None, 0) is None


def test_files_that_hold_several_runs_are_read_too(traces: Path, tmp_path: Path) -> None:
    """And row groups of any size."""
    other = replace(CRASHING, seed=2)
    names = [record(tmp_path / "apart", scenario) for scenario in (CRASHING, other)]
    for kind in schema.KINDS:
        files = [event_file(tmp_path / "apart", kind, name) for name in names]
        tables = [pq.ParquetFile(file).read() for file in files if file.exists()]
        if tables:
            folder = tmp_path / "together" / "events" / f"event={kind}"
            folder.mkdir(parents=True)
            plain = [table.cast(schema.RECORDED) for table in tables]
            pq.write_table(pa.concat_tables(plain), folder / "all.parquet", row_group_size=37)
    (tmp_path / "together" / "runs").mkdir()
    for name in names:
        write_run(tmp_path / "together", read_run(tmp_path / "apart", name))
        apart, together = opened(tmp_path / "apart", name), opened(tmp_path / "together", name)
        assert len(apart) == len(together) > 100
        span = apart.span
        assert apart.read(apart.rows(*span)) == together.read(together.rows(*span))


def test_a_run_that_was_written_in_parts_is_read_too(traces: Path, tmp_path: Path) -> None:
    record_scenario(CRASHING, tmp_path, part_rows=50)
    assert len(list((tmp_path / "events" / "event=send").iterdir())) > 2
    whole, parts = opened(traces), opened(tmp_path)
    assert whole.read(whole.rows(*whole.span)) == parts.read(parts.rows(*parts.span))


def test_a_run_in_which_nothing_happens(tmp_path: Path) -> None:
    record(tmp_path, Scenario("skeen", 2, 1, "random:2", duration=1e-9))
    for file in (tmp_path / "events").rglob("*.parquet"):
        file.unlink()
    (run,) = read_runs(tmp_path)
    write_run(tmp_path, replace(run, events=None))
    timeline = opened(tmp_path)
    assert len(timeline) == 0
    assert timeline.counts([0, 1], [[0]]) == [[[0] * len(schema.KINDS)]]
    assert timeline.read(timeline.rows(*timeline.span)) == []


def test_damage_and_gaps_are_told_of(tmp_path: Path) -> None:
    name = record(tmp_path)
    (run,) = read_runs(tmp_path)
    sends = event_file(tmp_path, "send", name)
    whole = sends.read_bytes()
    cut_in_half(sends)
    for look in (open_timeline, events_told_of):
        with pytest.raises(UsageError, match=r"send.*truncated, damaged"):
            look(tmp_path, run)
    sends.unlink()
    for look in (open_timeline, events_told_of):
        with pytest.raises(UsageError, match=r"has 0 send events, and `runs` tells of .*missing"):
            look(tmp_path, run)
    sends.write_bytes(whole)

    def repeat_a_step(found: list[Row]) -> None:
        found[1]["step"] = found[0]["step"]
        found[1]["process"] = found[0]["process"]

    tamper(sends, repeat_a_step)
    with pytest.raises(UsageError, match="two runs with the same name are mixed"):
        open_timeline(tmp_path, run)


def test_it_says_how_far_it_is(traces: Path) -> None:
    shares: list[float] = []
    (run,) = read_runs(traces)
    open_timeline(traces, run, (), shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] < 1.01
