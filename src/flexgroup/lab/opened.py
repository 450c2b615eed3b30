"""A script as a run with an address.

What a script lets happen becomes moves, and what may happen at all becomes the scope: as many
messages, faults and timers as the script has.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from flexgroup.core.errors import UsageError
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.lab.address import Address, scope_asked_for
from flexgroup.liars.named import liars_of
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.script import HEAD, STABILIZE_AT_MOST, Script, parse
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import Bounds, Destinations, PlannedCast, Scope
from flexgroup.worlds.explorer.scope_words import words_of

STOCKS = {
    "crash": "crashes", "lost": "losses", "doubled": "duplicates",
    "timer": "timers", "restart": "restarts",
}  # fmt: skip
"""What each kind of step draws on."""

ASKED = ("in-flight", "delivered", "stored", "verdict")
"""Commands that change nothing."""


def open_script(text: str) -> Address:
    """Return the run of a script, all of it ahead; a UsageError says what is wrong with it."""
    reading = _Reading()
    for block in parse(text):
        for command in block.commands:
            try:
                reading.take(command)
            except UsageError as error:
                raise UsageError(f"line {block.line} of the script: {error}") from None
    return reading.address()


class _Reading:
    """A script that is performed while it is read, for what its commands leave open."""

    def __init__(self) -> None:
        self._script = Script()
        self._head: re.Match[str] | None = None
        self._casts: list[PlannedCast] = []
        self._views: dict[int, Destinations] = {}
        self._steps: list[ScheduleStep] = []
        self._losing: set[int] = set()
        """Those that have crashed of whom something in flight to them was lost, which shows if they
        start again."""
        self._wrong_suspicions = 0

    def take(self, command: str) -> None:
        word, _, rest = command.partition(" ")
        if word == "stack":
            if self._head is not None:
                raise UsageError("the lab shows one system at a time, and this is a second one")
            self._head = HEAD.fullmatch(rest.strip())
        elif word == "stabilize":
            self._stabilize()
            return
        elif word not in ASKED:
            self._note(word, rest.strip())
        if word not in ASKED:
            self._script.run(command)

    def address(self) -> Address:
        if self._head is None:
            raise UsageError("there is no script: it begins with a line like "
                             "stack skeen over fifo channels, processes 3")  # fmt: skip
        stack, channels, size, groups, replicas, liars = self._head.groups()
        kinds = Counter(STOCKS[step.kind] for step in self._steps if step.kind in STOCKS)
        kinds["suspicions"] += self._wrong_suspicions
        kinds["crashes"] += sum(step.crash_after > 0 for step in self._steps)
        plan = parse_stack(stack)
        scope = Scope(
            int(size),
            tuple(self._casts),
            channels == "fifo",
            bounds=Bounds(**kinds),
            groups=tuple(_numbers(word) for word in (groups or "").split()),
            views=tuple(members for _, members in sorted(self._views.items())),
            replicas=replicas_of_sizes(list(map(int, replicas.split(",")))) if replicas else (),
            liars=liars_of((liars or "").split()),
        )
        if not _stands_on(plan, scope):
            # A loss is no fault of the scope then, which might happen again: it is only told of.
            scope = replace(scope, bounds=replace(scope.bounds, losses=0))
        words = {"stack": [plan.name], **words_of(scope)}
        return replace(scope_asked_for(words), ahead=tuple(self._steps))

    def _note(self, word: str, rest: str) -> None:
        """Note what a command lets happen; whether it can is seen when it does."""
        if word == "crash-after":
            effects, _, inner = rest.partition(" ")
            word, _, rest = inner.partition(" ")
            self._note(word, rest)
            self._steps[-1] = replace(self._steps[-1], crash_after=int(effects))
            return
        numbers = [int(number) for number in re.findall(r"\d+", rest)]
        if word == "drop" and rest.startswith("->"):
            self._losing.add(numbers[0])
        elif word in ("deliver", "drop", "duplicate") and len(numbers) >= 2:
            self._note_packet(word, *numbers[:3])
        elif word == "cast" and numbers:
            self._casts.append(PlannedCast(numbers[0], tuple(sorted(set(_destinations(rest))))))
            self._steps.append(ScheduleStep("cast", numbers[0], number=len(self._casts) - 1))
        elif word == "timer" and numbers:
            self._steps.append(ScheduleStep("timer", numbers[0], name=rest.partition(" ")[2]))
        elif word == "choose" and len(numbers) == 2:
            self._steps.append(ScheduleStep("choice", numbers[0], number=numbers[1]))
        elif word == "view" and len(numbers) > 2:
            self._views[numbers[1]] = tuple(sorted(set(numbers[2:])))
            self._steps.append(ScheduleStep("view", numbers[0], number=numbers[1]))
        elif word in ("suspect", "trust") and len(numbers) == 2:
            is_wrong = word == "suspect" and numbers[1] not in self._script.bench.crashed
            self._wrong_suspicions += is_wrong
            self._steps.append(ScheduleStep(word, numbers[0], source=numbers[1]))
        elif word == "crash" and numbers:
            self._steps.append(ScheduleStep("crash", numbers[0]))
        elif word == "recover" and numbers:
            lost = numbers[0] in self._losing
            if lost and any(to == numbers[0] for _, to in self._script.bench.channels):
                raise UsageError(
                    f"a part of what is in flight to {numbers[0]} is lost while it is down; here, "
                    "all of it is, or nothing"
                )
            self._losing.discard(numbers[0])
            self._steps.append(ScheduleStep("restart", numbers[0], number=int(lost)))

    def _note_packet(self, word: str, source: int, target: int, place: int = 0) -> None:
        kind = {"deliver": "receive", "drop": "lost", "duplicate": "doubled"}[word]
        if target in self._script.bench.crashed and kind != "lost":
            self._losing.add(target)
            return
        self._steps.append(ScheduleStep(kind, target, source, place))

    def _stabilize(self) -> None:
        bench = self._script.bench
        for _ in range(STABILIZE_AT_MOST):
            if bench.quiet:
                return
            source, target = next(iter(bench.channels))
            self._note_packet("deliver", source, target)
            self._script.run(f"deliver {source}->{target}")


def _stands_on(plan: StackPlan, scope: Scope) -> bool:
    """Tell whether the channels of a scope give what a stack needs."""
    try:
        plan.promises(scope.channels)
    except UsageError:
        return False
    return True


def _numbers(text: str) -> Destinations:
    return tuple(sorted(int(word) for word in text.split(",")))


def _destinations(rest: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", rest.partition("to=")[2])]
