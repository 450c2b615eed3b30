"""A counterexample of the explorer as files: a script, a diagram and a trace set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from flexgroup.cli.exploration import script_of
from flexgroup.core.errors import UsageError
from flexgroup.core.message import message_id, name_of
from flexgroup.diagram.drawing import Diagram, diagram
from flexgroup.diagram.events import events_in_memory
from flexgroup.properties.catalogue import PROPERTIES, check
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.trace.collector import Collector
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.explorer.result import Violation
from flexgroup.worlds.explorer.schedule import is_over, stage, write_trace
from flexgroup.worlds.explorer.scope import LETTERS, Scope


def diagram_of(plan: StackPlan, scope: Scope, found: Violation) -> Diagram:
    """The whole run, with the events emphasised that a check of its trace names."""
    collector = Collector()
    recorder = Recorder(collector)
    bench = stage(plan, scope, found.run, recorder)
    recorder.flush()
    names = [found.name] if found.name in PROPERTIES else []
    verdicts = check(collector.history(plan.name, scope.processes, is_over(bench)), names)
    witness = [step for verdict in verdicts for step in verdict.witness or ()]
    letters: dict[str, str] = {}
    for happening in found.run:
        if happening.kind == "cast":
            origin = f"{happening.process}."
            before = sum(1 for message in letters if message.startswith(origin))
            message = name_of(message_id(happening.process, before))
            letters[message] = LETTERS[happening.number]
    return diagram(
        events_in_memory(collector),
        dict(sorted(letters.items(), key=lambda item: item[1])),
        {(step.process, step.step) for step in witness},
        scope.processes,
        f"{plan.name}: {found.name} violated",
        complete=is_over(bench),
        timed=False,
    )


def write_counterexample(
    directory: Path, plan: StackPlan, scope: Scope, found: Violation, broken: Sequence[str]
) -> None:
    """Write script, diagram and trace into a directory, under a name made from what they show.

    The script has a verdict on all that was broken.
    """
    name = "-".join([*re.split(r"\W+", plan.name), *found.name.split()])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        script = script_of(plan, scope, found, broken)
        (directory / f"{name}.txt").write_text(script, encoding="utf-8")
        picture = diagram_of(plan, scope, found).standalone
        (directory / f"{name}.svg").write_text(f"{picture}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write into '{directory}': {error.strerror or error}; choose another --out"
        ) from None
    write_trace(plan, scope, found.run, directory / "trace", name, force=True)
