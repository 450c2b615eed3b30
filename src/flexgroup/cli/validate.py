"""`flexgroup validate`: everything that is wrong with the files of a trace set."""

from __future__ import annotations

import argparse

from flexgroup.cli.arguments import Command, Option, path_here, print_json
from flexgroup.cli.progress import progress_bar

COMMAND = Command(
    "validate",
    "find what is wrong with the files of a trace set: file, row group and reason",
    "flexgroup validate runs/first",
    (Option("path", type=path_here, metavar="DIR", help="the directory of a trace set"),),
)


def run(options: argparse.Namespace) -> int:
    from flexgroup.trace.validate.problems import ERROR, WARNING
    from flexgroup.trace.validate.report import validate

    with progress_bar("reading", wanted=not options.json) as progress:
        findings = validate(options.path, progress)
    if options.json:
        print_json({"path": str(options.path), **findings.to_json()})
    else:
        for severity, total in ((ERROR, findings.errors), (WARNING, findings.warnings)):
            listed = [problem for problem in findings.problems if problem.severity == severity]
            for problem in listed:
                print(problem)
            if total > len(listed):
                print(f"... and {total - len(listed)} more of severity {severity}")
        print(
            f"{findings.runs} runs, {findings.files} files, {findings.rows} rows of events: "
            f"{findings.errors} errors, {findings.warnings} warnings"
        )
    return 2 if findings.errors else 0
