"""`flexgroup replay`: run a script, or a recorded trace, through the same code again."""

from __future__ import annotations

import argparse
from pathlib import Path

from flexgroup.cli.arguments import (
    Command,
    Option,
    path_here,
    print_json,
)
from flexgroup.core.errors import FlexGroupError, UsageError

COMMAND = Command(
    "replay",
    "run a script step by step, or a recorded trace through the same code",
    "flexgroup replay tests/scripts/dcc_published_cycle.txt",
    (Option("path", type=path_here, help="a script, or the directory of a trace set"),),
)


def run(options: argparse.Namespace) -> int:
    path: Path = options.path
    if not path.exists():
        raise UsageError(f"'{path}' does not exist; give a script or the directory of a trace set")
    return replay_traces(options) if path.is_dir() else replay_script(options)


def replay_script(options: argparse.Namespace) -> int:
    from flexgroup.testing.script import Script, parse

    try:
        text = options.path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        raise UsageError(f"'{options.path}' is not a text; give a script") from None
    script = Script()
    steps = []
    try:
        blocks = parse(text)
    except UsageError as error:
        raise UsageError(f"{options.path}: {error}") from None
    for block in blocks:
        for command in block.commands:
            try:
                answer = script.run(command)
            except FlexGroupError as error:
                raise UsageError(f"{options.path}, line {block.line}: {error}") from None
            steps.append({"command": command, "answer": answer})
            if not options.json:
                print(command)
                print("\n".join(answer))
    if not steps:
        raise UsageError(f"'{options.path}' holds no command; see docs/scripts.md")
    if options.json:
        print_json({"steps": steps, "violated": script.violated})
    return 1 if script.violated else 0


def replay_traces(options: argparse.Namespace) -> int:
    from flexgroup.core.codec import Codec
    from flexgroup.liars.named import liars_of, with_liars
    from flexgroup.protocols.catalogue import parse_stack
    from flexgroup.trace.reader import read_runs
    from flexgroup.trace.replay import replay
    from flexgroup.trace.run import planned_liars

    results = []
    for row in read_runs(options.path):
        try:
            plan = parse_stack(row.stack)
        except UsageError as error:
            raise UsageError(
                f"run '{row.run}' cannot be replayed, which takes the code that made it: {error}; "
                "name the module of a protocol of your own with --protocols"
            ) from None
        liars = liars_of(planned_liars(row.faults))
        build = with_liars(plan.builder(row.processes, replicas=row.replicas), liars)
        result = replay(options.path, row, build, Codec(plan.layers))
        results.append({"run": row.run, "events": result.events, "divergence": result.divergence})
        if not options.json:
            agrees = "agrees" if result.divergence is None else f"DIVERGES: {result.divergence}"
            print(f"{row.run}: {result.events} events replayed, {agrees}")
    if options.json:
        print_json(results)
    return 1 if any(result["divergence"] for result in results) else 0
