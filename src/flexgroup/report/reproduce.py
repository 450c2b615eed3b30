"""The commands that do a run again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flexgroup.diagram.markup import Markup, element

SIMULATOR = "simulator"
FAULTS = {
    "crashes": "--crash",
    "recoveries": "--recover",
    "partitions": "--partition",
    "suspicions": "--suspect",
}
USUAL_DRAIN = 10.0
PLACE = "again"


def commands(run: Mapping[str, Any]) -> list[str]:
    """To simulate a run again, check everything about it, and replay it; none if its description
    does not suffice."""
    if run.get("world") != SIMULATOR or None in (run.get("seed"), run.get("options")):
        return []
    try:
        words = ["flexgroup", "simulate", *_arguments(run)]
    except (KeyError, TypeError, ValueError):
        return []
    words += ["--check", "all", "--out", PLACE]
    return [shlex.join(words), f"flexgroup replay {PLACE}"]


def command_markup(lines: Sequence[str]) -> Markup:
    """Not wrapped, so that it can be copied, but scrolling by itself."""
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
    for name, option in FAULTS.items():
        for fault in faults.get(name) or ():
            yield from (option, str(fault))
    if faults.get("detection"):
        yield from ("--detection", str(faults["detection"]))
