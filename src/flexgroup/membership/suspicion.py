"""Who hears whom, who is to go on, and who has to stand still.

A server is *silent* to another if nothing came from it within the time-out, and *gone* if its
machine says that the process is dead. Every server tells the others who is silent to it, so a
suspicion is asked about and confirmed at once (the text's SuspectServer and ReplySuspect).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class Timings:
    """The times that the failure detector goes by, all in seconds."""

    beat: float = 0.2
    """The longest that a server says nothing, and the time between repetitions."""
    patience: float = 2.0
    """How long another may say nothing, or not answer, before it is suspected."""

    @property
    def stall(self) -> float:
        """A server that had no event for this long must have been stopped itself."""
        return self.patience / 4

    @property
    def isolation(self) -> float:
        """Whoever hears too few for so long stands still.

        Shorter than `patience`: the others have not gone on without this server before it does.
        """
        return self.patience * 3 / 4

    @property
    def settling(self) -> float:
        """How long to wait for opinions on a suspect to agree."""
        return self.patience / 2


def may_continue(party: Collection[int], servers: Collection[int], gone: Collection[int]) -> bool:
    """Whether these servers may form the next configuration without the others.

    No two parties without a common member may, as long as members of both are alive. Servers
    that are gone count nonetheless, unless all others are: before it died, one of them may have
    agreed to a configuration with others that are alive.
    """
    if all(server in party or server in gone for server in servers):
        return True
    twice = 2 * len(party)
    return twice > len(servers) or (twice == len(servers) and min(servers) in party)


def without_cuts(servers: Collection[int], cuts: set[frozenset[int]]) -> tuple[int, ...]:
    """The servers that remain if of each two that do not hear each other one has to go.

    Whoever is cut from most goes first; of equals one that is cut from the oldest server
    concerned; of those the youngest. So of a pair that is cut, the younger one goes.
    """
    remaining = set(servers)
    while True:
        open_cuts = [cut for cut in cuts if cut <= remaining]
        if not open_cuts:
            return tuple(sorted(remaining))
        degree: dict[int, int] = {}
        for cut in open_cuts:
            for server in cut:
                degree[server] = degree.get(server, 0) + 1
        most = max(degree.values())
        oldest = min(degree)
        worst = [server for server in degree if degree[server] == most]
        from_oldest = [server for server in worst if frozenset((server, oldest)) in cuts]
        remaining.remove(max(from_oldest or worst))


class FailureDetector:
    """What one server knows about who hears whom in its configuration."""

    __slots__ = (
        "_confirmed_at",
        "_echoes",
        "_heard_at",
        "_isolated_at",
        "_last_event",
        "_me",
        "_opinions",
        "_refusing",
        "_servers",
        "_timings",
        "_uneasy_since",
        "awake_since",
        "gone",
    )

    def __init__(self, me: int, timings: Timings, now: float) -> None:
        self._me = me
        self._servers: tuple[int, ...] = ()
        self._timings = timings
        self._heard_at: dict[int, float] = {}
        self._echoes: dict[int, float] = {}
        """The time on the last beat from each server, by that server's clock."""
        self._confirmed_at: dict[int, float] = {}
        """When this server sent the last of its beats that the other has answered."""
        self._last_event = now
        self.awake_since = now
        self._opinions: dict[int, tuple[int, ...]] = {}
        self.gone: set[int] = set()
        self._refusing: set[int] = set()
        """Dead, but may have gone on without this server before."""
        self._uneasy_since: float | None = None
        self._isolated_at = NEVER
        """When this server last heard too few others."""

    def enter(self, servers: Collection[int], now: float) -> None:
        """A configuration of these servers is installed."""
        is_new_here = not self._servers
        self._servers = tuple(sorted(servers))
        others = [server for server in self._servers if server != self._me]
        self._heard_at = {s: self._heard_at.get(s, now) for s in others}
        self._echoes = {s: self._echoes.get(s, NEVER) for s in others}
        unconfirmed = NEVER if is_new_here else now
        self._confirmed_at = {s: self._confirmed_at.get(s, unconfirmed) for s in others}
        self._opinions.clear()
        self.gone.intersection_update(servers)
        self._refusing.intersection_update(servers)
        self._uneasy_since = None

    def passes(self, now: float) -> None:
        """Time has passed. What was not heard while this server was stopped is no silence."""
        if now - self._last_event > self._timings.stall:
            self.awake_since = now
        self._last_event = now

    def heard(self, server: int, now: float) -> None:
        if server in self._heard_at:
            self._heard_at[server] = now

    def refused(self, server: int, now: float) -> None:
        """The machine of this server is alive and says that the process is dead.

        It is gone for good if it is certain that it did not go on without this server before
        it died: it has heard this server so lately that it cannot have suspected it.
        """
        if server not in self._heard_at:
            return
        if now - self._confirmed_at[server] < self._timings.isolation:
            self.gone.add(server)
        elif server not in self.gone:
            self._refusing.add(server)

    def beaten(self, server: int, sent: float, echo: float, silent: tuple[int, ...]) -> None:
        """A beat came from a server that has the same configuration installed."""
        self._echoes[server] = sent
        self._confirmed_at[server] = max(echo, self._confirmed_at[server])
        self._opinions[server] = silent

    def echo(self, server: int) -> float:
        return self._echoes[server]

    def silent(self, now: float) -> tuple[int, ...]:
        """The servers that this one has not heard from within the time-out."""
        return self._unheard_for(self._timings.patience, now)

    def _unheard_for(self, seconds: float, now: float) -> tuple[int, ...]:
        return tuple(
            server
            for server, at in self._heard_at.items()
            if server in self.gone
            or server in self._refusing
            or now - max(at, self.awake_since) >= seconds
        )

    def is_isolated(self, now: float) -> bool:
        """Whether this server hears too few others to go on."""
        unheard = self._unheard_for(self._timings.isolation, now)
        party = [server for server in self._servers if server not in unheard]
        if may_continue(party, self._servers, self.gone):
            return False
        self._isolated_at = now
        return True

    def is_abandoned(self) -> bool:
        """Whether too many are dead for this server ever to go on, whoever is heard again."""
        alive = [s for s in self._servers if s not in self.gone and s not in self._refusing]
        return not may_continue(alive, self._servers, self.gone)

    def survivors(self, stuck: Collection[int], now: float) -> tuple[int, ...]:
        """Who should form the next configuration, as far as this server knows.

        `stuck` are servers that have to go whether they are heard or not.
        """
        silent = self.silent(now)
        present = [s for s in self._servers if s not in self.gone and s not in stuck]
        cuts = {frozenset((self._me, other)) for other in silent}
        for server in present:
            if server not in silent:
                for other in self._opinions.get(server, ()):
                    cuts.add(frozenset((server, other)))
        remaining = without_cuts(present, cuts)
        if len(remaining) == len(present):
            self._uneasy_since = None
        elif self._uneasy_since is None:
            self._uneasy_since = now
        return remaining

    def is_settled(self, party: tuple[int, ...], stuck: Collection[int], now: float) -> bool:
        """Whether all of the party confirm that the others are to go, or have had the time.

        When enough servers hear each other again, the rest of them get the time to come back.
        """
        suspects = [
            server
            for server in self._servers
            if server not in party and server not in self.gone and server not in stuck
        ]
        if suspects and now - self._isolated_at < self._timings.patience:
            return False
        silent = self.silent(now)
        if all(
            suspect in (silent if server == self._me else self._opinions.get(server, ()))
            for suspect in suspects
            for server in party
        ):
            return True
        since = self._uneasy_since
        return since is not None and now - since >= self._timings.settling
