"""An exploration: what was searched, what was found, and the run that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.runs.options import each
from flexgroup.worlds.explorer.explorer import (
    Exploration,
    SearchLimits,
    SearchProgress,
    nobody,
)
from flexgroup.worlds.explorer.minimise import Effort, Minimised, minimise, shortest
from flexgroup.worlds.explorer.random_walks import Elsewhere, RandomWalks
from flexgroup.worlds.explorer.result import ExplorationResult, Violation, letters, pairs_to_see
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.scope_words import STOCKS, scope_of
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search, promised
from flexgroup.worlds.explorer.snapshot import SearchSnapshot
from flexgroup.worlds.explorer.staged import StagedRun

if TYPE_CHECKING:
    import pandas as pd

    from flexgroup.diagram.drawing import Diagram
    from flexgroup.lab.address import Address
    from flexgroup.lab.drawn import PerformedRun
    from flexgroup.properties.verdict import Verdict
    from flexgroup.runs.shown import Picture

LONGEST_EXAMPLE = 400
"""The most steps of a run that is shown where no property is violated."""


@dataclass(frozen=True)
class Request:
    """What to explore, how, and how far."""

    plan: StackPlan
    scope: Scope
    how: SearchOptions
    limits: SearchLimits
    wanted: Mapping[str, tuple[int, int]]
    """The orders of two messages that have to be seen in some run, by how they are written."""
    options: Mapping[str, Any]
    """All options of `flexgroup explore`, by name."""

    def search(
        self,
        *,
        report: Callable[[SearchProgress], None] = nobody,
        interrupted: Callable[[], bool] = lambda: False,
        keep: Callable[[SearchSnapshot], None] | None = None,
        saved: SearchSnapshot | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> tuple[ExplorationResult, SearchOptions]:
        """Walk or search; return the result and how the search was made at last."""
        options = self.options
        if options["walks"] is not None:
            walks = RandomWalks(
                self.plan,
                self.scope,
                options["walks"],
                seed=options["seed"],
                depth=options["pct"],
                options=self.how,
                limits=self.limits,
                workers=options["workers"],
                elsewhere=elsewhere,
                report=report,
                interrupted=interrupted,
            )
            return walks.take(), self.how
        exploration = Exploration(
            self.plan,
            self.scope,
            self.how,
            self.limits,
            keep_going=options["keep_going"],
            workers=options["workers"],
            memory=(options["memory"] or 0) << 20,
            report=report,
            interrupted=interrupted,
            keep=keep,
        )
        result = exploration.run(saved)
        return result, exploration.options

    def minimised(self, found: Violation, used: SearchOptions, effort: Effort) -> Minimised:
        """Return a smaller run that breaks the same, unless it was to be left as it is."""
        if self.options["no_minimise"]:
            return Minimised(self.scope, found)
        if self.options["walks"] is None:
            found = shortest(self.plan, self.scope, found, used, effort)
        return minimise(self.plan, self.scope, found, used, effort)


def request_of(options: Mapping[str, Any], plan: StackPlan, scope: Scope | None = None) -> Request:
    """Return what these options of `flexgroup explore` ask for."""
    if options["pct"] < 0 or (options["pct"] and options["walks"] is None):
        raise UsageError("--pct D needs a depth of 1 or more, and --walks N: how many to take")
    if options["memory"] is not None and options["walks"] is not None:
        raise UsageError("--memory is for the search of one system: leave it out, or the others")
    if scope is None:
        scope = scope_of(_scope_words(options))
    return Request(
        plan,
        scope,
        search_options(options),
        search_limits(options),
        _wanted_orders(options["sometimes"], scope),
        options,
    )


def search_options(options: Mapping[str, Any]) -> SearchOptions:
    """Return how these options have one search, and for what."""
    return SearchOptions(
        reduce=options["reduction"] in ("both", "order"),
        symmetry=options["reduction"] in ("both", "symmetry"),
        properties=tuple(options["property"]) or None,
    )


def search_limits(options: Mapping[str, Any]) -> SearchLimits:
    """Return where these options stop a search."""
    memory = options["max_memory"]
    return SearchLimits(
        options["max_states"],
        options["max_depth"],
        options["max_seconds"],
        memory if memory is None else memory << 20,
    )


def _scope_words(options: Mapping[str, Any]) -> dict[str, list[str]]:
    words: dict[str, list[str]] = {"any-order": ["yes"]} if options["any_order"] else {}
    for name in ("processes", "replicas", "channels", *STOCKS):
        words[name] = [] if options[name] is None else [str(options[name])]
    for name in ("message", "group", "view", "crash", "suspect", "twin", "liar"):
        words[name] = list(options[name])
    return words


def _wanted_orders(written: Sequence[str], scope: Scope) -> dict[str, tuple[int, int]]:
    """Return the orders of --sometimes as pairs of messages, by how they are written."""
    numbers = {letter: message for message, letter in letters(scope).items()}
    wanted = {}
    for text in written:
        first, sign, second = text.replace(" ", "").partition("<")
        if not sign or first not in numbers or second not in numbers:
            known = ", ".join(numbers)
            raise UsageError(f"--sometimes {text}: write a<b; the messages are {known}")
        wanted[f"{first} < {second}"] = (numbers[first], numbers[second])
    return wanted


def script_of(plan: StackPlan, scope: Scope, found: Violation, broken: Sequence[str] = ()) -> str:
    """The commands with their answers, and a verdict on all that the run breaks."""
    from flexgroup.testing.script import rewrite
    from flexgroup.worlds.explorer.schedule import script

    title = f"{plan.name}: {found.name} is violated after {found.steps} steps."
    return rewrite(script(plan.name, scope, found.run, title, broken or [found.name]))


@dataclass
class Explored:
    """The result of an exploration with its counterexamples, each as found and minimised.

    A notebook shows the first of them, or where no property is violated, an example of a run.
    """

    request: Request
    result: ExplorationResult
    counterexamples: list[tuple[Violation, Minimised]] = field(default_factory=list)

    @property
    def plan(self) -> StackPlan:
        return self.request.plan

    @property
    def unseen(self) -> list[str]:
        """The orders that had to be seen sometimes, and were not."""
        seen = self.result.seen_orders
        return [text for text, pair in self.request.wanted.items() if pair not in seen]

    @property
    def violated(self) -> bool:
        return bool(self.result.violations or (self.unseen and self.result.exhausted))

    def found(self) -> list[Violation]:
        """List the violations, of those that one run shows the first."""
        shown: dict[tuple[ScheduleStep, ...], Violation] = {}
        for violation in self.result.violations:
            shown.setdefault(violation.run, violation)
        return list(shown.values())

    def broken_by(self, found: Violation) -> list[str]:
        """List the properties that this run was condemned for."""
        return [other.name for other in self.result.violations if other.run == found.run]

    def counts(self) -> list[str]:
        """Say how much was searched."""
        plan, result = self.plan, self.result
        channels = "fifo" if result.scope.fifo else "reordering"
        memory = result.memory / 2**20
        files = f", {result.in_files:,} visited states in files" if result.in_files else ""
        return [
            f"{plan.name} over {channels} channels, {result.scope.described()}",
            f"  {result.states:,} states, {result.transitions:,} transitions, "
            f"depth {result.depth}, {result.terminals:,} ends, {result.complete:,} of them with "
            f"everything delivered",
            f"  {result.seconds:.2f} s, {memory:.1f} MB{files}; {self._both_orders()}",
            *(f"  {note}" for note in result.notes),
            *(f"sometimes {text}: never seen" for text in self.unseen),
        ]

    def as_found(self, found: Violation) -> str:
        """Tell of a counterexample as it was found."""
        names = self.broken_by(found)
        deadlock = ", and nothing can happen any more: deadlock" if "validity" in names else ""
        return (
            f"{', '.join(names)}: violated after {found.steps} steps{deadlock}\n"
            "  `flexgroup replay` runs this:\n\n"
            f"{script_of(self.plan, self.result.scope, found, names)}"
        )

    def as_minimised(self, found: Violation, minimised: Minimised) -> str:
        """Tell of what a counterexample has become."""
        smallest = minimised.violation
        smaller = minimised.scope != self.result.scope
        lines = [f"  smaller: {minimised.scope.described()}"] if smaller else []
        proved = " and no fewer" if smallest.shortest else ""
        until = f"; stopped at {minimised.stopped_at}" if minimised.stopped_at else ""
        told = f"  in {smallest.steps} steps{proved}{until}"
        if smaller or smallest.run != found.run:
            script = script_of(self.plan, minimised.scope, smallest, self.broken_by(found))
            lines.append(f"{told}; `flexgroup replay` runs this:\n\n{script}")
        else:
            lines.append(told)
        return "\n".join(lines)

    def _both_orders(self) -> str:
        """Say whether messages that meet really raced, against success by default."""
        pairs = pairs_to_see(self.result.scope)
        seen = sum(1 for pair in pairs if pair in self.result.seen_orders)
        return f"of {len(pairs)} orders of two messages that meet, {seen} were seen"

    def to_json(self) -> dict[str, object]:
        """Return what the command prints as JSON."""
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
            "also": [name for name in self.broken_by(found) if name != found.name],
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

    @property
    def script(self) -> str:
        """The run that is shown, for `flexgroup replay` and as a golden script."""
        from flexgroup.testing.script import rewrite
        from flexgroup.worlds.explorer.schedule import script

        if self.counterexamples:
            found, smallest = self.counterexamples[0]
            broken = self.broken_by(found)
            return script_of(self.plan, smallest.scope, smallest.violation, broken)
        _, run = self._shown
        title = f"{self.plan.name}: one of its runs."
        return rewrite(script(self.plan.name, self.result.scope, run, title))

    @property
    def address(self) -> Address:
        """The run that is shown, as the lab has it in its address: `address.query`."""
        from flexgroup.lab.address import Address

        scope, run = self._shown
        return Address(self.plan.name, scope, run)

    @cached_property
    def checked(self) -> tuple[Verdict, ...]:
        """What is known of each property that was looked for.

        What no run has violated holds if all were tried, which a search that ends with the first
        violation has not done.
        """
        from flexgroup.properties.verdict import Outcome, Verdict

        went_on = not self.result.violations or self.request.options["keep_going"]
        otherwise = Outcome.HOLDS if self.result.exhausted and went_on else Outcome.UNKNOWN
        names = self.request.how.properties or promised(self.plan, self.result.scope)
        of_traces = {verdict.property: verdict for verdict in self._performed.verdicts(names)}
        found = []
        for name in dict.fromkeys([*names, *sorted(self.result.broken)]):
            if name not in self.result.broken:
                found.append(Verdict(name, otherwise, 0, None, self.result.last_line()))
            elif name in of_traces and of_traces[name].outcome is Outcome.VIOLATED:
                found.append(of_traces[name])
            else:
                found.append(Verdict(name, Outcome.VIOLATED, 1, None, "see its script"))
        return tuple(found)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """A row for each property that was looked for."""
        from flexgroup.runs.frames import verdict_table

        return verdict_table(self.checked)

    @cached_property
    def latencies(self) -> pd.DataFrame:
        """A row for each message of the run that is shown: in how many steps it was delivered.

        The explorer knows no time, so nothing is said in seconds.
        """
        from flexgroup.runs.frames import steps_table

        performed = self._performed
        return steps_table(performed.history, self._shown[0].replicas)

    def plot(self) -> Picture:
        """The steps in which each message of the run that is shown was delivered."""
        from flexgroup.runs.shown import steps_of_messages

        return steps_of_messages(self.latencies, self.plan.name)

    def diagram(self) -> Diagram:
        """The space-time diagram of the run that is shown."""
        violated = [verdict for verdict in self.checked if verdict.witness]
        named = ", ".join(sorted(self.result.broken))
        title = f"{named} violated" if named else "one of its runs"
        return self._performed.diagram(violated, f"{self.plan.name}: {title}")

    @cached_property
    def _shown(self) -> tuple[Scope, tuple[ScheduleStep, ...]]:
        """The scope and the run that are shown."""
        if self.counterexamples:
            _, smallest = self.counterexamples[0]
            return smallest.scope, smallest.violation.run
        return self.result.scope, an_example(self.plan, self.result.scope)

    @cached_property
    def _performed(self) -> PerformedRun:
        from flexgroup.lab.drawn import PerformedRun

        return PerformedRun(self.plan, *self._shown)

    def __str__(self) -> str:
        told = [self.as_minimised(*pair) for pair in self.counterexamples]
        return "\n".join([*self.counts(), *told, self.result.last_line()])

    def _repr_html_(self) -> str:
        from flexgroup.runs.shown import page

        summary = [*self.counts(), self.result.last_line()]
        return page(summary, self.checked, (), self.diagram())

    def _repr_svg_(self) -> str:
        return self.diagram()._repr_svg_()


def an_example(plan: StackPlan, scope: Scope) -> tuple[ScheduleStep, ...]:
    """Return one run of a scope, in which nothing goes wrong that need not happen."""
    search = new_search(plan, scope, SearchOptions(reduce=False, symmetry=False))
    run = StagedRun(search, scope)
    while len(run.steps) < LONGEST_EXAMPLE:
        step = next((step for step, transition in run.possible() if transition.sure), None)
        if step is None:
            break
        run.follow(step)
    return tuple(run.steps)


def explore(
    protocol: str,
    *,
    processes: int | None = None,
    message: str | Sequence[str] = (),
    group: str | Sequence[str] = (),
    replicas: str | None = None,
    view: str | Sequence[str] = (),
    any_order: bool = False,
    channels: str = "fifo",
    property: str | Sequence[str] = (),
    sometimes: str | Sequence[str] = (),
    keep_going: bool = False,
    reduction: str = "both",
    workers: int = 1,
    memory: int | None = None,
    no_minimise: bool = False,
    losses: int = 0,
    duplicates: int = 0,
    crashes: int = 0,
    suspicions: int = 0,
    timers: int = 0,
    restarts: int = 0,
    crash: str | Sequence[str] = (),
    twin: str | Sequence[str] = (),
    liar: str | Sequence[str] = (),
    suspect: str | Sequence[str] = (),
    max_states: int | None = None,
    max_depth: int | None = None,
    max_seconds: float | None = None,
    max_memory: int | None = None,
    walks: int | None = None,
    pct: int = 0,
    seed: int = 1,
) -> Explored:
    """Try every schedule of a small system, or many of a larger one.

    Arguments are the options of `flexgroup explore`; what may be given several times there is a
    list here. An interrupt while a counterexample is made smaller keeps it as it was found.
    """
    options: dict[str, Any] = {
        name: list(each(value)) if name in REPEATED else value for name, value in locals().items()
    }
    if reduction not in REDUCTIONS:
        raise UsageError(f"reduction='{reduction}' is not possible; write {', '.join(REDUCTIONS)}")
    request = request_of(options, parse_stack(protocol))
    result, used = request.search()
    explored = Explored(request, result)
    for found in explored.found():
        try:
            smallest = request.minimised(found, used, Effort(max_seconds))
        except KeyboardInterrupt:
            smallest = Minimised(request.scope, found, "an interrupt")
        explored.counterexamples.append((found, smallest))
    return explored


REDUCTIONS = ("both", "order", "symmetry", "none")
REPEATED = frozenset("message group view property sometimes crash twin liar suspect".split())
"""The arguments that may have several values."""
