"""`flexgroup explore --all-destinations`: every system of a size, for one stack or two."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from flexgroup.cli.arguments import print_json
from flexgroup.cli.on_spark import systems_on_spark
from flexgroup.cli.progress import status_line
from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.all_systems import SystemTotals, explore_all
from flexgroup.worlds.explorer.comparison import Comparison, compare
from flexgroup.worlds.explorer.explorer import SearchLimits
from flexgroup.worlds.explorer.search_setup import SearchOptions

Interrupted = Callable[[], bool]


def explore_all_systems(
    arguments: argparse.Namespace,
    plan: StackPlan,
    how: tuple[SearchOptions, SearchLimits],
    interrupted: Interrupted,
) -> int:
    """Explore all systems of the sizes that were asked for, and print a row for each size."""
    sizes = [_size(text) for text in arguments.all_destinations]
    beside = parse_stack(arguments.beside) if arguments.beside else None
    if arguments.walks is not None and beside is None:
        raise UsageError(
            "--walks with --all-destinations are for comparing two stacks where they cannot be "
            "explored whole: give --beside as well, and --max-states"
        )
    rows: list[SystemTotals] = []
    comparisons: list[Comparison] = []
    for size in sizes:
        both: list[SystemTotals] = []
        for chosen in [plan] if beside is None else [plan, beside]:
            if not interrupted():
                both.append(_row(arguments, chosen, size, how, interrupted))
                if not arguments.json:
                    _show(both[-1], first=not rows and len(both) == 1)
        rows += both
        if beside is not None and not interrupted():
            found = _compared(arguments, (plan, beside), both, interrupted)
            comparisons.append(found)
            if not arguments.json:
                print(_sentence(found), flush=True)
    violated = any(row.violating for row in rows if row.stack == plan.name)
    exhausted = not any(row.not_exhausted for row in rows)
    if arguments.json:
        found_in_json = [comparison.to_json() for comparison in comparisons]
        document = {"rows": [row.to_json() for row in rows], "exhausted": exhausted}
        print_json(document | ({"comparisons": found_in_json} if beside is not None else {}))
    else:
        print("exhausted: every schedule of every system" if exhausted else "stopped: not all")
    return 1 if violated else 0


def _row(
    arguments: argparse.Namespace,
    plan: StackPlan,
    size: tuple[int, int],
    how: tuple[SearchOptions, SearchLimits],
    interrupted: Interrupted,
) -> SystemTotals:
    options, limits = how
    with status_line(wanted=not arguments.json) as status:
        return explore_all(
            plan,
            *size,
            fifo=arguments.channels == "fifo",
            options=options,
            limits=limits,
            workers=arguments.workers,
            elsewhere=systems_on_spark(arguments, plan, size, how) if arguments.spark else None,
            report=lambda row: status(
                f"{plan.name}: {row.systems:,} systems, {row.not_exhausted:,} of them not "
                f"exhausted, {row.states:,} states"
            ),
            interrupted=interrupted,
        )


def _compared(
    arguments: argparse.Namespace,
    plans: tuple[StackPlan, StackPlan],
    both: list[SystemTotals],
    interrupted: Interrupted,
) -> Comparison:
    with status_line(wanted=not arguments.json) as status:
        return compare(
            plans,
            zip(both[0].verdicts, both[1].verdicts, strict=True),
            arguments.walks or 0,
            arguments.seed,
            report=lambda found: status(f"compared: {found.systems:,} systems"),
            interrupted=interrupted,
        )


def _sentence(found: Comparison) -> str:
    """Say in how many systems the two stacks are alike, and how far that is known."""
    text = f"  orders and verdicts are the same in {found.exhausted:,} systems, explored whole"
    if found.reached:
        text += f"; in {found.reached:,} others both reach all acyclic orders"
        if found.walks:
            text += f", and {found.walks:,} random schedules of each break nothing"
    if found.unlike:
        text += f"; they differ in {len(found.unlike):,}, first in {found.unlike[0].described()}"
    return text


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if match is None:
        raise UsageError(f"--all-destinations {text}: write 4x3 for 4 processes, 3 messages")
    return int(match[1]), int(match[2])


def _show(row: SystemTotals, first: bool) -> None:
    if first:
        print(
            f"{'stack':18}{'processes':>10}{'messages':>9}{'systems':>9}{'states':>13}"
            f"{'seconds':>9}  systems that break a property"
        )
    broken = ", ".join(f"{name} {count}" for name, count in sorted(row.broken.items())) or "none"
    if row.not_exhausted:
        broken += f"; {row.not_exhausted:,} not exhausted"
    print(
        f"{row.stack:18}{row.processes:>10}{row.messages:>9}{row.systems:>9,}{row.states:>13,}"
        f"{row.seconds:>9.1f}  {broken}",
        flush=True,
    )
