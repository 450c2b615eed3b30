"""`flexgroup explore --servers`: every schedule of a few servers whose configuration changes."""

from __future__ import annotations

import argparse
import re
import signal
from pathlib import Path

from flexgroup.cli.arguments import make_folder, print_json
from flexgroup.cli.progress import status_line, stop_requests
from flexgroup.core.errors import UsageError
from flexgroup.membership_explorer.scope import ClusterScope, FaultBounds, PlannedAction
from flexgroup.membership_explorer.script import minimise, parse_script, verdict, write_script
from flexgroup.membership_explorer.search import ClusterResult, ClusterSearch
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import SearchLimits, SearchProgress
from flexgroup.worlds.network.faults import Faults

FOR_PROCESSES = (
    "processes", "any_order", "property", "sometimes", "keep_going", "all_destinations", "beside",
    "losses", "duplicates", "suspicions", "timers", "save", "resume", "walks", "max_memory",
    "memory", "replicas", "crash", "suspect", "spark", "master", "twin", "liar",
)  # fmt: skip
"""The options that only the explorer of processes has."""


def explore_servers(options: argparse.Namespace) -> int:
    for name in FOR_PROCESSES:
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} is not for --servers; leave it out")
    scope = _scope(options)
    result = _search(options, scope)
    scripts = []
    for found in result.violations:
        smallest = (scope, found) if options.no_minimise else minimise(scope, found)
        scripts.append((found.name, write_script(smallest[0], smallest[1].run)))
    if options.out is not None and scripts:
        make_folder(options.out)
        for name, script in scripts:
            (options.out / f"servers-{name.replace(' ', '-')}.txt").write_text(script)
    if options.json:
        print_json(_to_json(result, scripts))
    else:
        _show(result, scripts, options.out)
    return 1 if result.violations else 0


def replay_servers(file: Path) -> int:
    """Perform a script, and say what it breaks."""
    scope, run = parse_script(file.read_text())
    broken = verdict(scope, run)
    print(write_script(scope, run))
    print(f"violated: {', '.join(broken)}" if broken else "no property is violated")
    return 1 if broken else 0


def _scope(options: argparse.Namespace) -> ClusterScope:
    if options.stack is None:
        raise UsageError("which stack do the groups have? For example: --protocol 'fifo dcc'")
    plan = parse_stack(options.stack)
    plan.check_nothing_is_lost(Faults().channels())  # servers refuse such groups
    groups = []
    for text in options.group:
        if not re.fullmatch(r"\d+(,\d+)*", text):
            raise UsageError(f"--group {text}: write the servers with members as 1,2")
        groups.append(tuple(sorted({int(word) for word in text.split(",")})))
    actions = []
    for option, kind in (("message", "cast"), ("join", "join"), ("leave", "leave")):
        for text in getattr(options, option):
            match = re.fullmatch(r"(\d+):([A-Z](?:,[A-Z])*)", text)
            if match is None:
                raise UsageError(
                    f"--{option} {text}: write a server and a group as 1:A, groups being called "
                    "A, B, and so on"
                )
            actions.append(PlannedAction(kind, int(match[1]), tuple(match[2].split(","))))
    bounds = FaultBounds(
        options.crashes,
        options.cuts,
        options.breaks,
        options.delays,
        options.ticks,
        options.restarts,
    )
    return ClusterScope(options.servers, plan.name, tuple(groups), tuple(actions), bounds)


def _search(options: argparse.Namespace, scope: ClusterScope) -> ClusterResult:
    def show(progress: SearchProgress) -> None:
        status(
            f"{progress.states:,} states, depth {progress.depth}, {progress.frontier:,} in the "
            "frontier"
        )

    interrupts = stop_requests(signal.SIGINT, most=1)
    with interrupts as interrupted, status_line(wanted=not options.json) as status:
        limits = SearchLimits(options.max_states, options.max_depth, options.max_seconds)
        return ClusterSearch(scope, limits, show, interrupted).run()


def _show(result: ClusterResult, scripts: list[tuple[str, str]], out: Path | None) -> None:
    print(result.scope.described())
    print(
        f"  {result.states:,} states, {result.transitions:,} transitions, depth {result.depth}, "
        f"{result.configurations:,} configurations"
    )
    print(
        f"  {result.ends:,} ends: {result.quiet:,} quiet, {result.lost:,} with too few servers "
        f"left, the others quiet when all can talk; {result.seconds:.2f} s"
    )
    for name, script in scripts:
        print(f"{name}: violated; `flexgroup explore --replay FILE` performs this:\n")
        print(script)
    if out is not None and scripts:
        print(f"written to {out}")
    print(result.last_line())


def _to_json(result: ClusterResult, scripts: list[tuple[str, str]]) -> dict[str, object]:
    return {
        "scope": result.scope.lines(),
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "frontier": result.frontier,
        "ends": result.ends,
        "quiet_ends": result.quiet,
        "lost_ends": result.lost,
        "configurations": result.configurations,
        "exhausted": result.exhausted,
        "stopped_at": result.stopped_at or None,
        "seconds": round(result.seconds, 3),
        "violations": [{"property": name, "script": script} for name, script in scripts],
        "last_line": result.last_line(),
    }
