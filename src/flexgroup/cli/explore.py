"""`flexgroup explore`: every schedule of a small system, or many of a larger one."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli import arguments
from flexgroup.cli.arguments import declare, from_one, print_json, seconds
from flexgroup.cli.counterexamples import script_of, write_counterexample
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.cli.arguments import Commands
    from flexgroup.protocols.catalogue import StackPlan
    from flexgroup.worlds.explorer.destinations import Tally
    from flexgroup.worlds.explorer.explorer import Limits, Progress
    from flexgroup.worlds.explorer.minimise import Smallest
    from flexgroup.worlds.explorer.outcome import Outcome, Violation
    from flexgroup.worlds.explorer.prepared import Manner
    from flexgroup.worlds.explorer.scope import Scope

EXAMPLE = (
    "flexgroup explore --protocol dcc-published --processes 4 "
    "--message 0,2 --message 0,2 --message 0,3 --message 2,3"
)
REDUCTIONS = ("both", "order", "symmetry", "none")


def add_to(commands: Commands) -> None:
    parser = declare(
        commands, "explore", run, "try every schedule of a small system, or many of a larger one",
        EXAMPLE,
    )  # fmt: skip
    add = parser.add_argument
    add(
        "--protocol", "--stack", dest="stack", metavar="P",
        help="a protocol or a stack of them, lowest first: skeen, dcc/rv, 'fifo dcc'",
    )  # fmt: skip
    add("--processes", type=int, metavar="N", help="how many processes")
    add("--message", action="append", default=[], metavar="[ORIGIN:]P,Q",
        help="a multicast to these processes, by a client of its own or by ORIGIN")  # fmt: skip
    add("--group", action="append", default=[], metavar="P,Q",
        help="tell the layers that messages stay within this group, or one of several")  # fmt: skip
    add("--any-order", action="store_true",
        help="what one origin multicasts may come in any order, not only as listed")  # fmt: skip
    add("--channels", choices=("fifo", "reordering"), default="fifo", help="(fifo)")
    add("--property", action="append", default=[], metavar="NAME",
        help="check this property instead of what the stack promises")  # fmt: skip
    add("--sometimes", action="append", default=[], metavar="A<B",
        help="some process must deliver message A before B in some run, as in a<b")  # fmt: skip
    add("--keep-going", action="store_true",
        help="after a violation, go on and look for other properties")  # fmt: skip
    add("--reduction", choices=REDUCTIONS, default="both",
        help="order: let one process move where that is enough; symmetry: clients that "
        "multicast alike are one (both)")  # fmt: skip
    add("--all-destinations", action="append", default=[], metavar="NxM",
        help="instead of one system, all of N processes and M messages to two or more")  # fmt: skip
    add("--beside", metavar="P", help="with --all-destinations: another stack, for comparison")
    add("--workers", type=int, default=1, metavar="N", help="how many processes search (1)")
    add("--no-minimise", action="store_true", help="show a counterexample as it was found")
    add("--out", type=Path, metavar="DIR",
        help="write counterexamples there: script, diagram (SVG), trace set")  # fmt: skip
    arguments.add_protocols(parser)
    faults = parser.add_argument_group("what may go wrong, at most so often in a run")
    add = faults.add_argument
    for name, what in (
        ("losses", "packets are lost"),
        ("duplicates", "packets are there twice"),
        ("crashes", "processes stop"),
        ("suspicions", "a process is taken for crashed that is not"),
        ("timers", "timers run out"),
    ):
        add(f"--{name}", type=int, default=0, metavar="N", help=f"{what} (0)")
    bounds = parser.add_argument_group("bounds, and going on after them")
    add = bounds.add_argument
    add("--max-states", type=from_one, metavar="N")
    add("--max-depth", type=from_one, metavar="N")
    add("--max-seconds", type=seconds, metavar="S")
    add("--max-memory", type=from_one, metavar="MB", help="of visited states and frontier")
    add("--save", type=Path, metavar="FILE", help="where to save a search that is stopped")
    add("--resume", type=Path, metavar="FILE", help="go on with a search that was saved")
    walks = parser.add_argument_group("walks, where there are too many schedules")
    add = walks.add_argument
    add("--walks", type=int, metavar="N", help="take so many random schedules instead")
    add("--pct", type=int, default=0, metavar="D",
        help="draw priorities, for bugs that need an order of D events")  # fmt: skip
    add("--seed", type=int, default=1, help="fixes the walks (1)")


def run(options: argparse.Namespace) -> int:
    from flexgroup.protocols.catalogue import parse_stack
    from flexgroup.worlds.explorer.snapshot import read_snapshot

    _check(options)
    arguments.import_protocols(options.protocols)
    if options.resume is not None:
        saved = read_snapshot(options.resume)
        return _explore(options, parse_stack(saved.stack), saved.scope)
    if options.stack is None:
        raise UsageError("which protocol? Give one, for example: --protocol skeen")
    plan = parse_stack(options.stack)
    if options.all_destinations:
        return _all_destinations(options, plan)
    return _explore(options, plan, _scope(options))


def _check(options: argparse.Namespace) -> None:
    if options.workers < 1:
        raise UsageError(f"{options.workers} workers cannot search; give 1 or more")
    if options.walks is not None and options.walks < 1:
        raise UsageError(f"{options.walks} walks lead nowhere; give 1 or more")
    if options.pct < 0 or (options.pct and options.walks is None):
        raise UsageError("--pct D needs a depth of 1 or more, and --walks N: how many to take")
    if options.walks is not None and (options.save or options.resume):
        raise UsageError("walks are not saved: take more of them with another --seed")


def _scope(options: argparse.Namespace) -> Scope:
    from flexgroup.worlds.explorer.scope import Bounds, Cast, Scope

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
        casts.append(Cast(origin, destinations))
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


def _manner(options: argparse.Namespace) -> Manner:
    from flexgroup.worlds.explorer.prepared import Manner

    return Manner(
        reduce=options.reduction in ("both", "order"),
        symmetry=options.reduction in ("both", "symmetry"),
        properties=tuple(options.property) or None,
    )


def _limits(options: argparse.Namespace) -> Limits:
    from flexgroup.worlds.explorer.explorer import Limits

    memory = options.max_memory << 20 if options.max_memory is not None else None
    return Limits(options.max_states, options.max_depth, options.max_seconds, memory)


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """A first interrupt ends the search in good order; a second one at once."""
    seen: list[int] = []

    def handle(number: int, frame: object) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(wanted: bool) -> Iterator[Callable[[Progress], None]]:
    """One line on standard error that is written over and over, where a person is looking."""
    if not wanted or not sys.stderr.isatty():
        yield lambda progress: None
        return

    def show(progress: Progress) -> None:
        speed = progress.transitions / max(progress.seconds, 1e-9)
        print(
            f"\r{progress.states:,} states, depth {progress.depth}, {progress.frontier:,} in the "
            f"frontier, {speed:,.0f} transitions/s   ",
            end="", file=sys.stderr, flush=True,
        )  # fmt: skip

    yield show
    print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)


def _explore(options: argparse.Namespace, plan: StackPlan, scope: Scope) -> int:
    from flexgroup.worlds.explorer.explorer import Exploration
    from flexgroup.worlds.explorer.snapshot import Snapshot, read_snapshot, write_snapshot
    from flexgroup.worlds.explorer.walks import walk

    manner, limits = _manner(options), _limits(options)
    wanted = _wanted_orders(options, scope)

    def keep(snapshot: Snapshot) -> None:
        write_snapshot(options.save or options.resume, snapshot)

    with _interrupts() as interrupted, _progress(not options.json) as report:
        if options.walks is not None:
            outcome = walk(
                plan, scope, options.walks, options.seed, options.pct, manner, limits, report,
                interrupted,
            )  # fmt: skip
        else:
            saved = read_snapshot(options.resume) if options.resume is not None else None
            workers = len(saved.workers) if saved is not None else options.workers
            exploration = Exploration(
                plan, scope, manner, limits, options.keep_going, workers, report, interrupted,
                keep if options.save or options.resume else None,
            )  # fmt: skip
            outcome = exploration.run(saved)
            manner = exploration.manner
    counterexamples = [
        (violation, _smaller(options, plan, scope, violation, manner))
        for place, violation in enumerate(outcome.violations)
        if violation.run not in [other.run for other in outcome.violations[:place]]
    ]
    unseen = [text for text, pair in wanted.items() if pair not in outcome.seen_orders]
    for _, smallest in counterexamples if options.out is not None else ():
        write_counterexample(options.out, plan, smallest.scope, smallest.violation)
    if options.json:
        print_json(_document(options, plan, outcome, counterexamples, unseen))
    else:
        _show(options, plan, outcome, counterexamples, unseen)
    return 1 if outcome.violations or (unseen and outcome.exhausted) else 0


def _wanted_orders(options: argparse.Namespace, scope: Scope) -> dict[str, tuple[int, int]]:
    from flexgroup.worlds.explorer.outcome import letters

    numbers = {letter: message for message, letter in letters(scope).items()}
    wanted = {}
    for text in options.sometimes:
        first, sign, second = text.replace(" ", "").partition("<")
        if not sign or first not in numbers or second not in numbers:
            known = ", ".join(numbers)
            raise UsageError(f"--sometimes {text}: write a<b; the messages are {known}")
        wanted[f"{first} < {second}"] = (numbers[first], numbers[second])
    return wanted


def _smaller(
    options: argparse.Namespace, plan: StackPlan, scope: Scope, found: Violation, manner: Manner
) -> Smallest:
    from flexgroup.worlds.explorer.minimise import Smallest, minimise, shortest

    if options.no_minimise:
        return Smallest(scope, found)
    if options.walks is not None:
        return minimise(plan, scope, found, manner)
    first = shortest(plan, scope, found, manner)
    return minimise(plan, scope, first, manner)


def _show(
    options: argparse.Namespace,
    plan: StackPlan,
    outcome: Outcome,
    counterexamples: list[tuple[Violation, Smallest]],
    unseen: list[str],
) -> None:
    channels = "fifo" if outcome.scope.fifo else "reordering"
    print(f"{plan.name} over {channels} channels, {outcome.scope.described()}")
    print(
        f"  {outcome.states:,} states, {outcome.transitions:,} transitions, "
        f"depth {outcome.depth}, {outcome.terminals:,} ends, {outcome.complete:,} of them with "
        f"everything delivered"
    )
    orders = _both_orders(outcome)
    print(f"  {outcome.seconds:.2f} s, {outcome.memory / 2**20:.1f} MB; {orders}")
    for note in outcome.notes:
        print(f"  {note}")
    for text in unseen:
        print(f"sometimes {text}: never seen")
    for found, smallest in counterexamples:
        names = [other.name for other in outcome.violations if other.run == found.run]
        deadlock = ", and nothing can happen any more: deadlock" if "validity" in names else ""
        print(f"{', '.join(names)}: violated after {found.steps} steps{deadlock}")
        if smallest.scope != outcome.scope:
            print(f"  smaller: {smallest.scope.described()}")
        proved = " and no fewer" if smallest.violation.shortest else ""
        print(f"  in {smallest.violation.steps} steps{proved}; `flexgroup replay` runs this:\n")
        print(script_of(plan, smallest.scope, smallest.violation))
    if options.out is not None and counterexamples:
        print(f"script, diagram and trace written to {options.out}")
    if outcome.stopped_at and (options.save or options.resume):
        print(f"saved; go on with: flexgroup explore --resume {options.save or options.resume}")
    print(outcome.last_line())


def _both_orders(outcome: Outcome) -> str:
    """Against success by default: did messages that meet really race?"""
    from flexgroup.worlds.explorer.outcome import pairs_to_see

    pairs = pairs_to_see(outcome.scope)
    seen = sum(1 for pair in pairs if pair in outcome.seen_orders)
    return f"of {len(pairs)} orders of two messages that meet, {seen} were seen"


def _document(
    options: argparse.Namespace,
    plan: StackPlan,
    outcome: Outcome,
    counterexamples: list[tuple[Violation, Smallest]],
    unseen: list[str],
) -> dict[str, object]:
    return {
        "stack": plan.name,
        "processes": outcome.scope.processes,
        "messages": [list(cast.destinations) for cast in outcome.scope.casts],
        "states": outcome.states,
        "transitions": outcome.transitions,
        "depth": outcome.depth,
        "frontier": outcome.frontier,
        "ends": outcome.terminals,
        "complete_ends": outcome.complete,
        "exhausted": outcome.exhausted,
        "stopped_at": outcome.stopped_at or None,
        "notes": list(outcome.notes),
        "seconds": round(outcome.seconds, 3),
        "bytes": outcome.memory,
        "never_seen": unseen,
        "violations": [
            {
                "property": found.name,
                "also": [
                    other.name
                    for other in outcome.violations
                    if other.run == found.run and other.name != found.name
                ],
                "steps": found.steps,
                "smallest": {
                    "processes": smallest.scope.processes,
                    "messages": [list(cast.destinations) for cast in smallest.scope.casts],
                    "steps": smallest.violation.steps,
                    "shortest": smallest.violation.shortest,
                },
                "script": script_of(plan, smallest.scope, smallest.violation),
            }
            for found, smallest in counterexamples
        ],
        "last_line": outcome.last_line(),
    }


def _all_destinations(options: argparse.Namespace, plan: StackPlan) -> int:
    from flexgroup.protocols.catalogue import parse_stack
    from flexgroup.worlds.explorer.destinations import tally

    sizes = []
    for text in options.all_destinations:
        match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
        if match is None:
            raise UsageError(f"--all-destinations {text}: write 4x3 for 4 processes, 3 messages")
        sizes.append((int(match[1]), int(match[2])))
    plans = [plan] + ([parse_stack(options.beside)] if options.beside else [])
    fifo = options.channels == "fifo"
    rows: list[Tally] = []
    with _interrupts() as interrupted:
        for processes, messages in sizes:
            for chosen in plans:
                rows.append(
                    tally(
                        chosen, processes, messages, fifo, _manner(options), options.workers,
                        interrupted=interrupted,
                    )
                )  # fmt: skip
                if not options.json:
                    _show_tally(rows[-1], first=len(rows) == 1)
                if interrupted():
                    break
    violated = any(row.violating for row in rows if row.stack == plan.name)
    exhausted = not any(row.not_exhausted for row in rows)
    if options.json:
        print_json({"rows": [row.to_json() for row in rows], "exhausted": exhausted})
    else:
        print("exhausted: every schedule of every system" if exhausted else "stopped: not all")
    return 1 if violated else 0


def _show_tally(row: Tally, first: bool) -> None:
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
