"""The options of `flexgroup` and of all its subcommands."""

from __future__ import annotations

import argparse
from typing import NoReturn

from flexgroup import __version__
from flexgroup.cli import (
    bench,
    calibrate,
    certificates,
    cluster,
    conform,
    docs,
    experiment,
    explore,
    export,
    lab,
    measure,
    probe,
    protocols,
    replay,
    report,
    results,
    schedules,
    server,
    simulate,
    validate,
    verify,
    watch,
)
from flexgroup.core.errors import UsageError

COMMANDS = (
    protocols,
    simulate,
    explore,
    lab,
    replay,
    conform,
    validate,
    verify,
    measure,
    experiment,
    results,
    report,
    export,
    watch,
    server,
    cluster,
    schedules,
    bench,
    calibrate,
    probe,
    certificates,
    docs,
)


class Parser(argparse.ArgumentParser):
    """Reports a bad option like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def build_parser() -> Parser:
    parser = Parser(
        prog="flexgroup",
        description="Ordered messaging between processes: run, simulate, check and measure it.",
        epilog="Exit codes: 0 fine, 1 a property is violated, 2 bad input.",
    )
    parser.add_argument("--version", action="version", version=f"flexgroup {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for command in COMMANDS:
        command.COMMAND.add_to(commands, command.run)
    return parser
