"""A run as a script that people read and that is performed again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from flexgroup.core.errors import UsageError
from flexgroup.membership_explorer.cluster import Cluster, Move, State
from flexgroup.membership_explorer.scope import (
    GROUP_NAMES,
    ClusterScope,
    FaultBounds,
    PlannedAction,
)
from flexgroup.membership_explorer.search import ClusterSearch, ClusterViolation
from flexgroup.membership_explorer.server import (
    Cast,
    Delivery,
    DeliveryAlone,
    Ended,
    Entry,
    Failed,
    Frame,
    Installed,
    Marked,
    Restarted,
)
from flexgroup.worlds.explorer.explorer import SearchLimits
from flexgroup.worlds.explorer.scope import LETTERS

PATIENCE = SearchLimits(states=200_000, seconds=20.0)
"""The limits of the search in each smaller scope."""

MOVES = {
    "deliver": r"deliver (\d+)->(\d+)",
    "notice": r"notice (\d+) (\d+)",
    "cut": r"cut (\d+) (\d+)",
    "heal": r"heal (\d+) (\d+)",
    "break": r"break (\d+) (\d+)",
    "crash": r"crash (\d+)",
    "restart": r"restart (\d+)",
    "time": r"time",
    "settle": r"settle",
}


def minimise(scope: ClusterScope, found: ClusterViolation) -> tuple[ClusterScope, ClusterViolation]:
    """Leave out actions and faults as long as the same property can be broken."""
    for candidate in _smaller_scopes(scope):
        result = ClusterSearch(candidate, PATIENCE).run()
        for violation in result.violations:
            if violation.name == found.name:
                return minimise(candidate, violation)
    return scope, found


def _smaller_scopes(scope: ClusterScope) -> list[ClusterScope]:
    bounds = scope.bounds
    smaller = [
        replace(scope, actions=scope.actions[:place] + scope.actions[place + 1 :])
        for place in range(len(scope.actions))
    ]
    for name in ("crashes", "cuts", "breaks", "delays", "restarts"):
        count = getattr(bounds, name)
        if count:
            smaller.append(replace(scope, bounds=replace(bounds, **{name: count - 1})))
    return smaller


def write_script(scope: ClusterScope, run: Sequence[Move]) -> str:
    """The scope and the moves, each with what it leads to as a comment."""
    lines = [*scope.lines(), ""]
    for words, told in perform(scope, run):
        lines.append(f"{words:<14}{'# ' + '; '.join(told) if told else ''}".rstrip())
    return "\n".join(lines) + "\n"


def verdict(scope: ClusterScope, run: Sequence[Move]) -> list[str]:
    """The properties that a run breaks."""
    cluster = Cluster(scope)
    state = cluster.first
    for move in run:
        if move.kind == "settle":
            return cluster.settle(state)[1]
        state = _after(cluster, state, move)
    return cluster.broken(state)


def perform(scope: ClusterScope, run: Sequence[Move]) -> list[tuple[str, list[str]]]:
    """Each move of a run in words, and what happens at it."""
    cluster = Cluster(scope)
    state = cluster.first
    told = []
    for move in run:
        about = []
        if move.kind == "deliver":
            channel = state.channels[(move.first - 1) * cluster.size + move.second - 1]
            about = [_item(cluster, channel[0])] if channel else []
        before = state
        if move.kind == "settle":
            state, _ = cluster.settle(state)
        else:
            state = _after(cluster, state, move)
        words = f"act {LETTERS[move.first]}" if move.kind == "act" else str(move)
        told.append((words, about + _entries(cluster, before, state)))
    return told


def _after(cluster: Cluster, state: State, move: Move) -> State:
    if move not in cluster.moves(state):
        words = f"act {LETTERS[move.first]}" if move.kind == "act" else str(move)
        raise UsageError(f"'{words}' is not possible at that place of the script")
    return cluster.after(state, move)


def _item(cluster: Cluster, number: int) -> str:
    item = cluster.machine.items[number]
    if not isinstance(item, Frame):
        return type(item).__name__
    return (
        f"counts in domain {item.domain}" if item.is_counts else f"packets in domain {item.domain}"
    )


def _entries(cluster: Cluster, before: State, after: State) -> list[str]:
    told = []
    for server, (old, new) in enumerate(zip(before.locals, after.locals, strict=True), 1):
        locals = cluster.machine.locals
        told += [_entry(server, entry) for entry in locals[new].log[len(locals[old].log) :]]
    return told


def _entry(server: int, entry: Entry) -> str:
    match entry:
        case Cast():
            return f"{server} multicasts {LETTERS[entry.action]}"
        case Delivery():
            return f"{server} delivers {LETTERS[entry.action]}"
        case DeliveryAlone():
            return f"{server} should not have: others may have gone on"
        case Installed():
            number = entry.configuration.number
            present = ",".join(str(other.number) for other in entry.configuration.servers)
            return f"{server} installs configuration {number} of {present}"
        case Marked():
            views = ", ".join(f"{GROUP_NAMES[group - 1]} {view}" for group, view, _ in entry.eras)
            return f"{server} tells members of their views: {views}"
        case Restarted():
            return f"{server} comes back"
        case Ended():
            return f"{server} is excluded"
        case Failed():
            return f"{server} fails: {entry.error}"


def parse_script(text: str) -> tuple[ClusterScope, list[Move]]:
    """Read a script as it was written."""
    head: dict[str, str] = {}
    groups: list[tuple[int, ...]] = []
    actions: list[PlannedAction] = []
    moves: list[Move] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        kind, _, rest = words.partition(" ")
        try:
            if kind in ("servers", "stack", "bounds"):
                head[kind] = rest
            elif kind == "group":
                groups.append(tuple(int(word) for word in rest.split()[1].split(",")))
            elif kind == "plan":
                _, what, server, names = rest.split()
                actions.append(PlannedAction(what, int(server), tuple(names.split(","))))
            elif words:
                moves.append(_parse_move(words))
        except (ValueError, IndexError) as error:
            raise UsageError(f"line {number} of the script is {line!r}: no such line") from error
    for kind in ("servers", "stack", "bounds"):
        if kind not in head:
            raise UsageError(f"the script has no line '{kind} ...'")
    bounds = dict(word.split("=") for word in head["bounds"].split())
    scope = ClusterScope(
        int(head["servers"]),
        head["stack"],
        tuple(groups),
        tuple(actions),
        FaultBounds(**{name: int(count) for name, count in bounds.items()}),
    )
    return scope, moves


def _parse_move(words: str) -> Move:
    if words.startswith("act "):
        return Move("act", LETTERS.index(words.removeprefix("act ")))
    for kind, pattern in MOVES.items():
        if match := re.fullmatch(pattern, words):
            return Move(kind, *map(int, match.groups()))
    raise ValueError(words)
