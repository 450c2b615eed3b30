"""A cluster of explored servers: its states, its moves, and what they lead to.

A state has the time, the numbers of the states of all servers, what is in flight from each to each,
which links are silent, who has crashed and who knows it, which actions have happened, and which
faults are still allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flexgroup.core.errors import UsageError
from flexgroup.membership.suspicion import may_continue
from flexgroup.membership_explorer.checks import PROGRESS, ClusterChecks
from flexgroup.membership_explorer.machine import LocalEvent, LocalStep, ServerMachine
from flexgroup.membership_explorer.scope import ClusterScope
from flexgroup.membership_explorer.server import Installed

WARMING_UP = 2
"""So many beats pass before the search begins, in which all servers hear all."""

SETTLING = 40
"""Within so many beats all is quiet again, if from now on nothing goes wrong."""

Channels = tuple[tuple[int, ...], ...]
Link = tuple[int, int]

# The places of what is left of the bounds.
CRASHES, CUTS, BREAKS, DELAYS, RESTARTS = range(5)


FAULTS = ("crash", "restart", "cut", "heal", "break")


class Move(NamedTuple):
    """Something that happens to the cluster."""

    kind: str
    first: int = 0
    second: int = 0

    def __str__(self) -> str:
        match self.kind:
            case "deliver":
                return f"deliver {self.first}->{self.second}"
            case "notice":
                return f"notice {self.first} {self.second}"
            case "act" | "crash" | "restart":
                return f"{self.kind} {self.first}"
            case "time" | "settle":
                return self.kind
        return f"{self.kind} {self.first} {self.second}"


class State(NamedTuple):
    time: int
    locals: tuple[int, ...]
    channels: Channels
    """What is in flight from each server to each, in this order."""
    cut: tuple[Link, ...]
    """The links that are silent: pairs of servers, ascending."""
    crashed: tuple[bool, ...]
    noticed: tuple[Link, ...]
    """Who knows of which server that its process is dead."""
    done: tuple[bool, ...]
    """The actions of the scope that have happened."""
    left: tuple[int, ...]
    """The faults that are still allowed."""


class Cluster:
    """The moves of a cluster, and what they lead to."""

    def __init__(self, scope: ClusterScope) -> None:
        self.scope = scope
        self.size = scope.servers
        self.machine = ServerMachine(scope)
        self.checks = ClusterChecks(scope)
        self.first = self._first()

    def _first(self) -> State:
        size = self.size
        bounds = self.scope.bounds
        state = State(
            time=0,
            locals=(),
            channels=((),) * (size * size),
            cut=(),
            crashed=(False,) * size,
            noticed=(),
            done=(False,) * len(self.scope.actions),
            left=(bounds.crashes, bounds.cuts, bounds.breaks, bounds.delays, bounds.restarts),
        )
        begun = [self.machine.first(number) for number in range(1, size + 1)]
        step = _Step(self, state)
        step.locals = [one.after for one in begun]
        for server, one in enumerate(begun):
            step.send(server, one)
        step.exchange_beats()
        for _ in range(WARMING_UP):
            step.pass_time()
        return step.state()

    # Moves.

    def moves(self, state: State) -> list[Move]:
        prompt = self._prompt(state)
        actions = self._possible_actions(state)
        moves = prompt + actions
        if state.time - WARMING_UP < self.scope.bounds.ticks:
            if prompt:
                may_pass = state.left[DELAYS] > 0
            elif actions:
                # Clients may be late, but where nothing goes wrong that makes no difference.
                may_pass = bool(state.cut) or not self._is_whole(state)
            else:
                may_pass = not self.is_quiet(state)
            if may_pass:
                moves.append(Move("time"))
        moves += [Move("heal", *link) for link in state.cut]
        moves += self._faults(state)
        return moves

    def _prompt(self, state: State) -> list[Move]:
        """What happens before time passes, unless something is late."""
        size = self.size
        moves = [
            Move("deliver", at // size + 1, at % size + 1)
            for at, channel in enumerate(state.channels)
            if channel
        ]
        return moves + [Move("notice", *pair) for pair in self._unnoticed(state)]

    def _unnoticed(self, state: State) -> Iterator[Link]:
        """Who can find out about whom that the process is dead."""
        for dead, has_crashed in enumerate(state.crashed, 1):
            if has_crashed:
                for other in range(1, self.size + 1):
                    if (
                        self.is_running(state, other)
                        and (other, dead) not in state.noticed
                        and _link(other, dead) not in state.cut
                    ):
                        yield other, dead

    def is_running(self, state: State, server: int) -> bool:
        at = server - 1
        return not state.crashed[at] and not self.machine.locals[state.locals[at]].ended

    def _possible_actions(self, state: State) -> list[Move]:
        moves = []
        started: set[int] = set()
        for place, action in enumerate(self.scope.actions):
            if state.done[place] or action.server in started:
                continue
            started.add(action.server)
            local = self.machine.locals[state.locals[action.server - 1]]
            if self.is_running(state, action.server) and local.actions[place]:
                moves.append(Move("act", place))
        return moves

    def _faults(self, state: State) -> Iterator[Move]:
        left = state.left
        numbers = range(1, self.size + 1)
        running = self._running(state)
        if left[CRASHES]:
            for server in running:
                yield Move("crash", server)
        if left[RESTARTS]:
            for server in numbers:
                if state.crashed[server - 1]:
                    yield Move("restart", server)
        if left[CUTS] or left[BREAKS]:
            links = [(a, b) for a in numbers for b in numbers if a < b]
            for link in links:
                if link in state.cut or not any(server in running for server in link):
                    continue
                if left[CUTS]:
                    yield Move("cut", *link)
                if left[BREAKS] and all(server in running for server in link):
                    yield Move("break", *link)

    def after(self, state: State, move: Move) -> State:
        step = _Step(self, state)
        first, second = move.first, move.second
        match move.kind:
            case "deliver":
                step.deliver(first, second)
            case "notice":
                step.notice(first, second)
            case "act":
                step.done[first] = True
                server = self.scope.actions[first].server
                step.tell(server, ("act", first, 0, state.time))
            case "time":
                if self._prompt(state):
                    step.left[DELAYS] -= 1
                step.pass_time()
            case "crash":
                step.left[CRASHES] -= 1
                step.crash(first)
            case "restart":
                step.left[RESTARTS] -= 1
                step.restart(first)
            case "cut":
                step.left[CUTS] -= 1
                step.cut.add((first, second))
                step.empty(first, second)
            case "heal":
                step.heal(first, second)
            case "break":
                step.left[BREAKS] -= 1
                step.empty(first, second)
                step.replace_link(first, second)
            case _:
                raise UsageError(f"'{move}' is no move of a cluster")
        return step.state()

    # Properties.

    def broken(self, state: State) -> list[str]:
        locals = self.machine.locals
        logs = [locals[number].log for number in state.locals]
        key = (state.crashed, *(locals[number].log_number for number in state.locals))
        return self.checks.broken(key, logs, state.crashed)

    def _running(self, state: State) -> list[int]:
        return [n for n in range(1, self.size + 1) if self.is_running(state, n)]

    def _is_whole(self, state: State) -> bool:
        """All that run are in one configuration of just them."""
        running = self._running(state)
        current = [self._installed(state, number).configuration for number in running]
        return len({configuration.number for configuration in current}) <= 1 and all(
            [server.number for server in configuration.servers] == running
            for configuration in current
        )

    def is_quiet(self, state: State) -> bool:
        """All that go on are in one configuration of just them, and nothing is left to do."""
        if self._prompt(state) or self._possible_actions(state) or not self._is_whole(state):
            return False
        running = self._running(state)
        logs = [self.machine.locals[number].log for number in state.locals]
        return (
            not any(self.machine.locals[state.locals[n - 1]].is_waiting for n in running)
            and not any(
                not done and action.server in running
                for done, action in zip(state.done, self.scope.actions, strict=True)
            )
            and not self.checks.undelivered(logs, state.crashed)
        )

    def _installed(self, state: State, server: int) -> Installed:
        log = self.machine.locals[state.locals[server - 1]].log
        return next(entry for entry in reversed(log) if isinstance(entry, Installed))

    def is_lost(self, state: State) -> bool:
        """Too many servers of the last configuration have failed for the others to go on."""
        running = self._running(state)
        if not running:
            return True
        newest = max(
            (self._installed(state, number).configuration for number in running),
            key=lambda configuration: configuration.number,
        )
        servers = [server.number for server in newest.servers]
        alive = [number for number in running if number in servers]
        return not may_continue(alive, servers, ())

    def settle(self, state: State) -> tuple[State, list[str]]:
        """Let all that is left happen, with nothing going wrong, and say what is broken then."""
        end = state.time + SETTLING
        while not self.is_quiet(state):
            if state.time == end:
                break
            heals = [Move("heal", *link) for link in state.cut]
            possible = heals or self._prompt(state) or self._possible_actions(state)
            move = possible[0] if possible else Move("time")
            state = self.after(state, move)
            if broken := self.broken(state):
                return state, broken
        else:
            return state, []
        if self.is_lost(state):
            return state, []
        logs = [self.machine.locals[number].log for number in state.locals]
        return state, self.checks.undelivered(logs, state.crashed) or [PROGRESS]


class _Step:
    """A state in the making."""

    def __init__(self, cluster: Cluster, state: State) -> None:
        self._cluster = cluster
        self._size = cluster.size
        self._noticed = set(state.noticed)
        self.time = state.time
        self.locals = list(state.locals)
        self.channels = list(state.channels)
        self.cut = set(state.cut)
        self.crashed = list(state.crashed)
        self.done = list(state.done)
        self.left = list(state.left)
        self._beats: list[tuple[int, int, int]] = []

    def state(self) -> State:
        return State(
            self.time,
            tuple(self.locals),
            tuple(self.channels),
            tuple(sorted(self.cut)),
            tuple(self.crashed),
            tuple(sorted(self._noticed)),
            tuple(self.done),
            tuple(self.left),
        )

    def tell(self, server: int, event: LocalEvent) -> None:
        """Something happens at a server."""
        at = server - 1
        if self.crashed[at] or self._cluster.machine.locals[self.locals[at]].ended:
            return
        step = self._cluster.machine.step(self.locals[at], event)
        self.locals[at] = step.after
        self.send(at, step)
        if self._cluster.machine.locals[step.after].ended:
            for other in range(self._size):
                self.channels[other * self._size + at] = ()

    def send(self, at: int, step: LocalStep) -> None:
        machine = self._cluster.machine
        for server, item in step.sent:
            target = server - 1
            if _link(at + 1, server) in self.cut or self.crashed[target]:
                continue
            if target < len(self.locals) and machine.locals[self.locals[target]].ended:
                continue
            if machine.is_beat[item]:
                self._beats.append((at, target, item))
            else:
                self.channels[at * self._size + target] += (item,)

    def exchange_beats(self) -> None:
        """Beats arrive within the time between them, and may overtake what is late."""
        while self._beats:
            beats, self._beats = self._beats, []
            for at, target, item in beats:
                self.tell(target + 1, ("receive", at + 1, item, self.time))

    def pass_time(self) -> None:
        """A beat of time passes at all servers."""
        self.time += 1
        for server in range(1, self._size + 1):
            for observer, dead in sorted(self._noticed):
                if observer == server and _link(observer, dead) not in self.cut:
                    # A connection is tried again and again, and refused.
                    self.tell(server, ("gone", dead, 0, self.time))
            self.tell(server, ("tick", 0, 0, self.time))
        self.exchange_beats()

    def deliver(self, source: int, target: int) -> None:
        at = (source - 1) * self._size + target - 1
        item, *rest = self.channels[at]
        self.channels[at] = tuple(rest)
        self.tell(target, ("receive", source, item, self.time))
        self.exchange_beats()

    def notice(self, server: int, dead: int) -> None:
        """A server finds out that another is dead; what has not arrived from it never will."""
        self._noticed.add((server, dead))
        self.channels[(dead - 1) * self._size + server - 1] = ()
        self.tell(server, ("gone", dead, 0, self.time))
        self.exchange_beats()

    def restart(self, server: int) -> None:
        """A server that has crashed comes back, and has other connections than before."""
        self.crashed[server - 1] = False
        self._noticed = {pair for pair in self._noticed if server not in pair}
        for other in range(1, self._size + 1):
            self.empty(server, other)
        self.tell(server, ("restart", 0, 0, self.time))
        for other in range(1, self._size + 1):
            if other != server and _link(server, other) not in self.cut:
                self.tell(other, ("replaced", server, 0, self.time))
        self.exchange_beats()

    def crash(self, server: int) -> None:
        """It ends, and its clients do nothing more."""
        self.crashed[server - 1] = True
        for place, action in enumerate(self._cluster.scope.actions):
            self.done[place] = self.done[place] or action.server == server
        for other in range(self._size):
            self.channels[other * self._size + server - 1] = ()

    def empty(self, first: int, second: int) -> None:
        for source, target in ((first, second), (second, first)):
            self.channels[(source - 1) * self._size + target - 1] = ()

    def heal(self, first: int, second: int) -> None:
        self.cut.discard((first, second))
        self.replace_link(first, second)

    def replace_link(self, first: int, second: int) -> None:
        """Both ends have another connection than before."""
        if not self.crashed[first - 1] and not self.crashed[second - 1]:
            self.tell(first, ("replaced", second, 0, self.time))
            self.tell(second, ("replaced", first, 0, self.time))
            self.exchange_beats()


def _link(one: int, other: int) -> Link:
    return (one, other) if one < other else (other, one)
