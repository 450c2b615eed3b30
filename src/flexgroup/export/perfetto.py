"""A run for Perfetto: a track for each process, a slice for each event, a flow for each packet.

What is written is TrackEvent, the form in protocol buffers, of which so little is needed that it is
written by hand: numbers of seven bits a byte, and fields that say how long they are. A slice lasts
until the next event of its process, and not longer than a tenth of a millisecond; events that a
process has at one time are put a nanosecond apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import pack

from flexgroup.diagram.events import Place, TraceEvent
from flexgroup.export.told import in_order, name_of_process, words_of
from flexgroup.trace.names import Names
from flexgroup.trace.schema import RECEIVE, SEND

LONGEST = 100_000
"""The nanoseconds that a slice lasts, at most."""

VARINT, FIXED64, LENGTH = 0, 1, 2
SEQUENCE = 1

# Fields of Trace, TracePacket, TrackDescriptor and TrackEvent, by their numbers.
PACKET = 1
TIMESTAMP, SEQUENCE_ID, TRACK_EVENT, TRACK_DESCRIPTOR = 8, 10, 11, 60
UUID, TRACK_NAME = 1, 2
TYPE, TRACK_UUID, CATEGORIES, EVENT_NAME, FLOW_IDS = 9, 11, 22, 23, 47
SLICE_BEGIN, SLICE_END = 1, 2


def perfetto_trace(events: Iterable[TraceEvent], names: Names) -> Iterator[bytes]:
    """Yield the packets of a trace that Perfetto reads."""
    ordered = in_order(events)
    for process in sorted({event.process for event in ordered}):
        name = name_of_process(process, names)
        yield _packet(
            _bytes(TRACK_DESCRIPTOR, _number(UUID, process + 1) + _text(TRACK_NAME, name))
        )
    flows: dict[Place, int] = {
        event.place: number for number, event in enumerate(ordered, 1) if event.kind == SEND
    }
    for start, end, event in _slices(ordered):
        begin = _number(TYPE, SLICE_BEGIN) + _number(TRACK_UUID, event.process + 1)
        begin += _text(CATEGORIES, event.kind) + _text(EVENT_NAME, words_of(event, names))
        sent = event.place if event.kind == SEND else (event.peer or 0, event.sent or 0)
        if event.kind in (SEND, RECEIVE) and sent in flows:
            begin += _key(FLOW_IDS, FIXED64) + pack("<Q", flows[sent])
        yield _event(start, begin)
        yield _event(end, _number(TYPE, SLICE_END) + _number(TRACK_UUID, event.process + 1))


def _slices(ordered: list[TraceEvent]) -> Iterator[tuple[int, int, TraceEvent]]:
    """Yield when each event begins and ends, so that those of one process do not overlap."""
    free: dict[int, int] = {}
    starts: list[int] = []
    for event in ordered:
        starts.append(max(event.time, free.get(event.process, 0)))
        free[event.process] = starts[-1] + 1
    following: dict[int, int] = {}
    ends = []
    for start, event in zip(reversed(starts), reversed(ordered), strict=True):
        ends.append(min(start + LONGEST, following.get(event.process, start + LONGEST)))
        following[event.process] = start
    yield from zip(starts, reversed(ends), ordered, strict=True)


def _event(time: int, fields: bytes) -> bytes:
    return _packet(_number(TIMESTAMP, time) + _bytes(TRACK_EVENT, fields))


def _packet(fields: bytes) -> bytes:
    return _bytes(PACKET, fields + _number(SEQUENCE_ID, SEQUENCE))


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _number(field: int, value: int) -> bytes:
    return _key(field, VARINT) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, LENGTH) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
