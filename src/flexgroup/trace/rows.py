"""The event log: rows of integers, appended millions of times a second.

A row has the same twelve integers for every kind of event; what a kind does not use is
zero. Texts and destination sets are interned by the recorder and appear as numbers. A log
gives its rows back as columns, in which Parquet and numpy want them.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from librt.strings import BytesWriter, write_i32_le, write_i64_le
from mypy_extensions import i32, i64, mypyc_attr

from flexgroup.core.journal import SEND

COMPILED: Final = not __file__.endswith(".py")

MIXED: Final = -1

COLUMNS: Final = (
    "kind",
    "process",
    "step",
    "time",
    "message",
    "peer",
    "label",
    "depth",
    "header_bytes",
    "payload_bytes",
    "sent",
    "queued",
)
TYPES: Final = "iiqqqiiiiiqq"
"""The types of the columns, as in `struct`: i has 4 bytes, q has 8; all are little-endian."""

_ROW_TYPE: Final = [
    (name, "<i4" if type_ == "i" else "<i8") for name, type_ in zip(COLUMNS, TYPES, strict=True)
]
_ROW_BYTES: Final = 68
_ROWS_AT_ONCE: Final = 4096
_pack_into = Struct("<" + TYPES).pack_into


@mypyc_attr(allow_interpreted_subclasses=True)
class EventLog:
    """Rows packed by the standard library: the fastest way there is in plain Python."""

    def __init__(self) -> None:
        self.count = 0
        self._offset = 0
        self._end = 0
        self._room = bytearray()

    def add(
        self,
        kind: int,
        process: int,
        step: int,
        time: int,
        message: int,
        peer: int,
        label: int,
        depth: int,
        header_bytes: int,
        payload_bytes: int,
        sent: int,
        queued: int,
    ) -> None:
        offset = self._offset
        if offset == self._end:
            more = self._end or _ROW_BYTES * _ROWS_AT_ONCE
            self._room.extend(bytes(more))
            self._end += more
        _pack_into(
            self._room,
            offset,
            kind,
            process,
            step,
            time,
            message,
            peer,
            label,
            depth,
            header_bytes,
            payload_bytes,
            sent,
            queued,
        )
        self._offset = offset + _ROW_BYTES
        self.count += 1

    def drain(self) -> list[bytes]:
        """All rows so far, one item a column; the log starts anew."""
        # Imported here because the log itself, and all that is compiled, does without.
        import numpy as np

        rows = np.frombuffer(self._room, dtype=_ROW_TYPE, count=self.count)
        columns = [rows[name].tobytes() for name in COLUMNS]
        self._room = bytearray(self._end)
        self._offset = 0
        self.count = 0
        return columns


class NativeEventLog(EventLog):
    """The same rows through writers that compiled code calls without making objects.

    What need not be written is not: the kind where a log has only one, and what only
    receive rows have.
    """

    def __init__(self, only: int) -> None:
        super().__init__()
        self._only = only
        self._start()

    def _start(self) -> None:
        self.count = 0
        self._kind = BytesWriter()
        self._process = BytesWriter()
        self._step = BytesWriter()
        self._time = BytesWriter()
        self._message = BytesWriter()
        self._peer = BytesWriter()
        self._label = BytesWriter()
        self._depth = BytesWriter()
        self._header_bytes = BytesWriter()
        self._payload_bytes = BytesWriter()
        self._sent = BytesWriter()
        self._queued = BytesWriter()

    def add(
        self,
        kind: int,
        process: int,
        step: int,
        time: int,
        message: int,
        peer: int,
        label: int,
        depth: int,
        header_bytes: int,
        payload_bytes: int,
        sent: int,
        queued: int,
    ) -> None:
        if self._only == MIXED:
            write_i32_le(self._kind, i32(kind))
        write_i32_le(self._process, i32(process))
        write_i64_le(self._step, i64(step))
        write_i64_le(self._time, i64(time))
        write_i64_le(self._message, i64(message))
        write_i32_le(self._peer, i32(peer))
        write_i32_le(self._label, i32(label))
        write_i32_le(self._depth, i32(depth))
        write_i32_le(self._header_bytes, i32(header_bytes))
        write_i32_le(self._payload_bytes, i32(payload_bytes))
        if self._only != SEND:
            write_i64_le(self._sent, i64(sent))
            write_i64_le(self._queued, i64(queued))
        self.count += 1

    def drain(self) -> list[bytes]:
        kinds = self._kind.getvalue()
        if self._only != MIXED:
            kinds = self._only.to_bytes(4, "little") * self.count
        zeros = bytes(8 * self.count) if self._only == SEND else b""
        columns = [
            kinds,
            self._process.getvalue(),
            self._step.getvalue(),
            self._time.getvalue(),
            self._message.getvalue(),
            self._peer.getvalue(),
            self._label.getvalue(),
            self._depth.getvalue(),
            self._header_bytes.getvalue(),
            self._payload_bytes.getvalue(),
            zeros or self._sent.getvalue(),
            zeros or self._queued.getvalue(),
        ]
        self._start()
        return columns


def new_event_log(only: int = MIXED) -> EventLog:
    """A log for events of any kind, or of only one."""
    return NativeEventLog(only) if COMPILED else EventLog()
