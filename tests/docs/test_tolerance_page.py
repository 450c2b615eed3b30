"""docs/tolerance-results.md is the page that the experiment writes: nothing is missing or typed."""

from __future__ import annotations

import pytest

from flexgroup.experiments.directory import Directory
from flexgroup.experiments.experiment import Claim
from flexgroup.experiments.figure import Figure
from flexgroup.experiments.tolerance import TOLERANCE

from .fences import ROOT

DOCS = ROOT / "docs"
PAGE = (DOCS / "tolerance-results.md").read_text(encoding="utf-8")


def test_it_begins_as_the_experiment_says() -> None:
    assert PAGE.startswith(f"# {TOLERANCE.title}\n\nExperiment `tolerance` at scale `")
    assert TOLERANCE.introduction in PAGE


@pytest.mark.parametrize("figure", TOLERANCE.figures, ids=lambda figure: figure.id)
def test_every_figure_is_there_beside_what_papers_say(figure: Figure) -> None:
    _, heading, rest = PAGE.partition(f"## {figure.id}: {figure.title}\n")
    assert heading
    section = rest.partition("\n## ")[0]
    assert figure.paper in section
    assert all(series.label in section for series in figure.series)
    assert ("**Who wins.**" in section) == (figure.id in TOLERANCE.conclusions)
    if figure.image:
        assert f"]({figure.image})" in section
        assert (DOCS / figure.image).exists()


def test_what_real_processes_did_is_what_was_measured() -> None:
    directory = Directory(DOCS)
    directory.elsewhere = DOCS / "tolerance-elsewhere.csv"
    rows = directory.measured_elsewhere()
    section = PAGE.partition("## Measured elsewhere\n")[2].partition("\n## ")[0]
    assert TOLERANCE.elsewhere in section
    assert ("Not yet" in section) == (not rows)
    table = [line for line in section.splitlines() if line.startswith("| ") and "---" not in line]
    assert table == [f"| {' | '.join(row)} |" for row in rows]


@pytest.mark.parametrize("claim", TOLERANCE.claims, ids=lambda claim: claim.name)
def test_every_claim_is_judged(claim: Claim) -> None:
    row = f"| {claim.name} | {claim.section} | {claim.words} | "
    assert row in PAGE
    verdict = PAGE.partition(row)[2].split(" | ")[0]
    assert verdict in ("yes", "**no**")
