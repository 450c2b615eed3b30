"""The process that writes a server's trace: what it writes when, and when a run is listed."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from flexgroup.core.message import Message, message_id
from flexgroup.server.recording.handoff import (
    AnyHanded,
    Events,
    RunBegan,
    RunEnded,
    ServerEnded,
    take_whole,
)
from flexgroup.server.recording.live_trace import pipe_to
from flexgroup.server.recording.trace_writer import (
    ENDED,
    KILLED,
    LATE_SECONDS,
    LEAST_SECONDS,
    SHARE_OF_AGE,
    ServerTraceWriter,
)
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.recorder import Recorder, Sink
from flexgroup.trace.run import Run, planned_liars, with_liars
from flexgroup.trace.validate.report import validate
from flexgroup.trace.writer import STARTED
from flexgroup.wire.frames import FrameReader, FrameWriter

RUN = "cafe-000007-fifo"
EVERYBODY = ("s1", "s2", "s3")
DESCRIPTION = Run(run=RUN, world="network", stack="fifo", processes=3, promises=("integrity",))


class Rows(Sink):
    """Rows as they are handed over."""

    def __init__(self) -> None:
        self.handed: list[Events] = []

    def take(
        self,
        columns: list[bytes],
        labels: list[tuple[str | None, str | None]],
        destination_sets: list[tuple[int, ...]],
    ) -> None:
        self.handed.append(Events(RUN, columns, labels, destination_sets))


def happened(seq: int, process: int = 0) -> Events:
    """A process multicasts a message to all, and delivers it."""
    rows = Rows()
    recorder = Recorder(rows)
    message = Message(message_id(process, seq), (0, 1, 2), b"")
    recorder.multicast(process, 2 * seq, seq, message)
    recorder.deliver(process, 2 * seq + 1, seq, message, 0)
    recorder.flush()
    (handed,) = rows.handed
    return handed


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    for folder in ("runs", "events", STARTED, ENDED):
        (tmp_path / folder).mkdir()
    return tmp_path


def writer_of(traces: Path, server: str, liars: tuple[str, ...] = ()) -> ServerTraceWriter:
    writer = ServerTraceWriter(traces, server)
    writer.take(RunBegan(with_liars(DESCRIPTION, liars), EVERYBODY), now=0)
    writer.take(happened(0, EVERYBODY.index(server)), now=0)
    return writer


def listed(traces: Path) -> Run | None:
    return read_runs(traces)[0] if list((traces / "runs").glob("*.parquet")) else None


def names(traces: Path, kind: str) -> list[str]:
    return sorted(path.name for path in (traces / f"events/event={kind}").glob("*.parquet"))


def test_what_is_handed_over_survives_the_pipe_in_any_pieces() -> None:
    handed: list[AnyHanded] = [
        RunBegan(DESCRIPTION, EVERYBODY), happened(0), RunEnded(RUN, (2,)), ServerEnded(True),
    ]  # fmt: skip
    sent, received = FrameWriter(), FrameReader()
    found: list[AnyHanded] = []
    for byte in b"".join(sent.frame(msgspec.msgpack.encode(one)) for one in handed):
        received.feed(bytes([byte]))
        found += take_whole(received)
    assert found == handed
    assert not received.waiting


def test_events_are_written_while_the_run_goes_on(traces: Path) -> None:
    writer = writer_of(traces, "s1")
    writer.write_what_is_due(LEAST_SECONDS / 2)
    assert names(traces, "deliver") == []
    writer.write_what_is_due(LEAST_SECONDS)
    writer.write_what_is_due(3 * LEAST_SECONDS)
    assert names(traces, "deliver") == [f"{RUN}@s1-000000.parquet"]
    assert (traces / STARTED / f"{RUN}.parquet").exists()
    assert listed(traces) is None


def test_parts_of_each_kind_are_numbered_without_gaps(traces: Path) -> None:
    writer = writer_of(traces, "s1")
    for seq in (1, 2):
        writer.write_what_is_due(seq * LEAST_SECONDS)
        writer.take(happened(seq), now=seq)
    writer.close(3)
    for kind in ("multicast", "deliver"):
        assert names(traces, kind) == [f"{RUN}@s1-00000{number}.parquet" for number in range(3)]


def test_a_long_run_is_written_less_often(traces: Path) -> None:
    writer = writer_of(traces, "s1")
    day = 86_400.0
    writer.write_what_is_due(day)
    writer.take(happened(1), now=day)
    writer.write_what_is_due(day + 0.9 * SHARE_OF_AGE * day)
    assert len(names(traces, "deliver")) == 1
    writer.write_what_is_due(day + 1.1 * SHARE_OF_AGE * day)
    assert len(names(traces, "deliver")) == 2


def test_a_run_is_listed_when_the_last_server_has_written_everything(traces: Path) -> None:
    writers = [writer_of(traces, server) for server in EVERYBODY]
    for writer in writers:
        assert listed(traces) is None
        writer.take(RunEnded(RUN, ()), now=1)
        writer.write_what_is_due(1)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("complete", None)
    assert len(load_history(traces, run).deliveries.message) == 3


@pytest.mark.parametrize("last", EVERYBODY)
def test_a_run_tells_which_servers_were_started_as_attackers(traces: Path, last: str) -> None:
    """Each of them says so itself, whoever lists the run."""
    attacks = {"s2": ("1:skip",), "s3": ("2:forge",)}
    writers = {server: writer_of(traces, server, attacks.get(server, ())) for server in EVERYBODY}
    for server in sorted(EVERYBODY, key=lambda name: (name == last, name)):
        writers[server].take(RunEnded(RUN, ()), now=1)
        writers[server].write_what_is_due(1)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.faulty) == ("complete", (1, 2))
    assert planned_liars(run.faults) == ("1:skip", "2:forge")


def test_an_attacker_that_is_killed_is_one_all_the_same(traces: Path) -> None:
    writers = [writer_of(traces, "s1"), writer_of(traces, "s2", ("1:skip",))]
    writers[1].close(1)
    writers[0].take(RunEnded(RUN, (1,)), now=1)
    writers[0].write_what_is_due(1 + LATE_SECONDS)
    run = listed(traces)
    assert run is not None
    assert (run.faulty, run.lost) == ((1,), "[1,2]")


def test_a_run_that_goes_on_has_its_attackers_in_its_row(traces: Path) -> None:
    for server, liars in (("s1", ()), ("s2", ("1:skip",))):
        writer_of(traces, server, liars)
    (row,) = pq.read_table(traces / STARTED / f"{RUN}.parquet").to_pylist()
    assert row["faulty"] == [1]


def test_who_was_killed_is_waited_for_and_then_named(traces: Path) -> None:
    writers = [writer_of(traces, server) for server in EVERYBODY]
    for writer in writers[:2]:
        writer.take(RunEnded(RUN, (2,)), now=1)
    writers[0].write_what_is_due(0.9 * LATE_SECONDS)
    assert listed(traces) is None
    writers[0].write_what_is_due(1 + LATE_SECONDS)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("cut", "[2]")


def test_who_left_in_order_has_lost_nothing(traces: Path) -> None:
    writers = [writer_of(traces, server) for server in EVERYBODY]
    writers[2].take(RunEnded(RUN, (0, 1, 2)), now=1)
    writers[2].close(1)
    for writer in writers[:2]:
        writer.take(RunEnded(RUN, (2,)), now=1)
        writer.write_what_is_due(1)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("cut", None)


def test_a_run_is_not_complete_where_one_was_cut_off_at_its_end(traces: Path) -> None:
    """The others went on with it for a moment, and it never learned what was left to deliver."""
    writers = [writer_of(traces, server) for server in EVERYBODY]
    writers[2].take(RunEnded(RUN, (0, 1, 2)), now=1)
    writers[2].write_what_is_due(1)
    for writer in writers[:2]:
        writer.take(RunEnded(RUN, ()), now=1)
        writer.write_what_is_due(1)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("cut", None)


def test_who_was_killed_right_after_the_run_is_noticed(traces: Path) -> None:
    """It was in the next configuration, and had not written everything."""
    writers = [writer_of(traces, server) for server in EVERYBODY]
    for writer in writers[:2]:
        writer.take(RunEnded(RUN, ()), now=1)
    writers[1].write_what_is_due(1 + LATE_SECONDS)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("cut", "[2]")


def test_with_folders_of_their_own_servers_that_go_on_are_trusted(traces: Path) -> None:
    writer = writer_of(traces, "s1")
    writer.take(RunEnded(RUN, ()), now=1)
    writer.write_what_is_due(1 + LATE_SECONDS)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("complete", None)


def test_what_a_killed_server_had_handed_over_is_written(traces: Path) -> None:
    """Its end is all that the other process sees of it."""
    writer_of(traces, "s3").close(1)
    assert names(traces, "deliver") == [f"{RUN}@s3-000000.parquet"]
    assert listed(traces) is None


def test_who_is_known_to_be_killed_is_not_waited_for(traces: Path) -> None:
    writers = [writer_of(traces, server) for server in EVERYBODY]
    writers[2].close(1)
    for writer in writers[:2]:
        writer.take(RunEnded(RUN, (2,)), now=2)
        writer.write_what_is_due(2)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("cut", "[2]")


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_some_are_killed_in_the_run_and_some_after_it(traces: Path, order: tuple[int, int]) -> None:
    writers = [writer_of(traces, server) for server in EVERYBODY]
    writers[0].close(1)
    writers[1].take(RunEnded(RUN, (0,)), now=2)
    writers[1].write_what_is_due(2)
    assert listed(traces) is None
    for number in order:
        writers[number].close(3)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("cut", "[0,2]")


def idle_writer_of(traces: Path, server: str) -> ServerTraceWriter:
    """Of a server at which nothing is sent or received in the run."""
    writer = ServerTraceWriter(traces, server)
    writer.take(RunBegan(DESCRIPTION, EVERYBODY), now=0)
    return writer


def test_who_had_no_part_in_a_run_has_lost_nothing(traces: Path) -> None:
    writers = [writer_of(traces, "s1"), writer_of(traces, "s2"), idle_writer_of(traces, "s3")]
    for writer in writers:
        writer.take(RunEnded(RUN, ()), now=1)
    writers[0].write_what_is_due(1)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("complete", None)


@pytest.mark.parametrize("idle", ["", "s3"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_if_all_are_killed_the_last_one_lists_the_run(
    order: tuple[int, ...], idle: str, traces: Path
) -> None:
    """Also if one had no part in it."""
    writers = [
        idle_writer_of(traces, server) if server == idle else writer_of(traces, server)
        for server in EVERYBODY
    ]
    for number in order:
        assert listed(traces) is None
        writers[number].close(1)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("cut", "[0,1,2]")
    assert len(load_history(traces, run).deliveries.message) == (2 if idle else 3)


def test_a_run_in_which_nobody_had_a_part_is_none(traces: Path) -> None:
    writers = [idle_writer_of(traces, server) for server in EVERYBODY]
    for writer in writers:
        writer.take(RunEnded(RUN, ()), now=1)
    for writer in writers:
        writer.write_what_is_due(1 + LATE_SECONDS)
    assert listed(traces) is None
    assert list((traces / STARTED).iterdir()) == []


def test_who_starts_again_takes_back_what_was_not_so_and_goes_on(traces: Path) -> None:
    """Three messages were recorded, of which the process remembers one and a half."""
    killed = writer_of(traces, "s1")
    for seq in (1, 2):
        killed.write_what_is_due(seq * LEAST_SECONDS)
        killed.take(happened(seq), now=seq * LEAST_SECONDS)
    killed.close(3 * LEAST_SECONDS)
    again = ServerTraceWriter(traces, "s1")
    again.take(RunBegan(DESCRIPTION, EVERYBODY, steps=3), now=0)
    assert not (traces / ENDED / f"{RUN}@s1").exists()
    again.take(happened(3), now=0)
    again.take(RunEnded(RUN, ()), now=0)
    for server in ("s2", "s3"):
        other = writer_of(traces, server)
        other.take(RunEnded(RUN, ()), now=0)
        other.write_what_is_due(0)
    run = listed(traces)
    assert run is not None
    assert run.complete
    history = load_history(traces, run)
    first = history.multicasts.process == 0
    assert history.multicasts.step[first].tolist() == [0, 2, 6]
    assert history.deliveries.step[history.deliveries.process == 0].tolist() == [1, 7]


def test_who_goes_on_after_what_is_lost_records_no_more(traces: Path) -> None:
    """Who wrote the trace was killed as well, as when a machine loses power. The process remembers
    three messages, of which two were written, and the second without its delivery."""
    killed = writer_of(traces, "s1")
    killed.write_what_is_due(LEAST_SECONDS)
    killed.take(happened(1), now=LEAST_SECONDS)
    killed.write_what_is_due(2 * LEAST_SECONDS)
    (traces / "events" / "event=deliver" / f"{RUN}@s1-000001.parquet").unlink()
    (traces / ENDED / f"{RUN}@s1").write_text(KILLED)  # so that nobody waits for that
    again = ServerTraceWriter(traces, "s1")
    again.take(RunBegan(DESCRIPTION, EVERYBODY, steps=6), now=0)
    again.take(happened(3), now=0)
    again.take(RunEnded(RUN, ()), now=0)
    for server in ("s2", "s3"):
        other = writer_of(traces, server)
        other.take(RunEnded(RUN, ()), now=0)
        other.write_what_is_due(0)
    run = listed(traces)
    assert run is not None
    assert (run.outcome, run.lost) == ("cut", "[0]")
    history = load_history(traces, run)
    assert history.multicasts.step[history.multicasts.process == 0].tolist() == [0, 2]
    assert history.deliveries.step[history.deliveries.process == 0].tolist() == [1]
    assert not validate(traces).warnings


def test_who_was_killed_and_is_there_is_waited_for(traces: Path) -> None:
    """It has started again, and its new process has not yet said so."""
    writer_of(traces, "s3").close(0)
    for server in ("s1", "s2"):
        writer = writer_of(traces, server)
        writer.take(RunEnded(RUN, ()), now=0)
        writer.write_what_is_due(0)
    assert listed(traces) is None
    writer.write_what_is_due(LATE_SECONDS)
    run = listed(traces)
    assert run is not None
    assert run.lost == "[2]"


def test_the_process_that_writes_is_worth_no_more_than_any_of_the_session(tmp_path: Path) -> None:
    """In a session of its own it would be worth as much as all servers and clients of another one:
    Linux shares processors out among sessions. It is worth no less, either: when all servers of a
    machine start again, those that write what the killed ones recorded have to come to an end."""
    pipe = pipe_to(tmp_path, "s1")
    try:
        writer = pipe.writer.pid
        assert os.getpriority(os.PRIO_PROCESS, writer) == os.nice(0)
        assert os.getsid(writer) == os.getsid(0)
        assert os.getpgid(writer) == writer  # Ctrl-C is for the server
    finally:
        pipe.put(ServerEnded(is_last=False))
        pipe.close()
