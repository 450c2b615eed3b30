"""The folder of work that can be taken up again: what it holds, and who may write to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from flexgroup.core.errors import UsageError

LOCK = "_lock"

DESCRIPTION = "work.json"
"""The file that says what the folder holds."""


@contextmanager
def writable(path: Path, what: str, option: str) -> Iterator[None]:
    """Say what to do where a folder cannot be written to."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"cannot write {what} into '{path}': {error.strerror or error}; "
            f"choose a directory that you may write to with {option}"
        ) from None


@contextmanager
def locked(path: Path, what: str, option: str) -> Iterator[None]:
    """Make the folder, and let nobody else work there meanwhile.

    The lock goes with the process, however that ends.
    """
    import fcntl

    with writable(path, what, option):
        path.mkdir(parents=True, exist_ok=True)
        lock: IO[str] = (path / LOCK).open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"'{path}' is in use, by another command that writes {what} there; wait for it, or "
                f"choose another {option}"
            ) from None
        yield


@contextmanager
def taken_up(path: Path, what: str, description: Mapping[str, Any]) -> Iterator[None]:
    """Work in a folder that is new, or holds work of the same description."""
    described = json.loads(json.dumps(description))
    with writable(path, what, "--spark"):
        if path.exists():
            _refuse_others(path, what, described)
    with locked(path, what, "--spark"):
        _refuse_others(path, what, described)
        with writable(path, what, "--spark"):
            if not (path / DESCRIPTION).exists():
                write_whole(path / DESCRIPTION, json.dumps(described, indent=2).encode())
        yield


ANOTHER = "choose another folder with --spark, or remove that one"


def _refuse_others(path: Path, what: str, description: dict[str, Any]) -> None:
    if not (path / DESCRIPTION).exists():
        if any(not other.name.startswith("_") for other in path.iterdir()):
            raise UsageError(f"'{path}' is not empty and holds no {what}; {ANOTHER}")
        return
    try:
        found: object = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"'{path / DESCRIPTION}' does not describe {what}; {ANOTHER}")
    for key in [*description, *found]:
        if found.get(key) != description.get(key):
            raise UsageError(
                f"'{path}' holds something else, with {key} {_told(found.get(key))} and not "
                f"{_told(description.get(key))}; {ANOTHER}"
            )


def _told(value: object) -> str:
    return "not said" if value is None else json.dumps(value)


def write_whole(file: Path, data: bytes) -> None:
    """Write a file under another name, and rename it when it is whole."""
    draft = file.with_name(f"_{file.name}-{uuid4().hex}")
    draft.write_bytes(data)
    draft.replace(file)


def refuse_if_unseen(path: Path, missing: int, what: str, option: str) -> None:
    """Raise a UsageError if executors wrote to a file system of their own."""
    if missing:
        raise UsageError(
            f"the executors wrote {missing} {what} into '{path}' that this machine does not see; "
            f"give {option} on a file system that all machines share"
        )
