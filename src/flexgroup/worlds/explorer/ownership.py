"""Several searches that share the states among them: who owns a state, and states on their way.

The states of a few processes tell who owns a state of the system, mostly that of one. So only the
moves of these processes lead from what one worker owns to what another does.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i32_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from flexgroup.worlds.explorer.machine import Machine
from flexgroup.worlds.explorer.spilled import NONE
from flexgroup.worlds.explorer.symmetry import Symmetry

_REMEMBERED: Final = 1 << 16
"""How many of the states that it has posted a worker remembers, so as not to post them again
before it hands them out."""


@final
class Ownership:
    """The owner of each state, told by the fingerprints of the states of some processes."""

    def __init__(
        self, machine: Machine, symmetry: Symmetry | None, actors: list[int], workers: int
    ) -> None:
        self.actors = actors
        self.workers = workers
        self._machine = machine
        self._symmetry = symmetry
        self._places = vec[i64]([2 * actor for actor in actors])
        self._tell: i64 = sum([1 << actor for actor in actors])
        """The processes whose states tell the owner, as bits."""
        self._count: i64 = workers
        self._shares = vec[i64]()
        """What each state of a process tells: a number below that of the workers."""

    def is_told_by(self, actor: i64) -> bool:
        """Whether the owner of a state may be another one after a move of this process."""
        return (self._tell >> actor) & 1 == 1

    def owner(self, state: vec[i32]) -> i64:
        told: i64 = 0
        for place in self._places:
            told += self._share(i64(state[place]))
            if told >= self._count:
                told -= self._count
        return told

    def owner_of(self, state: list[int]) -> int:
        """Return the owner of a state that is a list of numbers."""
        return int(self.owner(vec[i32](state)))

    def _share(self, local: i64) -> i64:
        while i64(len(self._shares)) <= local:
            self._shares = append(self._shares, NONE)
        share = self._shares[local]
        if share == NONE:
            # The lowest fingerprint under all exchanges of clients.
            kind = self._machine.locals[int(local)].fingerprint
            if self._symmetry is not None:
                for mirror in self._symmetry.mirrors:
                    twin = self._symmetry.local(mirror, int(local))
                    kind = min(kind, self._machine.locals[twin].fingerprint)
            share = i64(kind) % self._count
            self._shares[local] = share
        return share


@final
class Sharing:
    """The part of a search that is one of several, and what it has found for the others.

    What is posted are records: the fingerprint that counts, the parent's, with symmetry that of the
    state itself, and the row of numbers, which are the sender's.
    """

    def __init__(self, ownership: Ownership, me: int, stride: i64, symmetric: bool) -> None:
        self.me = me
        self.ownership = ownership
        self.posted = 0
        self.symmetric = symmetric
        self._stride = stride
        self._out = [BytesWriter() for _ in range(ownership.workers)]
        self._remembered = vec[i64]([NONE] * _REMEMBERED)

    def post(
        self, owner: i64, state: vec[i32], canonical: i64, fingerprint: i64, parent: i64
    ) -> None:
        """Put a state aside for its owner, unless it is there already."""
        place = canonical & (_REMEMBERED - 1)
        if self._remembered[place] == canonical:
            return
        self._remembered[place] = canonical
        out = self._out[int(owner)]
        write_i64_le(out, canonical)
        write_i64_le(out, parent)
        if self.symmetric:
            write_i64_le(out, fingerprint)
        part: i64 = 0
        while part < self._stride:
            write_i32_le(out, state[part])
            part += 1
        self.posted += 1

    def waiting(self) -> int:
        """Return how many bytes are put aside."""
        waiting = 0
        for out in self._out:
            waiting += len(out)
        return waiting

    def collect(self) -> list[bytes]:
        """Hand out what was put aside for each worker."""
        collected = [out.getvalue() for out in self._out]
        self._out = [BytesWriter() for _ in collected]
        # Who comes back to a state of an earlier level has to post it, or nobody would know.
        place: i64 = 0
        while place < _REMEMBERED:
            self._remembered[place] = NONE
            place += 1
        return collected
