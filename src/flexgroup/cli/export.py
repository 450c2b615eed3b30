"""`flexgroup export`: a recorded run in the format of another tool."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from flexgroup.cli.arguments import Command, Option, path_here, print_json
from flexgroup.core.errors import UsageError

COMMAND = Command(
    "export",
    "write a recorded run for ShiViz or Perfetto",
    "flexgroup export runs/first --to perfetto --out first.pftrace",
    (
        Option("path", type=path_here, help="the directory of a trace set"),
        Option("--to", choices=("shiviz", "perfetto"), required=True, help="for which tool"),
        Option(
            "--run", dest="recorded", metavar="NAME",
            help="which run of the trace set (the only one)",
        ),
        Option("--out", type=path_here, required=True, metavar="FILE", help="where to write it"),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from flexgroup.diagram.events import events_of_run
    from flexgroup.export.perfetto import perfetto_trace
    from flexgroup.export.shiviz import shiviz_log
    from flexgroup.trace.reader import read_runs

    runs = {row.run: row for row in read_runs(options.path)}
    name = options.recorded or (next(iter(runs)) if len(runs) == 1 else None)
    if name not in runs:
        known = ", ".join(list(runs)[:20])
        raise UsageError(f"which run of '{options.path}'? Give --run and one of these: {known}")
    events = events_of_run(options.path, name)
    size = runs[name].processes
    if options.to == "shiviz":
        _write(options.out, (f"{line}\n".encode() for line in shiviz_log(events, size)))
    else:
        _write(options.out, perfetto_trace(events, size))
    if options.json:
        print_json({"run": name, "events": len(events), "out": str(options.out)})
    else:
        print(f"{name}: {len(events)} events written to {options.out}")
    return 0


def _write(file: Path, parts: Iterable[bytes]) -> None:
    try:
        with file.open("wb") as out:
            out.writelines(parts)
    except OSError as error:
        raise UsageError(
            f"cannot write '{file}': {error.strerror or error}; choose another --out"
        ) from None
