"""A counterexample of the explorer as files: a script, a diagram and a trace set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from flexgroup.core.errors import UsageError
from flexgroup.diagram.drawing import Diagram
from flexgroup.lab.drawn import PerformedRun
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.runs.explored import script_of
from flexgroup.worlds.explorer.result import Violation
from flexgroup.worlds.explorer.schedule import write_trace
from flexgroup.worlds.explorer.scope import Scope


def diagram_of(plan: StackPlan, scope: Scope, found: Violation) -> Diagram:
    """The whole run, with the events emphasised that a check of its trace names."""
    performed = PerformedRun(plan, scope, found.run)
    verdicts = performed.verdicts([found.name])
    return performed.diagram(verdicts, f"{plan.name}: {found.name} violated")


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
