"""A run as a script: commands that `flexgroup replay` understands (docs/scripts.md)."""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.worlds.explorer.result import ScheduleStep
from flexgroup.worlds.explorer.scope import LETTERS, Scope

BLOCK = 4
"""How many commands share an answer: enough to read in one look."""


def command(step: ScheduleStep, scope: Scope) -> str:
    process = step.process
    channel = f"{step.source}->{process}"
    place = f" {step.place}" if step.place else ""
    if step.kind == "receive":
        return f"deliver {channel}{place}"
    if step.kind == "lost":
        return f"drop {channel}{place}"
    if step.kind == "doubled":
        return f"duplicate {channel}{place}"
    if step.kind == "cast":
        to = ",".join(map(str, scope.casts[step.number].destinations))
        return f"cast {process} {LETTERS[step.number]} to={to}"
    if step.kind == "timer":
        return f"timer {process} {step.name}"
    if step.kind == "choice":
        return f"choose {process} {step.number}"
    if step.kind == "crash":
        return f"crash {process}"
    return f"suspect {process} {step.source}"


def script(stack: str, scope: Scope, run: Sequence[ScheduleStep], title: str = "") -> str:
    """The commands in blocks, without answers: `flexgroup.testing.script.rewrite` adds them."""
    channels = "fifo" if scope.fifo else "reordering"
    groups = " ".join(",".join(map(str, group)) for group in scope.groups)
    told = f", groups {groups}" if groups else ""
    head = [f"stack {stack} over {channels} channels, processes {scope.processes}{told}"]
    casts = [h for h in run if h.kind == "cast" and h.process >= scope.processes]
    first = casts if run[: len(casts)] == tuple(casts) else []
    rest = list(run[len(first) :])
    blocks = [head + [command(step, scope) for step in first]]
    for start in range(0, len(rest), BLOCK):
        blocks.append([command(step, scope) for step in rest[start : start + BLOCK]])
    end = ["delivered", "verdict"]
    if any(step.kind == "crash" for step in run):
        end.insert(0, "stabilize  # what is left goes to processes that crashed")
    blocks.append(end)
    text = "\n\n".join("\n".join([*block, "----"]) for block in blocks)
    comment = "".join(f"# {line}\n" for line in title.splitlines())
    return f"{comment}{text}\n"
