"""How the results were produced, and how to produce them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from flexgroup import __version__
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.report.contents import Contents

SIMULATOR = "simulator"
FAULTS = {
    "crashes": "--crash",
    "recoveries": "--recover",
    "partitions": "--partition",
    "suspicions": "--suspect",
    "views": "--view",
}
TWIN = "twin"
"""The kind of liar that is two copies, which has an option of its own."""

USUAL_DRAIN = 10.0
PLACE = "again"

MOST_LISTED = 12

APART = frozenset({"title", "source", "figures", "claims"})
"""The parts of experiment.json that have a place of their own on the page."""


def production_markup(contents: Contents) -> Markup:
    facts = [(key.replace("_", " "), _written(value)) for key, value in contents.about.items()
             if key not in APART and _written(value)]  # fmt: skip
    told = {name for name, _ in facts}
    for name, words in (
        ("stack", "stacks"),
        ("workload", "workloads"),
        ("processes", "processes"),
        ("clients", "clients"),
        ("network", "networks"),
        ("channels", "channels"),
        ("seed", "seeds"),
        ("software", "software"),
    ):
        if words not in told and (values := _distinct(contents, name)):
            facts.append((words, values))
    facts.append(("this page", f"flexgroup report, version {__version__}"))
    parts = [
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", value)) for name, value in facts),
            class_="facts",
        )
    ]
    again = _again(contents)
    if again:
        parts += [
            element("p", "A run again, byte by byte, and its trace through the same code:"),
            command_markup(again),
        ]
    return join(parts)


def _written(value: object) -> str:
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        return _some(each for each in value if isinstance(each, str | int | float))
    if isinstance(value, dict):
        return _some(f"{key} {each}" for key, each in value.items() if _written(each))
    return ""


def _distinct(contents: Contents, name: str) -> str:
    values = pc.unique(contents.runs[name]).to_pylist()
    return _some(sorted(value for value in values if value is not None))


def _some(values: Iterable[object]) -> str:
    written = [str(value) for value in values]
    more = len(written) - MOST_LISTED
    return ", ".join(written[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _again(contents: Contents) -> list[str]:
    first = contents.runs.sort_by("run").slice(0, 1).to_pylist()
    return commands(first[0]) if first else []


def commands(run: Mapping[str, Any]) -> list[str]:
    """Return the commands that simulate a run again, check everything about it, and replay it; none
    if its description does not suffice."""
    if run.get("world") != SIMULATOR or None in (run.get("seed"), run.get("options")):
        return []
    try:
        words = ["flexgroup", "simulate", *_arguments(run)]
    except (KeyError, TypeError, ValueError):
        return []
    words += ["--check", "all", "--out", PLACE]
    return [shlex.join(words), f"flexgroup replay {PLACE}"]


def command_markup(lines: Sequence[str]) -> Markup:
    """Show commands without wrapping them, so that they can be copied."""
    return element("pre", "\n".join(lines), class_="command", tabindex=0)


def _arguments(run: Mapping[str, Any]) -> Iterator[str]:
    options = json.loads(run["options"])
    faults = json.loads(run["faults"] or "{}")
    yield from ("--protocol", run["stack"])
    for name in ("processes", "clients", "workload", "network"):
        yield from (f"--{name}", str(run[name]))
    yield from ("--duration", str(options["duration"]), "--seed", str(run["seed"]))
    if options.get("rate"):
        yield from ("--rate", str(options["rate"]))
    if options.get("drain", USUAL_DRAIN) != USUAL_DRAIN:
        yield from ("--drain", str(options["drain"]))
    for cast in options.get("casts", "").split():
        yield from ("--cast", cast)
    for link in options.get("links", "").split():
        yield from ("--link", link)
    if options.get("answers"):
        yield from ("--answers", options["answers"])
    replicas = json.loads(run.get("groups") or "[]")
    if replicas:
        yield from ("--groups", f"{len(replicas)}x{len(replicas[0])}")
    for liar in faults.get("liars") or ():
        process, _, kind = liar.partition(":")
        yield from ("--twin", process) if kind == TWIN else ("--liar", liar)
    for name, option in FAULTS.items():
        for fault in faults.get(name) or ():
            yield from (option, str(fault))
    if faults.get("detection"):
        yield from ("--detection", str(faults["detection"]))
