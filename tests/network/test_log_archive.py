"""What a log has set aside is on the disk only, comes back piece by piece, and nothing else is
taken for it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Archive, Layer, Recall, Save, Store, Truncate, Write
from flexgroup.core.message import Packet
from flexgroup.worlds.network import log_archive
from flexgroup.worlds.network.framed_file import StorageError
from flexgroup.worlds.network.layer_files import LayerFiles

OWNER = "process 1 of these tests"


class Entry(Packet):
    number: int
    text: str


class Keeping(Layer):
    STORED: ClassVar[tuple[type[Packet], ...]] = (Entry,)


def opened(folder: Path, owner: str = OWNER) -> LayerFiles:
    return LayerFiles(folder, Codec([Keeping]), [Keeping], owner)


def entry(number: int, size: int = 10) -> Entry:
    return Entry(number, "x" * size)


def write(files: LayerFiles, first: int, last: int, size: int = 10) -> None:
    """Write these entries, and set them aside, ten at a time."""
    for start in range(first, last, 10):
        effects: list[Store] = [Write(0, n, entry(n, size)) for n in range(start, start + 10)]
        files.store([*effects, Save(0, entry(start)), Archive(0, start + 10)])
        files.commit()


def recalled(files: LayerFiles, first: int, last: int, most: int = 1000) -> list[int]:
    found = files.recall(Recall(0, first, last, most, 0))
    assert all(packet == entry(number) for number, packet in found)
    return [number for number, _ in found]


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("0-Keeping.0-*"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_archive, "BLOCK", 100)
    monkeypatch.setattr(log_archive, "SEGMENT", 500)


@pytest.mark.parametrize("again", [False, True])
def test_what_was_set_aside_is_recalled_and_not_in_memory(
    tmp_path: Path, small: None, again: bool
) -> None:
    files = opened(tmp_path)
    write(files, 0, 200)
    files.store([Write(0, 200, entry(200))])
    files.commit()
    if again:
        files.close()
        files = opened(tmp_path)
    assert list(files.stored[0].log) == [200]
    assert files.stored[0].archive == {}
    assert len(segments(tmp_path)) > 3
    for first in (0, 7, 99, 199):
        number = first
        while number < 201:
            some = recalled(files, number, 201)
            assert some == list(range(number, number + len(some)))
            assert some
            assert len(some) < 30
            number += len(some)
    assert recalled(files, 3, 50, 4) == [3, 4, 5, 6]
    assert recalled(files, 198, 199) == [198]


def test_a_large_entry_comes_alone(tmp_path: Path, small: None) -> None:
    files = opened(tmp_path)
    write(files, 0, 10, 200)
    (found,) = files.recall(Recall(0, 4, 10, 100, 0))
    assert found == (4, entry(4, 200))


def test_segments_without_entries_that_are_needed_are_removed(tmp_path: Path, small: None) -> None:
    files = opened(tmp_path)
    write(files, 0, 200)
    before = segments(tmp_path)
    files.store([Truncate(0, 150)])
    assert segments(tmp_path) == before
    files.commit()
    assert segments(tmp_path) == before[-len(segments(tmp_path)) :] != before
    assert recalled(files, 150, 200)[0] == 150
    files.store([Truncate(0, 200)])
    files.commit()
    assert segments(tmp_path) == []
    write(files, 200, 220)
    files.close()
    assert recalled(opened(tmp_path), 200, 220, 3) == [200, 201, 202]


def test_what_was_set_aside_and_not_committed_is_still_in_the_log(
    tmp_path: Path, small: None
) -> None:
    """A crash between the two files: the segment is longer than it is said to be."""
    for crashes in range(3):
        files = opened(tmp_path)
        if not crashes:
            write(files, 0, 50)
            files.store([Write(0, n, entry(n)) for n in range(50, 90)])
            files.commit()
        files.store([Archive(0, 70 + 10 * crashes)])
        files.close()
        files = opened(tmp_path)
        assert sorted(files.stored[0].log) == list(range(50, 90))
        assert recalled(files, 49, 90) == [49]
        files.close()
    files = opened(tmp_path)
    files.store([Archive(0, 60)])
    files.commit()
    files.close()
    files = opened(tmp_path)
    assert sorted(files.stored[0].log) == list(range(60, 90))
    assert recalled(files, 59, 90) == [59]
    assert recalled(files, 60, 90) == list(range(60, 90))


def test_a_segment_that_is_shorter_or_missing_is_refused(tmp_path: Path, small: None) -> None:
    files = opened(tmp_path)
    write(files, 0, 200)
    files.close()
    for segment in (segments(tmp_path)[0], segments(tmp_path)[1], segments(tmp_path)[-1]):
        content = segment.read_bytes()
        for short in (content[:-1], content[:60], content[:30], b""):
            segment.write_bytes(short)
            with pytest.raises(UsageError, match=r"0-Keeping.0.*; the process must not go on"):
                opened(tmp_path)
        segment.unlink()
        with pytest.raises(UsageError, match=r"0-Keeping.0 has no intact entries from \d+ to 199"):
            opened(tmp_path)
        segment.write_bytes(content)
    opened(tmp_path).close()


def test_a_damaged_block_stops_the_process_when_it_is_read(tmp_path: Path, small: None) -> None:
    files = opened(tmp_path)
    write(files, 0, 200)
    files.close()
    segment = segments(tmp_path)[2]
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    files = opened(tmp_path)
    damaged = False
    for number in range(200):
        damaged = damaged or files.recall(Recall(0, number, 200, 1, 0)) == []
    assert damaged
    assert files.is_urgent
    with pytest.raises(StorageError, match=rf"{segment.name} is damaged at byte \d+; the process"):
        files.commit()


def test_segments_of_another_process_are_refused(tmp_path: Path, small: None) -> None:
    for folder, owner in (("a", OWNER), ("b", "process 2")):
        files = opened(tmp_path / folder, owner)
        write(files, 0, 100)
        files.close()
    theirs, ours = segments(tmp_path / "b")[0], segments(tmp_path / "a")[0]
    ours.write_bytes(theirs.read_bytes())
    with pytest.raises(UsageError, match=f"{ours.name} belongs to process 2, and not to {OWNER};"):
        opened(tmp_path / "a")
