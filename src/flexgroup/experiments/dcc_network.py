"""Chapter 7 of the DCC dissertation on real servers, beside a simulation of their machine.

Figures, workloads and claims are those of the simulated chapter; each series is there twice, as
measured and as predicted. The machine that predictions are made for is the one whose constants
`flexgroup calibrate` has measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flexgroup.experiments import dcc
from flexgroup.experiments.calibration import Constants
from flexgroup.experiments.dcc_claims import GROUPS, MOST, ONE, RANDOM, SHARES, SIZES, with_random
from flexgroup.experiments.experiment import (
    HERE,
    PAPER,
    SMALL,
    Claim,
    Experiment,
    Grid,
    Judgement,
    RealRun,
)
from flexgroup.experiments.figure import Figure, name_of
from flexgroup.experiments.findings import Findings, Point, listed
from flexgroup.experiments.page import table
from flexgroup.experiments.real_runs import Counted, counted_file, counted_of

FEW_CLIENTS = (ONE, MOST)
SECONDS = {SMALL: 1.0, PAPER: 4.0}
"""How long messages count in a run on real servers."""
VIRTUAL_SECONDS = {SMALL: 0.25, PAPER: 0.5}
"""How long a run is in the simulator, where every run is as exact as any other."""

NEAR = 0.25
"""The relative error within which a prediction is counted as right."""
WANTED = 0.75
"""The share of the points of figure 7.1 that are to be predicted so well."""

WAITS = ("a", "b", "i")
"""The claims about how busy processors of their own are, and about exact numbers of packets, which
have another form here."""


def _grids(scale: str, network: str) -> list[Grid]:
    def grid(
        stacks: Sequence[str],
        workloads: Sequence[str],
        clients: Sequence[int],
        processes: Sequence[int] = (16,),
    ) -> Grid:
        is_small = scale == SMALL
        return Grid(
            tuple(stacks),
            tuple(workloads),
            tuple(clients) if is_small or len(clients) == 1 else dcc.PAPER_CLIENTS,
            dcc.SMALL_SEEDS if is_small else dcc.PAPER_SEEDS,
            (SECONDS if network == HERE else VIRTUAL_SECONDS)[scale],
            tuple(processes),
            (network,),
            entry="first",
        )

    mixed = [with_random(groups, share) for groups in GROUPS for share in SHARES]
    most = (MOST,) if scale == SMALL else FEW_CLIENTS
    return [
        grid(dcc.COMPARED, RANDOM, FEW_CLIENTS),
        grid(dcc.COMPARED, ("tpcc",), FEW_CLIENTS),
        grid(dcc.DCC, ("tpcc",), FEW_CLIENTS, SIZES),
        grid(dcc.COMPARED, GROUPS, FEW_CLIENTS),
        grid(dcc.DCC, mixed, most),
        grid(("dcc",), ("random:2",), (ONE,), SIZES),
    ]


def _real(scale: str) -> list[RealRun]:
    """Return the real runs of a scale, those of one size of a cluster after each other."""
    runs = dict.fromkeys(run for grid in _grids(scale, HERE) for run in grid.real_runs())
    return sorted(runs, key=lambda run: -run.processes)


def _beside(figure: Figure, network: str) -> Figure:
    """Return a figure with each of its series as measured, and as predicted."""
    return replace(
        figure,
        series=tuple(
            replace(series, network=where, label=f"{series.label}{label}")
            for series in figure.series
            for where, label in ((HERE, ""), (network, ", predicted"))
        ),
    )


def chapter(constants: Constants | None, traces: Path | None = None) -> Experiment:
    """Return the chapter on real servers; before the machine is calibrated, with the constants of
    no machine in particular. What runs have cost is read where their traces are."""
    network = "machine" if constants is None else constants.network
    claims = [claim for claim in (*dcc.CHAPTER.claims, *CLAIMS) if claim.name not in WAITS]
    return Experiment(
        "dcc-network",
        "Chapter 7 of the DCC dissertation on real servers, beside their simulation",
        dcc.SOURCE,
        {scale: _grids(scale, network) for scale in (SMALL, PAPER)},
        tuple(_beside(figure, network) for figure in dcc.CHAPTER.figures),
        (
            *(claim.on(HERE, "real") for claim in claims),
            *(claim.on(network, "predicted") for claim in claims),
            Claim(
                "prediction",
                "ours",
                f"throughput is predicted within {NEAR:.0%} at {WANTED:.0%} of figure 7.1's points",
                lambda findings: is_predicted(findings, network),
                network,
            ),
        ),
        _introduction(network),
        {"7.1d": lambda findings: _predictions(findings, network, traces)},
        real={scale: _real(scale) for scale in (SMALL, PAPER)},
    )


def _introduction(network: str) -> str:
    return (
        "Every point stands here twice. *As measured*: 16 servers as processes of one machine, and "
        "one process with all clients, each of which waits for an answer before it multicasts "
        "again; the servers record, and their traces are verified and measured like simulated "
        "ones. *Predicted*: the same loads in the simulator, with the constants that small runs "
        "on this machine gave (`machine.json`): processes share its processors, and handle what "
        "has arrived in rounds, as event loops do.\n\n"
        f"The machine: `{network}`."
    )


# Figure 7.1, point by point.


@dataclass(frozen=True)
class Predicted:
    """A point as measured and as predicted."""

    measured: Point
    predicted: Point

    @property
    def error(self) -> float:
        return self.predicted.throughput / self.measured.throughput - 1


def predictions(findings: Findings, network: str) -> Iterator[Predicted]:
    """Yield the points of figure 7.1 that were both measured and predicted."""
    for workload in RANDOM:
        for stack in dcc.COMPARED:
            foretold = {p.clients: p for p in findings.on(network).curve(stack, workload)}
            for point in findings.on(HERE).curve(stack, workload):
                if point.clients in foretold and point.throughput:
                    yield Predicted(point, foretold[point.clients])


def is_predicted(findings: Findings, network: str) -> Judgement:
    errors = [each.error for each in predictions(findings, network)]
    near = sum(abs(error) <= NEAR for error in errors)
    return bool(errors) and near >= WANTED * len(errors), (
        f"within {NEAR:.0%} at {near} of {len(errors)} points"
    )


def _predictions(findings: Findings, network: str, traces: Path | None) -> str:
    """Return the errors of figure 7.1 point by point, and what a message has cost there."""
    rows = []
    for each in predictions(findings, network):
        point = each.measured
        cpu = None if traces is None else _cpu(traces, point)
        rows.append(
            [
                name_of(point.stack),
                point.workload,
                str(point.clients),
                f"{point.throughput:,.0f}",
                f"{each.predicted.throughput:,.0f}",
                f"{each.error:+.0%}" if abs(each.error) <= NEAR else f"**{each.error:+.0%}**",
                f"{point.latency:.2f}",
                f"{each.predicted.latency:.2f}",
                *("-" if value is None else f"{value:,.0f}" for value in cpu or (None,) * 2),
            ]
        )
    _, told = is_predicted(findings, network)
    head = [
        "", "workload", "clients", "messages/s", "predicted", "error", "latency ms", "predicted",
        "servers, CPU us a message", "clients, CPU us a message",
    ]  # fmt: skip
    return "\n".join(
        [
            f"Predicted {told}. The last two columns are processor time for one message, which "
            "depends less than throughput on what else the machine does.",
            "",
            *table(head, rows),
        ]
    )


def _cpu(traces: Path, point: Point) -> tuple[float, float] | None:
    """Return the microseconds of processors that a message took, of servers and of the clients,
    over all repetitions."""
    runs = [
        run
        for scale in (SMALL, PAPER)
        for run in _real(scale)
        if (run.stack, run.workload, run.processes, run.clients)
        == (point.stack, point.workload, point.processes, point.clients)
        and counted_file(traces, run.run).exists()
    ]
    counted: list[Counted] = [counted_of(traces, run.run) for run in runs]
    messages = sum(each.messages for each in counted)
    if not messages:
        return None
    return (
        sum(each.server_cpu for each in counted) / messages * 1e6,
        sum(each.client_cpu for each in counted) / messages * 1e6,
    )


# Claims that have another form where processors are shared.


def _falls(findings: Findings, stack: str) -> Judgement:
    peaks = [findings.peak(stack, workload) for workload in RANDOM]
    two, four, eight, _ = peaks
    return two > 1.5 * four > 2.25 * eight, f"peak with 2, 4, 8, N: {listed(peaks, ',.0f')}"


def _steps_and_volume(findings: Findings) -> Judgement:
    holds = True
    seen = []
    for k in (2, 4, 8):
        skeen, df, dcc_ = (findings.at(s, f"random:{k}", MOST) for s in ("skeen", "df", "dcc"))
        # The first destination multicasts, and so sends one packet to each of the others.
        holds &= skeen.steps == 2 and k * k <= skeen.volume <= k * k + k
        holds &= k - 1 <= df.steps <= k and df.volume >= 2 * (k - 1)
        holds &= k - 1 <= dcc_.steps and k <= dcc_.volume + 1 <= 16
        seen.append(
            f"k={k}: {skeen.steps:.1f}/{skeen.volume:.1f}, {df.steps:.1f}/{df.volume:.1f}, "
            f"{dcc_.steps:.1f}/{dcc_.volume:.1f}"
        )
    return holds, "steps/packets of Skeen, D&F, DCC with " + "; ".join(seen)


CLAIMS = (
    Claim(
        "a, throughput", "7.1", "D&F collapses as destinations grow",
        lambda findings: _falls(findings, "df"),
    ),
    Claim(
        "b, throughput", "7.1", "Skeen loses throughput as destinations grow",
        lambda findings: _falls(findings, "skeen"),
    ),
    Claim(
        "i, by the first", "7.4, table 7.1",
        "Skeen: 2 steps, k^2 packets and one to each of the others; D&F and DCC as in the table",
        _steps_and_volume,
    ),
)  # fmt: skip
