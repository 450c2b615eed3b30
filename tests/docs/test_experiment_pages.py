"""Pages of docs/ that an experiment writes are what it writes: nothing is missing or typed."""

from __future__ import annotations

import pytest

from flexgroup.experiments import wan
from flexgroup.experiments.catalogue import EXPERIMENTS
from flexgroup.experiments.causal import CAUSAL
from flexgroup.experiments.dcc_choices import CHOICES
from flexgroup.experiments.directory import Directory
from flexgroup.experiments.experiment import Claim, Experiment
from flexgroup.experiments.figure import Figure
from flexgroup.experiments.liars import LIARS
from flexgroup.experiments.results import page, pages_beside, read_record
from flexgroup.experiments.tolerance import TOLERANCE

from .fences import ROOT

DOCS = ROOT / "docs"
WRITTEN = (TOLERANCE, LIARS, CHOICES, wan.EXPERIMENT, CAUSAL)
RECORD = read_record(DOCS / "results.csv")
ELSEWHERE = [experiment for experiment in WRITTEN if experiment.elsewhere]
PAGES = {
    experiment.name: (DOCS / f"{experiment.name}-results.md").read_text(encoding="utf-8")
    for experiment in WRITTEN
}

FIGURES = [(experiment, figure) for experiment in WRITTEN for figure in experiment.figures]
CLAIMS = [(experiment, claim) for experiment in WRITTEN for claim in experiment.claims]


@pytest.mark.parametrize("experiment", WRITTEN, ids=lambda experiment: experiment.name)
def test_it_begins_as_the_experiment_says(experiment: Experiment) -> None:
    page = PAGES[experiment.name]
    assert page.startswith(f"# {experiment.title}\n\nExperiment `{experiment.name}` at scale `")
    assert experiment.introduction in page


@pytest.mark.parametrize(
    ("experiment", "figure"), FIGURES, ids=[figure.id for _, figure in FIGURES]
)
def test_every_figure_is_there_beside_what_papers_say(
    experiment: Experiment, figure: Figure
) -> None:
    _, heading, rest = PAGES[experiment.name].partition(f"## {figure.id}: {figure.title}\n")
    assert heading
    section = rest.partition("\n## ")[0]
    assert figure.paper in section
    assert all(series.label in section for series in figure.series)
    concluded = "**Who wins.**" in section or "**Verdicts**" in section
    assert concluded == (figure.id in experiment.conclusions)
    if figure.image:
        assert f"]({figure.image})" in section
        assert (DOCS / figure.image).exists()


@pytest.mark.parametrize("experiment", ELSEWHERE, ids=lambda experiment: experiment.name)
def test_what_real_processes_did_is_what_was_measured(experiment: Experiment) -> None:
    directory = Directory(DOCS)
    directory.elsewhere = DOCS / f"{experiment.name}-elsewhere.csv"
    rows = directory.measured_elsewhere()
    section = PAGES[experiment.name].partition("## Measured elsewhere\n")[2].partition("\n## ")[0]
    assert experiment.elsewhere in section
    assert ("Not yet" in section) == (not rows)
    table = [line for line in section.splitlines() if line.startswith("| ") and "---" not in line]
    assert table == [f"| {' | '.join(row)} |" for row in rows]


@pytest.mark.parametrize(("experiment", "claim"), CLAIMS, ids=[claim.name for _, claim in CLAIMS])
def test_every_claim_is_judged(experiment: Experiment, claim: Claim) -> None:
    row = f"| {claim.name} | {claim.section} | {claim.words} | "
    page = PAGES[experiment.name]
    assert row in page
    verdict = page.partition(row)[2].split(" | ")[0]
    assert verdict in ("yes", "**no**")


def test_the_page_of_results_is_what_the_record_says() -> None:
    written = (DOCS / "results.md").read_text(encoding="utf-8")
    assert written == page(RECORD, pages_beside(DOCS / "results.md"))


@pytest.mark.parametrize("name", sorted({row.experiment for row in RECORD}))
def test_the_record_has_the_claims_of_an_experiment_as_it_is(name: str) -> None:
    recorded = [row for row in RECORD if row.experiment == name]
    claims = EXPERIMENTS[name].claims_at(recorded[0].scale)
    assert [(row.claim, row.section, row.words) for row in recorded] == [
        (claim.name, claim.section, claim.words) for claim in claims
    ]


@pytest.mark.parametrize("experiment", WRITTEN, ids=lambda experiment: experiment.name)
def test_the_record_agrees_with_the_page_of_an_experiment(experiment: Experiment) -> None:
    shown = PAGES[experiment.name]
    for row in RECORD:
        if row.experiment == experiment.name:
            verdict = "yes" if row.appears == "yes" else "**no**"
            cells = (row.claim, row.section, row.words, verdict, row.evidence)
            assert f"| {' | '.join(cells)} |" in shown
