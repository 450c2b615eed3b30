"""How servers keep the messages of a group, as long as a domain of theirs lasts.

Every server that keeps data has a log of the group on its disk (`KeptMessages`). What the domain
delivers, it appends, in the one order that the stack gives all of them; so the messages have the
same numbers everywhere.

When a domain begins, some may have more in their logs than others: they were not running, or have
just come. So nothing is multicast in it until all have agreed. Each tells where its log ends. The
log that is ahead of all others is everybody's: who has less fetches the rest from a server that has
it, and who has something else (which nobody else had delivered when it failed) drops that first.
Who has come so far notes the number of the domain, its *epoch*, at the end of its log, and tells
the others that it is ready. When all are, the configuration takes note of the epoch, and the domain
is open. From then on members are given a message when all have told that it is on their disks.

Every message is written with its epoch, too. In an epoch all append the same sequence to the same
log, so what two logs hold under one number and one epoch is the same, and so is all before it. Of
two logs that one is ahead which was complete for the later epoch; then the one whose last message
is of a later epoch; then the longer one. (Raft and Kafka compare logs by terms and leader epochs in
the same way.) What anybody was given, or told to be confirmed, is on the disk of all servers that
kept it then. Those of them that are among the servers that go on have it, and so has the log that
is ahead. If none of them is, since all that go on have come later, the epochs of all logs are
behind that of the configuration; then the domain stays closed until somebody comes who has it.

Not compiled: msgspec reads the types of a message from its annotations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import final

import msgspec
from msgspec import Struct

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import DomainEntry, GroupEntry
from flexgroup.server.peers.kept_messages import NOWHERE, End, Entry, KeptMessages, Place
from flexgroup.wire.frames import decoded
from flexgroup.wire.requests import Position
from flexgroup.worlds.network.envelope import Envelope

CHUNK_BYTES = 1 << 20
"""How much of a log is sent to another server, or read for a client, at a time."""

CHUNK_MESSAGES = 1 << 16


class FromKeeper(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What servers that keep the same messages say to each other."""


class LogEnd(FromKeeper, frozen=True, tag=1):
    """Where the log of the sender ends."""

    end: End


class Fetch(FromKeeper, frozen=True, tag=2):
    """Asks for what follows this place, which the sender's log has come to."""

    place: Place


class Differs(FromKeeper, frozen=True, tag=3):
    """There is something else in the log of the sender. It has this place instead, or before."""

    place: Place


class Chunk(FromKeeper, frozen=True, tag=4):
    """What follows a place in the log."""

    last: Position
    """The number of the message before the first of these."""
    is_first: bool
    """Nothing that comes before is kept any more, or agrees."""
    entries: list[Entry]


class Ready(FromKeeper, frozen=True, tag=5):
    """The log of the sender is that of all, and on its disk."""


class Kept(FromKeeper, frozen=True, tag=6):
    """All messages up to this one are on the disk of the sender."""

    last: Position


AnyFromKeeper = LogEnd | Fetch | Differs | Chunk | Ready | Kept
"""What a decoder of these messages is made for."""

_decoder = msgspec.msgpack.Decoder(AnyFromKeeper)
_encoder = msgspec.msgpack.Encoder()


@final
class Keeping:
    """The part of one server in keeping the messages of one group, in one domain."""

    def __init__(
        self, group: GroupEntry, domain: DomainEntry, me: int, messages: KeptMessages
    ) -> None:
        self.group = group.number
        self.outgoing: list[tuple[int, bytes]] = []
        """What is to be sent to which servers."""
        self._keep = group.keep
        self._least_epoch = group.epoch
        self._epoch = domain.number
        self._me = me
        self._others = [server for server in domain.servers if server != me]
        self._messages = messages
        self._ends: dict[int, End] = {}
        """Where the logs of the servers ended when the domain began, as far as is known."""
        self._source: int | None = None
        """The server that the rest of the log is fetched from."""
        self._fetched = NOWHERE
        """What was asked for last."""
        self._on_disk: dict[int, int] = {}
        """The numbers of the last messages that are on the disks of the servers which are ready."""
        self._waiting: deque[Envelope] = deque()
        """What is on the disk here, and not known to be on all."""
        self.given = 0
        """The number of the last message that members here may be given, once the domain is open:
        this one is on the disks of all."""
        self.is_open = False
        """All servers are ready: what is kept may be read and, when the configuration tells so,
        messages may be multicast."""
        self.is_open_proposed = False
        """The others were asked to take note of that."""
        self.was_open = False
        """It was open, and the domain has ended."""
        self.is_stranded = False
        """No server has all that was kept."""

    @property
    def is_settled(self) -> bool:
        """All that was delivered here is on the disks of all."""
        return not self._waiting

    @property
    def first(self) -> int:
        """The number of the first message that is kept here, or of the next one if none is."""
        return self._messages.first(self.group)

    @property
    def last(self) -> int:
        return self._messages.end(self.group).last

    def start(self) -> None:
        end = self._messages.end(self.group)
        self._ends[self._me] = end
        self._tell_all(LogEnd(end))
        self._compare()

    # From other servers.

    def received(self, server: int, data: bytes, at: int) -> None:
        """Another server of the domain has said this; `at` is where it begins."""
        message = decoded(_decoder, memoryview(data)[at:], "a malformed message about a log")
        match message:
            case LogEnd():
                if server not in self._ends:
                    self._ends[server] = message.end
                    self._compare()
            case Fetch():
                self._tell(server, self._answer(message.place))
            case Differs() if server == self._source:
                self._look_before(message.place)
            case Chunk() if server == self._source:
                self._take(message)
            case Ready():
                self._count(server, self._goal)
            case Kept():
                self._count(server, message.last)

    def _compare(self) -> None:
        """When all have told where their logs end, get what is missing here."""
        if len(self._ends) <= len(self._others):
            return
        best = max(self._ends.values())
        if best.epoch < self._least_epoch:
            self.is_stranded = True
            return
        if self._ends[self._me] == best:
            self._become_ready()
            return
        self._source = min(server for server, end in self._ends.items() if end == best)
        end = self._ends[self._me].place
        self._fetch(self._messages.place_at(self.group, end.last, end.epoch))

    @property
    def _goal(self) -> int:
        """The number of the last message in the log that is ahead."""
        return max(self._ends.values()).last

    def _count(self, server: int, last: int) -> None:
        """So much is on the disk of a server."""
        self._on_disk[server] = max(last, self._on_disk.get(server, 0))
        if not self.is_open and len(self._on_disk) == len(self._others) + 1:
            self.is_open = True
            self.given = self._goal

    def _fetch(self, after: Place) -> None:
        assert self._source is not None
        self._fetched = after
        self._tell(self._source, Fetch(after))

    def _answer(self, asked: Place) -> Chunk | Differs:
        """What follows there, if this log agrees so far."""
        messages, group = self._messages, self.group
        first = messages.first(group)
        if asked.last < first:
            return self._chunk(first - 1, True)
        found = messages.place_at(group, asked.last, asked.epoch)
        if found == asked:
            return self._chunk(asked.last, False)
        return Differs(found) if found.last >= first else self._chunk(first - 1, True)

    def _chunk(self, last: int, is_first: bool) -> Chunk:
        entries = self._messages.read(self.group, last + 1, CHUNK_MESSAGES, CHUNK_BYTES)
        return Chunk(last, is_first, entries)

    def _look_before(self, theirs: Place) -> None:
        """Ask again, for a place that both may have."""
        mine = self._messages.place_at(self.group, theirs.last, theirs.epoch)
        if mine.last >= self._fetched.last:
            raise PeerError("a server does not know what its log holds")
        self._fetch(mine)

    def _take(self, chunk: Chunk) -> None:
        messages, group = self._messages, self.group
        if chunk.is_first:
            messages.begin_after(group, chunk.last)
        elif chunk.last != self._fetched.last:
            raise PeerError("a server sends another part of its log than was asked for")
        elif chunk.last < messages.end(group).last:
            messages.cut(group, chunk.last)
        last = chunk.last
        for entry in chunk.entries:
            if entry.number != last + 1 or entry.count < 1:
                raise PeerError("a server sends a log with a gap")
            last = entry.last
        messages.append(group, chunk.entries)
        messages.commit()
        if last >= self._goal:
            self._become_ready()
        elif chunk.entries:
            self._fetch(messages.end(group).place)
        else:
            raise PeerError("a server does not have the log that it told of")

    def _become_ready(self) -> None:
        self._source = None
        self._messages.mark(self.group, self._epoch)
        self._messages.commit()
        self._tell_all(Ready())
        self._count(self._me, self.last)

    def _tell_all(self, message: FromKeeper) -> None:
        data = _encoder.encode(message)
        self.outgoing += [(server, data) for server in self._others]

    def _tell(self, server: int, message: FromKeeper) -> None:
        self.outgoing.append((server, _encoder.encode(message)))

    # What the domain delivers, and who reads it.

    def append(self, envelopes: Iterable[Envelope]) -> None:
        """Number what was delivered, and write it; then everything that was written is to be
        committed, of all groups."""
        entries = []
        last = self.last
        for envelope in envelopes:
            envelope.number = last + 1
            last += envelope.count
            entries.append(Entry(envelope.number, self._epoch, envelope.count, envelope.contents))
            self._waiting.append(envelope)
        self._messages.append(self.group, entries)
        self._messages.drop_old(self.group, self._keep)

    def committed(self) -> None:
        """What was written is on the disk."""
        if self._on_disk[self._me] < self.last:
            self._tell_all(Kept(self.last))
            self._count(self._me, self.last)

    def take_given(self) -> list[Envelope]:
        """What has come to the disks of all since."""
        everywhere = min(self._on_disk.values()) if self.is_open else 0
        taken: list[Envelope] = []
        while self._waiting and self._waiting[0].number <= everywhere:
            envelope = self._waiting.popleft()
            taken.append(envelope)
            self.given = envelope.number + envelope.count - 1
        return taken

    def finish(self, envelopes: Iterable[Envelope]) -> None:
        """Keep what is delivered last. Members are given it when a following domain is open, as all
        have it then."""
        self.append(envelopes)
        self._messages.commit()
        self._waiting.clear()
        self.was_open, self.is_open = self.is_open, False

    def read(self, number: int, most: int) -> list[Entry]:
        """Entries from the one with this message on, and no more when there are so many messages
        in them, or many bytes."""
        return self._messages.read(self.group, number, most, CHUNK_BYTES)
