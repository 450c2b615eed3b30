"""States that were visited and are not held in memory: one sorted file of fingerprints.

The file is a row of blocks; each holds the fingerprints of so many states, then those of their
parents, then their levels. In memory stay the first fingerprint of each block, and marks that tell
of most states that they are not in the file: it is read where one probably is. The file has no
name, so nothing is left of it, however the process ends.
"""

from __future__ import annotations

import os
import sys
from tempfile import TemporaryFile
from typing import Final, final

from librt.strings import (
    BytesWriter,
    read_i16_le,
    read_i64_le,
    write_i16_le,
    write_i64_le,
)
from librt.vecs import append, vec
from mypy_extensions import i16, i64

NONE: Final = -1

_HALF: Final = 31
_LOW: Final = (1 << 31) - 1
_END: Final = 1 << 62
"""No fingerprint is as high."""

_BLOCK: Final = 256
_PARENTS: Final = 8 * _BLOCK
_LEVELS: Final = 16 * _BLOCK
_BLOCK_BYTES: Final = 18 * _BLOCK

_AT_A_TIME: Final = 1 << 20
"""How many bytes are written with one call."""


def turned(key: i64) -> i64:
    """Exchange the halves of a fingerprint, which gives the order of tables and files.

    The lowest bits are the most even ones: of states that symmetry makes equal, the lowest
    fingerprint counts.
    """
    return (key & _LOW) << _HALF | key >> _HALF


@final
class SpillFile:
    """A temporary file without a name, in which what was written stays where it is."""

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="flexgroup-", buffering=0)  # noqa: SIM115
        self.size = 0

    def append(self, data: bytes) -> None:
        """Write at the end: all of it, or there is an error and the end is where it was."""
        rest = memoryview(data)
        at = self.size
        while len(rest):
            if sys.platform == "win32":
                self._file.seek(at)
                written = self._file.write(rest)
            else:
                written = os.pwrite(self._file.fileno(), rest, at)
            at += written
            rest = rest[written:]
        self.size = at

    def read(self, at: int, size: int) -> bytes:
        # Processes that were forked share the file, but not where the next one of them reads.
        if sys.platform == "win32":
            self._file.seek(at)
            return self._file.read(size)
        return os.pread(self._file.fileno(), size, at)

    def close(self) -> None:
        self._file.close()


@final
class SpilledStates:
    """A sorted file of states; whoever makes one adds them in the order of `turned`."""

    def __init__(self, room: int) -> None:
        self.count = 0
        self._file = SpillFile()
        self._firsts = vec[i64]()
        """The first fingerprint of each block, turned."""
        words = 64
        while 4 * words < room:
            words *= 2
        self._mask: i64 = words - 1
        self._marks = vec[i64](capacity=words)
        place: i64 = 0
        while place < words:
            self._marks = append(self._marks, 0)
            place += 1
        self._ready = BytesWriter()
        self._keys = BytesWriter()
        self._parents = BytesWriter()
        self._levels = BytesWriter()

    def add(self, key: i64, parent: i64, level: i64) -> None:
        if self.count % _BLOCK == 0:
            self._firsts = append(self._firsts, turned(key))
        write_i64_le(self._keys, key)
        write_i64_le(self._parents, parent)
        write_i16_le(self._levels, i16(level))
        word = self._word(key)
        self._marks[word] = self._marks[word] | _bits(key)
        self.count += 1
        if self.count % _BLOCK == 0:
            self._end_block()

    def finish(self) -> None:
        """Write what is not written yet; after this, states can be looked up."""
        while self.count % _BLOCK and len(self._keys) < _PARENTS:
            write_i64_le(self._keys, NONE)
            write_i64_le(self._parents, NONE)
            write_i16_le(self._levels, 0)
        if len(self._keys):
            self._end_block()
        self._write()

    def _end_block(self) -> None:
        for part in (self._keys, self._parents, self._levels):
            self._ready.write(part.getvalue())
            part.truncate(0)
        if len(self._ready) >= _AT_A_TIME:
            self._write()

    def _write(self) -> None:
        self._file.append(self._ready.getvalue())
        self._ready.truncate(0)

    def level_of(self, key: i64) -> i64:
        """Return the level of a state, or NONE if it is not here."""
        bits = _bits(key)
        if self._marks[self._word(key)] & bits != bits:
            return NONE
        return self._found(key, False)

    def parent_of(self, key: i64) -> i64:
        """Return the parent of a state that is here."""
        return self._found(key, True)

    def _found(self, key: i64, parent: bool) -> i64:
        wanted = turned(key)
        low: i64 = 0
        high: i64 = len(self._firsts)
        while low < high:
            middle = (low + high) // 2
            if self._firsts[middle] <= wanted:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return NONE
        block = low - 1
        data = self.block(block)
        low = 0
        high = self.held_by(block)
        while low < high:
            middle = (low + high) // 2
            if turned(read_i64_le(data, 8 * middle)) < wanted:
                low = middle + 1
            else:
                high = middle
        if low == self.held_by(block) or read_i64_le(data, 8 * low) != key:
            return NONE
        return parent_in(data, low) if parent else level_in(data, low)

    def blocks(self) -> int:
        return len(self._firsts)

    def block(self, number: i64) -> bytes:
        return self._file.read(int(number * _BLOCK_BYTES), _BLOCK_BYTES)

    def held_by(self, block: i64) -> i64:
        """Return how many states are in a block: all are full but the last."""
        left = i64(self.count) - block * _BLOCK
        return left if left < _BLOCK else i64(_BLOCK)

    def _word(self, key: i64) -> i64:
        return (key ^ key >> 40) & self._mask

    def bytes_used(self) -> int:
        """The bytes in memory."""
        return 8 * (len(self._marks) + len(self._firsts))

    def close(self) -> None:
        self._file.close()


def _bits(key: i64) -> i64:
    """The four marks of a fingerprint within a word."""
    first = i64(1) << (key >> 20 & 31) | i64(1) << (key >> 25 & 31)
    second = i64(1) << (key >> 30 & 31) | i64(1) << (key >> 35 & 31)
    return first | second << 31


def key_in(block: bytes, place: i64) -> i64:
    return read_i64_le(block, 8 * place)


def parent_in(block: bytes, place: i64) -> i64:
    return read_i64_le(block, _PARENTS + 8 * place)


def level_in(block: bytes, place: i64) -> i64:
    return i64(read_i16_le(block, _LEVELS + 2 * place))


def merged(
    before: SpilledStates | None,
    keys: vec[i64],
    parents: vec[i64],
    levels: vec[i16],
    below: i64,
    room: int,
) -> SpilledStates:
    """Write a file of all that is in the one before, and in a sorted table below this level.

    Places of the table without a state hold NONE. The file before stays as it is.
    """
    found = SpilledStates(room)
    try:
        rest = _Rest(before)
        place: i64 = 0
        while place < i64(len(keys)):
            key = keys[place]
            if key != NONE and i64(levels[place]) < below:
                rest.pass_on(turned(key), found)
                found.add(key, parents[place], i64(levels[place]))
            place += 1
        rest.pass_on(_END, found)
        found.finish()
    except OSError:
        found.close()
        raise
    return found


@final
class _Rest:
    """What is not passed on yet of a file."""

    def __init__(self, states: SpilledStates | None) -> None:
        self._states = states
        self._block: i64 = -1
        self._place: i64 = 0
        self._held: i64 = 0
        self._data = b""
        self._next: i64 = _END
        self._advance()

    def pass_on(self, before: i64, to: SpilledStates) -> None:
        """Add all states in front of this one, by turned fingerprints, to another file."""
        while self._next < before:
            place = self._place
            data = self._data
            to.add(key_in(data, place), parent_in(data, place), level_in(data, place))
            self._place += 1
            self._advance()

    def _advance(self) -> None:
        states = self._states
        if states is None:
            return
        if self._place == self._held:
            self._block += 1
            if self._block == i64(states.blocks()):
                self._next = _END
                return
            self._data = states.block(self._block)
            self._held = states.held_by(self._block)
            self._place = 0
        self._next = turned(key_in(self._data, self._place))
