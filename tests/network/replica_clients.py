"""Clients of groups of replicas: they send and receive all the time over one server, come back when
they lose it, and what they saw is held against each other in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from flexgroup import Link, connect
from flexgroup.core.errors import FlexGroupError

Numbered = list[tuple[int, bytes]]
"""What a member was given: the number of each message, and the message."""

PAUSE = 0.1
"""Seconds until it tries again to connect."""


class Client:
    """Connected to one server, again and again."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self._address = address
        self._link: Link | None = None
        self._failures = 0
        """How often it has begun anew."""
        self._why = ""
        """Why it did so the last time."""

    async def run(self) -> None:
        raise NotImplementedError

    async def _connect(self) -> Link:
        self._link = await connect(self._address, name=self.name, timeout=5)
        return self._link

    async def _begin_anew(self, error: FlexGroupError) -> None:
        """Take a moment before the next attempt. The server would otherwise keep what was given
        up, with the places in groups that it may still get."""
        self._failures += 1
        self._why = f"{type(error).__name__}: {error}"
        if self._link is not None:
            self._link.connection.abort()
        await asyncio.sleep(PAUSE)

    def __str__(self) -> str:
        why = f" ({self._why})" if self._why else ""
        return f"{self.name} over {self._address}, begun anew {self._failures} times{why}"

    async def close(self) -> None:
        if self._link is not None:
            with suppress(FlexGroupError):
                await self._link.close()


class Listener(Client):
    """A member over one server. Whenever it loses that it joins again."""

    def __init__(self, name: str, address: str, group: str) -> None:
        super().__init__(name, address)
        self.group = group
        self.lives: list[Numbered] = []
        """What it was given in each membership."""
        self.is_in = False

    @property
    def last(self) -> int:
        """The number of what it was given last; 0: nothing since it joined."""
        return self.lives[-1][-1][0] if self.lives and self.lives[-1] else 0

    async def run(self) -> None:
        while True:
            try:
                joined = await (await self._connect()).join(self.group)
                seen: Numbered = []
                self.lives.append(seen)
                self.is_in = True
                while True:
                    message = await joined.receive()
                    seen.append((message.number, message.body))
            except FlexGroupError as error:
                self.is_in = False
                await self._begin_anew(error)

    def __str__(self) -> str:
        given = [len(life) for life in self.lives]
        is_in = "in" if self.is_in else "not in"
        return f"{super().__str__()}: {is_in} {self.group}, given {given}, the last is {self.last}"


class Sender(Client):
    """Sends one message after another over one server, each when the one before is confirmed."""

    def __init__(
        self, name: str, address: str, choices: Sequence[Sequence[str]], pause: float
    ) -> None:
        """`choices` are sets of groups that it sends to in turn, the group of its server first;
        `pause` is how many seconds it thinks before the next message."""
        super().__init__(name, address)
        self.confirmed: list[tuple[bytes, Sequence[str]]] = []
        """What it sent, and to which groups, as far as it knows that it is delivered."""
        self.is_over = False
        """It sends nothing any more."""
        self._choices = choices
        self._pause = pause
        self._sent = 0

    async def run(self) -> None:
        while not self.is_over:
            try:
                link = await self._connect()
                names = dict.fromkeys(name for choice in self._choices for name in choice)
                group = {name: await link.attach(name) for name in names}
                while not self.is_over:
                    chosen = self._choices[self._sent % len(self._choices)]
                    body = f"{self.name}.{self._sent}".encode()
                    self._sent += 1
                    await link.multicast([group[name] for name in chosen], body)
                    await group[chosen[0]].confirm()
                    self.confirmed.append((body, chosen))
                    await asyncio.sleep(self._pause)
            except FlexGroupError as error:
                await self._begin_anew(error)

    def __str__(self) -> str:
        return f"{super().__str__()}: sent {self._sent}, confirmed {len(self.confirmed)}"


def problems(listeners: Sequence[Listener], senders: Iterable[Sender]) -> Iterator[str]:
    """Where members of a group were not given parts of one sequence, without gaps, with everything
    in it that was confirmed, and nothing twice."""
    confirmed = [one for sender in senders for one in sender.confirmed]
    for group in sorted({listener.group for listener in listeners}):
        sequence: dict[int, bytes] = {}
        for listener in listeners:
            for life in listener.lives if listener.group == group else ():
                numbers = [number for number, _ in life]
                if life and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
                    yield f"a member of {group} was given a sequence with gaps: {numbers}"
                for number, body in life:
                    if sequence.setdefault(number, body) != body:
                        yield f"{group} has {sequence[number]!r} and {body!r} at {number}"
        if len(set(sequence.values())) != len(sequence):
            yield f"a member of {group} was given a message twice"
        # Some may have been delivered while no member was connected to anybody.
        holes = set(range(1, max(sequence, default=0) + 1)) - set(sequence)
        missing = {body for body, groups in confirmed if group in groups} - set(sequence.values())
        if len(missing) > len(holes):
            yield f"of {group}, {sorted(missing)} were confirmed, and {len(holes)} are not known"
