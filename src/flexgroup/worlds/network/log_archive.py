"""What the log of a layer has set aside: on the disk only, and read piece by piece.

A replica that was down may lack millions of entries. They stand in files of their own, the
*segments*, in blocks that follow one another without a gap; in memory is only where each block
begins. What is set aside counts when the file of the layers says so: blocks beyond that are left
over from a crash. A segment all of whose entries are dropped is removed.

A segment begins with a line that tells what it is, and a frame that says whose it is. Frames are
those of `FramedFile`. The checksum of a block is looked at when the block is read.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import Final, final
from zlib import crc32

from flexgroup.core.errors import PeerError
from flexgroup.core.varints import Reader, varints
from flexgroup.worlds.network.framed_file import (
    frame_of,
    of_another,
    synchronise,
    unreadable,
    written,
)

HEAD: Final = b"FlexGroup log 1\n"

BLOCK = 1 << 20
"""How many bytes of entries a block has, at most, unless it has a single entry."""

SEGMENT = 16 << 20
"""How long a segment grows before another one is begun."""

LONGEST_START: Final = 20
"""How many bytes the two numbers have, at most, with which a block begins."""


@final
class Segment:
    """A file with blocks: each has the entries from one number on, up to where the next begins."""

    def __init__(self, path: Path, first: int) -> None:
        self.path = path
        self.begins = array("q")
        """The number with which each block begins."""
        self.places = array("q")
        """Where each block is in the file."""
        self.end = first
        """The number behind all entries."""
        self.length = 0


@final
class LogArchive:
    """The segments of one log, in the folder with the file of the layers."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        """The name of every segment, but for the number of its first entry."""
        self._owner = owner
        self._segments: list[Segment] = []
        self._left_over: list[Path] = []
        """What nobody needs, to be removed when something is durable the next time."""
        self._file: int | None = None
        """The last segment, once something is appended to it."""
        self._is_new = False
        """The names in the folder are not known to be durable."""

    # What is found.

    def load(self, first: int, end: int) -> None:
        """Find the blocks with the entries from one number to before another; StorageError says
        why they cannot be used. Nothing is changed."""
        found = self._path.parent.glob(f"{self._path.name}-*")
        named = {path.name.rpartition("-")[2]: path for path in found}
        numbers = {int(name): path for name, path in named.items() if name.isdecimal()}
        for number in sorted(numbers):
            if number >= end:
                self._left_over.append(numbers[number])
                continue
            segment = Segment(numbers[number], number)
            self._find_blocks(segment, end)
            if segment.end <= first or not segment.begins:
                self._left_over.append(segment.path)
            else:
                self._segments.append(segment)
        following = first
        for segment in self._segments:
            if segment.begins[0] > following:
                break
            following = segment.end
        if following < end:
            raise unreadable(self._path, f"has no intact entries from {following} to {end - 1}")

    def _find_blocks(self, segment: Segment, end: int) -> None:
        file = os.open(segment.path, os.O_RDONLY)
        try:
            size = os.fstat(file).st_size
            place = len(HEAD)
            if os.pread(file, place, 0) != HEAD:
                raise unreadable(segment.path, "does not begin as a file of this kind does")
            owner = _frame_at(file, place, size)
            if owner is None:
                raise unreadable(segment.path, f"is damaged at byte {place}")
            if owner.decode(errors="replace") != self._owner:
                raise of_another(segment.path, owner.decode(errors="replace"), self._owner)
            place += 8 + len(owner)
            while segment.end < end and place + 8 < size:
                length = int.from_bytes(os.pread(file, 4, place), "big")
                start = os.pread(file, min(length, LONGEST_START), place + 8)
                reader = Reader(start, 0, len(start))
                try:
                    begin, block_end = reader.varint(), reader.varint()
                except PeerError:
                    break
                if place + 8 + length > size or begin != segment.end or block_end <= begin:
                    break
                segment.begins.append(begin)
                segment.places.append(place)
                segment.end = block_end
                place += 8 + length
            segment.length = place
        finally:
            os.close(file)

    # What is set aside and dropped.

    def append(self, end: int, entries: list[tuple[int, bytes]]) -> None:
        """Set aside these entries, ascending, which are all those from where the last ones ended to
        before this number; they are durable after `synchronise`."""
        begin = self._segments[-1].end if self._segments else entries[0][0] if entries else end
        block = bytearray()
        for place, (number, data) in enumerate(entries):
            block += varints([number, len(data)]) + data
            if len(block) >= BLOCK and place + 1 < len(entries):
                self._append(begin, number + 1, block)
                begin = number + 1
                block = bytearray()
        if begin < end:
            self._append(begin, end, block)

    def _append(self, begin: int, end: int, block: bytearray) -> None:
        segment = self._segments[-1] if self._segments else None
        if segment is None or segment.length >= SEGMENT:
            segment = self._begin(begin)
        elif self._file is None:
            self._file = os.open(segment.path, os.O_WRONLY)
            os.ftruncate(self._file, segment.length)
            os.lseek(self._file, 0, os.SEEK_END)
        assert self._file is not None
        frame = frame_of(varints([begin, end]) + bytes(block))
        written(self._file, frame)
        segment.begins.append(begin)
        segment.places.append(segment.length)
        segment.length += len(frame)
        segment.end = end

    def _begin(self, number: int) -> Segment:
        self.synchronise()
        self.close()
        segment = Segment(self._path.with_name(f"{self._path.name}-{number:015}"), number)
        self._left_over = [path for path in self._left_over if path != segment.path]
        self._file = os.open(segment.path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        head = HEAD + frame_of(self._owner.encode())
        written(self._file, head)
        segment.length = len(head)
        self._segments.append(segment)
        self._is_new = True
        return segment

    def synchronise(self) -> None:
        """Have on the disk what was set aside."""
        if self._file is not None:
            os.fsync(self._file)
        if self._is_new:
            synchronise(self._path.parent)
            self._is_new = False

    def drop(self, first: int) -> None:
        """Forget the segments that have only entries before this one, and remove them."""
        while self._segments and self._segments[0].end <= first:
            if len(self._segments) == 1:
                self.close()
            self._left_over.append(self._segments.pop(0).path)
        for path in self._left_over:
            path.unlink(missing_ok=True)
        self._left_over = []

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None

    # What is read again.

    def read(self, first: int, last: int, most: int) -> list[tuple[int, bytes]]:
        """The entries from the first number on, before the last, at most so many of them and one
        block or little more; StorageError says that they are damaged."""
        found: list[tuple[int, bytes]] = []
        size = 0
        number = first
        while number < last and len(found) < most and size < BLOCK:
            at = bisect_right(self._segments, number, key=lambda segment: segment.begins[0]) - 1
            if at < 0 or number >= self._segments[at].end:
                break
            segment = self._segments[at]
            place = bisect_right(segment.begins, number) - 1
            for entry, data in self._block(segment, place):
                if first <= entry < last and len(found) < most:
                    found.append((entry, data))
                    size += len(data)
            is_last = place + 1 == len(segment.begins)
            number = segment.end if is_last else segment.begins[place + 1]
        return found

    def _block(self, segment: Segment, place: int) -> list[tuple[int, bytes]]:
        at = segment.places[place]
        file = os.open(segment.path, os.O_RDONLY)
        try:
            block = _frame_at(file, at, segment.length)
        finally:
            os.close(file)
        if block is None:
            raise unreadable(segment.path, f"is damaged at byte {at}")
        reader = Reader(block, 0, len(block))
        reader.varint()
        reader.varint()
        entries: list[tuple[int, bytes]] = []
        while reader.position < reader.end:
            number = reader.varint()
            entries.append((number, reader.bytes()))
        return entries


def _frame_at(file: int, at: int, size: int) -> bytes | None:
    """What the frame holds that begins there, if it is complete and intact."""
    head = os.pread(file, 8, at)
    length = int.from_bytes(head[:4], "big")
    if not length or at + 8 + length > size:
        return None
    inside = os.pread(file, length, at + 8)
    return inside if crc32(inside).to_bytes(4, "big") == head[4:] else None
