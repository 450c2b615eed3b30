"""From a state that was found back to the run that leads there."""

from __future__ import annotations

from collections.abc import Callable

from flexgroup.worlds.explorer.machine import CAST, KINDS, RECEIVE
from flexgroup.worlds.explorer.moves import HAPPENS, IS_DOUBLED, IS_LOST, Move
from flexgroup.worlds.explorer.outcome import Happening
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search

_WORDS = {IS_LOST: "lost", IS_DOUBLED: "doubled"}

ParentOf = Callable[[int], int]


def moves_to(search: Search, mark: int, parent_of: ParentOf) -> list[Move]:
    """Moves from the first state to one with this fingerprint.

    The fingerprints on the way are known; the moves are found by trying those of each state.
    """
    marks = [mark]
    while (before := parent_of(marks[-1])) >= 0:
        marks.append(before)
    state = search.first
    path: list[Move] = []
    for wanted in reversed(marks[:-1]):
        move = next(m for m in search.moves(state) if search.canonical(m.after) == wanted)
        path.append(move)
        state = move.after
    return path


def run_of(search: Search, scope: Scope, path: list[Move]) -> tuple[Happening, ...]:
    """The moves in words that mean the same everywhere, the clients' casts first."""
    happenings = []
    if search.actors == scope.processes:
        happenings = [
            Happening("cast", cast.origin, number=place)
            for place, cast in enumerate(scope.casts)
            if cast.origin >= scope.processes
        ]
    queues = _Queues(search)
    for move in path:
        happenings.append(queues.follow(move))
    return tuple(happenings)


class _Queues:
    """The channels in the order in which packets were sent, which inboxes do not keep."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._queues: dict[tuple[int, int], list[int]] = {}
        self._state = first = search.first
        for actor in range(search.actors):
            for event in search.inboxes.contents[first[2 * actor + 1]]:
                self._put(event)

    def follow(self, move: Move) -> Happening:
        machine = self._search.machine
        event = machine.events[move.event]
        before = self._state
        self._state = move.after
        if event.kind == RECEIVE:
            queue = self._queues[event.source, event.process]
            place = queue.index(move.event)
            if move.kind == IS_DOUBLED:
                queue.insert(place, move.event)
            else:
                del queue[place]
            word = _WORDS.get(move.kind, KINDS[RECEIVE])
            happening = Happening(word, event.process, event.source, place)
        else:
            number = event.number
            happening = Happening(
                KINDS[event.kind], event.process, event.source, 0, event.name, number
            )
            assert event.kind != CAST or number >= 0
        if move.kind == HAPPENS:
            for output in machine.step(before[2 * move.actor], move.event).outputs:
                self._put(output)
        return happening

    def _put(self, event: int) -> None:
        packet = self._search.machine.events[event]
        self._queues.setdefault((packet.source, packet.process), []).append(event)
