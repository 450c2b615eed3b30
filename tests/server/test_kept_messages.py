"""The logs in which a server keeps the messages of groups."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.server.peers.kept_messages import (
    NOWHERE,
    End,
    Entry,
    KeptMessages,
    Place,
)
from flexgroup.server.peers.stable_storage import DataFolder
from flexgroup.worlds.network.framed_file import StorageError

GROUP = 5
ENTRIES = [Entry(1, 3, 2, b"ab"), Entry(3, 3, 1, b"c"), Entry(4, 7, 3, b"def")]


@contextmanager
def opened(folder: Path) -> Iterator[KeptMessages]:
    storage = DataFolder(folder)
    try:
        yield storage.messages()
    finally:
        storage.close()


def written(folder: Path) -> Path:
    """The file, after three entries were committed."""
    with opened(folder) as messages:
        messages.append(GROUP, ENTRIES)
        messages.commit()
    return folder / "messages.sqlite"


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    written(tmp_path)
    with opened(tmp_path) as messages:
        assert messages.read(GROUP, 1, 100, 100) == ENTRIES
        assert (messages.first(GROUP), messages.end(GROUP)) == (1, End(0, Place(7, 6)))


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    with opened(tmp_path) as messages:
        messages.append(GROUP, ENTRIES)
        messages.commit()
        modes = [path.stat().st_mode & 0o777 for path in tmp_path.glob("messages.sqlite*")]
        assert set(modes) == {0o600}


def test_what_was_not_committed_is_not(tmp_path: Path) -> None:
    written(tmp_path)
    with opened(tmp_path) as messages:
        messages.append(GROUP, [Entry(7, 7, 1, b"g")])
    with opened(tmp_path) as messages:
        assert messages.end(GROUP).last == 6


def test_a_part_is_read_from_the_entry_with_its_first_message_on(tmp_path: Path) -> None:
    written(tmp_path)
    with opened(tmp_path) as messages:
        assert messages.read(GROUP, 2, 2, 100) == ENTRIES[:2]
        assert messages.read(GROUP, 5, 1, 100) == ENTRIES[2:]
        assert messages.read(GROUP, 1, 100, 1) == ENTRIES[:1]
        assert messages.read(GROUP, 7, 100, 100) == []


def test_a_place_is_found_by_its_epoch(tmp_path: Path) -> None:
    written(tmp_path)
    with opened(tmp_path) as messages:
        assert messages.place_at(GROUP, 6, 7) == Place(7, 6)
        assert messages.place_at(GROUP, 6, 6) == Place(3, 3)
        assert messages.place_at(GROUP, 5, 7) == Place(3, 3)
        assert messages.place_at(GROUP, 1, 7) == NOWHERE


def test_what_does_not_agree_is_cut_off(tmp_path: Path) -> None:
    written(tmp_path)
    with opened(tmp_path) as messages:
        messages.cut(GROUP, 3)
        messages.append(GROUP, [Entry(4, 9, 1, b"x")])
        messages.commit()
        assert messages.read(GROUP, 3, 100, 100) == [ENTRIES[1], Entry(4, 9, 1, b"x")]


def test_a_log_is_complete_for_an_epoch_only_when_that_is_said(tmp_path: Path) -> None:
    """Not when messages of that epoch are written: somebody may fetch them one after another."""
    with opened(tmp_path) as messages:
        messages.append(GROUP, ENTRIES)
        assert messages.end(GROUP).epoch == 0
        messages.mark(GROUP, 8)
        assert messages.end(GROUP) == End(8, Place(7, 6))
        messages.cut(GROUP, 3)
        assert messages.end(GROUP) == End(8, Place(3, 3))
        messages.begin_after(GROUP, 20)
        assert messages.end(GROUP) == End(0, Place(0, 20))


def test_old_messages_are_dropped_when_they_are_many(tmp_path: Path) -> None:
    with opened(tmp_path) as messages:
        for number in range(1, 201):
            messages.append(GROUP, [Entry(number, 1, 1, b"x")])
            messages.drop_old(GROUP, 50)
            kept = messages.end(GROUP).last - messages.first(GROUP) + 1
            assert min(number, 50) <= kept <= 50 + 71
        assert messages.first(GROUP) > 1


def test_logs_of_groups_that_have_ended_are_forgotten(tmp_path: Path) -> None:
    """But not those of groups that only others know of yet."""
    with opened(tmp_path) as messages:
        for group in (5, 6, 9):
            messages.append(group, ENTRIES)
        messages.keep_only([6], next_group=8)
        assert [messages.end(group).last for group in (5, 6, 9)] == [0, 6, 6]


def test_logs_of_another_cluster_are_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as messages:
        messages.belong_to("one")
        messages.append(GROUP, ENTRIES)
        messages.commit()
    with opened(tmp_path) as messages:
        messages.belong_to("one")
        assert messages.end(GROUP).last == 6
        messages.belong_to("another")
        assert messages.end(GROUP).last == 0


@pytest.mark.parametrize("left", [0, 1, 100, 4000, -1])
def test_a_commit_that_was_torn_is_not_there_and_those_before_are(
    tmp_path: Path, left: int
) -> None:
    """The machine fails while the last commit is being written: a part of it is on the disk."""
    with opened(tmp_path / "live") as messages:
        messages.append(GROUP, ENTRIES[:2])
        messages.commit()
        before = (tmp_path / "live" / "messages.sqlite-wal").stat().st_size
        messages.append(GROUP, ENTRIES[2:])
        messages.commit()
        shutil.copytree(tmp_path / "live", tmp_path / "torn")
    log = tmp_path / "torn" / "messages.sqlite-wal"
    content = log.read_bytes()
    log.write_bytes(content[: len(content) - 1 if left < 0 else before + left])
    with opened(tmp_path / "torn") as messages:
        assert messages.read(GROUP, 1, 100, 100) == ENTRIES[:2]


def test_a_message_that_the_disk_has_changed_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE messages_{GROUP} SET contents = ? WHERE number = 3", (b"C",))
    database.close()
    with (
        opened(tmp_path) as messages,
        pytest.raises(StorageError, match="is damaged: message 3 of group 5 is not as written"),
    ):
        messages.read(GROUP, 1, 100, 100)


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(b"FlexGroup" * 1000)
    storage = DataFolder(tmp_path)
    with pytest.raises(UsageError, match=r"messages\.sqlite is damaged: file is not a database"):
        storage.messages()
    storage.close()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    storage = DataFolder(tmp_path / "data")
    (tmp_path / "data" / "messages.sqlite").mkdir()
    with pytest.raises(StorageError, match=r"cannot use .*messages\.sqlite: Is a directory"):
        storage.messages()
    storage.close()
