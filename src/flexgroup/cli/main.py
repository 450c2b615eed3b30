"""The command `flexgroup`: finds the subcommand, runs it, and turns errors into one line."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from flexgroup import __version__
from flexgroup.core.errors import FlexGroupError

FINE = 0
VIOLATED = 1
BAD_INPUT = 2
INTERRUPTED = 130
OUTPUT_CLOSED = 141
"""The code of a program that the signal SIGPIPE ends: nobody was told what it has found."""

COMMANDS = (
    "protocols",
    "simulate",
    "explore",
    "replay",
    "validate",
    "verify",
    "measure",
    "experiment",
    "report",
    "watch",
    "server",
    "cluster",
    "bench",
    "probe",
    "certificates",
)
"""Each is a module beside this one."""


class Parser(argparse.ArgumentParser):
    """Reports a bad option in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        fail(f"{message}; see {self.prog} --help")
        sys.exit(BAD_INPUT)


def fail(message: str) -> None:
    print(f"flexgroup: error: {message}", file=sys.stderr)


def build_parser() -> Parser:
    parser = Parser(
        prog="flexgroup",
        description="Ordered messaging between processes: run, simulate, check and measure it.",
        epilog="Exit codes: 0 fine, 1 a property is violated, 2 bad input.",
    )
    parser.add_argument("--version", action="version", version=f"flexgroup {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name in COMMANDS:
        import_module(f"flexgroup.cli.{name}").add_to(commands)
    return parser


def _is_news(record: logging.LogRecord) -> bool:
    """Keep quiet the traceback that Spark's bridge to Java logs before Ctrl-C reaches us."""
    return not str(record.msg).startswith("KeyboardInterrupt while sending command")


def _discard_output() -> None:
    """Write no more, since the reader of our output, such as `head`, has seen enough."""
    # Python flushes what is left when it ends, and would complain then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    code = OUTPUT_CLOSED
    try:
        # The modules of the commands are imported here, where Ctrl-C is an error like others.
        options = build_parser().parse_args(arguments)
        logging.getLogger().addFilter(_is_news)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except FlexGroupError as error:
        fail(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        fail("interrupted; nothing half-written was kept")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return code
    except OSError as error:
        # A full disk, a missing permission: nothing that a traceback would help with.
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
