"""What `flexgroup explore` does with its options, and what it says of an exploration."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from flexgroup.cli.arguments import print_json
from flexgroup.cli.explore_all import explore_all_systems
from flexgroup.cli.on_spark import check_spark_options, search_on_spark, walks_on_spark
from flexgroup.cli.progress import status_line, stop_requests
from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.runs.explored import (
    Explored,
    Request,
    request_of,
    search_limits,
    search_options,
)
from flexgroup.worlds.explorer.explorer import SearchProgress
from flexgroup.worlds.explorer.minimise import Effort, Minimised
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions
from flexgroup.worlds.explorer.snapshot import SearchSnapshot, read_snapshot, write_snapshot

WITHOUT_SPARK = {
    "save": "its folder has all that is needed to go on",
    "resume": "give the folder that the search began with, and the same options",
    "max-memory": "see to Spark's own settings",
}
"""The options that do not go with --spark."""


def explore(options: argparse.Namespace) -> int:
    _check(options)
    if options.resume is not None:
        saved = read_snapshot(options.resume)
        return _explore(options, request_of(vars(options), parse_stack(saved.stack), saved.scope))
    if options.stack is None:
        raise UsageError("which protocol? Give one, for example: --protocol skeen")
    plan = parse_stack(options.stack)
    if options.all_destinations:
        how = search_options(vars(options)), search_limits(vars(options))
        with stop_requests(signal.SIGINT, most=1) as interrupted:
            return explore_all_systems(options, plan, how, interrupted)
    return _explore(options, request_of(vars(options), plan))


def _check(options: argparse.Namespace) -> None:
    if options.walks is not None and (options.save or options.resume):
        raise UsageError("walks are not saved: take more of them with another --seed")
    if options.memory is not None and options.all_destinations:
        raise UsageError("--memory is for the search of one system: leave it out, or the others")
    if options.all_destinations and (options.twin or options.liar):
        raise UsageError("--twin and --liar are for one system: leave out --all-destinations")
    check_spark_options(options, WITHOUT_SPARK)
    if options.spark is not None and options.workers > 1:
        raise UsageError("--workers share a search here; on Spark, give the cores with --master")
    limits = ("max_states", "max_depth", "max_seconds")
    if options.spark and options.walks and any(getattr(options, name) for name in limits):
        raise UsageError("walks on Spark are bounded by --walks alone; leave out --max-...")


def _explore(options: argparse.Namespace, request: Request) -> int:
    """Explore one scope, minimise what was found, and say so.

    What was found is shown and written before it is made smaller, which may take long.
    """
    plan, scope = request.plan, request.scope
    began = time.monotonic()
    result, used = _search(options, request)
    explored = Explored(request, result)
    if not options.json:
        print("\n".join(explored.counts()))
    with _effort(options, began) as effort:
        for found in explored.found():
            if not options.json:
                print(explored.as_found(found), flush=True)
            _write(options, plan, Minimised(scope, found), explored.broken_by(found))
            smallest = request.minimised(found, used, effort)
            explored.counterexamples.append((found, smallest))
            _write(options, plan, smallest, explored.broken_by(found))
            if not options.json and not options.no_minimise:
                print(explored.as_minimised(found, smallest))
    if options.json:
        print_json(explored.to_json())
    else:
        _show_end(options, explored)
    return 1 if explored.violated else 0


def _show_end(options: argparse.Namespace, explored: Explored) -> None:
    """Say where counterexamples were written, how to go on with a search that was stopped, if
    that is possible, and what was found."""
    if options.out is not None and explored.counterexamples:
        print(f"script, diagram and trace written to {options.out}; flexgroup lab opens the script")
    saved = _how_to_go_on(options)
    if explored.result.stopped_at and saved:
        print(f"saved; {saved}")
    print(explored.result.last_line())


def _write(
    options: argparse.Namespace, plan: StackPlan, shown: Minimised, broken: list[str]
) -> None:
    if options.out is not None:
        from flexgroup.cli.counterexamples import write_counterexample

        write_counterexample(options.out, plan, shown.scope, shown.violation, broken)


@contextmanager
def _effort(options: argparse.Namespace, began: float) -> Iterator[Effort]:
    """Give what is left of the bounds for minimising, and show on a terminal what is tried."""
    interrupts = stop_requests(signal.SIGINT, most=1)
    with interrupts as interrupted, status_line(wanted=not options.json) as status:

        def show(scope: Scope, progress: SearchProgress) -> None:
            status(f"looking for a smaller run: {scope.described()}, {progress.states:,} states")

        yield Effort(options.max_seconds, began, interrupted, show)


def _how_to_go_on(options: argparse.Namespace) -> str:
    if options.spark is not None and options.walks is None:
        return f"go on with the same command, and --spark {options.spark}, within larger bounds"
    saved = options.save or options.resume
    return f"go on with: flexgroup explore --resume {saved}" if saved else ""


def _search(
    options: argparse.Namespace, request: Request
) -> tuple[ExplorationResult, SearchOptions]:
    """Walk or search, showing progress; return the result and how the search was made at last."""
    plan, scope = request.plan, request.scope

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
        if options.spark is not None and options.walks is None:
            return search_on_spark(
                options, plan, scope, request.how, request.limits, show, interrupted
            )
        return request.search(
            report=show,
            interrupted=interrupted,
            keep=keep if options.save or options.resume else None,
            saved=read_snapshot(options.resume) if options.resume is not None else None,
            elsewhere=walks_on_spark(options, plan, scope) if options.spark else None,
        )
