"""The packets in flight to one process, as numbered values.

Over FIFO channels such a value is one queue for each sender, and only the oldest packet of each can
arrive; over channels that reorder it is a bag. Like the states of processes, these values are kept
once: putting a packet in and taking one out are table entries.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, final

from flexgroup.worlds.explorer.machine import Machine, short

EMPTY: Final = 0


@final
class InFlightPackets:
    """The table of all that was ever in flight to some process.

    Number 0 stands for nothing in flight, to whomever; its fingerprint is 0.
    """

    def __init__(self, machine: Machine, fifo: bool) -> None:
        self.contents: list[tuple[int, ...]] = [()]
        self.fingerprints: list[int] = [0]
        self.fifo = fifo
        self._machine = machine
        self._numbers: dict[tuple[int, ...], int] = {(): EMPTY}
        self._of_fingerprint: dict[int, int] = {0: EMPTY}
        self._heads: dict[int, list[int]] = {EMPTY: []}
        self._appended: dict[int, int] = {}

    def append(self, pending: int, event: int) -> int:
        """Return the number for one more packet in flight."""
        key = (pending << 30) | event
        known = self._appended.get(key)
        if known is None:
            known = self._appended[key] = self.with_contents(
                self._inserted(self.contents[pending], event)
            )
        return known

    def heads(self, pending: int) -> list[int]:
        """List each packet that can arrive, followed by the number of what is then left."""
        known = self._heads.get(pending)
        if known is None:
            known = self._heads[pending] = self._find_heads(self.contents[pending])
        return known

    def with_contents(self, contents: tuple[int, ...]) -> int:
        number = self._numbers.get(contents)
        if number is None:
            number = self._numbers[contents] = len(self.contents)
            self.contents.append(contents)
            out = bytearray()
            for event in contents:
                out += self._machine.events[event].fingerprint.to_bytes(8, "big")
            fingerprint = short(blake2b(out, digest_size=16, person=b"pending").digest())
            self.fingerprints.append(fingerprint)
            self._of_fingerprint[fingerprint] = number
        return number

    def of_fingerprint(self, fingerprint: int) -> int:
        return self._of_fingerprint[fingerprint]

    def _inserted(self, contents: tuple[int, ...], event: int) -> tuple[int, ...]:
        events = self._machine.events
        place = 0
        if self.fifo:
            source = events[event].source
            while place < len(contents) and events[contents[place]].source <= source:
                place += 1
        else:
            fingerprint = events[event].fingerprint
            while place < len(contents) and events[contents[place]].fingerprint < fingerprint:
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
