"""Stable storage on a disk: what was durable is there again, and nothing else is taken for it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Layer, Save, Store, Stored, Truncate, Write
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.network import layer_files
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.faults import Faults
from flexgroup.worlds.network.framed_file import FramedFile, StorageError
from flexgroup.worlds.network.layer_files import LayerFiles


class Entry(Packet):
    number: int
    messages: tuple[Message, ...]


class Keeping(Layer):
    STORED: ClassVar[tuple[type[Packet], ...]] = (Entry,)


class Forgetful(Layer):
    pass


LAYERS: list[type[Layer]] = [Forgetful, Keeping]
KEEPING = "1-Keeping"
OWNER = "process 1 of these tests"


def entry(number: int) -> Entry:
    return Entry(number, (Message(message_id(2, number), (0, 1), b"payload"),))


def opened(folder: Path) -> LayerFiles:
    return LayerFiles(folder, Codec(LAYERS), LAYERS, OWNER)


def stored_in(folder: Path) -> Stored:
    files = opened(folder)
    files.close()
    return files.stored[1]


COMMITS: list[list[Store]] = [
    [Save(1, entry(0)), Write(1, 1, entry(1))],
    [Write(1, 2, entry(2)), Write(1, 1, entry(7)), Write(1, 3, entry(3))],
    [Truncate(1, 2), Save(1, entry(9))],
]

AFTER = [
    Stored(),
    Stored(entry(0), {1: entry(1)}, 0, 1),
    Stored(entry(0), {1: entry(7), 2: entry(2), 3: entry(3)}, 0, 2),
    Stored(entry(9), {2: entry(2), 3: entry(3)}, 2, 3),
]
"""What is there after each of the commits; with each, one more message is delivered."""


def written(folder: Path, commits: int = len(COMMITS)) -> list[bytes]:
    """What is in the file after each commit."""
    files = opened(folder)
    contents = []
    for number, effects in enumerate(COMMITS[:commits], 1):
        files.store(effects)
        files.deliver(number)
        files.commit()
        contents.append((folder / KEEPING).read_bytes())
    files.close()
    return contents


def test_nothing_is_there_in_a_new_folder(tmp_path: Path) -> None:
    files = opened(tmp_path / "new" / "folder")
    assert not files.was_there
    assert files.stored == [Stored(), Stored()]
    files.commit()
    assert not list((tmp_path / "new" / "folder").iterdir())


@pytest.mark.parametrize("commits", range(1, len(AFTER)))
def test_what_was_committed_is_there_again(tmp_path: Path, commits: int) -> None:
    written(tmp_path, commits)
    files = opened(tmp_path)
    assert files.was_there
    assert files.stored == [Stored(), AFTER[commits]]
    files.close()


def test_what_was_not_committed_is_not_there(tmp_path: Path) -> None:
    written(tmp_path, 1)
    files = opened(tmp_path)
    files.store(COMMITS[1])
    files.deliver(2)
    files.close()
    assert stored_in(tmp_path) == AFTER[1]


def test_one_synchronisation_for_all_that_is_committed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, 1)
    files = opened(tmp_path)
    synchronised: list[int] = []
    monkeypatch.setattr(os, "fsync", synchronised.append)
    for effects in COMMITS[1:]:
        files.store(effects)
    assert synchronised == []
    files.commit()
    assert len(synchronised) == 1
    files.commit()
    assert len(synchronised) == 1
    files.close()


def test_a_tail_that_was_torn_anywhere_is_cut_off_and_the_file_goes_on(tmp_path: Path) -> None:
    contents = written(tmp_path)
    file = tmp_path / KEEPING
    for before in (1, 2):
        whole, longer = contents[before - 1 : before + 1]
        for end in range(len(whole), len(longer)):
            for rest in (b"", bytes(len(longer) - end), b"\xff" * (len(longer) - end)):
                file.write_bytes(longer[:end] + rest)
                files = opened(tmp_path)
                assert files.stored[1] == AFTER[before]
                files.store(COMMITS[before])
                files.deliver(before + 1)
                files.commit()
                files.close()
                assert file.read_bytes() == longer


def test_a_bit_that_was_turned_anywhere_is_never_trusted(tmp_path: Path) -> None:
    """In the last frame it is as a torn tail; before, it is an error that names file and place."""
    contents = written(tmp_path)
    file = tmp_path / KEEPING
    whole = contents[-1]
    for place in range(len(whole)):
        turned = bytearray(whole)
        turned[place] ^= 1 << place % 8
        file.write_bytes(turned)
        if place >= len(contents[-2]):
            assert stored_in(tmp_path) == AFTER[2]
            continue
        with pytest.raises(UsageError, match=r"1-Keeping .* at byte \d+; .*bring back a copy"):
            opened(tmp_path)
        assert file.read_bytes() == turned


def test_the_error_tells_where_the_damaged_frame_begins(tmp_path: Path) -> None:
    contents = written(tmp_path)
    turned = bytearray(contents[-1])
    turned[len(contents[0]) + 12] ^= 1
    (tmp_path / KEEPING).write_bytes(turned)
    with pytest.raises(UsageError, match=f"is damaged at byte {len(contents[0])};"):
        opened(tmp_path)


@pytest.mark.parametrize("content", [b"", b"my notes", b"FlexGroup layer 2\n", layer_files.HEAD])
def test_an_empty_or_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """Who takes it for a new one forgets what it promised."""
    (tmp_path / KEEPING).write_bytes(content)
    with pytest.raises(UsageError, match=r"1-Keeping .* at byte \d+"):
        opened(tmp_path)
    assert (tmp_path / KEEPING).read_bytes() == content


def test_records_of_another_version_are_refused(tmp_path: Path) -> None:
    files = opened(tmp_path)
    files.store([Save(1, entry(0))])
    files.commit()
    files.close()

    class Other(Layer):
        pass

    Other.__name__ = "Keeping"
    with pytest.raises(UsageError, match="was written by another version"):
        LayerFiles(tmp_path, Codec([Forgetful, Other]), [Forgetful, Other], OWNER)


# Whose a file is.


def owned(folder: Path, owner: str) -> LayerFiles:
    return LayerFiles(folder, Codec(LAYERS), LAYERS, owner)


def test_the_file_of_another_process_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    content = written(tmp_path)[-1]
    expected = rf"1-Keeping belongs to {OWNER}, and not to process 2; .*bring back its own file"
    with pytest.raises(UsageError, match=expected):
        owned(tmp_path, "process 2")
    assert (tmp_path / KEEPING).read_bytes() == content
    assert stored_in(tmp_path) == AFTER[-1]


def test_whose_it_is_stays_when_the_file_is_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer_files, "LONG", 0)
    written(tmp_path)
    with pytest.raises(UsageError, match=f"belongs to {OWNER}"):
        owned(tmp_path, "process 2")


@pytest.mark.parametrize("found", [["1-Other"], ["1-Other", "1-Keeping.new"], ["2-Keeping"]])
def test_nobody_begins_anew_in_the_folder_of_another_stack(
    tmp_path: Path, found: list[str]
) -> None:
    for name in found:
        (tmp_path / name).write_bytes(b"written by it")
    with pytest.raises(UsageError, match=f"{found[0]} is not of {OWNER}, whose file is 1-Keeping"):
        opened(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(found)


def test_a_first_file_that_was_never_complete_is_none(tmp_path: Path) -> None:
    (tmp_path / "1-Keeping.new").write_bytes(b"half")
    assert not opened(tmp_path).was_there
    assert written(tmp_path)


def test_a_file_that_does_not_say_whose_it_is_was_written_by_another_version(
    tmp_path: Path,
) -> None:
    written(tmp_path)
    file = FramedFile(tmp_path / KEEPING, layer_files.HEAD)
    first, *others = file.read()
    file.replace([first[2 + len(OWNER) :], *others])
    file.close()
    before = (tmp_path / KEEPING).read_bytes()
    assert OWNER.encode() not in before
    with pytest.raises(UsageError, match="was written by another version"):
        opened(tmp_path)
    assert (tmp_path / KEEPING).read_bytes() == before


def test_nothing_is_changed_before_something_is_stored(tmp_path: Path) -> None:
    """Not even a torn end: another file of the server may be refused, and then it has not begun."""
    torn = written(tmp_path)[-1] + b"torn"
    (tmp_path / KEEPING).write_bytes(torn)
    files = opened(tmp_path)
    assert files.cut_off == 4
    files.close()
    assert (tmp_path / KEEPING).read_bytes() == torn


def full(*_arguments: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("first", [True, False])
def test_a_full_disk_stops_the_process_for_good_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, first: bool
) -> None:
    if not first:
        written(tmp_path, 1)
    files = opened(tmp_path)
    files.store(COMMITS[1])
    with monkeypatch.context() as broken:
        broken.setattr(os, call, full)
        with pytest.raises(StorageError, match="1-Keeping: No space left on device; the process"):
            files.commit()
    # The disk may have dropped what it could not write, and would not say so a second time.
    with pytest.raises(StorageError, match="No space left"):
        files.commit()
    files.close()
    found = stored_in(tmp_path)
    assert found in ([Stored()] if first else [AFTER[1], Stored(*_two(), 0, 1)])


def _two() -> tuple[Packet | None, dict[int, Packet]]:
    return AFTER[2].saved, AFTER[2].log


def test_a_write_that_takes_a_part_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:3]))
    written(tmp_path)
    assert stored_in(tmp_path) == AFTER[-1]


def test_outdated_bytes_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_files, "LONG", 200)
    files = opened(tmp_path)
    longest = 0
    for number in range(300):
        files.store([Write(1, number, entry(number)), Truncate(1, max(0, number - 2))])
        files.deliver(number)
        files.commit()
        longest = max(longest, (tmp_path / KEEPING).stat().st_size)
    files.close()
    assert longest < 800
    kept: dict[int, Packet] = {number: entry(number) for number in (297, 298, 299)}
    assert stored_in(tmp_path) == Stored(None, kept, 297, 299)
    assert [path.name for path in tmp_path.iterdir()] == [KEEPING]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"file/folder: .*name a folder"):
        opened(tmp_path / "file" / "folder")


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.setattr(Path, "read_bytes", full)
    with pytest.raises(UsageError, match=r"cannot read .*1-Keeping"):
        opened(tmp_path)


# A stack on such files.

PLAN = parse_stack("leader paxos")


class Replicas:
    """Three domains, in a network that only these tests know, each with files of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.delivered: list[list[int]] = [[], [], []]
        self.domains = [self.started(process) for process in range(3)]
        self.in_flight: list[tuple[int, int, bytes]] = []

    def started(self, process: int) -> Domain:
        codec = Codec(PLAN.layers)
        files = LayerFiles(self.folder / str(process), codec, PLAN.layers, str(process))
        stack = PLAN.build(process, 3, replicas=replicas_of_sizes([3]))
        domain = Domain(stack, codec, 3, Faults(), None, files=files)
        domain.start(0)
        return domain

    def passed_on(self, process: int) -> None:
        """End a round: only what is durable leaves."""
        domain = self.domains[process]
        domain.commit()
        self.delivered[process] += [m.id for m in domain.delivered]
        domain.delivered.clear()
        for target, data in enumerate(domain.outgoing):
            if data:
                self.in_flight.append((process, target, bytes(data)))
                data.clear()

    def cast(self, process: int, number: int) -> None:
        self.domains[process].cast(0, Message(message_id(process, number), (0, 1, 2), b"x"))
        self.passed_on(process)

    def arrive(self) -> None:
        source, target, data = self.in_flight.pop(0)
        self.domains[target].receive(0, source, data, 0)
        self.passed_on(target)

    def restart(self, process: int) -> None:
        """Kill a process, in the middle of a round if it is in one, and start it again."""
        self.in_flight = [sent for sent in self.in_flight if sent[1] != process]
        self.domains[process] = self.started(process)
        self.passed_on(process)

    def settle(self, stop: Callable[[], bool] = lambda: False) -> None:
        while self.in_flight and not stop():
            self.arrive()


@pytest.mark.parametrize("process", range(3))
def test_a_replica_that_is_killed_comes_back_and_catches_up(tmp_path: Path, process: int) -> None:
    replicas = Replicas(tmp_path)
    for number in range(3):
        replicas.cast(0, number)
    replicas.settle()
    replicas.cast(1, 0)
    replicas.arrive()
    replicas.restart(process)
    replicas.settle()
    replicas.cast(2, 0)
    replicas.settle()
    assert replicas.delivered[0] == replicas.delivered[1] == replicas.delivered[2]
    assert len(replicas.delivered[0]) == 5


def test_all_replicas_are_killed_and_come_back(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    for number in range(70):
        replicas.cast(0, number)
        replicas.settle()
    for process in range(3):
        replicas.restart(process)
    replicas.settle()
    replicas.cast(2, 0)
    replicas.settle()
    assert replicas.delivered[0] == replicas.delivered[1] == replicas.delivered[2]
    assert len(replicas.delivered[0]) == 71


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_killed_again_and_again(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    replicas = Replicas(tmp_path)
    for number in range(30):
        replicas.cast(number % 3, number // 3)
        for _ in range(random.randrange(6)):
            if replicas.in_flight:
                replicas.arrive()
        if random.random() < 0.2:
            process = random.randrange(3)
            if random.random() < 0.5 and replicas.in_flight:
                # What it does about this packet is neither durable nor passed on.
                source, target, data = replicas.in_flight.pop(0)
                replicas.domains[target].receive(0, source, data, 0)
                process = target
            replicas.restart(process)
    replicas.settle()
    longest = max(replicas.delivered, key=len)
    assert all(order == longest for order in replicas.delivered)
    assert len(longest) == len(set(longest))
