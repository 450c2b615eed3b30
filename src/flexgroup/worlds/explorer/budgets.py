"""The stock of faults that all processes of a search draw on."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, final

from flexgroup.worlds.explorer.machine import CRASH, CUT, RESTART, SUSPECT, TIMER, short

# The places of the fields of `Bounds`.
CRASHES: Final = 0
SUSPICIONS: Final = 1
LOSSES: Final = 2
DUPLICATES: Final = 3
TIMERS: Final = 4
RESTARTS: Final = 5

STOCKS: Final = {
    TIMER: TIMERS, CRASH: CRASHES, CUT: CRASHES, SUSPECT: SUSPICIONS, RESTART: RESTARTS
}  # fmt: skip
"""What each kind of event draws on; others are free."""


@final
class Budgets:
    """The faults that are still allowed, as numbered values; number 0 allows all of them."""

    def __init__(self, whole: tuple[int, ...]) -> None:
        self.left: list[tuple[int, ...]] = []
        self.fingerprints: list[int] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._of_fingerprint: dict[int, int] = {}
        self.number(whole)

    def number(self, left: tuple[int, ...]) -> int:
        found = self._numbers.get(left, -1)
        if found < 0:
            found = self._numbers[left] = len(self.left)
            self.left.append(left)
            text = ",".join([str(count) for count in left])
            fingerprint = short(blake2b(text.encode(), person=b"budget").digest())
            self.fingerprints.append(fingerprint)
            self._of_fingerprint[fingerprint] = found
        return found

    def of_fingerprint(self, fingerprint: int) -> int:
        return self._of_fingerprint[fingerprint]

    def less(self, number: int, what: int) -> int:
        left = list(self.left[number])
        left[what] -= 1
        return self.number(tuple(left))
