"""A search that was stopped, in a file, to be resumed.

The file begins with one line of JSON that says what was being explored; then come, for each
worker, the pieces of its search, each with its length and a checksum, and an empty one. Everything
in it is named by fingerprints, so it can be read by another process, in the other form of the
package, on another machine. Neither writing nor reading has all of it in memory.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from flexgroup.core.errors import UsageError
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions

FORMAT = "flexgroup exploration 6"
"""The number grows whenever states get other fingerprints, or are packed in another way."""

MOST_HEAD = 1 << 20
"""No first line has as many bytes."""


@dataclass(frozen=True)
class SearchSnapshot:
    """A search that was stopped between two states."""

    stack: str
    scope: Scope
    options: SearchOptions
    passes: int
    level: int
    workers: Sequence[Iterable[bytes]]
    """The pieces of each worker's search, which may be made only when they are asked for."""


def write_snapshot(path: Path, snapshot: SearchSnapshot) -> None:
    head = {
        "format": FORMAT,
        "stack": snapshot.stack,
        "scope": asdict(snapshot.scope),
        "reduce": snapshot.options.reduce,
        "symmetry": snapshot.options.symmetry,
        "follow_clients": snapshot.options.follow_clients,
        "properties": snapshot.options.properties,
        "passes": snapshot.passes,
        "level": snapshot.level,
    }
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            for pieces in snapshot.workers:
                for piece in chain(pieces, [b""]):
                    file.write(len(piece).to_bytes(8, "big") + zlib.crc32(piece).to_bytes(4, "big"))
                    file.write(piece)
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise UsageError(
            f"cannot save the search as '{path}': {error.strerror or error}; choose another file"
        ) from None


@dataclass(frozen=True)
class SavedPieces:
    """The pieces of one worker's search, in a file, read when they are asked for."""

    path: Path
    start: int

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(self.start)
            while piece := _next_piece(file):
                yield piece


def _next_piece(file: BinaryIO) -> bytes:
    """Read a piece; raise ValueError if it is damaged or missing."""
    head = file.read(12)
    piece = file.read(int.from_bytes(head[:8], "big"))
    whole = len(head) == 12 and len(piece) == int.from_bytes(head[:8], "big")
    if not whole or zlib.crc32(piece) != int.from_bytes(head[8:], "big"):
        raise ValueError
    return piece


def read_snapshot(path: Path) -> SearchSnapshot:
    """Look through a file that `write_snapshot` has written."""
    try:
        with path.open("rb") as file:
            return _snapshot_in(file, path)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror or error}") from None


def _snapshot_in(file: BinaryIO, path: Path) -> SearchSnapshot:
    line = file.readline(MOST_HEAD)
    try:
        head: dict[str, Any] = json.loads(line)
        if head["format"] != FORMAT:
            raise ValueError
        workers: list[SavedPieces] = []
        size = os.fstat(file.fileno()).st_size
        while not workers or file.tell() < size:
            workers.append(SavedPieces(path, file.tell()))
            while _next_piece(file):
                pass
        scope = head["scope"]
        return SearchSnapshot(
            head["stack"],
            Scope(
                scope["processes"],
                tuple(PlannedCast(c["origin"], tuple(c["destinations"])) for c in scope["casts"]),
                scope["fifo"],
                scope["any_order"],
                Bounds(**scope["bounds"]),
                tuple(map(tuple, scope["groups"])),
                tuple(map(tuple, scope["views"])),
                tuple(scope["crashing"]),
                tuple((p, q) for p, q in scope["suspecting"]),
                tuple(map(tuple, scope["replicas"])),
                tuple((process, kind) for process, kind in scope["liars"]),
            ),
            SearchOptions(
                head["reduce"],
                head["symmetry"],
                head["follow_clients"],
                None if head["properties"] is None else tuple(head["properties"]),
            ),
            head["passes"],
            head["level"],
            workers,
        )
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"'{path}' is no search that was saved, or it is damaged, or another version has saved "
            "it; give a file that --save has written, or begin anew"
        ) from None
