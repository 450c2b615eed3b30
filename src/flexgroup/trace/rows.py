"""The event log: rows of integers, appended millions of times a second.

A row has the same twelve integers for every kind of event; what a kind does not use is
zero. Texts and destination sets are interned by the recorder and appear as numbers.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64, mypyc_attr

COMPILED: Final = not __file__.endswith(".py")

WIDTH: Final = 12
_ROW_BYTES: Final = 8 * WIDTH
_ROWS_AT_ONCE: Final = 4096
_pack_into = Struct(f"<{WIDTH}q").pack_into


@mypyc_attr(allow_interpreted_subclasses=True)
class EventLog:
    """Rows packed by the standard library: the fastest way there is in plain Python."""

    def __init__(self) -> None:
        self.count = 0
        self._room = bytearray(_ROW_BYTES * _ROWS_AT_ONCE)

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
        offset = self.count * _ROW_BYTES
        if offset == len(self._room):
            self._room.extend(bytes(len(self._room)))
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
        self.count += 1

    def drain(self) -> bytes:
        """All rows so far, little-endian, one after the other; the log starts anew."""
        rows = bytes(memoryview(self._room)[: self.count * _ROW_BYTES])
        self.count = 0
        return rows


class NativeEventLog(EventLog):
    """The same rows through a writer that compiled code calls without making objects."""

    def __init__(self) -> None:
        super().__init__()
        self._writer = BytesWriter()

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
        writer = self._writer
        write_i64_le(writer, i64(kind))
        write_i64_le(writer, i64(process))
        write_i64_le(writer, i64(step))
        write_i64_le(writer, i64(time))
        write_i64_le(writer, i64(message))
        write_i64_le(writer, i64(peer))
        write_i64_le(writer, i64(label))
        write_i64_le(writer, i64(depth))
        write_i64_le(writer, i64(header_bytes))
        write_i64_le(writer, i64(payload_bytes))
        write_i64_le(writer, i64(sent))
        write_i64_le(writer, i64(queued))
        self.count += 1

    def drain(self) -> bytes:
        rows = self._writer.getvalue()
        self._writer = BytesWriter()
        self.count = 0
        return rows


def new_event_log() -> EventLog:
    return NativeEventLog() if COMPILED else EventLog()
