"""Stable storage of a stack on a disk: a file for each layer that stores anything.

What the layers stored since the last time becomes durable together, with one synchronisation of
each file, before anything that they asked for afterwards leaves the process (`Domain.commit`). A
frame of a file is what became durable at one time; within it, what was asked for comes in order.

The file of the top layer also has what the application remembers: how many messages it was given,
what it multicast and was not given yet, and some numbers of whoever hosts the process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.layer import Layer, Save, Store, Stored, Truncate, Write
from flexgroup.core.message import Message, MessageId
from flexgroup.core.varints import Reader, varints
from flexgroup.worlds.network.framed_file import DamagedError, FramedFile, StorageError

HEAD: Final = b"FlexGroup layer 1\n"

LONG: Final = 1 << 20
"""How many bytes there may be before they are put together, if most of them are outdated."""

# What a record in a frame says.
SAVED: Final = 0
WRITTEN: Final = 1
TRUNCATED: Final = 2
DELIVERED: Final = 3
CAST: Final = 4
GIVEN: Final = 5
NOTED: Final = 6


class LayerFiles:
    """The files of one process of one stack, in a folder of their own."""

    def __init__(self, folder: Path, codec: Codec, layers: list[type[Layer]]) -> None:
        self._codec = codec
        self._files: dict[int, FramedFile] = {}
        self._waiting: dict[int, bytearray] = {}
        self._lengths: dict[int, int] = {}
        """How long each file is, and how long it was when it was put together."""
        self._whole: dict[int, int] = {}
        self._failed = ""
        self.stored = [Stored() for _ in layers]
        """What each layer has in its file, or will have after the next commit."""
        self.casts: dict[MessageId, Message] = {}
        """What was multicast here, and is not known to be delivered here."""
        self.noted: dict[int, int] = {}
        """What whoever hosts the process has noted, under numbers of its choice."""
        self.was_there = False
        """Something was stored before: the process starts again."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot use {folder}: {error.strerror}; name a folder that can be written"
            ) from None
        for level, layer in enumerate(layers):
            if layer.STORED or level == len(layers) - 1:
                name = f"{level}-{layer.__name__}"
                self._files[level] = FramedFile(folder / name, HEAD)
                self._load(level)

    def _load(self, level: int) -> None:
        file = self._files[level]
        try:
            frames = file.read()
            for frame in frames:
                self._replay(level, frame)
            if frames:
                self.was_there = True
                self._lengths[level] = self._whole[level] = sum(map(len, frames))
                file.go_on()
        except DamagedError as error:
            raise self._unreadable(file.path, str(error)) from None
        except PeerError as error:
            raise self._unreadable(file.path, f"was written by another version ({error})") from None
        except OSError as error:
            raise UsageError(
                f"cannot read {file.path}: {error.strerror}; make it a file that can be read and "
                "written"
            ) from None

    def _unreadable(self, path: Path, why: str) -> UsageError:
        return UsageError(
            f"{path} {why}; the process must not go on without what it promised to others: bring "
            "back a copy of the file that is not older than the last change, or let the others go "
            "on without this process"
        )

    def _replay(self, level: int, frame: bytes) -> None:
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
            else:
                raise PeerError(f"a record of kind {what}")

    # What is stored, and made durable later.

    def store(self, effects: list[Store]) -> None:
        for effect in effects:
            level = effect.level
            if isinstance(effect, Save):
                self.stored[level].saved = effect.packet
                self._saved(level, self._waiting_of(level))
            elif isinstance(effect, Write):
                self.stored[level].log[effect.number] = effect.packet
                self._written(level, effect.number, self._waiting_of(level))
            elif isinstance(effect, Truncate):
                self.stored[level].drop(effect.first)
                self._waiting_of(level).extend(varints([TRUNCATED, effect.first]))

    def deliver(self, count: int) -> None:
        """Note that the application has been given so many messages in all."""
        top = len(self.stored) - 1
        if count != self.stored[top].delivered:
            self.stored[top].delivered = count
            self._waiting_of(top).extend(varints([DELIVERED, count]))

    def cast(self, m: Message) -> None:
        """Keep a message that is multicast here until it is delivered here."""
        self.casts[m.id] = m
        _cast(m, self._waiting_of(len(self.stored) - 1))

    def given(self, m: MessageId) -> None:
        """Keep a message no longer that is delivered here."""
        if self.casts.pop(m, None) is not None:
            self._waiting_of(len(self.stored) - 1).extend(varints([GIVEN, m]))

    def note(self, place: int, number: int) -> None:
        if self.noted.get(place) != number:
            self.noted[place] = number
            self._waiting_of(len(self.stored) - 1).extend(varints([NOTED, place, number]))

    def commit(self) -> None:
        """Have everything on the disk. What has failed once is not tried again: nobody knows what
        the disk has after that."""
        if self._failed:
            raise StorageError(self._failed)
        for level, waiting in sorted(self._waiting.items()):
            file = self._files[level]
            try:
                self._commit(level, file, bytes(waiting))
            except OSError as error:
                self._failed = (
                    f"cannot write to {file.path}: {error.strerror}; the process has stopped, since"
                    " it must not forget what it tells others; mend this, and start it again"
                )
                raise StorageError(self._failed) from None
        self._waiting = {}

    def _commit(self, level: int, file: FramedFile, waiting: bytes) -> None:
        length = self._lengths.get(level, 0)
        if length and length + len(waiting) < LONG + 2 * self._whole[level]:
            self._lengths[level] = length + file.append(waiting)
            return
        whole = self._all(level)
        file.replace([whole])
        self._lengths[level] = self._whole[level] = len(whole)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    # Records.

    def _waiting_of(self, level: int) -> bytearray:
        return self._waiting.setdefault(level, bytearray())

    def _saved(self, level: int, out: bytearray) -> None:
        packet = self.stored[level].saved
        assert packet is not None
        data = self._codec.encode_stored(level, packet)
        out += varints([SAVED, len(data)]) + data

    def _written(self, level: int, number: int, out: bytearray) -> None:
        data = self._codec.encode_stored(level, self.stored[level].log[number])
        out += varints([WRITTEN, number, len(data)]) + data

    def _all(self, level: int) -> bytes:
        """Everything that a layer has, as one frame."""
        stored = self.stored[level]
        out = bytearray(varints([DELIVERED, stored.delivered, TRUNCATED, stored.first]))
        if stored.saved is not None:
            self._saved(level, out)
        for number in sorted(stored.log):
            self._written(level, number, out)
        if level == len(self.stored) - 1:
            for m in self.casts.values():
                _cast(m, out)
            for place in sorted(self.noted):
                out += varints([NOTED, place, self.noted[place]])
        return bytes(out)


def _cast(m: Message, out: bytearray) -> None:
    assert isinstance(m.payload, bytes)
    out += varints([CAST, m.id, len(m.destinations), *m.destinations, len(m.payload)]) + m.payload
