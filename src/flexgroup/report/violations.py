"""Violations: each with its explanation, a space-time diagram, and how to see it again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import pyarrow.compute as pc

from flexgroup.diagram.drawing import diagram
from flexgroup.diagram.events import Place, event_of
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.report.contents import NODES, Contents, Row, stack_told
from flexgroup.report.production import command_markup, commands
from flexgroup.report.verdicts import VIOLATED
from flexgroup.trace.schema import CUT

MOST_SHOWN = 20
MOST_READ = 5_000
"""The most violated verdicts among which the ones to show are chosen."""

LETTER = r"\b([a-z]\d*) = message {}(?![^\s,])"


@dataclass(frozen=True)
class ShownViolation:
    """Properties of one run that the same events violate."""

    run: str
    properties: tuple[str, ...]
    drawable: str | None
    """The one of the properties whose events were kept, if any."""
    told: tuple[str, ...]
    """What the command line says of each property."""
    witness: frozenset[Place]
    letters: Mapping[str, str]
    """The letter of each message in the explanation."""


def violations(contents: Contents) -> tuple[list[ShownViolation], int]:
    """Return the violations to show, and how many violated verdicts there are in all.

    One of each stack and property comes before a second of any, and those that can be drawn come
    first.
    """
    verdicts = contents.verdicts
    violated = verdicts.filter(pc.equal(verdicts["outcome"], VIOLATED))
    rows = violated.sort_by([("run", "ascending"), ("property", "ascending")])
    rows = rows.slice(0, MOST_READ).to_pylist()
    described = contents.described({row["run"] for row in rows})
    kinds: dict[tuple[object, tuple[str, ...]], list[ShownViolation]] = {}
    found = sorted(_together(rows, contents.has_evidence()), key=lambda v: v.drawable is None)
    for violation in found:
        stack = described.get(violation.run, {}).get("stack")
        kinds.setdefault((stack, violation.properties), []).append(violation)
    in_turn = [v for turn in zip_longest(*kinds.values()) for v in turn if v is not None]
    return in_turn[:MOST_SHOWN], violated.num_rows


def _together(rows: Iterable[Row], kept: set[tuple[str, str]]) -> Iterator[ShownViolation]:
    """Put verdicts together that the same events violate: they are one violation to look at."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        letters = _letters(row)
        key = (row["run"], _witness(row["witness"]), tuple(sorted(letters.items())))
        groups.setdefault(key, []).append(row)
    for same in groups.values():
        run = same[0]["run"]
        properties = tuple(row["property"] for row in same)
        yield ShownViolation(
            run,
            properties,
            next((name for name in properties if (run, name) in kept), None),
            tuple(_told(same)),
            _witness(same[0]["witness"]),
            _letters(same[0]),
        )


def _told(rows: Sequence[Row]) -> Iterator[str]:
    by_explanation: dict[str, list[str]] = {}
    for row in rows:
        by_explanation.setdefault(row["explanation"] or "", []).append(row["property"])
    for explanation, names in by_explanation.items():
        yield "\n  ".join([f"{_listed(names)}: violated", *explanation.splitlines()])


def _witness(text: str | None) -> frozenset[Place]:
    try:
        steps = json.loads(text or "[]")
        return frozenset((int(step["process"]), int(step["step"])) for step in steps)
    except (ValueError, TypeError, KeyError):
        return frozenset()


def _letters(row: Row) -> dict[str, str]:
    """Return the letters that the explanation introduces: let a = message 0.2 to {0,2}, ..."""
    found = {}
    for message, called in _messages(row["witness"]).items():
        letter = re.search(LETTER.format(re.escape(called)), row["explanation"] or "")
        if letter is not None:
            found[message] = letter[1]
    return found


def _messages(witness: str | None) -> dict[str, str]:
    """Return the messages of a witness, and what each is called where the run comes from."""
    try:
        steps = json.loads(witness or "[]")
        return {str(step["message"]): str(step.get("name", step["message"])) for step in steps}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def violations_markup(contents: Contents) -> Markup:
    shown, total = violations(contents)
    described = contents.described({violation.run for violation in shown})
    verdicts = sum(len(violation.properties) for violation in shown)
    parts = [_violation(contents, v, described.get(v.run, {}), i) for i, v in enumerate(shown, 1)]
    if total > verdicts:
        words = (
            f"{total - verdicts} more violated verdicts are not shown here; "
            "tables/verdicts has their explanations, tables/evidence the events."
        )
        parts.append(element("p", words, class_="quiet", id="more-violations"))
    return join(parts)


def _violation(contents: Contents, violation: ShownViolation, run: Row, number: int) -> Markup:
    title = _listed(violation.properties)
    parts = [
        element("h3", f"{number}. {title[:1].upper()}{title[1:]}: {_what(run) or violation.run}"),
        element(
            "p",
            "Run ",
            element("code", violation.run, class_="name"),
            f" over channels: {run['channels']}" if run.get("channels") else "",
            class_="small quiet",
        ),
    ]
    parts += [element("pre", text, class_="explanation") for text in violation.told]
    parts += _picture(contents, violation, run)
    again = commands(run)
    if again:
        parts.append(
            element(
                "details",
                element("summary", "Do this run again"),
                command_markup(again),
            )
        )
    return element("article", *parts, class_="violation", id=f"violation-{number}")


def _what(run: Row) -> str:
    known = [stack_told(run.get("stack")), run.get("workload")]
    if run.get("processes") is not None:
        known.append(f"{run['processes']} processes")
    return ", ".join(str(each) for each in known if each)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _picture(contents: Contents, violation: ShownViolation, run: Row) -> list[Markup]:
    if violation.drawable is None:
        return [element("p", "Its events were not kept, so it is not drawn.", class_="quiet small")]
    rows = contents.evidence(violation.run, violation.drawable)
    drawn = diagram(
        [event_of(row) for row in rows],
        violation.letters,
        violation.witness,
        run.get("processes"),
        complete=run.get("outcome") != CUT,
        timed=run.get("world") != "explorer",
        nodes=tuple(run.get(NODES) or ()),
    )
    words = " ".join(drawn.notes)
    return [
        element(
            "figure",
            element(
                "div", drawn.across, drawn.down, class_="scroll", tabindex=0, role="region",
                aria_label="Space-time diagram",
            ),
            element("figcaption", words, class_="quiet small"),
            data_packets=drawn.packets,
        )
    ]  # fmt: skip
