"""A search that was stopped, in a file, to be resumed.

The file begins with one line of JSON that says what was being explored; then come, for each
worker, a length and what it needs to go on. Everything in it is named by fingerprints, so it
can be read by another process, in the other form of the package, on another machine.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flexgroup.core.errors import UsageError
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions

FORMAT = "flexgroup exploration 4"
"""The number grows whenever states get other fingerprints, or are packed in another way."""


@dataclass(frozen=True)
class SearchSnapshot:
    """A search that was stopped between two states."""

    stack: str
    scope: Scope
    options: SearchOptions
    passes: int
    level: int
    workers: list[bytes]


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
    parts = [json.dumps(head).encode() + b"\n"]
    for data in snapshot.workers:
        parts += [len(data).to_bytes(8, "big"), zlib.crc32(data).to_bytes(4, "big"), data]
    beside = path.with_name(path.name + ".part")
    try:
        beside.write_bytes(b"".join(parts))
        beside.replace(path)
    except OSError as error:
        raise UsageError(
            f"cannot save the search as '{path}': {error.strerror or error}; choose another file"
        ) from None


def read_snapshot(path: Path) -> SearchSnapshot:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror or error}") from None
    line, _, rest = data.partition(b"\n")
    try:
        head: dict[str, Any] = json.loads(line)
        if head["format"] != FORMAT:
            raise ValueError
        workers = []
        while rest:
            length = int.from_bytes(rest[:8], "big")
            part = rest[12 : 12 + length]
            if len(part) != length or zlib.crc32(part) != int.from_bytes(rest[8:12], "big"):
                raise ValueError
            workers.append(part)
            rest = rest[12 + length :]
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
