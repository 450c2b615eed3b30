"""The figures and claims of an experiment: our data, and beside it what the paper says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from flexgroup.core.errors import UsageError
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.metrics.catalogue import CONDITIONS, Metric, find_metric
from flexgroup.report.charts import (
    ChartPoint,
    ChartSeries,
    Scale,
    bars,
    curves,
    legend,
    spans_wide,
)
from flexgroup.report.tables import Cell, Column, half_width_of, metric_cell, table, value_of
from flexgroup.report.verdicts import HOLDS, VIOLATED
from flexgroup.trace.run import planned_crashes

CLAIM_COLUMNS = (
    Column("claim", "nowrap"),
    Column("section", "nowrap"),
    Column("statement", "long"),
    Column("appears", "nowrap"),
    Column("here", "long"),
)

CURVES, BARS, TABLE = "curves", "bars", "table"

CLIENTS = "clients"
Row = Mapping[str, Any]

MOST_FIGURES_OF_A_TRACE_SET = 12


@dataclass(frozen=True)
class Line:
    """A series of a figure: a stack under a workload, in a system of some size."""

    label: str
    stack: str
    workload: str | None
    processes: int | None
    network: str | None
    lost: str | None = None
    """The processes that crash."""

    def describes(self, row: Row) -> bool:
        if self.lost is not None and self.lost != planned_crashes(row.get("faults")):
            return False
        return all(
            wanted is None or row.get(name) == wanted
            for name, wanted in (
                ("stack", self.stack),
                ("workload", self.workload),
                ("processes", self.processes),
                ("network", self.network),
            )
        )


@dataclass(frozen=True)
class PageFigure:
    id: str
    title: str
    kind: str
    lines: tuple[Line, ...]
    metrics: tuple[Metric, ...]
    section: str = ""
    paper: str = ""


def described_figures(about: Row) -> list[PageFigure] | None:
    """Return the figures that experiment.json describes; None if it does not say which."""
    figures = about.get("figures")
    if figures is None:
        return None
    if not isinstance(figures, list):
        raise UsageError("experiment.json: figures must be a list; see docs/report.md")
    return [_figure(told) for told in figures]


def _figure(told: Row) -> PageFigure:
    try:
        found = PageFigure(
            str(told["id"]),
            str(told["title"]),
            str(told["kind"]),
            tuple(_line(series) for series in told["series"]),
            tuple(find_metric(str(name)) for name in told["metrics"]),
            str(told.get("section") or ""),
            str(told.get("paper") or ""),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"experiment.json describes a figure without {error}; a figure has id, title, kind, "
            "series and metrics: see docs/report.md"
        ) from None
    needed = 2 if found.kind == CURVES else 1
    if found.kind not in (CURVES, BARS, TABLE) or len(found.metrics) < needed:
        raise UsageError(
            f"experiment.json: figure '{found.id}' is of kind '{found.kind}' with "
            f"{len(found.metrics)} metrics; it must be curves (two metrics), bars or table"
        )
    return found


def _line(told: Row) -> Line:
    return Line(
        str(told.get("label") or told["stack"]),
        str(told["stack"]),
        told.get("workload"),
        told.get("processes"),
        told.get("network"),
        told.get("lost"),
    )


def usual_figures(points: Sequence[Row]) -> list[PageFigure]:
    """Return figures for a trace set: latency against throughput, wherever the load varies."""

    def system(row: Row) -> tuple[str, int, str]:
        return row.get("workload") or "", row.get("processes") or 0, row.get("network") or ""

    figures: list[PageFigure] = []
    for (workload, processes, network), group in groupby(sorted(points, key=system), key=system):
        rows = list(group)
        if len({row.get("clients") for row in rows}) < 2:
            continue
        stacks = sorted({row["stack"] for row in rows})
        figures.append(
            PageFigure(
                f"load-{len(figures) + 1}",
                f"{workload}, {processes} processes, network {network}",
                CURVES,
                tuple(Line(stack, stack, workload, processes, network) for stack in stacks),
                (find_metric("throughput"), find_metric("latency")),
            )
        )
    return figures[:MOST_FIGURES_OF_A_TRACE_SET]


def styles(figures: Iterable[PageFigure]) -> dict[str, int]:
    """Choose a colour and a marker for each label, the same in all figures."""
    labels = dict.fromkeys(line.label for figure in figures for line in figure.lines)
    return {label: number for number, label in enumerate(labels)}


def figure_markup(figure: PageFigure, points: Sequence[Row], style: Mapping[str, int]) -> Markup:
    varied = _varied(figure)
    found = [
        (line, sorted(filter(line.describes, points), key=lambda row: row.get(varied) or 0))
        for line in figure.lines
    ]
    measured = [(line, rows) for line, rows in found if rows]
    if not measured:
        picture = element("p", "No run of this experiment has data for it.", class_="quiet")
        data = Markup()
    elif figure.kind == TABLE:
        picture, data = _data(figure, measured, at_most_clients=True), Markup()
    else:
        draw = _curves if figure.kind == CURVES else _bars
        picture = draw(figure, measured, style)
        rows = _data(figure, measured, at_most_clients=figure.kind == BARS)
        data = element("details", element("summary", "The numbers"), rows)
    drawn = element("div", picture, data)
    return element(
        "figure",
        element("h3", _heading(figure)),
        element("div", drawn, _paper(figure), class_="beside" if figure.kind != TABLE else None),
        id=f"figure-{figure.id}",
    )


def _heading(figure: PageFigure) -> str:
    if not figure.section:
        return figure.title
    return f"{figure.id[:1].upper()}{figure.id[1:]}: {figure.title}"


def _varied(figure: PageFigure) -> str:
    """Return the condition in which the points of a curve differ."""
    across = figure.metrics[0].name
    return across if across in CONDITIONS else CLIENTS


def _paper(figure: PageFigure) -> Markup:
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


Measured = Sequence[tuple[Line, Sequence[Row]]]


def _curves(figure: PageFigure, measured: Measured, style: Mapping[str, int]) -> Markup:
    across, up = figure.metrics[:2]
    condition = find_metric(_varied(figure))
    drawn = []
    for line, rows in measured:
        points = [
            ChartPoint(
                x,
                y,
                f"{line.label}, {metric_cell(condition, row).shown} {condition.heading}: "
                f"{metric_cell(across, row).shown} {across.heading}, "
                f"{metric_cell(up, row).shown} {up.heading}",
                half_width_of(across, row),
                half_width_of(up, row),
            )
            for row in rows
            if (x := value_of(across, row)) is not None and (y := value_of(up, row)) is not None
        ]
        drawn.append(ChartSeries(line.label, style[line.label], tuple(points)))
    log = spans_wide(point.y for series in drawn for point in series.points)
    heights = f"{up.heading}, logarithmic" if log else up.heading
    subject = f"{figure.title}: {up.heading} against {across.heading}; the numbers follow"
    return join(
        [
            curves(
                drawn,
                Scale(across.heading, across.name in (CLIENTS, "processes")),
                Scale(heights, log),
                subject,
            ),
            legend([(series.name, series.style) for series in drawn]),
        ]
    )


def _bars(figure: PageFigure, measured: Measured, style: Mapping[str, int]) -> Markup:
    up = figure.metrics[0]
    groups = list(dict.fromkeys(_group(line) for line, _ in measured))
    by_label: dict[str, list[ChartPoint]] = {}
    for line, rows in measured:
        row = rows[-1]
        value = value_of(up, row)
        if value is not None:
            title = f"{line.label}, {_group(line)}: {metric_cell(up, row).shown} {up.heading}"
            by_label.setdefault(line.label, []).append(
                ChartPoint(groups.index(_group(line)), value, title, y_half=half_width_of(up, row))
            )
    drawn = [ChartSeries(label, style[label], tuple(points)) for label, points in by_label.items()]
    subject = f"{figure.title}: {up.heading}; the numbers follow"
    return join(
        [
            bars(groups, drawn, Scale(up.heading), subject),
            legend([(series.name, series.style) for series in drawn], line=False),
        ]
    )


def _group(line: Line) -> str:
    return line.workload or "all workloads"


def _data(figure: PageFigure, measured: Measured, at_most_clients: bool) -> Markup:
    varied = [
        (name, heading)
        for name, heading in (
            ("workload", "workload"), ("processes", "processes"), ("network", "network")
        )
        if len({getattr(line, name) for line, _ in measured}) > 1
    ]  # fmt: skip
    shown = list(dict.fromkeys((find_metric(_varied(figure)), *figure.metrics)))
    columns = [
        Column("", "nowrap"),
        *(Column(heading, "nowrap") for _, heading in varied),
        *(Column(each.heading, "number") for each in shown),
    ]
    rows = [
        [
            line.label,
            *(getattr(line, name) for name, _ in varied),
            *(metric_cell(each, row) for each in shown),
        ]
        for line, found in measured
        for row in (found[-1:] if at_most_clients else found)
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
            Cell("✓ yes", kind=HOLDS) if claim.get("holds") else Cell("✗ no", kind=VIOLATED),
            claim.get("evidence"),
        ]
        for claim in claims
    ]
    return table("What is claimed, and whether our measurements show it", CLAIM_COLUMNS, rows)
