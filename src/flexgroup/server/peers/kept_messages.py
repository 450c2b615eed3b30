"""Where a server keeps the messages of the groups that ask for it.

It is one database in the server's folder, in which every group has a log: its messages, each
envelope of them under the number of its first one. SQLite does what a log needs and what is hard to
get right: a commit is on the disk or is not there at all, whatever happens meanwhile; old messages
are dropped in the middle of writing new ones; and any part is read without the rest. It does not
notice a bit that the disk has turned; checksums do.

Not compiled: msgspec reads the types of an entry from its annotations.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple, TypeVar
from zlib import crc32

from msgspec import Struct

from flexgroup.core.errors import UsageError
from flexgroup.wire.requests import Number, Position
from flexgroup.worlds.network.framed_file import StorageError

R = TypeVar("R")

LAYOUT = 2
MARGIN = 64
"""So many messages more than an eighth of what has to be kept are kept: dropping them costs less if
they are many."""


class Entry(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Messages of a group that were delivered together."""

    number: Position
    """The number of the first of them."""
    epoch: Position
    """The number of the domain in which they were delivered."""
    count: Number
    contents: bytes

    @property
    def last(self) -> int:
        return self.number + self.count - 1


class Place(NamedTuple):
    """A place in a log. What precedes it is the same in all logs that have it."""

    epoch: Position
    """The epoch in which the message before it was written."""
    last: Position
    """The number of that message; 0 if there is none."""


NOWHERE = Place(0, 0)


class End(NamedTuple):
    """Where a log ends. Of two logs the one with the greater end is ahead."""

    epoch: Position
    """The last domain for which the log was complete when it began."""
    place: Place

    @property
    def last(self) -> int:
        return self.place.last


class KeptMessages:
    """The logs of one server. What was written counts only after `commit`."""

    def __init__(self, where: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._where = where
        self._database = self._attempt(connect)
        self._ends: dict[int, End] = {}
        """The ends of all logs, by the number of the group."""
        self._firsts: dict[int, int] = {}
        """The first messages that they hold, as far as that was asked."""
        self._cluster = ""
        """The cluster whose groups these are."""
        self._attempt(self._open)

    def _open(self) -> None:
        database = self._database
        layout = database.execute("PRAGMA user_version").fetchone()[0]
        if layout not in (0, LAYOUT):
            raise UsageError(f"{self._where} was written by another version; install that one")
        if layout == LAYOUT and self._query("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("its pages do not fit together")
        # Every commit is on the disk before it returns.
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS logs "
            "(of INTEGER PRIMARY KEY, epoch INTEGER, written INTEGER, last INTEGER)"
        )
        database.execute("CREATE TABLE IF NOT EXISTS cluster (name TEXT PRIMARY KEY)")
        database.execute(f"PRAGMA user_version = {LAYOUT}")
        database.commit()
        for group, epoch, *place in database.execute("SELECT * FROM logs"):
            self._ends[group] = End(epoch, Place(*place))
        for (cluster,) in database.execute("SELECT name FROM cluster"):
            self._cluster = cluster

    # What is there.

    def end(self, group: int) -> End:
        return self._ends.get(group, End(0, NOWHERE))

    def first(self, group: int) -> int:
        """The number of the first message that is kept, or of the next one if none is."""
        if group not in self._firsts:
            found = self._fetch(group, "SELECT min(number) FROM messages_{}")
            first = found[0][0] if found else None
            self._firsts[group] = self.end(group).last + 1 if first is None else first
        return self._firsts[group]

    def place_at(self, group: int, last: int, epoch: int) -> Place:
        """The last place, up to this message, that was written in this epoch or before."""
        found = self._fetch(
            group,
            "SELECT epoch, number + count - 1 FROM messages_{} "
            "WHERE number <= ? AND number + count - 1 <= ? AND epoch <= ? "
            "ORDER BY number DESC LIMIT 1",
            (last, last, epoch),
        )
        return Place(*found[0]) if found else NOWHERE

    def read(self, group: int, number: int, messages: int, size: int) -> list[Entry]:
        """The entries from the one with this message on: at least one if there is one, and no more
        when there are so many messages or bytes in them."""
        entries: list[Entry] = []
        if group not in self._ends or messages <= 0:
            return entries
        rows = self._attempt(
            lambda: self._query(
                f"SELECT number, epoch, count, contents, checksum FROM messages_{group} WHERE "
                f"number >= (SELECT max(number) FROM messages_{group} WHERE number <= ?) "
                "AND number + count > ? ORDER BY number",
                (number, number),
            )
        )
        while messages > 0 and size > 0 and (row := self._attempt(rows.fetchone)) is not None:
            entry = Entry(*row[:4])
            if crc32(entry.contents) != row[4]:
                raise self._damaged(f"message {entry.number} of group {group} is not as written")
            entries.append(entry)
            messages -= entry.count - max(0, number - entry.number)
            size -= len(entry.contents)
        rows.close()
        return entries

    # What is written.

    def append(self, group: int, entries: Iterable[Entry]) -> None:
        """Add entries, each of which follows the one before."""
        if group not in self._ends:
            self._attempt(lambda: self._create(group))
        epoch, place = self._ends[group]
        rows = []
        for entry in entries:
            assert entry.number == place.last + 1, "a log has no gaps"
            place = Place(entry.epoch, entry.last)
            checksum = crc32(entry.contents)
            rows.append((entry.number, entry.epoch, entry.count, entry.contents, checksum))
        statement = f"INSERT INTO messages_{group} VALUES (?, ?, ?, ?, ?)"
        self._attempt(lambda: self._database.executemany(statement, rows))
        self._set_end(group, End(epoch, place))

    def mark(self, group: int, epoch: int) -> None:
        """The log is complete, as those who keep it have agreed at the beginning of this epoch."""
        if group not in self._ends:
            self._attempt(lambda: self._create(group))
        self._set_end(group, End(epoch, self.end(group).place))

    def cut(self, group: int, last: int) -> None:
        """Forget all messages after this one."""
        if group in self._ends:
            self._write(f"DELETE FROM messages_{group} WHERE number > ?", (last,))
            end = self.end(group)
            place = self.place_at(group, last, end.place.epoch)
            self._set_end(group, End(end.epoch, place))

    def begin_after(self, group: int, last: int) -> None:
        """Forget all messages; the first one to be kept is the one after this."""
        if group not in self._ends:
            self._attempt(lambda: self._create(group))
        self._write(f"DELETE FROM messages_{group}")
        self._firsts.pop(group, None)
        self._set_end(group, End(0, Place(0, last)))

    def drop_old(self, group: int, keep: int) -> None:
        """Forget messages of which so many newer ones are there."""
        oldest = self.end(group).last - keep + 1
        if oldest - self.first(group) > MARGIN + keep // 8:
            self._write(f"DELETE FROM messages_{group} WHERE number + count <= ?", (oldest,))
            del self._firsts[group]

    def belong_to(self, cluster: str) -> None:
        """Forget everything of another cluster, which has other groups under the same numbers."""
        if self._cluster != cluster:
            self._drop(list(self._ends))
            self._write("DELETE FROM cluster")
            self._write("INSERT INTO cluster VALUES (?)", (cluster,))
            self.commit()
            self._cluster = cluster

    def keep_only(self, groups: Iterable[int], next_group: int) -> None:
        """Forget the logs of groups that have ended. A group whose number comes later may be one
        that only others know of yet."""
        going_on = set(groups)
        ended = [group for group in self._ends if group < next_group and group not in going_on]
        if ended:
            self._drop(ended)
            self.commit()

    def _drop(self, groups: list[int]) -> None:
        for group in groups:
            self._write(f"DROP TABLE messages_{group}")
            self._write("DELETE FROM logs WHERE of = ?", (group,))
            del self._ends[group]
            self._firsts.pop(group, None)

    def commit(self) -> None:
        """Have everything that was written on the disk."""
        self._attempt(self._database.commit)

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._database.close()

    def _create(self, group: int) -> None:
        self._database.execute(
            f"CREATE TABLE messages_{group} (number INTEGER PRIMARY KEY, epoch INTEGER, "
            "count INTEGER, contents BLOB, checksum INTEGER)"
        )
        self._ends[group] = End(0, NOWHERE)

    def _set_end(self, group: int, end: End) -> None:
        row = (group, end.epoch, *end.place)
        self._write("INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?)", row)
        self._ends[group] = end

    def _fetch(self, group: int, query: str, of: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
        if group not in self._ends:
            return []
        return self._attempt(lambda: self._query(query.format(group), of).fetchall())

    def _write(self, statement: str, of: tuple[object, ...] = ()) -> None:
        self._attempt(lambda: self._query(statement, of))

    def _query(self, statement: str, of: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._database.execute(statement, of)

    def _attempt(self, work: Callable[[], R]) -> R:
        try:
            return work()
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"cannot use {self._where}: {error}; the server has stopped, since it must not lose"
                " what groups have asked it to keep; mend this, and start it again"
            ) from None
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, why: str) -> StorageError:
        return StorageError(
            f"{self._where} is damaged: {why}; remove the whole folder, and name a running server "
            "with --join: then this one joins as a new server, and gets what the others have kept"
        )
