"""`flexgroup explore`: every schedule of a small system, or many of a larger one."""

from __future__ import annotations

import argparse
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import (
    Command,
    Group,
    Option,
    flag,
    from_one,
    import_protocols,
    print_json,
    protocols_option,
    repeated,
    seconds,
    stack_option,
)
from flexgroup.cli.progress import status_line, stop_requests
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.protocols.catalogue import StackPlan
    from flexgroup.worlds.explorer.explorer import SearchLimits
    from flexgroup.worlds.explorer.minimise import Minimised
    from flexgroup.worlds.explorer.result import ExplorationResult, Violation
    from flexgroup.worlds.explorer.scope import Scope
    from flexgroup.worlds.explorer.search_setup import SearchOptions

COMMAND = Command(
    "explore",
    "try every schedule of a small system, or many of a larger one",
    "flexgroup explore --protocol dcc-published --processes 4 "
    "--message 0,2 --message 0,2 --message 0,3 --message 2,3",
    (
        stack_option(required=False),
        Option("--processes", type=int, metavar="N", help="how many processes"),
        repeated(
            "--message", "[ORIGIN:]P,Q",
            "a multicast to these processes, by a client of its own or by ORIGIN",
        ),
        repeated(
            "--group", "P,Q",
            "tell the layers that messages stay within this group, or one of several",
        ),
        flag("--any-order", "what one origin multicasts may come in any order, not only as listed"),
        Option("--channels", choices=("fifo", "reordering"), default="fifo", help="(fifo)"),
        repeated(
            "--property", "NAME", "check this property instead of what the stack promises"
        ),
        repeated(
            "--sometimes", "A<B",
            "some process must deliver message A before B in some run, as in a<b",
        ),
        flag("--keep-going", "after a violation, go on and look for other properties"),
        Option(
            "--reduction", choices=("both", "order", "symmetry", "none"), default="both",
            help="order: let one process move where that is enough; symmetry: clients that "
            "multicast alike are one (both)",
        ),
        repeated(
            "--all-destinations", "NxM",
            "instead of one system, all of N processes and M messages to two or more",
        ),
        Option(
            "--beside", metavar="P",
            help="with --all-destinations: another stack, for comparison",
        ),
        Option(
            "--workers", type=from_one, default=1, metavar="N",
            help="how many processes search (1)",
        ),
        flag("--no-minimise", "show a counterexample as it was found"),
        Option(
            "--out", type=Path, metavar="DIR",
            help="write counterexamples there: script, diagram (SVG), trace set",
        ),
        protocols_option(),
        Group(
            "what may go wrong, at most so often in a run",
            *(
                Option(f"--{name}", type=int, default=0, metavar="N", help=f"{what} (0)")
                for name, what in (
                    ("losses", "packets are lost"),
                    ("duplicates", "packets are there twice"),
                    ("crashes", "processes stop"),
                    ("suspicions", "a process is taken for crashed that is not"),
                    ("timers", "timers run out"),
                )
            ),
        ),
        Group(
            "bounds, and going on after them",
            Option("--max-states", type=from_one, metavar="N"),
            Option("--max-depth", type=from_one, metavar="N"),
            Option("--max-seconds", type=seconds, metavar="S"),
            Option(
                "--max-memory", type=from_one, metavar="MB", help="of visited states and frontier"
            ),
            Option(
                "--save", type=Path, metavar="FILE", help="where to save a search that is stopped"
            ),
            Option(
                "--resume", type=Path, metavar="FILE", help="go on with a search that was saved"
            ),
        ),
        Group(
            "walks, where there are too many schedules",
            Option(
                "--walks", type=from_one, metavar="N", help="take so many random schedules instead"
            ),
            Option(
                "--pct", type=int, default=0, metavar="D",
                help="draw priorities, for bugs that need an order of D events",
            ),
            Option("--seed", type=int, default=1, help="fixes the walks (1)"),
        ),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from flexgroup.protocols.catalogue import parse_stack
    from flexgroup.worlds.explorer.snapshot import read_snapshot

    _check(options)
    import_protocols(options.protocols)
    if options.resume is not None:
        saved = read_snapshot(options.resume)
        return _explore(options, parse_stack(saved.stack), saved.scope)
    if options.stack is None:
        raise UsageError("which protocol? Give one, for example: --protocol skeen")
    plan = parse_stack(options.stack)
    if options.all_destinations:
        from flexgroup.cli.explore_all import explore_all_systems

        with stop_requests(signal.SIGINT, most=1) as interrupted:
            return explore_all_systems(options, plan, _search_options(options), interrupted)
    return _explore(options, plan, _scope(options))


def _check(options: argparse.Namespace) -> None:
    if options.pct < 0 or (options.pct and options.walks is None):
        raise UsageError("--pct D needs a depth of 1 or more, and --walks N: how many to take")
    if options.walks is not None and (options.save or options.resume):
        raise UsageError("walks are not saved: take more of them with another --seed")


def _scope(options: argparse.Namespace) -> Scope:
    from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

    if options.processes is None or not options.message:
        raise UsageError(
            "which system? Give --processes N and at least one --message P,Q, "
            "or --all-destinations NxM"
        )
    casts = []
    client = options.processes
    for text in options.message:
        match = re.fullmatch(r"(?:(\d+):)?(\d+(?:,\d+)*)", text)
        if match is None:
            raise UsageError(f"--message {text}: write destinations as 0,2, or 1:0,2 from 1")
        destinations = tuple(sorted({int(word) for word in match[2].split(",")}))
        origin = int(match[1]) if match[1] else client
        client = max(client, origin + 1) if origin >= options.processes else client
        casts.append(PlannedCast(origin, destinations))
    bounds = Bounds(
        options.crashes, options.suspicions, options.losses, options.duplicates, options.timers
    )
    fifo = options.channels == "fifo"
    groups = []
    for text in options.group:
        if not re.fullmatch(r"\d+(,\d+)*", text):
            raise UsageError(f"--group {text}: write its members as 0,1,2")
        groups.append(tuple(sorted({int(word) for word in text.split(",")})))
    return Scope(options.processes, tuple(casts), fifo, options.any_order, bounds, tuple(groups))


def _search_options(options: argparse.Namespace) -> SearchOptions:
    from flexgroup.worlds.explorer.search_setup import SearchOptions

    return SearchOptions(
        reduce=options.reduction in ("both", "order"),
        symmetry=options.reduction in ("both", "symmetry"),
        properties=tuple(options.property) or None,
    )


def _limits(options: argparse.Namespace) -> SearchLimits:
    from flexgroup.worlds.explorer.explorer import SearchLimits

    memory = options.max_memory << 20 if options.max_memory is not None else None
    return SearchLimits(options.max_states, options.max_depth, options.max_seconds, memory)


def _explore(options: argparse.Namespace, plan: StackPlan, scope: Scope) -> int:
    """Explore one scope, minimise what was found, and say so."""
    from flexgroup.cli.explored import Explored

    wanted = _wanted_orders(options, scope)
    result, used = _search(options, plan, scope)
    counterexamples = [
        (violation, _minimised(options, plan, scope, violation, used))
        for place, violation in enumerate(result.violations)
        if violation.run not in [other.run for other in result.violations[:place]]
    ]
    if options.out is not None:
        from flexgroup.cli.counterexamples import write_counterexample

        for _, smallest in counterexamples:
            write_counterexample(options.out, plan, smallest.scope, smallest.violation)
    unseen = [text for text, pair in wanted.items() if pair not in result.seen_orders]
    explored = Explored(plan, result, counterexamples, unseen)
    if options.json:
        print_json(explored.to_json())
    else:
        explored.show(options.out, options.save or options.resume)
    return 1 if result.violations or (unseen and result.exhausted) else 0


def _search(
    options: argparse.Namespace, plan: StackPlan, scope: Scope
) -> tuple[ExplorationResult, SearchOptions]:
    """Walk or search, showing progress; return the result and how the search was made at last."""
    from flexgroup.worlds.explorer.explorer import Exploration, SearchProgress
    from flexgroup.worlds.explorer.random_walks import RandomWalks
    from flexgroup.worlds.explorer.snapshot import SearchSnapshot, read_snapshot, write_snapshot

    how, limits = _search_options(options), _limits(options)

    def keep(snapshot: SearchSnapshot) -> None:
        write_snapshot(options.save or options.resume, snapshot)

    def show(progress: SearchProgress) -> None:
        speed = progress.transitions / max(progress.seconds, 1e-9)
        status(
            f"{progress.states:,} states, depth {progress.depth}, {progress.frontier:,} in the "
            f"frontier, {speed:,.0f} transitions/s"
        )

    interrupts = stop_requests(signal.SIGINT, most=1)
    with interrupts as interrupted, status_line(wanted=not options.json) as status:
        if options.walks is not None:
            walks = RandomWalks(
                plan,
                scope,
                options.walks,
                seed=options.seed,
                depth=options.pct,
                options=how,
                limits=limits,
                report=show,
                interrupted=interrupted,
            )
            return walks.take(), how
        saved = read_snapshot(options.resume) if options.resume is not None else None
        exploration = Exploration(
            plan,
            scope,
            how,
            limits,
            keep_going=options.keep_going,
            workers=options.workers if saved is None else len(saved.workers),
            report=show,
            interrupted=interrupted,
            keep=keep if options.save or options.resume else None,
        )
        result = exploration.run(saved)
        return result, exploration.options


def _wanted_orders(options: argparse.Namespace, scope: Scope) -> dict[str, tuple[int, int]]:
    """Return the orders of --sometimes as pairs of messages, by how they are written."""
    from flexgroup.worlds.explorer.result import letters

    numbers = {letter: message for message, letter in letters(scope).items()}
    wanted = {}
    for text in options.sometimes:
        first, sign, second = text.replace(" ", "").partition("<")
        if not sign or first not in numbers or second not in numbers:
            known = ", ".join(numbers)
            raise UsageError(f"--sometimes {text}: write a<b; the messages are {known}")
        wanted[f"{first} < {second}"] = (numbers[first], numbers[second])
    return wanted


def _minimised(
    options: argparse.Namespace,
    plan: StackPlan,
    scope: Scope,
    found: Violation,
    used: SearchOptions,
) -> Minimised:
    from flexgroup.worlds.explorer.minimise import Minimised, minimise, shortest

    if options.no_minimise:
        return Minimised(scope, found)
    if options.walks is not None:
        return minimise(plan, scope, found, used)
    first = shortest(plan, scope, found, used)
    return minimise(plan, scope, first, used)
