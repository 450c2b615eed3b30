"""What `flexgroup explore` does with its options, and what it says of an exploration."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flexgroup.cli.arguments import print_json
from flexgroup.cli.explore_all import explore_all_systems
from flexgroup.cli.on_spark import check_spark_options, search_on_spark, walks_on_spark
from flexgroup.cli.progress import status_line, stop_requests
from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.explorer import Exploration, SearchLimits, SearchProgress
from flexgroup.worlds.explorer.minimise import Effort, Minimised, minimise, shortest
from flexgroup.worlds.explorer.random_walks import RandomWalks
from flexgroup.worlds.explorer.result import ExplorationResult, Violation, letters, pairs_to_see
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.scope_words import STOCKS, scope_of
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
        return _explore(options, parse_stack(saved.stack), saved.scope)
    if options.stack is None:
        raise UsageError("which protocol? Give one, for example: --protocol skeen")
    plan = parse_stack(options.stack)
    if options.all_destinations:
        how = _search_options(options), _limits(options)
        with stop_requests(signal.SIGINT, most=1) as interrupted:
            return explore_all_systems(options, plan, how, interrupted)
    return _explore(options, plan, _scope(options))


def _check(options: argparse.Namespace) -> None:
    if options.pct < 0 or (options.pct and options.walks is None):
        raise UsageError("--pct D needs a depth of 1 or more, and --walks N: how many to take")
    if options.walks is not None and (options.save or options.resume):
        raise UsageError("walks are not saved: take more of them with another --seed")
    if options.memory is not None and (options.walks is not None or options.all_destinations):
        raise UsageError("--memory is for the search of one system: leave it out, or the others")
    if options.all_destinations and (options.twin or options.liar):
        raise UsageError("--twin and --liar are for one system: leave out --all-destinations")
    check_spark_options(options, WITHOUT_SPARK)
    if options.spark is not None and options.workers > 1:
        raise UsageError("--workers share a search here; on Spark, give the cores with --master")
    limits = ("max_states", "max_depth", "max_seconds")
    if options.spark and options.walks and any(getattr(options, name) for name in limits):
        raise UsageError("walks on Spark are bounded by --walks alone; leave out --max-...")


def _scope(options: argparse.Namespace) -> Scope:
    """Return the scope that the options describe, each of which may be given several times."""
    words: dict[str, list[str]] = {"any-order": ["yes"]} if options.any_order else {}
    for name in ("processes", "replicas", "channels", *STOCKS):
        value = getattr(options, name)
        words[name] = [] if value is None else [str(value)]
    for name in ("message", "group", "view", "crash", "suspect", "twin", "liar"):
        words[name] = getattr(options, name)
    return scope_of(words)


def _search_options(options: argparse.Namespace) -> SearchOptions:
    return SearchOptions(
        reduce=options.reduction in ("both", "order"),
        symmetry=options.reduction in ("both", "symmetry"),
        properties=tuple(options.property) or None,
    )


def _limits(options: argparse.Namespace) -> SearchLimits:
    memory = options.max_memory << 20 if options.max_memory is not None else None
    return SearchLimits(options.max_states, options.max_depth, options.max_seconds, memory)


def _explore(options: argparse.Namespace, plan: StackPlan, scope: Scope) -> int:
    """Explore one scope, minimise what was found, and say so.

    What was found is shown and written before it is made smaller, which may take long.
    """
    wanted = _wanted_orders(options, scope)
    began = time.monotonic()
    result, used = _search(options, plan, scope)
    unseen = [text for text, pair in wanted.items() if pair not in result.seen_orders]
    explored = Explored(plan, result, [], unseen)
    if not options.json:
        explored.show_counts()
    with _effort(options, began) as effort:
        for place, found in enumerate(result.violations):
            if found.run in [other.run for other in result.violations[:place]]:
                continue
            if not options.json:
                explored.show_found(found)
            _write(options, plan, Minimised(scope, found), explored.broken_by(found))
            smallest = _minimised(options, plan, scope, found, used, effort)
            explored.counterexamples.append((found, smallest))
            _write(options, plan, smallest, explored.broken_by(found))
            if not options.json and not options.no_minimise:
                explored.show_smallest(found, smallest)
    if options.json:
        print_json(explored.to_json())
    else:
        explored.show_end(options.out, _how_to_go_on(options))
    return 1 if result.violations or (unseen and result.exhausted) else 0


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
    options: argparse.Namespace, plan: StackPlan, scope: Scope
) -> tuple[ExplorationResult, SearchOptions]:
    """Walk or search, showing progress; return the result and how the search was made at last."""
    how = _search_options(options)
    limits = _limits(options)

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
                workers=options.workers,
                elsewhere=walks_on_spark(options, plan, scope) if options.spark else None,
                report=show,
                interrupted=interrupted,
            )
            return walks.take(), how
        if options.spark is not None:
            return search_on_spark(options, plan, scope, how, limits, show, interrupted)
        saved = read_snapshot(options.resume) if options.resume is not None else None
        exploration = Exploration(
            plan,
            scope,
            how,
            limits,
            keep_going=options.keep_going,
            workers=options.workers,
            memory=(options.memory or 0) << 20,
            report=show,
            interrupted=interrupted,
            keep=keep if options.save or options.resume else None,
        )
        result = exploration.run(saved)
        return result, exploration.options


def _wanted_orders(options: argparse.Namespace, scope: Scope) -> dict[str, tuple[int, int]]:
    """Return the orders of --sometimes as pairs of messages, by how they are written."""
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
    effort: Effort,
) -> Minimised:
    if options.no_minimise:
        return Minimised(scope, found)
    if options.walks is None:
        found = shortest(plan, scope, found, used, effort)
    return minimise(plan, scope, found, used, effort)


def script_of(plan: StackPlan, scope: Scope, found: Violation, broken: Sequence[str] = ()) -> str:
    """The commands with their answers, and a verdict on all that the run breaks."""
    from flexgroup.testing.script import rewrite
    from flexgroup.worlds.explorer.schedule import script

    title = f"{plan.name}: {found.name} is violated after {found.steps} steps."
    return rewrite(script(plan.name, scope, found.run, title, broken or [found.name]))


@dataclass(frozen=True)
class Explored:
    """The result of an exploration with its counterexamples, each as found and minimised."""

    plan: StackPlan
    result: ExplorationResult
    counterexamples: list[tuple[Violation, Minimised]]
    unseen: list[str]
    """The orders that had to be seen sometimes, and were not."""

    def broken_by(self, found: Violation) -> list[str]:
        """List the properties that this run was condemned for."""
        return [other.name for other in self.result.violations if other.run == found.run]

    def show_counts(self) -> None:
        plan, result = self.plan, self.result
        channels = "fifo" if result.scope.fifo else "reordering"
        print(f"{plan.name} over {channels} channels, {result.scope.described()}")
        print(
            f"  {result.states:,} states, {result.transitions:,} transitions, "
            f"depth {result.depth}, {result.terminals:,} ends, {result.complete:,} of them with "
            f"everything delivered"
        )
        memory = result.memory / 2**20
        files = f", {result.in_files:,} visited states in files" if result.in_files else ""
        print(f"  {result.seconds:.2f} s, {memory:.1f} MB{files}; {self._both_orders()}")
        for note in result.notes:
            print(f"  {note}")
        for text in self.unseen:
            print(f"sometimes {text}: never seen")

    def show_found(self, found: Violation) -> None:
        """Print a counterexample as soon as there is one."""
        names = self.broken_by(found)
        deadlock = ", and nothing can happen any more: deadlock" if "validity" in names else ""
        print(f"{', '.join(names)}: violated after {found.steps} steps{deadlock}")
        print("  `flexgroup replay` runs this:\n")
        print(script_of(self.plan, self.result.scope, found, names), flush=True)

    def show_smallest(self, found: Violation, minimised: Minimised) -> None:
        smallest = minimised.violation
        changed = minimised.scope != self.result.scope or smallest.run != found.run
        if minimised.scope != self.result.scope:
            print(f"  smaller: {minimised.scope.described()}")
        proved = " and no fewer" if smallest.shortest else ""
        until = f"; stopped at {minimised.stopped_at}" if minimised.stopped_at else ""
        script = "; `flexgroup replay` runs this:\n" if changed else ""
        print(f"  in {smallest.steps} steps{proved}{until}{script}")
        if changed:
            print(script_of(self.plan, minimised.scope, smallest, self.broken_by(found)))

    def show_end(self, out: Path | None, saved: str) -> None:
        """Say where counterexamples were written, how to go on with a search that was stopped, if
        that is possible, and what was found."""
        if out is not None and self.counterexamples:
            print(f"script, diagram and trace written to {out}; flexgroup lab opens the script")
        if self.result.stopped_at and saved:
            print(f"saved; {saved}")
        print(self.result.last_line())

    def _both_orders(self) -> str:
        """Say whether messages that meet really raced, against success by default."""
        pairs = pairs_to_see(self.result.scope)
        seen = sum(1 for pair in pairs if pair in self.result.seen_orders)
        return f"of {len(pairs)} orders of two messages that meet, {seen} were seen"

    def to_json(self) -> dict[str, object]:
        result = self.result
        return {
            "stack": self.plan.name,
            "processes": result.scope.processes,
            "messages": [list(cast.destinations) for cast in result.scope.casts],
            "states": result.states,
            "transitions": result.transitions,
            "depth": result.depth,
            "frontier": result.frontier,
            "ends": result.terminals,
            "complete_ends": result.complete,
            "exhausted": result.exhausted,
            "stopped_at": result.stopped_at or None,
            "notes": list(result.notes),
            "seconds": round(result.seconds, 3),
            "bytes": result.memory,
            "in_files": result.in_files,
            "never_seen": self.unseen,
            "violations": [self._violation(*pair) for pair in self.counterexamples],
            "last_line": result.last_line(),
        }

    def _violation(self, found: Violation, minimised: Minimised) -> dict[str, object]:
        return {
            "property": found.name,
            "also": [
                other.name
                for other in self.result.violations
                if other.run == found.run and other.name != found.name
            ],
            "steps": found.steps,
            "smallest": {
                "processes": minimised.scope.processes,
                "messages": [list(cast.destinations) for cast in minimised.scope.casts],
                "steps": minimised.violation.steps,
                "shortest": minimised.violation.shortest,
            },
            "script": script_of(
                self.plan, minimised.scope, minimised.violation, self.broken_by(found)
            ),
        }
