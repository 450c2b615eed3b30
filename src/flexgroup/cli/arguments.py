"""What the subcommands have in common: how they are declared, and JSON output."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Any]

Run = Callable[[argparse.Namespace], int]


def declare(
    commands: Commands, name: str, run: Run, summary: str, example: str
) -> argparse.ArgumentParser:
    """A subcommand with `--json` and an example in its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)
    return parser


def print_json(document: object) -> None:
    print(json.dumps(document, indent=2, sort_keys=True))
