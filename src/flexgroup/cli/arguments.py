"""What the subcommands have in common: their declaration, options that several have, JSON."""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from flexgroup.core.errors import FlexGroupError, UsageError

Commands: TypeAlias = "argparse._SubParsersAction[Any]"

Run = Callable[[argparse.Namespace], int]


class Help(argparse.HelpFormatter):
    """Wraps descriptions, and leaves examples as they are, to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


def declare(
    commands: Commands,
    name: str,
    run: Run,
    summary: str,
    example: str,
    *,
    json_help: str = "print one JSON document",
) -> argparse.ArgumentParser:
    """Declare a subcommand with `--json`, and with an example in its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=Help,
    )
    parser.add_argument("--json", action="store_true", help=json_help)
    parser.set_defaults(run=run)
    return parser


def add_stack(parser: argparse.ArgumentParser, required: bool) -> None:
    parser.add_argument(
        "--protocol", "--stack", required=required, dest="stack", metavar="P",
        help="a protocol or a stack of them, lowest first: skeen, dcc/rv, 'fifo dcc'",
    )  # fmt: skip


def add_protocols(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Let stacks name protocols from elsewhere; `import_protocols` brings them in."""
    parser.add_argument(
        "--protocols", action="append", default=[], metavar="MODULE",
        help=f"import this module, which registers protocols of your own{note}",
    )  # fmt: skip


def add_tls(parser: argparse.ArgumentParser, note: str = "") -> None:
    parser.add_argument(
        "--tls", type=Path, metavar="DIR",
        help=f"mutual TLS, with the certificates in this folder{note}",
    )  # fmt: skip


def import_protocols(modules: list[str]) -> None:
    """Import the modules that `--protocols` names."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UsageError(
                f"cannot import '{module}': {error}; is it installed, or on PYTHONPATH?"
            ) from None
        except FlexGroupError:
            raise
        except Exception as error:
            raise UsageError(
                f"cannot import '{module}', which fails with {type(error).__name__}: {error}"
            ) from error


def make_folder(folder: Path, option: str = "--out") -> None:
    """Make the folder of results before the work, which would be lost without a place for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UsageError(
            f"cannot write into '{folder}': {error.strerror}; choose another place with {option}"
        ) from None


def from_one(text: str) -> int:
    """Read the value of an option that says how many."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not possible; give a whole number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """Read the value of an option that says for how long."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not possible; give seconds above 0")
    return number


def print_json(document: object) -> None:
    print(json.dumps(document, indent=2, sort_keys=True))
