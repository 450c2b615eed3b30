"""Runs for OpenTelemetry, and deliveries for other checkers: read again by the rules of each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.core.precedence import is_acyclic
from flexgroup.diagram.events import TraceEvent, events_of_run
from flexgroup.export import deliveries
from flexgroup.export.deliveries import cs451_logs, elle_history
from flexgroup.export.opentelemetry import otlp_lines
from flexgroup.properties.catalogue import check
from flexgroup.trace.names import Names
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.schema import DELIVER, MULTICAST

SMALL = "--processes 4 --clients 3 --workload random:2 --duration 0.003".split()


def exported(
    folder: Path, tool: str, *scenario: str, protocol: str = "skeen"
) -> tuple[Path, list[TraceEvent]]:
    traces, out = folder / "traces", folder / "out"
    simulate = ["simulate", "--protocol", protocol, *scenario, "--check", "none", "--force"]
    assert main([*simulate, "--out", str(traces)]) == 0
    assert main(["export", str(traces), "--to", tool, "--out", str(out)]) == 0
    (run,) = read_runs(traces)
    return out, events_of_run(traces, run.run)


SPAN = {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "attributes",
        "endTimeUnixNano", "events"}  # fmt: skip


def value_of(attribute: dict[str, Any]) -> str | int:
    """Read an attribute: a key, and a value of one kind; whole numbers of 64 bits are text."""
    assert set(attribute) == {"key", "value"}
    ((kind, value),) = attribute["value"].items()
    assert isinstance(value, str)
    return int(value) if kind == "intValue" else value


def attributes(told: Iterable[dict[str, Any]]) -> dict[str, str | int]:
    return {attribute["key"]: value_of(attribute) for attribute in told}


def test_opentelemetry_reads_a_trace_for_each_message(tmp_path: Path) -> None:
    """OTLP 1: field names in lower camel case, identities in hexadecimal digits, numbers of 64 bits
    as text, enumerations as numbers; a file has a line of traces after the other."""
    out, events = exported(tmp_path, "opentelemetry", *SMALL)
    spans: dict[tuple[str, str], dict[str, Any]] = {}
    service_of: dict[str, str] = {}
    for line in out.read_text(encoding="utf-8").splitlines():
        (resource_spans,) = json.loads(line)["resourceSpans"]
        resource = attributes(resource_spans["resource"]["attributes"])
        (scope_spans,) = resource_spans["scopeSpans"]
        for span in scope_spans["spans"]:
            assert set(span) <= SPAN
            assert len(bytes.fromhex(span["traceId"])) == 16
            assert len(bytes.fromhex(span["spanId"])) == 8
            assert any(bytes.fromhex(span["spanId"]))
            assert span["kind"] in range(6)
            begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
            times = [int(event["timeUnixNano"]) for event in span["events"]]
            assert begin == min(times) <= max(times) == end
            spans[span["traceId"], span["spanId"]] = span
            service_of[span["spanId"]] = str(resource["service.name"])
    assert set(service_of.values()) == {
        *(f"process{n}" for n in range(4)), *(f"client{n}" for n in (4, 5, 6))
    }  # fmt: skip
    told = [event for span in spans.values() for event in span["events"]]
    assert len(told) == len(events) > 50
    of_messages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for span in spans.values():
        of_messages[span["traceId"]].append(span)
    names = {attributes(span["attributes"]).get("flexgroup.message") for span in spans.values()}
    assert names == {event.message for event in events}
    for found in of_messages.values():
        (root,) = [span for span in found if "parentSpanId" not in span]
        for span in found:
            if span is not root:
                assert span["parentSpanId"] == root["spanId"]
                assert span["name"] == root["name"]


def test_what_concerns_no_message_has_a_span_of_its_own() -> None:
    events = [
        TraceEvent("multicast", 0, 0, 1000, "0.0", (1,)),
        TraceEvent("timer", 0, 1, 1500, detail='{"name":"beat"}'),
        TraceEvent("crash", 0, 2, 2000),
    ]
    (line,) = otlp_lines(events, Names(1), "run")
    first, other = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [event["name"] for event in other["events"]] == ["timer beat", "crash"]
    assert first["traceId"] != other["traceId"]


def is_serializable(history: list[dict[str, Any]]) -> bool:
    """Tell what Elle looks for in lists: reads that are no beginnings of one order, and cycles of
    appends and reads, of which each comes after what it has seen and before what it has not."""
    done = [operation for operation in history if operation["type"] == "ok"]
    appended = {
        (key, value): place
        for place, operation in enumerate(done)
        for kind, key, value in operation["value"]
        if kind == "append"
    }
    reads = [
        (place, key, values)
        for place, operation in enumerate(done)
        for kind, key, values in operation["value"]
        if kind == "r"
    ]
    longest: dict[int, list[int]] = {}
    for _, key, values in reads:
        longest[key] = max(values, longest.get(key, []), key=len)
    if any(longest[key][: len(values)] != values for _, key, values in reads):
        return False
    after: list[list[int]] = []
    for key, values in longest.items():
        after.append([appended[key, value] for value in values])
    for place, key, values in reads:
        if values:
            after.append([appended[key, values[-1]], place])
        if len(values) < len(longest[key]):
            after.append([place, appended[key, longest[key][len(values)]]])
    return is_acyclic(after)


def test_elle_finds_a_total_order_serializable(tmp_path: Path) -> None:
    out, events = exported(tmp_path, "elle", *SMALL)
    history = json.loads(out.read_text(encoding="utf-8"))
    assert [operation["index"] for operation in history] == list(range(len(history)))
    for begun, done in zip(history[::2], history[1::2], strict=True):
        assert (begun["type"], done["type"]) == ("invoke", "ok")
        assert begun["process"] == done["process"]
        assert [entry[:2] for entry in begun["value"]] == [entry[:2] for entry in done["value"]]
    kinds = [event.kind for event in events]
    assert len(history) == 2 * (kinds.count(MULTICAST) + kinds.count(DELIVER))
    assert is_serializable(history)


BUSY = "--processes 4 --clients 8 --workload random:3 --duration 0.01".split()


@pytest.mark.parametrize(("protocol", "holds"), [("skeen", True), ("best-effort", False)])
def test_elle_says_what_we_say_of_the_same_run(protocol: str, holds: bool, tmp_path: Path) -> None:
    out, _ = exported(tmp_path, "elle", *BUSY, protocol=protocol)
    (run,) = read_runs(tmp_path / "traces")
    (ours,) = check(load_history(tmp_path / "traces", run), ["acyclic order"])
    assert (ours.outcome == "holds") is holds
    assert is_serializable(json.loads(out.read_text(encoding="utf-8"))) is holds


def delivered(*orders: str) -> list[TraceEvent]:
    """Messages to the processes that deliver them, in these orders."""
    names = sorted({name for order in orders for name in order})
    events = []
    for place, name in enumerate(names):
        to = tuple(process for process, order in enumerate(orders) if name in order)
        events.append(TraceEvent("multicast", 9, place, 0, f"9.{place}", to))
    for process, order in enumerate(orders):
        for step, name in enumerate(order):
            message = f"9.{names.index(name)}"
            events.append(TraceEvent("deliver", process, step, 1 + step, message))
    return events


@pytest.mark.parametrize(
    ("orders", "holds"),
    [
        (("ab", "ab"), True),
        (("ab", "ba"), False),
        # In each pair of processes one message meets, and yet there is a cycle.
        (("ca", "ab", "bc"), False),
        (("ac", "ab", "bc"), True),
    ],
)
def test_elle_sees_cycles_across_sets_of_destinations(orders: tuple[str, ...], holds: bool) -> None:
    history = json.loads("".join(elle_history(delivered(*orders))))
    assert is_serializable(history) is holds


def test_a_run_without_deliveries_is_a_history_without_operations() -> None:
    assert json.loads("".join(elle_history([]))) == []


def test_a_history_that_would_be_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MOST_DELIVERIES", 3)
    with pytest.raises(UsageError, match="the run has 4 deliveries, and a history for Elle grows"):
        list(elle_history(delivered("ab", "ab")))


BROADCASTS = "--processes 3 --clients 0 --workload broadcast --cast all@0s --cast all@1ms".split()


def test_logs_of_broadcasts_have_a_file_for_each_process(tmp_path: Path) -> None:
    out, events = exported(tmp_path, "cs451", *BROADCASTS, protocol="reliable")
    files = sorted(out.iterdir())
    assert [file.name for file in files] == ["1.output", "2.output", "3.output"]
    for number, file in enumerate(files):
        lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
        assert [line for line in lines if line[0] == "b"] == [["b", "1"], ["b", "2"]]
        mine = [e for e in events if e.process == number and e.kind == DELIVER]
        told = [(int(origin) - 1, int(seq) - 1) for kind, origin, seq in
                (line for line in lines if line[0] == "d")]  # fmt: skip
        in_order_of_steps = sorted(mine, key=lambda event: event.step)
        assert told == [
            tuple(map(int, (event.message or "").split("."))) for event in in_order_of_steps
        ]
        assert len(told) == 6


def test_logs_of_what_is_no_broadcast_are_refused() -> None:
    with pytest.raises(UsageError, match=r"message 9\.0 is from 9 to \(0, 1\), and logs of CS-451"):
        cs451_logs(delivered("ab", "ab", "b"), 3)
