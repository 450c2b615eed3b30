"""Where a server keeps what it must not forget while it is not running.

Not compiled: msgspec reads the types of a record from its annotations.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from pathlib import Path
from typing import Protocol

import msgspec

from flexgroup.core.errors import UsageError
from flexgroup.membership.stable import AnyRecord, Snapshot, may_be_late, recovered
from flexgroup.server.peers.kept_messages import KeptMessages
from flexgroup.worlds.network.framed_file import DamagedError, FramedFile, synchronise
from flexgroup.worlds.network.framed_file import StorageError as StorageError

log = logging.getLogger("flexgroup.server")

MAGIC = b"FlexGroup membership 1\n"
LONG = 1 << 20
"""How many bytes of records there may be before they are put together."""


class Saved(msgspec.Struct, frozen=True, array_like=True):
    """What a server has to remember, and the cluster that this is about."""

    cluster: str
    snapshot: Snapshot


class StableStorage(Protocol):
    """What is saved here is still there when the server is started again."""

    def load(self) -> Saved | None:
        """What was saved last; None if nothing ever was."""

    @property
    def is_long(self) -> bool:
        """There are so many records that they are better replaced."""

    def append(self, record: AnyRecord) -> None:
        """Save one more record, with the next one if it may be late."""

    def replace(self, saved: Saved) -> None:
        """Save this in the place of everything before."""

    @property
    def has_messages(self) -> bool:
        """Messages of groups have been kept."""

    def messages(self) -> KeptMessages:
        """What holds the messages of the groups that ask for it."""

    def replicas(self) -> Path:
        """The folder for what replicas of replicated domains store."""

    def close(self) -> None: ...


_saved_decoder = msgspec.msgpack.Decoder(Saved)
_records_decoder = msgspec.msgpack.Decoder(list[AnyRecord])
_encoder = msgspec.msgpack.Encoder()


class DataFolder:
    """A folder with a file in it: what was to be remembered at some time, and the records since.
    Another one holds the messages of groups that are kept, if there are any.

    The first file is one of frames, of which the last may be incomplete and is cut off.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "membership"
        self._file = FramedFile(self._path, MAGIC)
        self._messages_path = folder / "messages.sqlite"
        self._messages: KeptMessages | None = None
        self._lock: int | None = None
        self._bytes = 0
        """How many bytes of records follow what was last put together."""
        self._waiting: list[AnyRecord] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(folder / "lock")
        except BlockingIOError:
            raise UsageError(
                f"another server is using {folder}; "
                "give each server a folder of its own with --data"
            ) from None
        except OSError as error:
            raise UsageError(
                f"cannot use {folder}: {error.strerror}; name a folder that can be written with "
                "--data"
            ) from None

    def load(self) -> Saved | None:
        try:
            frames = self._file.read()
        except DamagedError as error:
            raise self._unreadable(str(error)) from None
        except OSError as error:
            raise UsageError(
                f"cannot read {self._path}: {error.strerror}; make it readable, or name another "
                "folder with --data"
            ) from None
        if not frames:
            return None
        try:
            saved = _saved_decoder.decode(frames[0])
            records = [record for frame in frames[1:] for record in _records_decoder.decode(frame)]
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._unreadable(f"was written by another version ({error})") from None
        if self._file.cut_off:
            log.warning(
                "cut off",
                extra={"data": {"file": str(self._path), "bytes": self._file.cut_off}},
            )
        return Saved(saved.cluster, recovered(saved.snapshot, records))

    def _unreadable(self, why: str) -> UsageError:
        return UsageError(
            f"{self._path} {why}; bring back a copy of it that is not older than the last change, "
            f"or remove {self._folder} and name a running server with --join: then this one joins "
            "as a new server"
        )

    @property
    def is_long(self) -> bool:
        return self._bytes > LONG

    def append(self, record: AnyRecord) -> None:
        self._waiting.append(record)
        if may_be_late(record):
            return
        content = _encoder.encode(self._waiting)
        self._waiting = []
        try:
            self._bytes += self._file.append(content)
        except OSError as error:
            raise self._not_saved(error) from None

    def replace(self, saved: Saved) -> None:
        try:
            self._file.replace([_encoder.encode(saved)])
        except OSError as error:
            raise self._not_saved(error) from None
        self._waiting = []
        self._bytes = 0

    @property
    def has_messages(self) -> bool:
        return self._messages is not None or self._messages_path.exists()

    def messages(self) -> KeptMessages:
        if self._messages is None:
            path = self._messages_path
            try:
                # What members say to each other is nobody else's business.
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
                synchronise(self._folder)
            except OSError as error:
                raise StorageError(
                    f"cannot use {path}: {error.strerror}; make it a file that can be written"
                ) from None
            self._messages = KeptMessages(str(path), lambda: sqlite3.connect(path))
        return self._messages

    def replicas(self) -> Path:
        return self._folder / "replicas"

    def _not_saved(self, error: OSError) -> StorageError:
        return StorageError(
            f"cannot write to {self._path}: {error.strerror}; the server has stopped, since it "
            "must not forget what it agrees to with others; mend this, and start it again"
        )

    def close(self) -> None:
        if self._messages is not None:
            self._messages.close()
        self._file.close()
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None


def _lock(path: Path) -> int:
    """Keep other processes out as long as this one runs."""
    lock = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise
    return lock
