"""`flexgroup report`: one HTML page with the figures, tables, verdicts and violations."""

from __future__ import annotations

import argparse

from flexgroup.cli.arguments import Command, Option, flag, make_folder, path_here, print_json
from flexgroup.cli.progress import progress_bar
from flexgroup.cli.spark_commands import master_option

COMMAND = Command(
    "report",
    "write one HTML page about an experiment or a trace set",
    "flexgroup report runs/demo",
    (
        Option(
            "directory",
            type=path_here,
            metavar="DIR",
            help="of an experiment or a trace set",
        ),
        Option("--out", type=path_here, metavar="FILE", help="for the page (DIR/report.html)"),
        master_option(", for tables that are missing"),
        flag("--force", "replace a file that is not a report"),
    ),
)


def run(options: argparse.Namespace) -> int:
    from flexgroup.report.write import NAME, write_page

    target = options.out or options.directory / NAME
    if options.directory.is_dir():
        make_folder(target.parent)
    with progress_bar("computing what the page needs", wanted=not options.json, known=False):
        written = write_page(options.directory, target, options.master, options.force)
    outcomes = written.outcomes
    if options.json:
        print_json({"report": str(written.path), "runs": written.runs, "verdicts": outcomes})
    else:
        print(
            f"{written.runs} runs, {outcomes['holds']} verdicts hold, "
            f"{outcomes['violated']} are violated, {outcomes['unknown']} unknown"
        )
        print(f"report: {written.path}")
    return 1 if outcomes["violated"] else 0
