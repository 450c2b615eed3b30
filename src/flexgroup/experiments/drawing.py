"""Figures as SVG files, for documents; equal findings give equal files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.experiments.figure import Figure, Kind
from flexgroup.experiments.findings import Findings
from flexgroup.metrics.catalogue import CONDITIONS, find_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vPX*"

LOG_FROM = 40
"""A value that grows by this factor with the system is shown on a logarithmic axis."""


def draw(figure: Figure, findings: Findings, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    # Without this, and without the date below, the file would differ from run to run.
    matplotlib.rcParams["svg.hashsalt"] = "flexgroup"
    # Letters as letters, not as outlines: the files are small and can be searched.
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(7.5, 4.8), layout="constrained")
    if figure.kind is Kind.CURVES:
        _curves(figure, findings, axes)
    else:
        _bars(figure, findings, axes)
    axes.set_title(f"{figure.id}: {figure.title}")
    axes.grid(alpha=0.3)
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, metadata={"Date": None})
    pyplot.close(drawing)


def _curves(figure: Figure, findings: Findings, axes: Axes) -> None:
    across, up = figure.metrics
    heights: list[float] = []
    for number, series in enumerate(figure.series):
        curve = figure.points_of(series, findings)
        heights += [point.shown(up) for point in curve]
        axes.plot(
            [point.shown(across) for point in curve],
            [point.shown(up) for point in curve],
            marker=MARKERS[number % len(MARKERS)],
            label=series.label,
        )
    axes.set_xlabel(find_metric(across).heading)
    axes.set_ylabel(find_metric(up).heading)
    if across == "processes" and max(heights) >= LOG_FROM * min(heights) > 0:
        axes.set_yscale("log")
    if across in CONDITIONS and across != "crashed":
        axes.set_xscale("log", base=2)
    else:
        axes.set_xlim(left=0)
    axes.legend()


def _bars(figure: Figure, findings: Findings, axes: Axes) -> None:
    (up,) = figure.metrics
    workloads = list(dict.fromkeys(series.workload for series in figure.series))
    labels = list(dict.fromkeys(series.label for series in figure.series))
    width = 0.8 / len(labels)
    for number, label in enumerate(labels):
        places, heights = [], []
        for series in figure.series:
            if series.label == label:
                (point,) = figure.points_of(series, findings)
                shift = (number - (len(labels) - 1) / 2) * width
                places.append(workloads.index(series.workload) + shift)
                heights.append(point.shown(up))
        axes.bar(places, heights, width, label=label)
    axes.set_xticks(range(len(workloads)), workloads, rotation=45, ha="right", fontsize="small")
    axes.set_ylabel(find_metric(up).heading)
    # Room for the legend above the bars.
    axes.margins(y=0.15)
    axes.legend(loc="upper right", ncols=len(labels))
