"""A message on its way through White-Box: its phase, its timestamps, and who accepted them."""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, Stamp, clock_of, process_of, stamp
from flexgroup.core.replicas import Replicas
from flexgroup.protocols.parts.timestamps import FAR

# Phases.
START: Final = 0
PROPOSED: Final = 1
ACCEPTED: Final = 2
COMMITTED: Final = 3

State = tuple[int, ...]
"""What is told of a message to a new leader, and by it: the phase, the clock of the local
timestamp, clock and group of the global one."""

FORGOTTEN: Final[State] = (START, 0, 0, 0)
WIDTH: Final = 4
"""How many numbers tell the state of a message."""


@final
class Progress(Record):
    """What a process knows of a message."""

    m: Message
    groups: tuple[int, ...]
    """The numbers of its destination groups."""
    phase: int = START
    """Phase[m]. A message in the phase START is only remembered."""
    lts: Stamp = 0
    """LocalTS[m]: in the process's own group."""
    gts: Stamp = 0
    """GlobalTS[m], once it is committed."""
    accepts: dict[int, tuple[int, Stamp]] = {}
    """Ballot and local timestamp in the ACCEPT of the highest ballot that came from each group."""
    acks: dict[int, tuple[int, ...]] = {}
    """The ballots in the last ACCEPT_ACK of each process, at a leader, until it is committed."""

    def members(self, replicas: Replicas) -> list[tuple[int, ...]]:
        """Those of each of its destination groups."""
        return [replicas[group] for group in self.groups]

    def ballots(self, own: int, cballot: int) -> tuple[int, ...]:
        """Bal: the ballots in the ACCEPTs of all groups.

        Nothing, unless all have come and that of the process's own group is of this ballot.
        """
        if len(self.accepts) < len(self.groups) or self.accepts[own][0] != cballot:
            return ()
        return tuple([self.accepts[group][0] for group in self.groups])

    def ballot_acknowledged(self, process: int, ballots: tuple[int, ...], own: int) -> int:
        """The ballot of the process's own group that another one acknowledges, if that is a
        destination and names a ballot of each group; a number that is none otherwise."""
        if process in self.m.destinations and len(ballots) == len(self.groups):
            return ballots[self.groups.index(own)]
        return FAR

    def highest(self) -> Stamp:
        """The highest of the local timestamps in the ACCEPTs."""
        return max([lts for _, lts in self.accepts.values()])

    def place(self) -> Stamp:
        """The timestamp by which it is ordered: the global one or, while unknown, the local one."""
        return self.gts or self.lts

    def propose(self, lts: Stamp) -> None:
        self.phase = PROPOSED
        self.lts = lts

    def accept(self, own: int) -> bool:
        """Accept what the leader of the process's own group proposed, if that is new."""
        if self.phase >= ACCEPTED:
            return False
        self.phase = ACCEPTED
        self.lts = self.accepts[own][1]
        return True

    def commit(self) -> None:
        self.phase = COMMITTED
        self.gts = self.highest()
        self.acks.clear()

    def is_committed(self) -> bool:
        return self.phase == COMMITTED

    def is_acknowledged(self, ballots: tuple[int, ...], replicas: Replicas) -> bool:
        """Tell whether majorities of all groups have acknowledged these ballots, and no others."""
        for members in self.members(replicas):
            if 2 * len([j for j in members if self.acks.get(j) == ballots]) <= len(members):
                return False
        return ballots != ()

    def state(self) -> State:
        return (self.phase, clock_of(self.lts), clock_of(self.gts), process_of(self.gts))

    def restore(self, state: State, own: int) -> None:
        """Take over the state that a ballot begins with; what is committed stays so."""
        if self.phase != COMMITTED:
            self.phase = state[0]
            self.lts = stamp(state[1], own) if state[1] else 0
            self.gts = stamp(state[2], state[3])
