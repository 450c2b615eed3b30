"""Pieces of work that tasks share out among themselves while they run.

A Spark task in Python takes a tenth of a second besides its work, which is more than a short run
takes. So there are only as many tasks as cores, and whichever is done with a piece takes the next
that nobody has: by creating a file, which only one can, on a file system that all of them share.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def claimed(folder: Path, pieces: int, owner: str, *, is_retry: bool = False) -> Iterator[int]:
    """Yield the numbers of the pieces that fall to this owner, each claimed when it is asked for.

    What an owner reports is lost if it dies. So whoever tries again under the same name gets all
    that the one before had claimed, and what somebody claimed who died before writing a name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(pieces):
        claim = folder / str(number)
        if _is_created(claim, owner) or (is_retry and claim.read_text() in (owner, "")):
            yield number


def _is_created(claim: Path, owner: str) -> bool:
    try:
        descriptor = os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(owner)
    return True
