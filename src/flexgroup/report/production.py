"""How the results were produced, and how to produce them again."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.compute as pc

from flexgroup import __version__
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.report.contents import Contents
from flexgroup.report.reproduce import command_markup, commands

MOST_LISTED = 12

APART = frozenset({"title", "source", "figures", "claims"})
"""Parts of experiment.json that have a place of their own on the page."""


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
