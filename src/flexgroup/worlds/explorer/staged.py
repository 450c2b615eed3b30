"""A run performed once more, on a bench: for diagrams, and as a trace that others can judge.

Nothing of the search is used: that the staged run ends as the search said is a check of the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flexgroup.core.journal import Journal
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.bench import Bench, ImpossibleError
from flexgroup.worlds.explorer.result import ScheduleStep
from flexgroup.worlds.explorer.scope import Scope


def stage(
    plan: StackPlan, scope: Scope, run: Sequence[ScheduleStep], journal: Journal | None = None
) -> Bench:
    """Let all of a run happen on a bench; an ImpossibleError says what cannot.

    A handler may raise: such runs are what the search is looking for.
    """
    bench = Bench(plan, scope.processes, scope.groups, journal)
    for step in run:
        try:
            _perform(bench, scope, step)
        except ImpossibleError:
            raise
        except Exception:
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
                outcome=schema.COMPLETE if is_over(bench) else schema.CUT,
                channels=channel_names(scope.channels),
                promises=plan.promises(scope.channels),
            )
        )


def _perform(bench: Bench, scope: Scope, step: ScheduleStep) -> None:
    process, source, place = step.process, step.source, step.place
    if step.kind == "receive":
        bench.deliver(source, process, place)
    elif step.kind == "lost":
        bench.remove(source, process, place)
    elif step.kind == "doubled":
        bench.duplicate(source, process, place)
    elif step.kind == "cast":
        bench.cast(process, scope.casts[step.number].destinations)
    elif step.kind == "timer":
        level = bench.level_of_timer(process, step.name)
        bench.end_timer(process, level, step.name)
    elif step.kind == "choice":
        bench.choose(process, step.number)
    elif step.kind == "crash":
        bench.crash(process)
    else:
        bench.suspect(process, source)
