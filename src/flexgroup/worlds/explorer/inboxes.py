"""The packets on their way to one process, as numbered values.

Over FIFO channels an inbox is one queue for each sender, and only the oldest packet of each
can arrive; over channels that reorder it is a bag. Like the states of processes, inboxes are
kept once: putting a packet in and taking one out are table entries.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, final

from flexgroup.worlds.explorer.machine import Machine, short

EMPTY: Final = 0


@final
class Inboxes:
    """Number 0 is the empty inbox of whoever it may be; its fingerprint is 0."""

    def __init__(self, machine: Machine, fifo: bool) -> None:
        self.contents: list[tuple[int, ...]] = [()]
        self.fingerprints: list[int] = [0]
        self.fifo = fifo
        self._machine = machine
        self._numbers: dict[tuple[int, ...], int] = {(): EMPTY}
        self._of_fingerprint: dict[int, int] = {0: EMPTY}
        self._heads: dict[int, list[int]] = {EMPTY: []}
        self._appended: dict[int, int] = {}

    def append(self, inbox: int, event: int) -> int:
        """The inbox with one more packet."""
        key = (inbox << 30) | event
        known = self._appended.get(key)
        if known is None:
            known = self._appended[key] = self.with_contents(
                self._inserted(self.contents[inbox], event)
            )
        return known

    def heads(self, inbox: int) -> list[int]:
        """Each packet that can arrive, followed by the inbox without it."""
        known = self._heads.get(inbox)
        if known is None:
            known = self._heads[inbox] = self._find_heads(self.contents[inbox])
        return known

    def with_contents(self, contents: tuple[int, ...]) -> int:
        number = self._numbers.get(contents)
        if number is None:
            number = self._numbers[contents] = len(self.contents)
            self.contents.append(contents)
            out = bytearray()
            for event in contents:
                out += self._machine.events[event].fingerprint.to_bytes(8, "big")
            mark = short(blake2b(out, digest_size=16, person=b"inbox").digest())
            self.fingerprints.append(mark)
            self._of_fingerprint[mark] = number
        return number

    def of_fingerprint(self, mark: int) -> int:
        return self._of_fingerprint[mark]

    def _inserted(self, contents: tuple[int, ...], event: int) -> tuple[int, ...]:
        events = self._machine.events
        place = 0
        if self.fifo:
            source = events[event].source
            while place < len(contents) and events[contents[place]].source <= source:
                place += 1
        else:
            mark = events[event].fingerprint
            while place < len(contents) and events[contents[place]].fingerprint < mark:
                place += 1
        return (*contents[:place], event, *contents[place:])

    def _find_heads(self, contents: tuple[int, ...]) -> list[int]:
        events = self._machine.events
        found: list[int] = []
        previous = -1
        for place, event in enumerate(contents):
            # What belongs together stands together, so looking one place back suffices.
            group = events[event].source if self.fifo else event
            if group != previous:
                rest = self.with_contents((*contents[:place], *contents[place + 1 :]))
                found.append(event)
                found.append(rest)
            previous = group
        return found
