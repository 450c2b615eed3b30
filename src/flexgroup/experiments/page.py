"""Every figure of an experiment in numbers, beside what the paper says of it, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flexgroup.experiments.experiment import Experiment
from flexgroup.experiments.figure import Figure, Kind
from flexgroup.experiments.findings import Findings, Point
from flexgroup.metrics.catalogue import CONDITIONS, find_metric


def page(
    experiment: Experiment, scale: str, findings: Findings, claims: Sequence[dict[str, Any]]
) -> str:
    lines = [
        f"# {experiment.title}",
        "",
        f"Experiment `{experiment.name}` at scale `{scale}`. Source: {experiment.source}.",
        "What the paper says is told in our words; the values of its figures are not in its text.",
        "",
    ]
    for figure in experiment.figures:
        lines += _section(figure, findings)
    if claims:
        lines += ["## Claims", ""]
        rows = [
            [row["claim"], row["section"], row["paper"], "yes" if row["holds"] else "**no**",
             row["evidence"]]
            for row in claims
        ]  # fmt: skip
        lines += _table(["claim", "section", "the claim", "appears", "here"], rows)
    return "\n".join(lines) + "\n"


def _section(figure: Figure, findings: Findings) -> Iterator[str]:
    yield f"## {figure.id}: {figure.title}"
    yield ""
    if figure.image:
        yield f"![{figure.title}]({figure.image})"
        yield ""
    yield f"The paper ({figure.section}): {figure.paper}"
    yield ""
    match figure.kind:
        case Kind.CURVES:
            across, up = figure.metrics
            what = heading(up) if across in CONDITIONS else f"{heading(across)}; {heading(up)}"
            yield f"Here, {what}, by {heading(figure.varied)}:"
            yield ""
            yield from _curves(figure, findings)
        case Kind.BARS:
            yield f"Here, {heading(figure.metrics[0])}, with the most clients:"
            yield ""
            yield from _bars(figure, findings)
        case Kind.TABLE:
            yield "Here, with the most clients:"
            yield ""
            yield from _rows(figure, findings)
    yield ""


def _curves(figure: Figure, findings: Findings) -> list[str]:
    curves = [
        {int(point.shown(figure.varied)): point for point in figure.points_of(series, findings)}
        for series in figure.series
    ]
    metrics = [metric for metric in figure.metrics if metric not in CONDITIONS]

    def cell(curve: dict[int, Point], at: int) -> str:
        return "; ".join(told(curve[at], metric) for metric in metrics) if at in curve else ""

    rows = [
        [f"{at:,}", *(cell(curve, at) for curve in curves)] for at in sorted(set().union(*curves))
    ]
    return _table([heading(figure.varied), *(series.label for series in figure.series)], rows)


def _bars(figure: Figure, findings: Findings) -> list[str]:
    labels = list(dict.fromkeys(series.label for series in figure.series))
    values: dict[str, dict[str, str]] = {}
    for series in figure.series:
        (point,) = figure.points_of(series, findings)
        values.setdefault(series.workload, {})[series.label] = told(point, figure.metrics[0])
    rows = [
        [workload, *(row.get(label, "") for label in labels)] for workload, row in values.items()
    ]
    return _table(["workload", *labels], rows)


def _rows(figure: Figure, findings: Findings) -> list[str]:
    rows = []
    for series in figure.series:
        (point,) = figure.points_of(series, findings)
        rows.append(
            [series.label, series.workload, *(told(point, metric) for metric in figure.metrics)]
        )
    return _table(["", "workload", *(heading(metric) for metric in figure.metrics)], rows)


def heading(metric: str) -> str:
    """Return what is written over the values of a metric or a condition."""
    return find_metric(metric).heading


def told(point: Point, metric: str) -> str:
    """Return a value of a point as it is shown, without the unit."""
    return format(point.shown(metric), find_metric(metric).digits)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + " --- |" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
