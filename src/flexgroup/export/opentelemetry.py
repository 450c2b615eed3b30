"""A run for OpenTelemetry: a trace for each message, with a span at each process that handles it.

What is written is OTLP in JSON, a line for each process, as the specification of files has it: a
line is the data of traces of one resource. The span of the origin is the root of a message's trace,
and what a process does about the message are events of its span. Whatever concerns no message,
such as crashes and timers, are events of one span for each process, in a trace of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from flexgroup.diagram.events import TraceEvent
from flexgroup.export.told import in_order, name_of_process, words_of
from flexgroup.trace.names import Names

INTERNAL, PRODUCER, CONSUMER = 1, 4, 5
"""Kinds of spans: of no message, of the origin of a message, of others."""

TRACE_BYTES, SPAN_BYTES = 16, 8

SCOPE = "flexgroup"


def otlp_lines(events: Iterable[TraceEvent], names: Names, run: str) -> Iterator[str]:
    """Yield a line of JSON for each process of this run."""
    spans: dict[int, dict[str | None, list[TraceEvent]]] = {}
    for event in in_order(events):
        spans.setdefault(event.process, {}).setdefault(event.message, []).append(event)
    for process, of_messages in sorted(spans.items()):
        name = name_of_process(process, names)
        resource = {"service.name": name, "service.namespace": run}
        told = [_span(run, name, message, found, names) for message, found in of_messages.items()]
        yield json.dumps(
            {
                "resourceSpans": [
                    {
                        "resource": {"attributes": _attributes(resource)},
                        "scopeSpans": [{"scope": {"name": SCOPE}, "spans": told}],
                    }
                ]
            },
            separators=(",", ":"),
        )


def _span(
    run: str, name: str, message: str | None, events: list[TraceEvent], names: Names
) -> dict[str, Any]:
    """Return the span of what a process did about one message, or about none."""
    process = events[0].process
    trace = f"{run} {name}" if message is None else f"{run} {message}"
    span: dict[str, Any] = {
        "traceId": _identity(trace, TRACE_BYTES),
        "spanId": _identity(f"{trace} {process}", SPAN_BYTES),
    }
    kind = INTERNAL
    if message is not None:
        origin = int(message.partition(".")[0])
        kind = PRODUCER if process == origin else CONSUMER
        if process != origin:
            span["parentSpanId"] = _identity(f"{trace} {origin}", SPAN_BYTES)
    times = [event.time for event in events]
    return {
        **span,
        "name": name if message is None else f"message {names.message(message)}",
        "kind": kind,
        "startTimeUnixNano": str(min(times)),
        "endTimeUnixNano": str(max(times)),
        "attributes": _attributes({} if message is None else {"flexgroup.message": message}),
        "events": [
            {
                "timeUnixNano": str(event.time),
                "name": words_of(event, names),
                "attributes": _attributes(_told(event)),
            }
            for event in events
        ],
    }


def _told(event: TraceEvent) -> dict[str, str | int]:
    told: dict[str, str | int] = {"flexgroup.event": event.kind, "flexgroup.step": event.step}
    if event.packet is not None:
        told["flexgroup.packet"] = event.packet
    if event.peer is not None:
        told["flexgroup.peer"] = event.peer
    return told


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them: whole numbers are text, as all of 64 bits are."""
    return [
        {
            "key": key,
            "value": {"intValue": str(value)}
            if isinstance(value, int)
            else {"stringValue": str(value)},
        }
        for key, value in values.items()
    ]


def _identity(text: str, size: int) -> str:
    """Return an identity of so many bytes, in hexadecimal digits, which is never all zeros."""
    return (blake2b(text.encode(), digest_size=size - 1).digest() + b"\1").hex()
