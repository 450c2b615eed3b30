"""Who hears whom, who is to go on, and who has to stand still.

A server is *silent* to another if nothing came from it for as long as it has asked for, and *gone*
if its machine says that the process is dead. Every server tells the others who is silent to it, so
a suspicion is asked about and confirmed at once (the text's SuspectServer and ReplySuspect).
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import Final, final

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import Server
from flexgroup.membership.messages import Ballot, Beat
from flexgroup.membership.patience import LinkPatience, lease, stall
from flexgroup.membership.timings import Timings

NEVER: Final = -inf

MOST_GIVEN_UP: Final = 1000
"""So many attempts to join that came to nothing are remembered; there is more than one only where
much goes wrong at once."""


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


@final
class FailureDetector:
    """What one server knows about who hears whom in its configuration."""

    __slots__ = (
        "_admitted_at",
        "_ahead",
        "_asked",
        "_confirmed_at",
        "_down",
        "_echoes",
        "_given_up",
        "_granted",
        "_heard_at",
        "_isolated_at",
        "_keeping",
        "_last_event",
        "_leases",
        "_least_asked",
        "_lost_newcomers",
        "_me",
        "_never_came",
        "_opinions",
        "_patience",
        "_refusing",
        "_servers",
        "_since",
        "_timings",
        "_uneasy_since",
        "awake_since",
        "gone",
    )

    def __init__(self, me: int, timings: Timings, now: float, since: float = NEVER) -> None:
        """`since` is a time before any other server had a configuration with this one."""
        self._me = me
        self._servers: tuple[int, ...] = ()
        self._timings = timings
        self._heard_at: dict[int, float] = {}
        self._echoes: dict[int, tuple[float, float]] = {}
        """The time on the last beat from each server, by that server's clock, and the patience
        that this beat asked for."""
        self._asked: dict[int, float] = {}
        """The patience that each server has asked for last."""
        self._least_asked = timings.patience
        self._granted: dict[int, float] = {}
        """The time before which each server is not missed, whatever it asks for after that."""
        self._confirmed_at: dict[int, float] = {}
        """When this server sent the last of its beats that the other has answered."""
        self._leases: dict[int, float] = {}
        """The time up to which this server relies on each other one not to miss it."""
        self._patience: dict[int, LinkPatience] = {}
        self._admitted_at = now
        self._since = since
        self._last_event = now
        self.awake_since = now
        self._opinions: dict[int, tuple[int, ...]] = {}
        self._ahead: dict[int, Beat] = {}
        """The last beat of each server that has the following configuration already."""
        self.gone: set[int] = set()
        self._given_up: dict[int, None] = {}
        """The attempts to join that came to nothing, as far as anybody told of them."""
        self._never_came: set[int] = set()
        """Those of them who never had a configuration with this one."""
        self._refusing: set[int] = set()
        """Dead, but may have gone on without this server before."""
        self._keeping: set[int] = set()
        """The servers that keep data: when they are dead, they may come back."""
        self._down: set[int] = set()
        """Those of them that are dead now."""
        self._lost_newcomers: set[int] = set()
        """Those who are dead of the servers that may be of the next configuration."""
        self._uneasy_since: float | None = None
        self._isolated_at = NEVER
        """When this server last heard too few others."""

    def enter(self, servers: Collection[int], now: float, keeping: Collection[int] = ()) -> None:
        """A configuration of these servers is installed, of whom some keep data."""
        is_new_here = not self._servers
        self._servers = tuple(sorted(servers))
        others = [server for server in self._servers if server != self._me]
        self._heard_at = {s: self._heard_at.get(s, now) for s in others}
        self._echoes = {s: self._echoes.get(s, (NEVER, 0.0)) for s in others}
        longest = self._timings.patience
        self._asked = {s: self._asked.get(s, longest) for s in others}
        self._least_asked = min(self._asked.values(), default=longest)
        # Who is new to another relies on the longest patience; so does who was promised something
        # before that one came back.
        self._granted = {s: self._granted.get(s, now + longest) for s in others}
        self._confirmed_at = {s: self._confirmed_at.get(s, NEVER) for s in others}
        # Nobody misses a server before it has been in the same configuration for the longest.
        unconfirmed = (self._since if is_new_here else now) + lease(longest)
        self._leases = {s: self._leases.get(s, unconfirmed) for s in others}
        known = self._patience
        least = self._timings.shortest_patience
        self._patience = {s: known.get(s) or LinkPatience(least, longest) for s in others}
        if is_new_here:
            self._admitted_at = now
        self._opinions.clear()
        self.gone.intersection_update(servers)
        self._never_came.intersection_update(servers)
        self._refusing.intersection_update(servers)
        self._keeping = set(keeping)
        self._down.intersection_update(servers)
        self._lost_newcomers.clear()
        self._uneasy_since = None

    def enter_configuration(self, at: int, servers: Collection[Server], now: float) -> None:
        """The configuration of this number is installed, with these servers. Some may have given
        up their attempts to join, and told so, before it was; others may have it already."""
        keeping = [server.number for server in servers if server.keeps_data]
        self.enter([server.number for server in servers], now, keeping)
        self._leave_out_given_up(servers)
        ahead, self._ahead = self._ahead, {}
        for beat in ahead.values():
            if beat.at == at and beat.sender in self._heard_at:
                self.beaten(beat, now)

    def came_back(self, now: float) -> None:
        """This server has been started again, and the others may be starting, too."""
        self._isolated_at = now

    def passes(self, now: float) -> None:
        """Time has passed. What was not heard while this server was stopped is no silence."""
        if now - self._last_event > stall(self._least_asked):
            self.awake_since = now
        self._last_event = now

    def heard(self, server: int, now: float) -> None:
        if server in self._heard_at:
            self._heard_at[server] = now
            if server in self._down:
                self._down.discard(server)
                self._refusing.discard(server)
        elif self._lost_newcomers:
            self._lost_newcomers.discard(server)

    def is_to_be_answered(self, beat: Beat, now: float) -> bool:
        """Whether not to wait for the next beat: its sender is new, or neither has heard the other
        for a while. Nobody can rely on anything before beats have been answered."""
        return beat.echo == NEVER or now >= self._leases[beat.sender]

    def has_beaten(self, server: int) -> bool:
        """Whether that server has ever said that it has a configuration with this one."""
        return self.echo(server)[0] != NEVER

    def never_beaten(self) -> list[int]:
        """The other servers of the configuration that have never said so."""
        return [server for server in self._heard_at if not self.has_beaten(server)]

    def was_heard_since(self, since: float, server: int) -> bool:
        return self._heard_at.get(server, NEVER) > since

    def refused(self, server: int, now: float) -> None:
        """The machine of this server is alive and says that the process is dead.

        It is gone for good if it is certain that it did not go on without this server before
        it died: it has heard this server so lately that it cannot have suspected it. One that
        keeps data may come back, and is never gone for good.
        """
        if server not in self._heard_at:
            self._lost_newcomers.add(server)
        elif server in self._keeping:
            self._down.add(server)
        elif now < self._leases[server]:
            self.gone.add(server)
        elif server not in self.gone:
            self._refusing.add(server)

    def given_up(self, servers: Collection[Server], attempts: tuple[int, ...]) -> None:
        """These attempts to join ended before they came to a configuration. A server that came with
        one of them has gone on with nobody, and never will."""
        self._given_up |= dict.fromkeys(attempts)
        while len(self._given_up) > MOST_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]
        self._leave_out_given_up(servers)

    def _leave_out_given_up(self, servers: Collection[Server]) -> None:
        for server in servers:
            is_given_up = server.attempt in self._given_up and bool(server.attempt)
            if is_given_up and not self.has_beaten(server.number):
                self.gone.add(server.number)
                self._never_came.add(server.number)

    def replaced(self, server: int, now: float) -> None:
        """Another server is where this one was, so nobody need wait for it to come back."""
        self.refused(server, now)
        if server in self._down:
            self._refusing.add(server)

    def beaten(self, beat: Beat, now: float) -> None:
        """A beat came from a server that has the same configuration installed."""
        self._promise(beat, now)
        self._opinions[beat.sender] = _without_itself(beat)

    def beaten_elsewhere(self, beat: Beat, at: int, now: float) -> None:
        """A beat came from a server of this configuration, `at`, that has installed another one.

        What servers promise each other holds on in the following configuration. If it counted only
        where both have installed the same one, every change would cost them the beats on their
        way, and where these take long, leases: they would stand still, and the change out of that
        would cost them the next ones.
        """
        if beat.at == at + 1:
            # Who has missed a configuration is not to rely on those who went on.
            self._ahead[beat.sender] = beat
        elif beat.at < at and self.has_beaten(beat.sender):  # so this server is in that one
            self._promise(beat, now)

    def _promise(self, beat: Beat, now: float) -> None:
        """Promise the sender what it asks for, and rely on what it promises."""
        server = beat.sender
        self._echoes[server] = beat.sent, beat.patience
        if self._asked[server] != beat.patience:
            self._asked[server] = beat.patience
            self._least_asked = min(self._asked.values())
        self._granted[server] = max(self._granted[server], now + beat.patience)
        self._rely_on(beat, now)

    def beaten_in_vain(self, beat: Beat, now: float) -> None:
        """A beat came that is not to be confirmed by an echo."""
        self._rely_on(beat, now)
        self._opinions[beat.sender] = _without_itself(beat)

    def _rely_on(self, beat: Beat, now: float) -> None:
        """An echo of what was never sent confirms nothing."""
        server = beat.sender
        if self._admitted_at <= beat.echo <= self._last_event:
            asked = min(beat.echoed_patience, self._timings.patience)
            self._leases[server] = max(self._leases[server], beat.echo + lease(asked))
            self._confirm(server, beat.echo, now)

    def _confirm(self, server: int, sent: float, now: float) -> None:
        before = self._confirmed_at[server]
        if sent > before:
            self._confirmed_at[server] = sent
            if before != NEVER:
                self._patience[server].waited(now - before)

    def check_beat(self, beat: Beat) -> None:
        """Raise PeerError for one that no server sends."""
        if not 0 < beat.patience < inf or not beat.echoed_patience >= 0:
            raise PeerError(f"a beat asks for a patience of {beat.patience:g} s")

    def beat_for(
        self, server: int, at: int, promised: Ballot, silent: tuple[int, ...], now: float
    ) -> Beat:
        """The beat to send to another server, from one that has configuration `at` installed, and
        to which these are silent."""
        echo, echoed_patience = self.echo(server)
        patience = self.patience_asked_of(server)
        return Beat(self._me, at, now, echo, silent, promised, patience, echoed_patience)

    def echo(self, server: int) -> tuple[float, float]:
        """The time on the last beat of this server, and the patience that it asked for."""
        return self._echoes.get(server, (NEVER, 0.0))

    def patience_asked_of(self, server: int) -> float:
        """How long this server is to miss nothing of the one that asks."""
        known = self._patience.get(server)
        return self._timings.patience if known is None else known.seconds

    def patience_with(self, server: int) -> float:
        """How long that server may say nothing, or not answer, before it is suspected."""
        return self._asked.get(server, self._timings.patience)

    def has_had_time(self, server: int, since: float, now: float) -> bool:
        """Whether an answer of this server has been waited for so long that it may be left out,
        though it is heard; it has not been confirmed for a while that it is (`is_confirmed`)."""
        patience = self.patience_with(server)
        assured = self._granted.get(server, NEVER) - patience + lease(patience)
        return now - since >= patience and now >= assured

    def is_confirmed(self, server: int, since: float, now: float) -> bool:
        """Whether that server is told that it is heard, while an answer of it is waited for.

        What it is told last holds until it may be left out, and no longer: should this server
        die then, the other one must not be certain that nobody went on without it.
        """
        patience = self.patience_with(server)
        return now - since < patience - lease(patience)

    def silent(self, now: float) -> tuple[int, ...]:
        """The servers that this one has not heard from for as long as they asked for."""
        if self._hears_all(self._least_asked, now):
            return ()  # as a rule; where there are many servers, it is asked very often
        return tuple(
            server
            for server, at in self._heard_at.items()
            if self._is_dead(server)
            or (
                now - max(at, self.awake_since) >= self._asked[server]
                and now >= self._granted[server]
            )
        )

    def unheard_for(self, seconds: float, now: float) -> tuple[int, ...]:
        """The servers that are dead or have not been heard for so long."""
        if self._hears_all(seconds, now):
            return ()
        return tuple(
            server
            for server, at in self._heard_at.items()
            if self._is_dead(server) or now - max(at, self.awake_since) >= seconds
        )

    def _hears_all(self, seconds: float, now: float) -> bool:
        """Whether nobody is dead, and all have been heard within this time."""
        if self.gone or self._refusing or self._down:
            return False
        heard_at = self._heard_at
        return not heard_at or now - min(heard_at.values()) < seconds

    def _is_dead(self, server: int) -> bool:
        return server in self.gone or server in self._refusing or server in self._down

    def is_isolated(self, now: float) -> bool:
        """Whether too few others have confirmed lately that they hear this server.

        They do not go on without it as long as the leases last that they have given it.
        """
        dead = self.gone or self._refusing or self._down
        if not dead and (not self._leases or now < min(self._leases.values())):
            return False
        # A newcomer has nothing to lose before anybody has confirmed: it is in no domain.
        at_first = self._admitted_at + lease(self._timings.patience)
        party = [
            server
            for server in self._servers
            if server == self._me
            or (not self._is_dead(server) and now < max(self._leases[server], at_first))
        ]
        if self.may_continue(party, self._servers):
            return False
        self._isolated_at = now
        return True

    def may_continue(self, party: Collection[int], servers: Collection[int]) -> bool:
        """Whether these of the servers may form the next configuration, as far as is known here.

        Who never came to a configuration has gone on with nobody: all parties that did, or will,
        are of the others, and any of those has a member in common with most of these.
        """
        came = [server for server in servers if server not in self._never_came]
        return may_continue([server for server in party if server in came], came, self.gone)

    def is_abandoned(self, following: Collection[int] = ()) -> bool:
        """Whether too many are dead for this server ever to go on, whoever is heard again, neither
        in its configuration nor in the following one, if it has accepted one of these servers."""
        if self._me in following and not self._are_too_few(following):
            return False
        return self._are_too_few(self._servers)

    def _are_too_few(self, servers: Collection[int]) -> bool:
        """Whether too many of these are dead for the rest ever to go on."""
        dead = self.gone | self._refusing | self._lost_newcomers
        return not self.may_continue([s for s in servers if s not in dead], servers)

    def survivors(self, stuck: Collection[int], now: float) -> tuple[int, ...]:
        """Who should form the next configuration, as far as this server knows.

        `stuck` are servers that have to go whether they are heard or not.
        """
        silent = self.silent(now)
        if not (silent or stuck or self.gone or any(self._opinions.values())):
            self._uneasy_since = None
            return self._servers
        dead = self.gone | self._down
        present = [s for s in self._servers if s not in dead and s not in stuck]
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
        absent = [
            server
            for server in self._servers
            if server not in party and server not in self.gone and server not in stuck
        ]
        if absent and now - self._isolated_at < self._timings.patience:
            return False
        suspects = [server for server in absent if server not in self._down]
        silent = self.silent(now)
        if all(
            suspect in (silent if server == self._me else self._opinions.get(server, ()))
            for suspect in suspects
            for server in party
        ):
            return True
        since = self._uneasy_since
        return since is not None and now - since >= self.settling

    @property
    def settling(self) -> float:
        """How long to wait for opinions on a suspect to agree."""
        return max(self._asked.values(), default=self._timings.patience) / 2


def _without_itself(beat: Beat) -> tuple[int, ...]:
    """Who is silent to the sender; no server is to itself."""
    return tuple(other for other in beat.silent if other != beat.sender)
