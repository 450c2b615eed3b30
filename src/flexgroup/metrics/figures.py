"""Figures drawn from metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

MARKERS = "osD^vPX*"


@dataclass
class Curve:
    """Points of one protocol under growing load, in the order of the load."""

    name: str
    throughput: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)

    def add(self, throughput: float, latency: float) -> None:
        self.throughput.append(throughput)
        self.latency.append(latency)


def latency_against_throughput(curves: list[Curve], path: Path, title: str) -> None:
    """The figure of the DCC papers: one curve a protocol, one point a number of clients."""
    import matplotlib

    matplotlib.use("agg")
    # Without these, the file would differ from run to run.
    matplotlib.rcParams["svg.hashsalt"] = "flexgroup"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 4.8), layout="constrained")
    for number, curve in enumerate(curves):
        axes.plot(
            [value / 1000 for value in curve.throughput],
            [value * 1000 for value in curve.latency],
            marker=MARKERS[number % len(MARKERS)],
            label=curve.name,
        )
    axes.set_xlabel("throughput (thousand messages/s)")
    axes.set_ylabel("mean latency (ms)")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
