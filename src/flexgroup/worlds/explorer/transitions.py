"""What a search handles besides states: transitions, budgets of faults, violations, outboxes."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple, final

from librt.vecs import vec
from mypy_extensions import i32, i64

from flexgroup.worlds.explorer.machine import short
from flexgroup.worlds.explorer.visited import Visited

# What a transition is: an event at a process, or something that the network does to a packet.
EVENT: Final = 0
LOSS: Final = 1
DUPLICATION: Final = 2

# Positions in `Bounds.as_tuple()`.
CRASHES: Final = 0
SUSPICIONS: Final = 1
LOSSES: Final = 2
DUPLICATES: Final = 3
TIMERS: Final = 4


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


@final
class Transition:
    """A transition out of a state, and the state it leads to."""

    __slots__ = ("actor", "after", "event", "kind")

    def __init__(self, kind: int, actor: int, event: int, after: list[int]) -> None:
        self.kind = kind
        self.actor = actor
        self.event = event
        self.after = after


class StateViolation(NamedTuple):
    """A property that does not hold in a state, and the level of the state."""

    property: str
    fingerprint: int
    level: int


@final
class OutgoingStates:
    """States on their way to the worker that owns them, with their parents' fingerprints."""

    def __init__(self) -> None:
        self.states = vec[i32]()
        self.fingerprints = vec[i64]()
        self.parents = vec[i64]()
        self.sent = Visited()
