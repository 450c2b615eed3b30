"""Many schedules, on several processes: which of them are bad, and how little shows it."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flexgroup.core.promises import UNIFORM
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.virtual.checks import problems
from flexgroup.virtual.clients import Problem
from flexgroup.virtual.execution import Execution, uncollected
from flexgroup.virtual.schedule import FAULTS, Load, Schedule, draw_schedule
from flexgroup.virtual.shrinking import shrink
from flexgroup.worlds.network.faults import Faults

STACKS = (
    "reliable",
    "reliable fifo",
    "reliable causal",
    "causal-rst",
    "reliable atomic",
    "skeen",
    "fifo dcc",
    "df",
    "abcast",
    "vcube-atomic-majority",
    "all2all-atomic",
    "xamp-causal",
    "xamp-atomic",
    "reliable safe",
    "reliable causal safe",
    "reliable atomic safe",
    "fifo dcc safe",
    "abcast safe",
)
"""The stacks that servers are run with if nobody says which."""

_LOAD = Load(servers=range(2, 6), messages=100, drops=2)
"""What all of them have in common, unless they say otherwise."""

LOADS = {
    "dense": replace(_LOAD, messages=200, changes=12),
    "faults": replace(_LOAD, faults=3, longest=3.0, longest_stop=1.5, most_killed=0.49),
    "kills": replace(_LOAD, faults=5, data=True),
    "long": replace(_LOAD, messages=200, seconds=10.0, changes=20, faults=4, data=True),
    "sides": replace(
        _LOAD,
        faults=3,
        kinds=("part", "part", "outage", "cut", "stop", "kill", "slow"),
        most_killed=0.49,
        partitionable=True,
    ),
    "kept": replace(_LOAD, faults=5, kinds=(*FAULTS, "kill", "forgetful"), data=True, keep=1000),
}
"""What schedules are drawn from, by name. Servers that keep data come back whatever happens to
them; of those that do not, fewer than half are killed."""

MOST_EXECUTIONS = 300
"""A bad schedule is made smaller in so many executions, at most."""


@dataclass(frozen=True)
class Drawn:
    """A schedule that is to be drawn and executed."""

    seed: int
    stack: str
    load: str

    def __str__(self) -> str:
        return f"{self.stack}, {self.load}, seed {self.seed}"

    @property
    def folder(self) -> str:
        """A name for what is written of it."""
        return f"{self.load}-{self.stack.replace(' ', '-')}-{self.seed}"


@dataclass(frozen=True)
class Judged:
    """What came of a schedule."""

    drawn: Drawn
    problems: list[Problem]
    schedule: Schedule
    """The smallest that shows a problem of the same kind as the first, if there is one."""
    lines: int
    """How many lines the schedule had that was drawn."""
    cpu_seconds: float
    """How long it took, without the time for making it smaller."""


def execute(schedule: Schedule) -> Execution:
    """An execution of the schedule, without what its servers log."""
    log = logging.getLogger("flexgroup.server")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with uncollected():
            execution = Execution(schedule)
            execution.run()
    finally:
        log.setLevel(level)
    return execution


def draw_all(seeds: Iterable[int], stacks: Iterable[str], loads: Iterable[str]) -> Iterator[Drawn]:
    for seed in seeds:
        for load in loads:
            for stack in stacks:
                if suits(LOADS[load], stack):
                    yield Drawn(seed, stack, load)


def suits(load: Load, stack: str) -> bool:
    """Whether servers let such groups have this stack."""
    plan = parse_stack(stack)
    channels = Faults().channels()
    if load.keep and not plan.gives_one_sequence(channels):
        return False
    return not (load.partitionable and UNIFORM in plan.promises(channels))


def judge(drawn: Drawn, most_executions: int = MOST_EXECUTIONS) -> Judged:
    schedule = draw_schedule(drawn.seed, drawn.stack, LOADS[drawn.load])
    lines = len(str(schedule).splitlines())
    began = time.process_time()
    found = problems(execute(schedule))
    seconds = time.process_time() - began
    if found and most_executions:
        schedule, found = _smaller(schedule, found[0].kind, most_executions)
    return Judged(drawn, found, schedule, lines, seconds)


def _smaller(schedule: Schedule, kind: str, most: int) -> tuple[Schedule, list[Problem]]:
    def is_bad(smaller: Schedule) -> bool:
        return any(problem.kind == kind for problem in problems(execute(smaller)))

    shrunk = shrink(schedule, is_bad, most).schedule
    return shrunk, problems(execute(shrunk))


def judge_all(
    drawn: Iterable[Drawn], workers: int, most_executions: int = MOST_EXECUTIONS
) -> Iterator[Judged]:
    """Judge them on so many processes; the results come in the same order."""
    gc.freeze()  # what is there by now stays, and is not looked through after each execution
    methods = multiprocessing.get_all_start_methods()
    if workers == 1 or "fork" not in methods:
        for one in drawn:
            yield judge(one, most_executions)
        return
    context: Any = multiprocessing.get_context("fork")
    jobs = ((one, most_executions) for one in drawn)
    with context.Pool(workers, initializer=_leave_signals_to_parent) as pool:
        yield from pool.imap(_judge, jobs)


def _leave_signals_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # with which the pool ends its processes


def _judge(job: tuple[Drawn, int]) -> Judged:
    return judge(*job)


def write_judged(directory: Path, judged: Judged) -> None:
    """Write a schedule into a folder of its own there, and beside it the trace of its execution."""
    folder = directory / judged.drawn.folder
    execute(judged.schedule).recordings.write(folder)
    told = "".join(f"# {line}\n" for p in judged.problems for line in str(p).splitlines())
    (folder / "schedule.txt").write_text(f"{told}{judged.schedule}", encoding="utf-8")
