"""`flexgroup explore --all-destinations`: every system of a size, for one stack or two."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from flexgroup.cli.arguments import print_json
from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.all_systems import SystemTotals, explore_all
from flexgroup.worlds.explorer.search_setup import SearchOptions


def explore_all_systems(
    arguments: argparse.Namespace,
    plan: StackPlan,
    options: SearchOptions,
    interrupted: Callable[[], bool],
) -> int:
    """Explore all systems of the sizes that were asked for, and print a row for each size."""
    sizes = [_size(text) for text in arguments.all_destinations]
    plans = [plan] + ([parse_stack(arguments.beside)] if arguments.beside else [])
    fifo = arguments.channels == "fifo"
    rows: list[SystemTotals] = []
    for processes, messages in sizes:
        for chosen in plans:
            totals = explore_all(
                chosen,
                processes,
                messages,
                fifo=fifo,
                options=options,
                workers=arguments.workers,
                interrupted=interrupted,
            )
            rows.append(totals)
            if not arguments.json:
                _show(rows[-1], first=len(rows) == 1)
            if interrupted():
                break
    violated = any(row.violating for row in rows if row.stack == plan.name)
    exhausted = not any(row.not_exhausted for row in rows)
    if arguments.json:
        print_json({"rows": [row.to_json() for row in rows], "exhausted": exhausted})
    else:
        print("exhausted: every schedule of every system" if exhausted else "stopped: not all")
    return 1 if violated else 0


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
    print(
        f"{row.stack:18}{row.processes:>10}{row.messages:>9}{row.systems:>9,}{row.states:>13,}"
        f"{row.seconds:>9.1f}  {broken}",
        flush=True,
    )
