"""A run as a script: commands that `flexgroup replay` understands (docs/scripts.md)."""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.worlds.explorer.outcome import Happening
from flexgroup.worlds.explorer.scope import LETTERS, Scope

BLOCK = 4
"""How many commands share an answer: enough to read in one look."""


def command(happening: Happening, scope: Scope) -> str:
    process = happening.process
    channel = f"{happening.source}->{process}"
    place = f" {happening.place}" if happening.place else ""
    if happening.kind == "receive":
        return f"deliver {channel}{place}"
    if happening.kind == "lost":
        return f"drop {channel}{place}"
    if happening.kind == "doubled":
        return f"duplicate {channel}{place}"
    if happening.kind == "cast":
        to = ",".join(map(str, scope.casts[happening.number].destinations))
        return f"cast {process} {LETTERS[happening.number]} to={to}"
    if happening.kind == "timer":
        return f"timer {process} {happening.name}"
    if happening.kind == "choice":
        return f"choose {process} {happening.number}"
    if happening.kind == "crash":
        return f"crash {process}"
    return f"suspect {process} {happening.source}"


def script(stack: str, scope: Scope, run: Sequence[Happening], title: str = "") -> str:
    """The commands in blocks, without answers: `flexgroup.testing.script.rewrite` adds them."""
    channels = "fifo" if scope.fifo else "reordering"
    groups = " ".join(",".join(map(str, group)) for group in scope.groups)
    told = f", groups {groups}" if groups else ""
    head = [f"stack {stack} over {channels} channels, processes {scope.processes}{told}"]
    casts = [h for h in run if h.kind == "cast" and h.process >= scope.processes]
    first = casts if run[: len(casts)] == tuple(casts) else []
    rest = list(run[len(first) :])
    blocks = [head + [command(happening, scope) for happening in first]]
    for start in range(0, len(rest), BLOCK):
        blocks.append([command(happening, scope) for happening in rest[start : start + BLOCK]])
    end = ["delivered", "verdict"]
    if any(happening.kind == "crash" for happening in run):
        end.insert(0, "stabilize  # what is left goes to processes that crashed")
    blocks.append(end)
    text = "\n\n".join("\n".join([*block, "----"]) for block in blocks)
    comment = "".join(f"# {line}\n" for line in title.splitlines())
    return f"{comment}{text}\n"
