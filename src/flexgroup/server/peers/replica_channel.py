"""A channel between two replicas: reliable and in order while both run, whatever links do.

Each time that a replica starts is an *incarnation*, with a number of its own. What one incarnation
sends to another is kept until that has told that it got it, and sent again on the next link if one
breaks. When the other has started again, what was meant for its earlier incarnation is lost, as at
any crash, and the channel begins anew.

Nothing goes out before the other has said hello on the link: with its incarnation, and how much it
got, and whose replica it is: what another one says would be taken for promises of this one. If
there is too much to keep, or the other has left the servers, it is given up: it is told
when it comes back, and has to start again from what it stored. If it has nothing to start from, its
server says that it is lost.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final, final

from flexgroup.core.errors import PeerError
from flexgroup.core.varints import Reader, varints

# What a frame says.
HELLO: Final = 0
DATA: Final = 1
GOT: Final = 2
LOST: Final = 3

MOST_BYTES = 64 << 20
"""How much is kept for a replica that does not tell that it gets it."""


@final
class ReplicaChannel:
    def __init__(self, name: str, other: str) -> None:
        self._name = name
        """What tells this replica from all others."""
        self._other = other
        """What tells the replica so that is to be at the other end."""
        self.link = 0
        """The link on which the last hello went out; 0: none."""
        self.is_open = False
        """The other has said hello on that link."""
        self._known = 0
        """The last incarnation of the other that said hello; 0: none has."""
        self._given_up = 0
        """The incarnations of the other up to this one are given up."""
        self.is_lost = False
        """What is sent is for nobody, until the other says hello in a later incarnation."""
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._first = 0
        """The number of the first that is kept, among all that was sent to that incarnation."""
        self._got = 0
        """How much has come from that incarnation."""
        self._told = 0
        """How much of that it knows to have come."""

    @property
    def kept(self) -> int:
        """How many bytes wait until the other tells that it got them."""
        return self._kept_bytes

    def give_up(self) -> None:
        """Keep nothing for the other as it is now: it has to start again."""
        self._given_up = max(self._given_up, self._known, 1)
        self.is_lost = True
        self._forget()

    def _forget(self) -> None:
        self._kept.clear()
        self._kept_bytes = 0
        self.is_open = False

    def hello(self, incarnation: int) -> bytes:
        """What this replica says first on a link, and whenever it is asked to say it."""
        wants_answer = 0 if self.is_open else 1
        name = self._name.encode()
        numbers = [HELLO, incarnation, self._known, self._got, self._given_up, wants_answer]
        return varints([*numbers, len(name)]) + name

    def send(self, incarnation: int, data: bytes) -> list[bytes]:
        """What goes out when a replica sends this."""
        if self.is_lost:
            return []
        self._kept.append(data)
        self._kept_bytes += len(data)
        if self._kept_bytes > MOST_BYTES:
            self.give_up()
            return [self.hello(incarnation)]
        if not self.is_open:
            return []
        return [self._data(incarnation, self._first + len(self._kept) - 1, data)]

    def _data(self, incarnation: int, number: int, data: bytes) -> bytes:
        self._told = self._got
        return varints([DATA, incarnation, self._known, number, self._got]) + data

    def got(self, incarnation: int) -> list[bytes]:
        """Tell the other how much has come, if it does not know that."""
        if not self.is_open or self._told == self._got:
            return []
        self._told = self._got
        return [varints([GOT, incarnation, self._known, self._got])]

    # What the other says.

    def said_hello(self, incarnation: int, reader: Reader) -> tuple[int, list[bytes]]:
        """Which incarnation of this replica the other has given up, if it is this one or a later
        one, and 0 otherwise; and what goes out."""
        others = reader.varint()
        known = reader.varint()
        got = reader.varint()
        given_up = reader.varint()
        wants_answer = reader.varint()
        said = reader.bytes().decode(errors="replace")
        if said != self._other:
            raise PeerError(f"{said} answers for {self._other}")
        if given_up >= incarnation:
            return given_up, []
        if others < self._known:
            self._given_up = max(self._given_up, self._known)  # somebody has put back its files
        if others <= self._given_up:
            return 0, [self.hello(incarnation)]
        if others > self._known:
            if self._known:
                self._forget()  # it was meant for one that has crashed
            self._known = others
            self.is_lost = False
            self._first = self._got = self._told = 0
        got = got if known == incarnation else 0
        self._confirm(got)
        if got != self._first:
            raise PeerError(f"a replica got {got} frames, and was sent {self._first} it forgot")
        self.is_open = True
        out = [self.hello(incarnation)] if wants_answer else []
        out += [
            self._data(incarnation, self._first + place, data)
            for place, data in enumerate(self._kept)
        ]
        return 0, out

    def came(self, incarnation: int, reader: Reader) -> bool:
        """Whether what follows in a frame of data is what comes next."""
        others, mine = reader.varint(), reader.varint()
        number = reader.varint()
        if others != self._known or mine != incarnation or not self.is_open:
            return False
        self._confirm(reader.varint())
        if number > self._got:
            raise PeerError(f"a replica sends frame {number}, where {self._got} was due")
        if number < self._got:
            return False
        self._got += 1
        return True

    def told(self, incarnation: int, reader: Reader) -> None:
        others, mine = reader.varint(), reader.varint()
        if others == self._known and mine == incarnation and self.is_open:
            self._confirm(reader.varint())

    def _confirm(self, got: int) -> None:
        """The other has so much of what was sent."""
        count = got - self._first
        if count > len(self._kept):
            raise PeerError(f"a replica got {got} frames, more than it was sent")
        if count > 0:
            self._kept_bytes -= sum(map(len, islice(self._kept, count)))
            for _ in range(count):
                self._kept.popleft()
            self._first = got
