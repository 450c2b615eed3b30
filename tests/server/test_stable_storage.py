"""The folder in which a server keeps what it must not forget."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.decision import Decision
from flexgroup.membership.stable import AcceptedDecision, Installed, Promised, Snapshot
from flexgroup.server.peers import stable_storage
from flexgroup.server.peers.stable_storage import DataFolder, Saved, StorageError

CONFIGURATION = Configuration(7, (Server(1, "a", "a:1", True),), (), 2, 1)
SAVED = Saved("cluster", Snapshot(1, CONFIGURATION))


@contextmanager
def opened(folder: Path) -> Iterator[DataFolder]:
    storage = DataFolder(folder)
    try:
        yield storage
    finally:
        storage.close()


def loaded(folder: Path) -> Saved:
    with opened(folder) as storage:
        saved = storage.load()
    assert saved is not None
    return saved


def written(folder: Path) -> bytes:
    """What is in the file when a snapshot and two records are saved."""
    with opened(folder) as storage:
        storage.replace(SAVED)
        storage.append(Promised((1, 1)))
        storage.append(Promised((2, 1)))
    return (folder / "membership").read_bytes()


def first_record(content: bytes) -> int:
    """Where the records begin that follow the snapshot."""
    begin = len(stable_storage.MAGIC)
    return begin + 8 + int.from_bytes(content[begin : begin + 4], "big")


def test_nothing_is_saved_in_a_new_folder(tmp_path: Path) -> None:
    with opened(tmp_path / "new" / "folder") as storage:
        assert storage.load() is None


def test_what_was_saved_is_there_again(tmp_path: Path) -> None:
    written(tmp_path)
    saved = loaded(tmp_path)
    assert saved.cluster == "cluster"
    assert saved.snapshot.configuration == CONFIGURATION
    assert saved.snapshot.promised == (2, 1)


def test_what_is_installed_is_saved_with_what_is_promised_next(tmp_path: Path) -> None:
    with opened(tmp_path) as storage:
        storage.replace(SAVED)
        storage.append(AcceptedDecision((1, 1), Decision(8)))
        storage.append(Installed(Decision(8)))
    assert loaded(tmp_path).snapshot.accepted == ((1, 1), Decision(8))
    with opened(tmp_path) as storage:
        storage.replace(SAVED)
        storage.append(Installed(Decision(8)))
        storage.append(Promised((1, 1)))
    assert loaded(tmp_path).snapshot.configuration.number == 8


def test_a_record_that_was_not_written_to_its_end_is_cut_off(tmp_path: Path) -> None:
    content = written(tmp_path)
    file = tmp_path / "membership"
    begin = len(content) - (len(content) - first_record(content)) // 2  # both are equally long
    for end in range(begin, len(content)):
        for rest in (b"", bytes(len(content) - end), b"\xff" * (len(content) - end)):
            file.write_bytes(content[:end] + rest)
            assert loaded(tmp_path).snapshot.promised == (1, 1)


def test_what_is_damaged_before_the_end_is_not_trusted(tmp_path: Path) -> None:
    """What was promised after that would be forgotten."""
    content = bytearray(written(tmp_path))
    content[len(stable_storage.MAGIC) + 20] ^= 1
    (tmp_path / "membership").write_bytes(content)
    with opened(tmp_path) as storage, pytest.raises(UsageError, match="membership is damaged at"):
        storage.load()


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "membership").write_text("my notes")
    with opened(tmp_path) as storage, pytest.raises(UsageError, match="does not begin as"):
        storage.load()


def test_a_folder_is_used_by_one_server(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(UsageError, match="another server is using"):
        DataFolder(tmp_path)
    with opened(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file/data"):
        DataFolder(tmp_path / "file" / "data")


def test_what_cannot_be_saved_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with opened(tmp_path) as storage:
        storage.replace(SAVED)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="membership: No space left on device"):
            storage.append(Promised((1, 1)))
        with pytest.raises(StorageError, match="membership: No space left on device"):
            storage.replace(SAVED)


def test_many_records_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stable_storage, "LONG", 100)
    with opened(tmp_path) as storage:
        storage.replace(SAVED)
        for ballot in range(20):
            storage.append(Promised((ballot, 1)))
        assert storage.is_long
        storage.replace(SAVED)
        assert not storage.is_long
