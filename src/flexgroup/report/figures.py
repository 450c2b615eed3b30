"""The figures and claims of an experiment: our data, and beside it what the paper says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from flexgroup.core.errors import UsageError
from flexgroup.diagram.markup import Markup, element
from flexgroup.diagram.picture import Drawn
from flexgroup.metrics.catalogue import find_metric
from flexgroup.properties.verdict import Outcome
from flexgroup.report.charts import (
    ChartPoint,
    ChartSeries,
    Scale,
    bars,
    chart_file,
    curves,
    spans_wide,
)
from flexgroup.report.figure import Figure, Kind, Row, Series
from flexgroup.report.tables import Cell, Column, half_width_of, metric_cell, table, value_of

CLAIM_COLUMNS = (
    Column("claim", "nowrap"),
    Column("section", "nowrap"),
    Column("statement", "long"),
    Column("appears", "nowrap"),
    Column("here", "long"),
)

MOST_FIGURES_OF_A_TRACE_SET = 12


Measured = Sequence[tuple[Series, Sequence[Row]]]
"""The series of a figure of which there are points, with those points."""


def described_figures(about: Row) -> list[Figure] | None:
    """Return the figures that experiment.json describes; None if it does not say which."""
    figures = about.get("figures")
    if figures is None:
        return None
    if not isinstance(figures, list):
        raise UsageError("experiment.json: figures must be a list; see docs/report.md")
    return [Figure.from_json(told) for told in figures]


def usual_figures(points: Sequence[Row]) -> list[Figure]:
    """Return figures for a trace set: latency against throughput, wherever the load varies."""

    def system(row: Row) -> tuple[str, int, str]:
        return row.get("workload") or "", row.get("processes") or 0, row.get("network") or ""

    figures: list[Figure] = []
    for where, group in groupby(sorted(points, key=system), key=system):
        rows = list(group)
        if len({row.get("clients") for row in rows}) < 2:
            continue
        workload, processes, network = where
        stacks = sorted({row["stack"] for row in rows})
        figures.append(
            Figure(
                f"load-{len(figures) + 1}",
                f"{workload}, {processes} processes, network {network}",
                Kind.CURVES,
                tuple(Series(stack, stack, *where, lost=None, liars=None) for stack in stacks),
                ("throughput", "latency"),
            )
        )
    return figures[:MOST_FIGURES_OF_A_TRACE_SET]


def styles(figures: Iterable[Figure]) -> dict[str, int]:
    """Choose a colour and a marker for each label, the same in all figures."""
    labels = dict.fromkeys(series.label for figure in figures for series in figure.series)
    return {label: number for number, label in enumerate(labels)}


def figure_markup(figure: Figure, points: Sequence[Row], style: Mapping[str, int]) -> Markup:
    measured = _measured(figure, points)
    if not measured:
        shown = element("p", "No run of this experiment has data for it.", class_="quiet")
    elif figure.kind is Kind.TABLE:
        shown = _data(figure, measured)
    else:
        drawn, subject = chart(figure, measured, style)
        data = element("details", element("summary", "The numbers"), _data(figure, measured))
        shown = element("div", drawn.svg("chart", f"{subject}; the numbers follow"), data)
    return element(
        "figure",
        element("h3", _heading(figure)),
        element(
            "div", shown, _paper(figure), class_="beside" if figure.kind != Kind.TABLE else None
        ),
        id=f"figure-{figure.id}",
    )


def figure_file(figure: Figure, points: Sequence[Row]) -> str:
    """Return the chart of a figure as an SVG file, for documents."""
    drawn, subject = chart(figure, _measured(figure, points), styles([figure]))
    return chart_file(drawn, f"{figure.id}: {figure.title}", subject)


def _measured(figure: Figure, points: Sequence[Row]) -> Measured:
    found = [(series, figure.points_of(series, points)) for series in figure.series]
    return [(series, rows) for series, rows in found if rows]


def _heading(figure: Figure) -> str:
    if not figure.section:
        return figure.title
    return f"{figure.id[:1].upper()}{figure.id[1:]}: {figure.title}"


def _paper(figure: Figure) -> Markup:
    if not figure.paper:
        return Markup()
    where = "What the paper says"
    if figure.section:
        named = f"section {figure.section}" if figure.section[0].isdigit() else figure.section
        where = f"{where}, {named}"
    return element(
        "div",
        element("p", where, class_="quiet small"),
        element("p", figure.paper),
        class_="paper",
    )


def chart(figure: Figure, measured: Measured, style: Mapping[str, int]) -> tuple[Drawn, str]:
    """Draw curves or bars; return them with what they show."""
    return (_curves if figure.kind is Kind.CURVES else _bars)(figure, measured, style)


def _curves(figure: Figure, measured: Measured, style: Mapping[str, int]) -> tuple[Drawn, str]:
    across, up = (find_metric(name) for name in figure.metrics[:2])
    condition = find_metric(figure.varied)
    drawn = []
    for series, rows in measured:
        points = [
            ChartPoint(
                x,
                y,
                f"{series.label}, {metric_cell(condition, row).shown} {condition.heading}: "
                f"{metric_cell(across, row).shown} {across.heading}, "
                f"{metric_cell(up, row).shown} {up.heading}",
                half_width_of(across, row),
                half_width_of(up, row),
            )
            for row in rows
            if (x := value_of(across, row)) is not None and (y := value_of(up, row)) is not None
        ]
        drawn.append(ChartSeries(series.label, style[series.label], tuple(points)))
    log = spans_wide(point.y for series in drawn for point in series.points)
    scales = (
        Scale(across.heading, across.name in ("clients", "processes")),
        Scale(f"{up.heading}, logarithmic" if log else up.heading, log),
    )
    return curves(drawn, *scales), f"{figure.title}: {up.heading} against {across.heading}"


def _bars(figure: Figure, measured: Measured, style: Mapping[str, int]) -> tuple[Drawn, str]:
    up = find_metric(figure.metrics[0])
    groups = list(dict.fromkeys(series.group for series, _ in measured))
    by_label: dict[str, list[ChartPoint]] = {}
    for series, (row,) in measured:
        value = value_of(up, row)
        if value is not None:
            group = series.group
            title = f"{series.label}, {group}: {metric_cell(up, row).shown} {up.heading}"
            by_label.setdefault(series.label, []).append(
                ChartPoint(groups.index(group), value, title, y_half=half_width_of(up, row))
            )
    drawn = [ChartSeries(label, style[label], tuple(points)) for label, points in by_label.items()]
    return bars(groups, drawn, Scale(up.heading)), f"{figure.title}: {up.heading}"


def _data(figure: Figure, measured: Measured) -> Markup:
    varied = [
        name
        for name in ("under", "workload", "processes", "network")
        if len({getattr(series, name) for series, _ in measured}) > 1
    ]
    shown = [find_metric(name) for name in dict.fromkeys((figure.varied, *figure.metrics))]
    columns = [
        *(Column(name, "nowrap") for name in ("", *varied)),
        *(Column(each.heading, "number") for each in shown),
    ]
    rows = [
        [
            series.label,
            *(getattr(series, name) for name in varied),
            *(metric_cell(each, row) for each in shown),
        ]
        for series, found in measured
        for row in found
    ]
    return table(f"{figure.title}: what was measured", columns, rows)


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
            Cell("✓ yes", kind=Outcome.HOLDS)
            if claim.get("holds")
            else Cell("✗ no", kind=Outcome.VIOLATED),
            claim.get("evidence"),
        ]
        for claim in claims
    ]
    return table("What is claimed, and whether our measurements show it", CLAIM_COLUMNS, rows)
