"""What the subcommands have in common: how they are declared, options that several have, JSON."""

from __future__ import annotations

import argparse
import errno
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from flexgroup.core.errors import UsageError

Commands: TypeAlias = "argparse._SubParsersAction[Any]"
Options: TypeAlias = "argparse._ActionsContainer"

Run = Callable[[argparse.Namespace], int]


class Help(argparse.HelpFormatter):
    """Wraps descriptions, and leaves examples as they are, to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


class Option:
    """An option, or an argument without a name, in the words of `argparse`."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names = names
        self.settings = settings

    def add_to(self, options: Options) -> None:
        options.add_argument(*self.names, **self.settings)


class Group:
    """Options with a heading of their own in the help; without one, only one may be given."""

    def __init__(self, title: str, *options: Option) -> None:
        self.title = title
        self.options = options

    def add_to(self, options: Options) -> None:
        group: Options = (
            options.add_argument_group(self.title)
            if self.title
            else options.add_mutually_exclusive_group()
        )
        for option in self.options:
            option.add_to(group)


def flag(name: str, help: str) -> Option:
    """Return an option that is given or not."""
    return Option(name, action="store_true", help=help)


def repeated(name: str, metavar: str, help: str, **settings: Any) -> Option:
    """Return an option that may be given several times."""
    return Option(name, action="append", metavar=metavar, help=help, **{"default": [], **settings})


PROTOCOLS = repeated(
    "--protocols", "MODULE",
    "import this module, which registers protocols of your own; modules that are always wanted "
    "stand in pyproject.toml",
)  # fmt: skip
"""Lets stacks name protocols from elsewhere; every command has it."""


@dataclass(frozen=True)
class Command:
    """A subcommand with `--json`, and with an example in its help."""

    name: str
    summary: str
    example: str
    options: tuple[Option | Group, ...] = ()
    description: str = ""
    """What the help says first; the summary, if nothing else is said."""
    json_help: str = "print one JSON document"

    def add_to(self, commands: Commands, run: Run) -> None:
        parser = commands.add_parser(
            self.name,
            help=self.summary,
            description=self.description or f"{self.summary[0].upper()}{self.summary[1:]}.",
            epilog=f"example:\n  {self.example}",
            formatter_class=Help,
        )
        for option in (flag("--json", self.json_help), *self.options, PROTOCOLS):
            option.add_to(parser)
        parser.set_defaults(run=run)


def stack_option(required: bool) -> Option:
    return Option(
        "--protocol", "--stack", required=required, dest="stack", metavar="P",
        help="a protocol or a stack of them, lowest first: skeen, dcc/rv, 'fifo dcc'",
    )  # fmt: skip


def tls_option(note: str = "") -> Option:
    return Option(
        "--tls", type=path_here, metavar="DIR",
        help=f"mutual TLS, with the certificates in this folder{note}",
    )  # fmt: skip


def protocols_for_servers(options: argparse.Namespace) -> list[str]:
    """Return the options that give servers started by a command the protocols that it has."""
    return [word for module in options.protocols for word in ("--protocols", module)]


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


def path_here(text: str) -> Path:
    """Read the value of an option that is a path of this machine."""
    if SCHEME.match(text):
        raise argparse.ArgumentTypeError(
            f"'{text}' is in another file system, and this has to be a path of this machine"
        )
    return Path(text)


def place(text: str) -> Path | str:
    """Read the value of an option that is a path of this machine, or a location that Spark can
    write to."""
    if text.startswith("file:"):
        return Path(unquote(urlsplit(text).path))
    return text if SCHEME.match(text) else Path(text)


SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""What a location begins with that is not a path of this machine."""


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
