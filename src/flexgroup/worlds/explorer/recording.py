"""A counterexample as a trace set, which checks other than the explorer's can read."""

from __future__ import annotations

from pathlib import Path

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.explorer.result import ScheduleStep
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.staged import is_over, stage


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
