"""Stable storage of a stack on a disk: one file for all layers, named after the top one.

What the layers stored since the last time becomes durable together, with one synchronisation,
before anything that they asked for afterwards leaves the process (`Domain.commit`). A frame of the
file is what became durable at one time, all of it or nothing; within it, what was asked for comes
in order.

The file also has what the application remembers: how many messages it was given, what it multicast
and was not given yet, and some numbers of whoever hosts the process. And it says whose it is: who
went on with what another process promised would break its own promises.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Archive, Layer, Recall, Save, Store, Stored, Truncate, Write
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.core.varints import Reader, varints
from flexgroup.worlds.network.framed_file import (
    DamagedError,
    FramedFile,
    StorageError,
    of_another,
    unreadable,
)
from flexgroup.worlds.network.log_archive import LogArchive

HEAD: Final = b"FlexGroup layer 1\n"

LONG = 4 << 20
"""How many bytes there may be before they are put together, if most of them are outdated."""

# What a record in a frame says.
SAVED: Final = 0
WRITTEN: Final = 1
TRUNCATED: Final = 2
DELIVERED: Final = 3
CAST: Final = 4
GIVEN: Final = 5
NOTED: Final = 6
LEVEL: Final = 7
"""What follows in the frame is of this layer; at first, it is of the top one."""
NUMBERED: Final = 8
OWNED: Final = 9
ARCHIVED: Final = 10


class LayerFiles:
    """The file of one process of one stack, in a folder of its own."""

    def __init__(self, folder: Path, codec: Codec, layers: list[type[Layer]], owner: str) -> None:
        self._codec = codec
        self._owner = owner
        """Whose the file is: the process, what it belongs to, and its stack."""
        self._found_owner = ""
        """Whose the file says to be; nothing: another version has written it."""
        self._top = len(layers) - 1
        self._file = FramedFile(folder / f"{self._top}-{layers[-1].__name__}", HEAD)
        self._waiting = bytearray()
        self._level = self._top
        """The layer that a record is of that is put behind what waits."""
        self._length = 0
        """How long the file is, and how long it was when it was put together."""
        self._whole = 0
        self._failed = ""
        self.stored = [Stored() for _ in layers]
        """What each layer has in the file, or will have after the next commit."""
        self._archives = [
            LogArchive(folder / f"{self._file.path.name}.{level}", owner)
            for level in range(len(layers))
        ]
        """What the log of each layer has set aside."""
        self._dropped: dict[int, int] = {}
        """Where the logs begin that were cut since the last commit."""
        self.casts: dict[MessageId, Message] = {}
        """What was multicast here, and is not known to be delivered here."""
        self.noted: dict[int, int] = {}
        """What whoever hosts the process has noted, under numbers of its choice."""
        self.numbered = 0
        """How far numbers of messages between layers are set aside: `Host.numbered`."""
        self.was_there = False
        """Something was stored before: the process starts again."""
        self._is_opened = False
        """What is appended goes behind what was read, or written before."""
        self.cut_off = 0
        """How many bytes at the end were not intact: a write that did not come to its end, or
        somebody has shortened the file."""
        self.is_urgent = False
        """Something is to be made durable before others learn of what came after it."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"cannot use {folder}: {error.strerror}; name a folder that can be written"
            ) from None
        self._load()

    def _load(self) -> None:
        file = self._file
        try:
            frames = file.read()
            for frame in frames:
                self._replay(frame)
            if frames:
                self.was_there = True
                self._length = self._whole = sum(map(len, frames))
                self.cut_off = file.cut_off
                self._check_owner()
                for level, stored in enumerate(self.stored):
                    self._archives[level].load(stored.first, max(stored.first, stored.archived))
            else:
                self._check_alone()
        except DamagedError as error:
            raise unreadable(file.path, str(error)) from None
        except PeerError as error:
            raise unreadable(file.path, f"was written by another version ({error})") from None
        except OSError as error:
            raise StorageError(
                f"cannot read {file.path}: {error.strerror}; make it a file that can be read and "
                "written"
            ) from None

    def _check_owner(self) -> None:
        """Refuse the file of another process, and one from before files said whose they are, in
        which messages have another form."""
        if not self._found_owner:
            raise unreadable(self._file.path, "was written by another version")
        if self._found_owner != self._owner:
            raise of_another(self._file.path, self._found_owner, self._owner)

    def _check_alone(self) -> None:
        """Refuse to begin anew in the place of another stack."""
        path = self._file.path
        others = sorted([other for other in path.parent.iterdir() if other.suffix != ".new"])
        if others:
            raise StorageError(
                f"{others[0]} is not of {self._owner}, whose file is {path.name}, and that is not "
                "there; the process must not begin anew, since it may have promised something: "
                "bring back its own file, or let the others go on without this process"
            )

    def _replay(self, frame: bytes) -> None:
        level = self._top
        stored = self.stored[level]
        reader = Reader(frame, 0, len(frame))
        while reader.position < reader.end:
            what = reader.varint()
            if what == SAVED:
                stored.saved = self._codec.decode_stored(level, reader.bytes())
            elif what == WRITTEN:
                number = reader.varint()
                stored.log[number] = self._codec.decode_stored(level, reader.bytes())
            elif what == TRUNCATED:
                stored.drop(reader.varint())
            elif what == DELIVERED:
                stored.delivered = reader.varint()
            elif what == CAST:
                identity = reader.varint()
                destinations = tuple([reader.varint() for _ in range(reader.varint())])
                self.casts[identity] = Message(identity, destinations, reader.bytes())
            elif what == GIVEN:
                self.casts.pop(reader.varint(), None)
            elif what == NOTED:
                place = reader.varint()
                self.noted[place] = reader.varint()
            elif what == LEVEL:
                level = reader.varint()
                if level > self._top:
                    raise PeerError(f"a record of layer {level}")
                stored = self.stored[level]
            elif what == NUMBERED:
                self.numbered = reader.varint()
            elif what == ARCHIVED:
                stored.set_aside(reader.varint())
            elif what == OWNED:
                self._found_owner = reader.bytes().decode(errors="replace")
            else:
                raise PeerError(f"a record of kind {what}")

    # What is stored, and made durable later.

    def store(self, effects: list[Store]) -> None:
        self.is_urgent = True
        for effect in effects:
            stored = self.stored[effect.level]
            waiting = self._waiting_of(effect.level)
            if isinstance(effect, Save):
                stored.saved = effect.packet
                self._saved(effect.level, waiting)
                if effect.covers >= 0:
                    below = self._waiting_of(effect.level - 1)
                    self.stored[effect.level - 1].delivered = effect.covers
                    below += varints([DELIVERED, effect.covers])
            elif isinstance(effect, Write):
                stored.log[effect.number] = effect.packet
                self._written(effect.level, effect.number, waiting)
            elif isinstance(effect, Archive):
                self._set_aside(effect.level, effect.first)
                waiting += varints([ARCHIVED, effect.first])
            elif isinstance(effect, Truncate):
                stored.drop(effect.first)
                self._dropped[effect.level] = effect.first
                waiting += varints([TRUNCATED, effect.first])

    def _set_aside(self, level: int, first: int) -> None:
        entries = self.stored[level].set_aside(first)
        encode = self._codec.encode_stored
        try:
            self._archives[level].append(first, [(n, encode(level, entry)) for n, entry in entries])
        except OSError as error:
            self._fail(error)

    def recall(self, asked: Recall) -> list[tuple[int, Packet]]:
        """Some entries that are asked for; if they cannot be read, the next commit says so."""
        level = asked.level
        stored = self.stored[level]
        try:
            data = self._archives[level].read(
                max(asked.first, stored.first), min(asked.last, stored.archived), asked.most
            )
            found = [(number, self._codec.decode_stored(level, one)) for number, one in data]
        except (StorageError, PeerError) as error:
            self._failed = self._failed or str(error)
            self.is_urgent = True
            return []
        except OSError as error:
            self._fail(error)
            return []
        if asked.first >= stored.archived:
            numbers = sorted([n for n in stored.log if asked.first <= n < asked.last])
            found = [(number, stored.log[number]) for number in numbers[: asked.most]]
        return found

    def _fail(self, error: OSError) -> None:
        """Have the next commit say what has failed."""
        self.is_urgent = True
        self._failed = self._failed or (
            f"cannot write to {self._file.path}: {error.strerror}; the process has stopped,"
            " since it must not forget what it tells others; mend this, and start it again"
        )

    def deliver(self, count: int) -> None:
        """Note that the application has been given so many messages in all."""
        if count != self.stored[self._top].delivered:
            self.stored[self._top].delivered = count
            self._waiting_of(self._top).extend(varints([DELIVERED, count]))

    def cast(self, m: Message) -> None:
        """Keep a message that is multicast here until it is delivered here."""
        self.is_urgent = True
        self.casts[m.id] = m
        _cast(m, self._waiting)

    def given(self, m: MessageId) -> None:
        """Keep a message no longer that is delivered here."""
        if self.casts.pop(m, None) is not None:
            self._waiting += varints([GIVEN, m])

    def note(self, place: int, number: int) -> None:
        if self.noted.get(place) != number:
            self.noted[place] = number
            self._waiting += varints([NOTED, place, number])

    def number(self, numbered: int) -> None:
        """Note how far numbers of messages between layers are set aside."""
        if self.numbered != numbered:
            self.numbered = numbered
            self._waiting += varints([NUMBERED, numbered])

    def commit(self) -> None:
        """Have everything on the disk. What has failed once is not tried again: nobody knows what
        the disk has after that."""
        if self._failed:
            raise StorageError(self._failed)
        if not self._waiting:
            return
        try:
            for archive in self._archives:
                archive.synchronise()
            self._commit(bytes(self._waiting))
            for level, first in self._dropped.items():
                self._archives[level].drop(first)
        except OSError as error:
            self._fail(error)
            raise StorageError(self._failed) from None
        self._dropped.clear()
        self._waiting = bytearray()
        self._level = self._top
        self.is_urgent = False

    def _commit(self, waiting: bytes) -> None:
        if self._length and self._length + len(waiting) < LONG + 2 * self._whole:
            if not self._is_opened:
                self._file.go_on()
                self._is_opened = True
            self._length += self._file.append(waiting)
            return
        whole = self._all()
        self._file.replace([whole])
        self._is_opened = True
        self._length = self._whole = len(whole)

    def close(self) -> None:
        self._file.close()
        for archive in self._archives:
            archive.close()

    # Records.

    def _waiting_of(self, level: int) -> bytearray:
        """Where the next record goes that is of this layer."""
        if level != self._level:
            self._level = level
            self._waiting += varints([LEVEL, level])
        return self._waiting

    def _saved(self, level: int, out: bytearray) -> None:
        packet = self.stored[level].saved
        assert packet is not None
        data = self._codec.encode_stored(level, packet)
        out += varints([SAVED, len(data)]) + data

    def _written(self, level: int, number: int, out: bytearray) -> None:
        data = self._codec.encode_stored(level, self.stored[level].log[number])
        out += varints([WRITTEN, number, len(data)]) + data

    def _all(self) -> bytes:
        """Everything that there is, as one frame."""
        out = bytearray()
        _text(OWNED, self._owner, out)
        for level in range(self._top, -1, -1):
            stored = self.stored[level]
            if level < self._top:
                out += varints([LEVEL, level])
            out += varints([DELIVERED, stored.delivered, TRUNCATED, stored.first])
            if stored.archived > stored.first:
                out += varints([ARCHIVED, stored.archived])
            if stored.saved is not None:
                self._saved(level, out)
            for number in sorted(stored.log):
                self._written(level, number, out)
        for m in self.casts.values():
            _cast(m, out)
        for place in sorted(self.noted):
            out += varints([NOTED, place, self.noted[place]])
        out += varints([NUMBERED, self.numbered])
        return bytes(out)


def _text(kind: int, text: str, out: bytearray) -> None:
    data = text.encode()
    out += varints([kind, len(data)]) + data


def _cast(m: Message, out: bytearray) -> None:
    assert isinstance(m.payload, bytes)
    out += varints([CAST, m.id, len(m.destinations), *m.destinations, len(m.payload)]) + m.payload
