"""The schedule of a run: its steps in words that mean the same everywhere.

A schedule becomes a script, is performed once more on a bench, and is written as a trace that
others can judge. Nothing of the search is used for that: that the staged run ends as the search
said is a check of the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from flexgroup.core.journal import Journal
from flexgroup.core.layer import View
from flexgroup.liars.named import in_words
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.bench import Bench, ImpossibleError
from flexgroup.worlds.explorer.scope import LETTERS, Scope

BLOCK = 4
"""How many commands of a script share an answer: enough to read in one look."""

JUDGED_ALWAYS = ("conduct", "integrity", "acyclic order", "validity")
"""What a script gives a verdict on without being asked for it by name."""

COMMANDS = {
    "receive": "deliver {source}->{process}{at}",
    "lost": "drop {source}->{process}{at}",
    "doubled": "duplicate {source}->{process}{at}",
    "cast": "cast {process} {letter} to={destinations}",
    "timer": "timer {process} {name}",
    "choice": "choose {process} {number}",
    "crash": "crash {process}",
    "suspect": "suspect {process} {source}",
    "restart": "{losing}recover {process}",
    "trust": "trust {process} {source}",
    "view": "view {process} {number} of={members}",
}
"""How each kind of step is said to `flexgroup replay` (docs/scripts.md)."""


@dataclass(frozen=True)
class ScheduleStep:
    """One step of a run."""

    kind: str
    """One of those in COMMANDS; lost and doubled are what the network does to a packet."""
    process: int
    source: int = -1
    place: int = 0
    """The number of older packets in the channel of a packet."""
    name: str = ""
    number: int = 0
    """The place of a cast in the scope, the option of a choice, the number of a view, or whether a
    process that starts again loses what is in flight to it."""
    crash_after: int = 0
    """The number of effects after which the process crashes; 0 if it does not."""

    def command(self, scope: Scope) -> str:
        words = asdict(self)
        words["at"] = f" {self.place}" if self.place else ""
        words["losing"] = f"drop ->{self.process}\n" if self.number else ""
        if self.kind == "cast":
            words["letter"] = LETTERS[self.number]
            words["destinations"] = ",".join(map(str, scope.casts[self.number].destinations))
        if self.kind == "view":
            words["members"] = ",".join(map(str, scope.views[self.number - 1]))
        crashing = f"crash-after {self.crash_after} " if self.crash_after else ""
        return crashing + COMMANDS[self.kind].format(**words)

    def perform(self, bench: Bench, scope: Scope) -> None:
        if self.crash_after:
            whole = replace(self, crash_after=0)
            bench.crash_after(self.process, self.crash_after, lambda: whole.perform(bench, scope))
            return
        match self.kind:
            case "receive":
                bench.deliver(self.source, self.process, self.place)
            case "lost":
                bench.remove(self.source, self.process, self.place)
            case "doubled":
                bench.duplicate(self.source, self.process, self.place)
            case "cast":
                bench.cast(self.process, scope.casts[self.number].destinations)
            case "timer":
                level = bench.level_of_timer(self.process, self.name)
                bench.end_timer(self.process, level, self.name)
            case "choice":
                bench.choose(self.process, self.number)
            case "crash":
                bench.crash(self.process)
            case "suspect":
                bench.suspect(self.process, self.source)
            case "trust":
                bench.trust(self.process, self.source)
            case "restart":
                if self.number:
                    bench.lose(self.process)
                bench.recover(self.process)
            case "view":
                bench.tell(self.process, View(self.number, scope.views[self.number - 1]))


def script(
    stack: str,
    scope: Scope,
    run: Sequence[ScheduleStep],
    title: str = "",
    condemned_for: Iterable[str] = (),
    ended: bool = True,
) -> str:
    """The commands in blocks, without answers: `flexgroup.testing.script.rewrite` adds them.

    At the end stands a verdict on whatever the run is condemned for, and what else a script judges.
    In a run that has not `ended`, what is in flight stays there.
    """
    channels = "fifo" if scope.fifo else "reordering"
    groups = " ".join(",".join(map(str, group)) for group in scope.groups)
    told = f", groups {groups}" if groups else ""
    if scope.replicas:
        told += f", replicas {','.join(str(len(group)) for group in scope.replicas)}"
    if scope.liars:
        told += f", liars {' '.join(in_words(scope.liars))}"
    head = f"stack {stack} over {channels} channels, processes {scope.processes}{told}"
    casts = [h for h in run if h.kind == "cast" and h.process >= scope.processes]
    first = len(casts) if run[: len(casts)] == tuple(casts) else 0
    commands = [step.command(scope) for step in run]
    blocks = [[head, *commands[:first]]]
    for start in range(first, len(commands), BLOCK):
        blocks.append(commands[start : start + BLOCK])
    named = ", ".join(name for name in condemned_for if name not in JUDGED_ALWAYS)
    end = ["delivered", "verdict", *([f"verdict {named}"] if named else [])]
    if ended and any(step.kind == "crash" or step.crash_after for step in run):
        end.insert(0, "stabilize  # what is left goes to processes that crashed")
    blocks.append(end)
    text = "\n\n".join("\n".join([*block, "----"]) for block in blocks)
    comment = "".join(f"# {line}\n" for line in title.splitlines())
    return f"{comment}{text}\n"


def stage(
    plan: StackPlan, scope: Scope, run: Sequence[ScheduleStep], journal: Journal | None = None
) -> Bench:
    """Let all of a run happen on a bench; an ImpossibleError says what cannot.

    A handler may raise: such runs are what the search is looking for.
    """
    bench = Bench(plan, scope.processes, scope.groups, journal, scope.replicas, scope.liars)
    for step in run:
        try:
            step.perform(bench, scope)
        except ImpossibleError:
            raise
        except Exception:  # whatever a handler raises; the rest of the run happened all the same
            continue
    return bench


def is_over(bench: Bench) -> bool:
    """Tell whether nothing is in flight, but for packets to processes that crashed."""
    return all(target in bench.crashed for _, target in bench.channels)


def write_trace(
    plan: StackPlan,
    scope: Scope,
    run: tuple[ScheduleStep, ...],
    directory: Path,
    name: str,
    force: bool = False,
) -> None:
    """Write a run into a trace set, under this name."""
    # Imported here because Arrow takes longer to load than most scopes to explore.
    from flexgroup.trace import schema
    from flexgroup.trace.run import Run, channel_names
    from flexgroup.trace.writer import TraceWriter, as_json

    with TraceWriter(directory, name, force) as writer:
        recorder = Recorder(writer)
        bench = stage(plan, scope, run, recorder)
        recorder.flush()
        writer.close(
            Run(
                run=name,
                world="explorer",
                stack=plan.name,
                options=as_json({"casts": [cast.destinations for cast in scope.casts]}),
                processes=scope.processes,
                clients=scope.clients,
                groups=as_json(scope.replicas) if scope.replicas else None,
                network=_network(scope),
                faults=as_json({"liars": in_words(scope.liars)}) if scope.liars else None,
                faulty=tuple(dict(scope.liars)),
                outcome=schema.COMPLETE if is_over(bench) else schema.CUT,
                channels=channel_names(scope.channels),
                promises=plan.promises(scope.channels),
            )
        )


def _network(scope: Scope) -> str:
    """A name for the channels, by which runs over other channels are told apart."""
    channels = "unit" if scope.fifo else "unit:fifo=no"
    lossy = scope.bounds.losses or scope.bounds.duplicates
    return f"{channels}, with losses and duplicates" if lossy else channels
