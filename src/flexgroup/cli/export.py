"""`flexgroup export`: a recorded run in the format of another tool."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import Command, Option, make_folder, path_here, print_json
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.diagram.events import TraceEvent
    from flexgroup.trace.names import Names

COMMAND = Command(
    "export",
    "write a recorded run for another tool",
    "flexgroup export runs/first --to perfetto --out first.pftrace",
    (
        Option("path", type=path_here, help="the directory of a trace set"),
        Option(
            "--to", choices=("shiviz", "perfetto", "opentelemetry", "elle", "cs451"), required=True,
            help="for which tool; elle and cs451 are formats of other checkers",
        ),
        Option(
            "--run", dest="recorded", metavar="NAME",
            help="which run of the trace set (the only one)",
        ),
        Option(
            "--out", type=path_here, required=True, metavar="FILE",
            help="where to write it; a folder for cs451, which has a file for each process",
        ),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from flexgroup.diagram.events import events_of_run, with_messages
    from flexgroup.export.deliveries import cs451_logs
    from flexgroup.trace.reader import read_runs

    runs = {row.run: row for row in read_runs(options.path)}
    name = options.recorded or (next(iter(runs)) if len(runs) == 1 else None)
    if name not in runs:
        known = ", ".join(list(runs)[:20])
        raise UsageError(f"which run of '{options.path}'? Give --run and one of these: {known}")
    events = events_of_run(options.path, name)
    names = with_messages(runs[name].names, events)
    if options.to == "cs451":
        logs = cs451_logs(events, runs[name].processes)
        make_folder(options.out)
        for file, lines in logs.items():
            _write(options.out / file, _lines(lines))
    else:
        _write(options.out, _exported(options.to, events, names, name))
    if options.json:
        print_json({"run": name, "events": len(events), "out": str(options.out)})
    else:
        print(f"{name}: {len(events)} events written to {options.out}")
    return 0


def _exported(tool: str, events: list[TraceEvent], names: Names, name: str) -> Iterable[bytes]:
    """Return a run as the file of a tool."""
    from flexgroup.export.deliveries import elle_history
    from flexgroup.export.opentelemetry import otlp_lines
    from flexgroup.export.perfetto import perfetto_trace
    from flexgroup.export.shiviz import shiviz_log

    if tool == "perfetto":
        return perfetto_trace(events, names)
    if tool == "shiviz":
        return _lines(shiviz_log(events, names))
    if tool == "elle":
        return list(_lines(elle_history(events)))  # before a file is there: it may refuse
    return _lines(otlp_lines(events, names, name))


def _lines(lines: Iterable[str]) -> Iterator[bytes]:
    return (f"{line}\n".encode() for line in lines)


def _write(file: Path, parts: Iterable[bytes]) -> None:
    try:
        with file.open("wb") as out:
            out.writelines(parts)
    except OSError as error:
        raise UsageError(
            f"cannot write '{file}': {error.strerror or error}; choose another --out"
        ) from None
