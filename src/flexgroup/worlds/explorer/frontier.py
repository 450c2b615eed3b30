"""The states of a level, in the order in which they were found, until they are expanded.

A state is a row of numbers with its fingerprint. Where the queue may hold only so many, the first
go to a file, page by page, and are read again when their turn comes.
"""

from __future__ import annotations

from typing import final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from flexgroup.worlds.explorer.spilled import SpillFile


@final
class StateQueue:
    """Rows of so many numbers: first in, first out."""

    def __init__(self, stride: i64, page: i64 = 0) -> None:
        self.trouble = ""
        """Why states could not be written to a file; they stay in memory then."""
        self._stride = stride
        self._page = page
        """How many states are in memory before they go to the file; 0 if all stay."""
        self._states = vec[i32]()
        self._fingerprints = vec[i64]()
        self._file: SpillFile | None = None
        self._pages: list[tuple[int, int]] = []
        """Where each page stands in the file, and how many states it has."""
        self._turned: i64 = 0
        """How many pages have been read."""
        self._read_states = vec[i32]()
        self._read_fingerprints = vec[i64]()
        self._at: i64 = 0
        self._taken: i64 = 0
        self._count: i64 = 0

    def __len__(self) -> int:
        """Return how many states are left."""
        return int(self._count - self._taken)

    def append(self, state: vec[i32], fingerprint: i64) -> None:
        part: i64 = 0
        while part < self._stride:
            self._states = append(self._states, state[part])
            part += 1
        self._fingerprints = append(self._fingerprints, fingerprint)
        self._count += 1
        if i64(len(self._fingerprints)) == self._page:
            self._write()

    def take(self, into: vec[i32]) -> i64:
        """Take out the first state; return its fingerprint."""
        if self._at == i64(len(self._read_fingerprints)):
            self._turn()
        offset = self._at * self._stride
        part: i64 = 0
        while part < self._stride:
            into[part] = self._read_states[offset + part]
            part += 1
        fingerprint = self._read_fingerprints[self._at]
        self._at += 1
        self._taken += 1
        return fingerprint

    def _write(self) -> None:
        out = BytesWriter()
        for part in self._states:
            write_i32_le(out, part)
        for fingerprint in self._fingerprints:
            write_i64_le(out, fingerprint)
        try:
            if self._file is None:
                self._file = SpillFile()
            at = self._file.size
            self._file.append(out.getvalue())
        except OSError as error:
            self.trouble = error.strerror or str(error)
            self._page = 0
            return
        self._pages.append((at, len(self._fingerprints)))
        self._states = vec[i32]()
        self._fingerprints = vec[i64]()

    def _turn(self) -> None:
        """Read the next page, or what never left the memory."""
        self._at = 0
        if self._turned == i64(len(self._pages)):
            self._read_states, self._states = self._states, vec[i32]()
            self._read_fingerprints, self._fingerprints = self._fingerprints, vec[i64]()
            return
        at, count = self._pages[int(self._turned)]
        self._turned += 1
        assert self._file is not None
        parts = i64(count) * self._stride
        data = self._file.read(at, int(4 * parts) + 8 * count)
        states = vec[i32](capacity=parts)
        offset: i64 = 0
        while offset < 4 * parts:
            states = append(states, read_i32_le(data, offset))
            offset += 4
        fingerprints = vec[i64](capacity=count)
        while offset < i64(len(data)):
            fingerprints = append(fingerprints, read_i64_le(data, offset))
            offset += 8
        self._read_states = states
        self._read_fingerprints = fingerprints

    def bytes_used(self) -> int:
        """The bytes in memory."""
        held = len(self._fingerprints) + len(self._read_fingerprints)
        return held * (4 * int(self._stride) + 8)

    def close(self) -> None:
        """Let go of the file, and of what is left."""
        if self._file is not None:
            self._file.close()
