"""Verdicts, counted: which stack kept which property in how many runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from flexgroup.diagram.markup import Markup, element, join
from flexgroup.properties.catalogue import PROPERTIES
from flexgroup.properties.verdict import Outcome
from flexgroup.report.contents import Contents, stack_told
from flexgroup.report.tables import Cell, Column, more_in, table

HOLDS, VIOLATED, UNKNOWN = Outcome

MOST_LISTED = 300

Counts = dict[tuple[str, ...], dict[str, Counter[str]]]
"""How many runs have which outcome, for each stack, or stack and workload, and each property."""


def totals(contents: Contents) -> Counter[str]:
    counted = pc.value_counts(contents.verdicts["outcome"])
    return Counter({row["values"]: row["counts"] for row in counted.to_pylist()})


def verdicts_markup(contents: Contents) -> Markup:
    runs = contents.runs.select(["run", "stack", "workload"])
    joined = contents.verdicts.select(["run", "property", "outcome"]).join(runs, "run")
    counted = joined.group_by(["stack", "workload", "property", "outcome"]).aggregate(
        [("run", "count")]
    )
    by_stack: Counts = {}
    by_workload: Counts = {}
    for row in counted.to_pylist():
        key = stack_told(row["stack"]), row["workload"] or ""
        for group, place in ((by_stack, key[:1]), (by_workload, key)):
            outcomes = group.setdefault(place, {}).setdefault(row["property"], Counter())
            outcomes[row["outcome"]] += row["run_count"]
    properties = _worst_first(by_stack)
    parts = [
        element(
            "p",
            "A number alone counts runs in which the property holds. ",
            element("span", "✗", class_="violated"),
            " counts runs that violate it, ",
            element("span", "?", class_="unknown"),
            " runs that were cut short before it could be decided. "
            "An empty cell was not checked: the stack does not promise it.",
            class_="small",
        ),
        _counts_table("Runs by stack and property", ["stack"], properties, by_stack),
    ]
    if len(by_workload) > len(by_stack):
        detailed = _counts_table(
            "Runs by stack, workload and property", ["stack", "workload"], properties, by_workload
        )
        parts.append(element("details", element("summary", "By workload"), detailed))
    return join([*parts, _listed(contents)])


def _worst_first(groups: Counts) -> list[str]:
    """Return the properties that were checked: a wide table is cut off on the right, so those that
    are violated come first, and then those that are not decided."""
    known = list(PROPERTIES)
    together: dict[str, Counter[str]] = {}
    for found in groups.values():
        for name, outcomes in found.items():
            together[name] = together.get(name, Counter[str]()) + outcomes

    def rank(name: str) -> tuple[bool, bool, int, str]:
        outcomes = together[name]
        place = known.index(name) if name in known else len(known)
        return not outcomes[VIOLATED], not outcomes[UNKNOWN], place, name

    return sorted(together, key=rank)


def _counts_table(
    caption: str,
    keys: Sequence[str],
    properties: Sequence[str],
    groups: Counts,
) -> Markup:
    columns = [*(Column(key, "nowrap") for key in keys), *(Column(p, "number") for p in properties)]

    def worst_first(key: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
        together = sum(groups[key].values(), Counter[str]())
        return -together[VIOLATED], -together[UNKNOWN], key

    rows = [
        [*key, *(_count(groups[key].get(property_)) for property_ in properties)]
        for key in sorted(groups, key=worst_first)
    ]
    return table(caption, columns, rows, headings=len(keys))


def _count(outcomes: Counter[str] | None) -> Cell:
    if not outcomes:
        return Cell("", -1)
    runs = sum(outcomes.values())
    bad, unsure = outcomes[VIOLATED], outcomes[UNKNOWN]
    if bad:
        return Cell(f"✗ {bad} of {runs}", 2e9 + bad, VIOLATED)
    if unsure:
        return Cell(f"? {unsure} of {runs}", 1e9 + unsure, UNKNOWN)
    return Cell(f"{runs}", runs, HOLDS)


def _listed(contents: Contents) -> Markup:
    """List every verdict that is not `holds`, worst first."""
    verdicts = contents.verdicts
    wrong = verdicts.filter(pc.not_equal(verdicts["outcome"], HOLDS))
    if wrong.num_rows == 0:
        return Markup()
    wrong = wrong.append_column(
        "rank", pc.if_else(pc.equal(wrong["outcome"], VIOLATED), pa.scalar(0), pa.scalar(1))
    ).sort_by([("rank", "ascending"), ("run", "ascending"), ("property", "ascending")])
    rows = wrong.slice(0, MOST_LISTED).to_pylist()
    caption = "Verdicts that are violated or unknown"
    columns = [
        Column("run", "name"),
        Column("property", "nowrap"),
        Column("outcome"),
        Column("violations", "number"),
    ]
    body = [
        [
            row["run"],
            row["property"],
            Cell(row["outcome"], kind=row["outcome"]),
            Cell(row["violations"], row["violations"]),
        ]
        for row in rows
    ]
    listed = table(caption + more_in("verdicts", rows, wrong), columns, body)
    return element("details", element("summary", f"{caption}: {wrong.num_rows}"), listed)
