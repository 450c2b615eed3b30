"""The disk on which a virtual server keeps what it must not forget."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from flexgroup.membership.stable import AnyRecord, may_be_late, recovered
from flexgroup.server.peers.kept_messages import KeptMessages
from flexgroup.server.peers.stable_storage import Saved, StorageError

LONG = 20
MEMORY = Path("/dev/shm")


class VirtualStorage:
    """It outlives the processes that write to it, and refuses to be written while it is broken."""

    def __init__(self) -> None:
        self._saved: Saved | None = None
        self._since: list[AnyRecord] = []
        self._waiting: list[AnyRecord] = []
        """What is lost with the process, unless something else is saved before."""
        self._is_broken = False
        self._database: sqlite3.Connection | None = None
        self._messages: KeptMessages | None = None
        self._replicas: Path | None = None

    # What happens to it.

    def fail(self) -> None:
        self._is_broken = True
        self._protect(True)

    def go_on(self) -> None:
        self._is_broken = False
        self._protect(False)

    def _protect(self, wanted: bool) -> None:
        if self._database is not None:
            self._database.execute(f"PRAGMA query_only = {int(wanted)}")

    # What a server does.

    def load(self) -> Saved | None:
        self._waiting = []
        self._messages = None
        if self._saved is None:
            return None
        return Saved(self._saved.cluster, recovered(self._saved.snapshot, self._since))

    @property
    def is_long(self) -> bool:
        return len(self._since) >= LONG

    def append(self, record: AnyRecord) -> None:
        self._waiting.append(record)
        if not may_be_late(record):
            self._check()
            self._since += self._waiting
            self._waiting = []

    def replace(self, saved: Saved) -> None:
        self._check()
        self._saved, self._since, self._waiting = saved, [], []

    @property
    def has_messages(self) -> bool:
        return self._database is not None

    def messages(self) -> KeptMessages:
        if self._messages is None:
            self._messages = KeptMessages("the virtual disk", self._connect)
        return self._messages

    def _connect(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect(":memory:")
            self._protect(self._is_broken)
        self._database.rollback()
        return self._database

    def replicas(self) -> Path:
        """What replicas store has real files, if possible in memory, and outlives processes."""
        if self._replicas is None:
            memory = MEMORY if MEMORY.is_dir() else None
            self._replicas = Path(mkdtemp(prefix="flexgroup-replicas-", dir=memory))
            finalize(self, rmtree, self._replicas, ignore_errors=True)
        return self._replicas

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self._is_broken:
            raise StorageError("the virtual disk is broken; heal it")
