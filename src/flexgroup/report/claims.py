"""Claims of a paper beside what our measurements say."""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.diagram.markup import Markup
from flexgroup.report.contents import Row
from flexgroup.report.tables import Cell, Column, table
from flexgroup.report.verdicts import HOLDS, VIOLATED

COLUMNS = (
    Column("claim", "nowrap"),
    Column("section", "nowrap"),
    Column("statement", "long"),
    Column("appears", "nowrap"),
    Column("here", "long"),
)


def claims_that_appear(claims: Sequence[Row]) -> int:
    return sum(bool(claim.get("holds")) for claim in claims)


def claims_markup(claims: Sequence[Row]) -> Markup:
    if not claims:
        return Markup()
    rows = [
        [
            claim.get("claim"),
            claim.get("section"),
            claim.get("paper"),
            Cell("✓ yes", kind=HOLDS) if claim.get("holds") else Cell("✗ no", kind=VIOLATED),
            claim.get("evidence"),
        ]
        for claim in claims
    ]
    return table("What is claimed, and whether our measurements show it", COLUMNS, rows)
