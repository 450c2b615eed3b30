"""A schedule that shows a problem is made smaller, as long as it shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from flexgroup.virtual.schedule import OF_CLIENTS, Action, Schedule

SEEDS = 3
"""So many seeds are tried for a smaller schedule: without what was left out, packets travel
differently, and what was a matter of chance may not happen any more."""


@dataclass(frozen=True)
class Shrunk:
    schedule: Schedule
    executions: int
    """How many executions it took."""


def shrink(schedule: Schedule, is_bad: Callable[[Schedule], bool], most: int = 300) -> Shrunk:
    """Leave out clients, servers, groups and actions, in at most so many executions."""
    shrinking = _Shrinking(schedule, is_bad, most)
    shrinking.run()
    return Shrunk(shrinking.best, shrinking.executions)


class _Shrinking:
    def __init__(self, schedule: Schedule, is_bad: Callable[[Schedule], bool], most: int) -> None:
        self.best = schedule
        self.executions = 0
        self._is_bad = is_bad
        self._most = most

    def run(self) -> None:
        while True:
            before = self.best
            self._leave_out_clients()
            self._leave_out_servers()
            self._leave_out_actions()
            self._leave_out_groups()
            if _size(self.best) == _size(before):
                return

    def _is_enough(self, smaller: Schedule) -> bool:
        """Whether this one is bad as well; if so it is the best so far."""
        for more in range(SEEDS):
            if self.executions == self._most:
                return False
            self.executions += 1
            candidate = replace(smaller, seed=smaller.seed + more)
            if self._is_bad(candidate):
                self.best = candidate
                return True
        return False

    def _leave_out_clients(self) -> None:
        for client in reversed(self.best.clients):
            best = self.best
            self._is_enough(
                replace(
                    best,
                    clients=tuple(other for other in best.clients if other != client),
                    actions=tuple(a for a in best.actions if not _is_by(a, client.name)),
                )
            )

    def _leave_out_servers(self) -> None:
        for server in reversed(range(self.best.servers)):
            if self.best.servers > 1:
                self._is_enough(_without_server(self.best, server))

    def _leave_out_actions(self) -> None:
        """First many at once, then ever fewer."""
        at_once = len(self.best.actions)
        while at_once:
            place = 0
            while place < len(self.best.actions):
                actions = self.best.actions
                fewer = actions[:place] + actions[place + at_once :]
                if not self._is_enough(replace(self.best, actions=fewer)):
                    place += at_once
            at_once //= 2

    def _leave_out_groups(self) -> None:
        for place, client in enumerate(self.best.clients):
            for group in client.groups:
                best = self.best
                plan = best.clients[place]
                fewer = replace(plan, groups=tuple(name for name in plan.groups if name != group))
                clients = (*best.clients[:place], fewer, *best.clients[place + 1 :])
                self._is_enough(replace(best, clients=clients))


def _size(schedule: Schedule) -> tuple[int, int, int, int]:
    groups = sum(len(client.groups) for client in schedule.clients)
    return schedule.servers, len(schedule.clients), groups, len(schedule.actions)


def _is_by(action: Action, client: str) -> bool:
    return action.what in OF_CLIENTS and action.who[0] == client


def _without_server(schedule: Schedule, server: int) -> Schedule:
    """Those behind it move up; its clients go to the one before."""

    def renumbered(number: int) -> int:
        return max(0, number - (number >= server))

    def moved(action: Action) -> Action:
        if action.what in OF_CLIENTS:
            return action
        return replace(
            action, who=tuple(str(renumbered(int(w))) if w.isdigit() else w for w in action.who)
        )

    return replace(
        schedule,
        servers=schedule.servers - 1,
        clients=tuple(replace(c, server=renumbered(c.server)) for c in schedule.clients),
        actions=tuple(
            moved(action)
            for action in schedule.actions
            if action.what in OF_CLIENTS or str(server) not in action.who
        ),
    )
