"""`flexgroup schedules`: whole servers in virtual time, under schedules of load and faults."""

from __future__ import annotations

import argparse
import os
from itertools import islice
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import (
    Command,
    Option,
    flag,
    from_one,
    make_folder,
    path_here,
    print_json,
    repeated,
)
from flexgroup.cli.on_spark import check_spark_options, schedules_on_spark, spark_options
from flexgroup.cli.progress import progress_bar
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.virtual.campaign import Judged
    from flexgroup.virtual.clients import Problem

SHOWN = 5
"""How many problems of one schedule are printed, at most."""

COMMAND = Command(
    "schedules",
    "run whole servers in virtual time under schedules of load and faults",
    "flexgroup schedules --seeds 2 --stack 'reliable atomic' --load dense",
    (
        Option(
            "--replay", type=path_here, metavar="FILE",
            help="execute the schedule in this file, and nothing else",
        ),
        repeated("--stack", "P", "a stack to run servers with; may be repeated (all)"),
        repeated(
            "--load", "L",
            "dense, faults, kills, sides, kept or long; may be repeated (dense, faults and kills)",
            choices=("dense", "faults", "kills", "sides", "kept", "long"),
        ),
        Option(
            "--seeds", type=from_one, default=10, metavar="N",
            help="how many schedules of each stack and load (10)",
        ),
        Option("--first", type=int, default=0, metavar="SEED", help="the first seed (0)"),
        Option(
            "--workers", type=from_one, default=os.cpu_count() or 1, metavar="N",
            help="how many processes share the work, without --spark (all processors)",
        ),
        flag("--whole", "print bad schedules as drawn, without making them smaller"),
        Option(
            "--out", type=path_here, metavar="DIR",
            help="write bad schedules and their traces; of --replay, the trace",
        ),
        *spark_options(),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    check_spark_options(options, {"replay": "one schedule is executed here; leave --spark out"})
    if options.out is not None:
        make_folder(options.out)
    if options.replay is not None:
        return _replay(options)
    from flexgroup.protocols.catalogue import parse_stack
    from flexgroup.virtual.campaign import (
        MOST_EXECUTIONS,
        STACKS,
        draw_all,
        judge_all,
        write_judged,
    )
    from flexgroup.worlds.network.faults import Faults

    stacks = []
    for stack in options.stack or STACKS:
        plan = parse_stack(stack)
        plan.check_nothing_is_lost(Faults().channels())  # servers refuse such groups
        stacks.append(plan.name)
    loads = options.load or ["dense", "faults", "kills"]
    seeds = range(options.first, options.first + options.seeds)
    drawn = list(draw_all(seeds, stacks, loads))
    if not drawn:
        raise UsageError(
            f"no group of the load {' or '.join(loads)} can have the stack {' or '.join(stacks)};"
            " kept takes a total order with safe, and sides a stack without it"
        )
    most = 0 if options.whole else MOST_EXECUTIONS
    if options.spark is None:
        all_judged = judge_all(drawn, options.workers, most)
    else:
        all_judged = schedules_on_spark(options, drawn, most)
    seconds = 0.0
    bad: list[Judged] = []
    with progress_bar("executing schedules", not options.json) as show:
        for number, judged in enumerate(all_judged, 1):
            show(number / len(drawn))
            seconds += judged.cpu_seconds
            if judged.problems:
                bad.append(judged)
                if options.out is not None:
                    write_judged(options.out, judged)
                if not options.json:
                    _show(judged)
    if options.json:
        print_json(
            {
                "schedules": len(drawn),
                "cpu_seconds": round(seconds, 3),
                "bad": [_as_json(judged) for judged in bad],
            }
        )
    else:
        rate = len(drawn) / seconds
        print(f"{len(drawn)} schedules, {rate:.1f} a CPU second: {len(bad) or 'none'} bad")
    return 1 if bad else 0


def _replay(options: argparse.Namespace) -> int:
    from flexgroup.virtual.campaign import execute
    from flexgroup.virtual.checks import problems
    from flexgroup.virtual.schedule import parse_schedule

    try:
        text = options.replay.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text"
        raise UsageError(
            f"cannot read a schedule from '{options.replay}': {reason}; give a file that"
            " flexgroup schedules has written, or see docs/virtual.md"
        ) from None
    try:
        schedule = parse_schedule(text)
    except UsageError as error:
        raise UsageError(f"'{options.replay}': {error}") from None
    execution = execute(schedule)
    found = problems(execution)
    if options.out is not None:
        execution.recordings.write(options.out)
    if options.json:
        print_json({"problems": _problems_as_json(found), "digest": execution.digest()})
    else:
        _show_problems(found)
        number = "1 problem" if len(found) == 1 else f"{len(found) or 'no'} problems"
        print(f"{schedule.seconds:g} s of {schedule.servers} servers: {number}")
    return 1 if found else 0


def _show(judged: Judged) -> None:
    print(judged.drawn)
    _show_problems(judged.problems)
    lines = str(judged.schedule).splitlines()
    print(f"  with {len(lines)} of {judged.lines} lines:")
    print("\n".join(f"    {line}" for line in lines), flush=True)


def _show_problems(found: list[Problem]) -> None:
    for problem in islice(found, SHOWN):
        print("  " + "\n    ".join(str(problem).splitlines()))
    if len(found) > SHOWN:
        print(f"  and {len(found) - SHOWN} more problems; --json has them all")


def _problems_as_json(found: list[Problem]) -> list[dict[str, str]]:
    return [{"kind": problem.kind, "text": problem.text} for problem in found]


def _as_json(judged: Judged) -> dict[str, object]:
    return {
        "seed": judged.drawn.seed,
        "stack": judged.drawn.stack,
        "load": judged.drawn.load,
        "problems": _problems_as_json(judged.problems),
        "schedule": str(judged.schedule),
    }
