"""A file of frames that survives crashes: what was written before is there, whole and unchanged.

Every frame has its length and a checksum, and is on the disk before the next one is written. So
only the last one may be incomplete. It is cut off, since nobody was told of what it says. A frame
that is damaged with an intact one behind it was complete once; then nothing of the file is trusted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from flexgroup.core.errors import UsageError


class StorageError(UsageError):
    """Something could not be saved, or what was saved cannot be used."""


class DamagedError(Exception):
    """The file is not what was written, and the text says where."""


def unreadable(path: Path, why: str) -> StorageError:
    """The error for a file of promises that cannot be used."""
    return StorageError(
        f"{path} {why}; the process must not go on without what it promised to others: bring "
        "back a copy of the file that is not older than the last change, or let the others go "
        "on without this process"
    )


def of_another(path: Path, found: str, owner: str) -> StorageError:
    """The error for a file that says to be another process's."""
    return StorageError(
        f"{path} belongs to {found}, and not to {owner}; the process must not go on with what "
        "another one promised: bring back its own file, or let the others go on without this "
        "process"
    )


class FramedFile:
    """One such file. It begins with a line that tells what it is."""

    def __init__(self, path: Path, head: bytes) -> None:
        self.path = path
        self.cut_off = 0
        """How many bytes at the end were not intact when it was read."""
        self._head = head
        self._file: int | None = None

    def read(self) -> list[bytes]:
        """What all frames hold; none if there is no file."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        head = len(self._head)
        if not content.startswith(self._head):
            raise DamagedError("does not begin as a file of this kind does, at byte 0")
        frames = _frames(content, head)
        end = head + sum(8 + len(frame) for frame in frames)
        if not frames or _has_frame(content, end + 1):
            raise DamagedError(f"is damaged at byte {end}")
        self.cut_off = len(content) - end
        return frames

    def go_on(self) -> None:
        """Write what follows behind the frames that were read."""
        self._file = os.open(self.path, os.O_WRONLY)
        if self.cut_off:
            os.ftruncate(self._file, os.fstat(self._file).st_size - self.cut_off)
            os.fsync(self._file)
            self.cut_off = 0
        os.lseek(self._file, 0, os.SEEK_END)

    def append(self, content: bytes) -> int:
        """Have one more frame on the disk; return how long it is."""
        assert self._file is not None, "what comes first replaces everything before"
        frame = frame_of(content)
        _write(self._file, frame)
        return len(frame)

    def replace(self, contents: Sequence[bytes]) -> None:
        """Have these frames on the disk in the place of everything before."""
        new = self.path.with_name(f"{self.path.name}.new")
        file = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        self.close()
        self._file = file
        _write(file, self._head + b"".join(map(frame_of, contents)))
        os.replace(new, self.path)
        synchronise(self.path.parent)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None


def synchronise(folder: Path) -> None:
    """Have the names in a folder on the disk, too."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def written(file: int, content: bytes) -> None:
    """Write all of it."""
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def _write(file: int, content: bytes) -> None:
    written(file, content)
    os.fsync(file)


def frame_of(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + crc32(content).to_bytes(4, "big") + content


def _frame_at(content: bytes, at: int) -> bytes | None:
    """What the frame holds that begins here, if it is complete and intact."""
    length = int.from_bytes(content[at : at + 4], "big")
    inside = content[at + 8 : at + 8 + length]
    if not length or len(inside) < length:
        return None
    return inside if crc32(inside).to_bytes(4, "big") == content[at + 4 : at + 8] else None


def _frames(content: bytes, at: int) -> list[bytes]:
    """All frames from here on, up to the first that is not intact."""
    frames = []
    while (inside := _frame_at(content, at)) is not None:
        frames.append(inside)
        at += 8 + len(inside)
    return frames


def _has_frame(content: bytes, since: int) -> bool:
    """Whether an intact frame begins anywhere from here on: what precedes it was complete once."""
    return any(_frame_at(content, at) is not None for at in range(since, len(content) - 8))
