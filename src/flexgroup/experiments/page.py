"""Every figure of an experiment in numbers, beside what the paper says of it, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flexgroup.experiments.experiment import Experiment
from flexgroup.experiments.findings import Findings
from flexgroup.metrics.catalogue import CONDITIONS, find_metric
from flexgroup.report.figure import Figure, Kind, Row


def page(
    experiment: Experiment,
    scale: str,
    points: Sequence[Row],
    claims: Sequence[dict[str, Any]],
    findings: Findings,
    elsewhere: Sequence[Sequence[str]] = (),
) -> str:
    lines = [
        f"# {experiment.title}",
        "",
        f"Experiment `{experiment.name}` at scale `{scale}`. Source: {experiment.source}.",
        "What the paper says is told in our words; the values of its figures are not in its text.",
        "",
    ]
    if experiment.introduction:
        lines += [experiment.introduction, ""]
    for figure in experiment.figures:
        lines += _section(figure, points)
        if figure.id in experiment.conclusions:
            lines += [experiment.conclusions[figure.id](findings), ""]
    if experiment.elsewhere:
        lines += ["## Measured elsewhere", "", experiment.elsewhere, ""]
        if elsewhere:
            lines += table(elsewhere[0], elsewhere[1:])
        else:
            lines += ["Not yet: there is no `elsewhere.csv` beside this page."]
        lines += [""]
    if claims:
        lines += ["## Claims", ""]
        rows = [
            [row["claim"], row["section"], row["paper"], "yes" if row["holds"] else "**no**",
             row["evidence"]]
            for row in claims
        ]  # fmt: skip
        lines += table(["claim", "section", "the claim", "appears", "here"], rows)
    return "\n".join(lines) + "\n"


def _section(figure: Figure, points: Sequence[Row]) -> Iterator[str]:
    yield f"## {figure.id}: {figure.title}"
    yield ""
    if figure.image:
        yield f"![{figure.title}]({figure.image})"
        yield ""
    yield f"The paper ({figure.section}): {figure.paper}"
    yield ""
    measured = [metric for metric in figure.metrics if metric not in CONDITIONS]
    headings = [heading(metric) for metric in measured]
    if figure.kind is Kind.TABLE:
        yield "Here, with the most clients:"
        yield ""
        rows = [
            [series.label, series.workload or "", *(told(row, metric) for metric in measured)]
            for series in figure.series
            for row in figure.points_of(series, points)
        ]
        yield from table(["", "workload", *headings], rows)
    else:
        is_curves = figure.kind is Kind.CURVES
        by = f"by {heading(figure.varied)}" if is_curves else "with the most clients"
        yield f"Here, {'; '.join(headings)}, {by}:"
        yield ""
        yield from _side_by_side(figure, measured, points)
    yield ""


def _side_by_side(figure: Figure, metrics: Sequence[str], points: Sequence[Row]) -> list[str]:
    """Return a table with a column for each label, and a row for each value of the condition in
    which points of curves differ, or for each workload of bars."""
    cells: dict[Any, dict[str, str]] = {}
    for series in figure.series:
        for row in figure.points_of(series, points):
            key = row[figure.varied] if figure.kind is Kind.CURVES else series.group
            text = "; ".join(told(row, metric) for metric in metrics)
            cells.setdefault(key, {})[series.label] = text
    labels = list(dict.fromkeys(series.label for series in figure.series))
    if figure.kind is Kind.CURVES:
        condition = find_metric(figure.varied)
        first, keys = condition.heading, {key: condition.text(key) for key in sorted(cells)}
    else:
        first = "" if any(series.under for series in figure.series) else "workload"
        keys = {key: str(key) for key in cells}
    rows = [[text, *(cells[key].get(label, "") for label in labels)] for key, text in keys.items()]
    return table([first, *labels], rows)


def heading(metric: str) -> str:
    """Return what is written over the values of a metric or a condition."""
    return find_metric(metric).heading


def told(row: Row, metric: str) -> str:
    """Return a value of a point as it is shown, without the unit."""
    found = find_metric(metric)
    value = row.get(found.name)
    return "-" if value is None else found.text(value)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + " --- |" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
