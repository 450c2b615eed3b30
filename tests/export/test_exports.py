"""Runs for other tools: read again here by the rules that those tools state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flexgroup.cli.main import main
from flexgroup.diagram.events import TraceEvent, events_of_run
from flexgroup.export.shiviz import shiviz_log
from flexgroup.export.told import in_order
from flexgroup.trace.names import Names
from flexgroup.trace.reader import read_runs
from flexgroup.trace.schema import RECEIVE, SEND


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    scenario = "simulate --protocol skeen --processes 4 --clients 3 --workload random:2".split()
    assert main([*scenario, "--duration", "0.003", "--out", str(folder)]) == 0
    return folder


def recorded(traces: Path) -> list[TraceEvent]:
    (run,) = read_runs(traces)
    return events_of_run(traces, run.run)


def test_shiviz_reads_clocks_that_are_those_of_the_packets(traces: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.log"
    assert main(["export", str(traces), "--to", "shiviz", "--out", str(out)]) == 0
    expression, delimiter, *lines = out.read_text().splitlines()
    assert delimiter == ""
    form = re.compile(re.sub(r"\(\?<(\w+)>", r"(?P<\1>", expression).replace("{.*}", r"\{.*\}"))
    found = list(form.finditer("\n".join(lines)))
    events = recorded(traces)
    assert len(found) == len(events) > 50
    counts: dict[str, int] = {}
    clocks: dict[tuple[str, int], dict[str, int]] = {}
    for match in found:
        host, clock = match["host"], json.loads(match["clock"])
        counts[host] = counts.get(host, 0) + 1
        assert clock[host] == counts[host]  # ShiViz refuses a clock with a gap
        clocks[host, counts[host]] = clock

    def name(process: int | None) -> str:
        return f"{'process' if process is not None and process < 4 else 'client'}{process}"

    places = sorted(event.place for event in events)
    number = {place: 1 + place[1] - min(s for p, s in places if p == place[0]) for place in places}
    received = [event for event in events if event.kind == RECEIVE]
    assert received
    for event in received:
        at = clocks[name(event.process), number[event.place]]
        sent = clocks[name(event.peer), number[event.peer or 0, event.sent or 0]]
        assert all(at.get(host, 0) >= count for host, count in sent.items())
        # Who has not heard of an event does not claim to have: the sender learns nothing.
        assert sent.get(name(event.process), 0) < at[name(event.process)]


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message in protocol buffers: numbers, eight bytes, and bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            yield key >> 3, int.from_bytes(data[at : at + 8], "little")
            at += 8
        else:
            length = varint()
            yield key >> 3, data[at : at + length]
            at += length


def test_perfetto_reads_a_track_for_each_process_and_a_flow_for_each_packet(
    traces: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run.pftrace"
    assert main(["export", str(traces), "--to", "perfetto", "--out", str(out)]) == 0
    names: dict[int, str] = {}
    open_since: dict[int, int] = {}
    last: dict[int, int] = {}
    flows: dict[int, list[tuple[int, str]]] = {}
    slices = 0
    for kind, packet in fields(out.read_bytes()):
        assert kind == 1
        told = dict(fields(packet))
        assert told[10] == 1
        if 60 in told:
            track = dict(fields(told[60]))
            names[track[1]] = track[2].decode()
            continue
        event = dict(fields(told[11]))
        uuid = event[11]
        assert told[8] >= last.get(uuid, 0)
        last[uuid] = told[8]
        if event[9] == 1:
            assert uuid not in open_since, "slices of a process must not overlap"
            open_since[uuid] = told[8]
            slices += 1
            if 47 in event:
                flows.setdefault(event[47], []).append((told[8], event[23].decode()))
        else:
            assert told[8] > open_since.pop(uuid)
    events = recorded(traces)
    assert not open_since
    assert slices == len(events)
    assert set(names.values()) == {f"process{n}" for n in range(4)} | {
        f"client{n}" for n in (4, 5, 6)
    }
    assert len(flows) == sum(event.kind == SEND for event in events)
    arrived = [ends for ends in flows.values() if len(ends) == 2]
    assert len(arrived) == sum(event.kind == RECEIVE for event in events)
    for (left, sending), (came, receiving) in arrived:
        assert left <= came
        assert sending.startswith("send ")
        assert receiving.startswith("receive ")


def test_a_receive_stands_behind_its_send_although_clocks_differ() -> None:
    """The clock of process 1 is far behind."""
    events = [
        TraceEvent("multicast", 0, 0, 1000, "0.0", (1,)),
        TraceEvent("send", 0, 1, 1000, "0.0", peer=1, packet="Data"),
        TraceEvent("receive", 1, 0, 5, "0.0", peer=0, packet="Data", sent=1),
        TraceEvent("deliver", 1, 1, 5, "0.0"),
    ]
    assert [event.kind for event in in_order(reversed(events))] == (
        "multicast send receive deliver".split()
    )
    *_, last = shiviz_log(events, Names(2))
    assert last == 'process1 {"process0": 2, "process1": 2}'


def test_bad_input(traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shiviz = ["--to", "shiviz", "--out"]
    for arguments, told in (
        ([str(traces), *shiviz, str(tmp_path / "a" / "b")], "cannot write"),
        ([str(traces), "--run", "other", *shiviz, str(tmp_path / "x")], "Give --run and one of"),
        ([str(tmp_path), *shiviz, str(tmp_path / "x")], "holds no runs"),
        ([str(traces), "--to", "paper", "--out", "x"], "invalid choice"),
    ):
        assert main(["export", *arguments]) == 2
        assert told in capsys.readouterr().err
