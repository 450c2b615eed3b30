"""The trial of schedules on real servers, each a process in a network namespace of its own.

Run as a script, as root, it takes the number of schedules and the first seed:

    python -m tests.network.real_trial --schedules 300 --parallel 6 --out bad
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from flexgroup.virtual.campaign import LOADS, STACKS
from flexgroup.virtual.schedule import Load, Schedule, draw_schedule

from .namespaces import run_until_terminated
from .real_execution import KINDS, RealExecution, execute_all

LOAD = replace(LOADS["faults"], servers=(3, 4, 5), kinds=KINDS, longest_stop=3.0)
"""Fewer than half of the servers are dead at a time: those could not come back by themselves."""


def drawn(first: int, load: Load = LOAD) -> Iterator[Schedule]:
    """Schedules from this seed on, over all stacks."""
    seed = first
    while True:
        yield draw_schedule(seed, STACKS[seed % len(STACKS)], load)
        seed += 1


def report(schedule: Schedule, execution: RealExecution) -> str:
    """Everything that is wrong, the schedule that shows it, and what the servers said of it; empty
    if nothing is."""
    found = execution.found()
    logs = [f"== {log.name}\n{log.read_text()}" for log in sorted(execution.folder.glob("*.log"))]
    return "\n".join([*map(str, found[:10]), "", str(schedule), *logs]) if found else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--parallel", type=int, default=6, help="how many clusters at a time")
    parser.add_argument("--out", type=Path, help="a folder for the reports of bad schedules")
    options = parser.parse_args()
    bad = done = 0
    began = time.monotonic()

    def when_done(schedule: Schedule, execution: RealExecution) -> None:
        nonlocal bad, done
        done += 1
        told = report(schedule, execution)
        if told:
            bad += 1
            if options.out is not None:
                options.out.mkdir(parents=True, exist_ok=True)
                name = f"{schedule.stack.replace(' ', '-')}-{schedule.seed}.txt"
                (options.out / name).write_text(told)
        first = told.partition("\n")[0][:200] or "good"
        seconds = time.monotonic() - began
        print(f"{seconds:6.1f} s  {done} {schedule.stack} {schedule.seed}: {first}", flush=True)

    schedules = list(islice(drawn(options.first), options.schedules))
    with tempfile.TemporaryDirectory() as folder:
        trial = execute_all(schedules, Path(folder), options.parallel, when_done)
        run_until_terminated(trial)
    print(f"{done} schedules: {bad or 'none'} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
