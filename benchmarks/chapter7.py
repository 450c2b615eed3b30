"""Chapter 7 of the DCC dissertation (Louzada 2024) in simulation: its figures and its claims.

    python benchmarks/chapter7.py [--scale small|full] [--network lan]
                                  [--figures DIR] [--sensitivity]

Runs Skeen, D&F and DCC with 16 processes and closed-loop clients, prints what was measured as
Markdown tables, and then each claim of the chapter with a verdict and the figures it rests on.
`--figures` draws latency against throughput. `--sensitivity` instead halves and doubles each
constant of the network and tells which claims survive. docs/results.md discusses the outcome.

Throughput is counted after the first fifth of the duration, when every client has work under
way, and until the clients stop; a message counts when its last destination delivers it.
Latency is what a client sees, from its multicast to the last answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from flexgroup.metrics.costs import costs
from flexgroup.metrics.figures import Curve, latency_against_throughput
from flexgroup.protocols.catalogue import LAST, parse_stack
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.worlds.simulator.networks import parse_network
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

SECOND = 1_000_000_000
PROCESSES = 16
MOST = 64
"""Clients at the highest load."""

STACKS = ("skeen", "df", "dcc", "dcc/rv", "dcc-published")
RANDOM = ("random:2", "random:4", "random:8", "random:N")
GROUPS = ("partitioned:2x8", "partitioned:4x4", "partitioned:8x2")
SHARES = ("0.01", "0.02", "0.05")
PLAIN = (*RANDOM, "tpcc", *GROUPS)


def with_random(groups: str, share: str) -> str:
    return groups if share == "0" else f"{groups}@{share}"


MIXED = tuple(with_random(groups, share) for groups in GROUPS for share in SHARES)

Row = Sequence[str]


@dataclass(frozen=True)
class Scale:
    clients: tuple[int, ...]
    duration: float
    seeds: tuple[int, ...]


SCALES = {
    "small": Scale((1, 8, MOST), 0.05, (1,)),
    "full": Scale((1, 2, 4, 8, 16, 32, MOST), 0.2, (1, 2, 3)),
}
SENSITIVITY = Scale((1, MOST), 0.1, (1, 2, 3))


@dataclass(frozen=True)
class Measured:
    """One point of a curve: the means over the seeds."""

    throughput: float
    """Messages per second."""
    latency: float
    """Seconds."""
    genuine: float
    fast: float
    steps: float
    volume: float
    header_bytes: float
    busy: float
    """The share of the time that the processes work, on average over them."""
    busiest: float
    """The same of the process that works most."""
    unanswered: float
    """Messages that never were."""


def measure(scenario: Scenario) -> Measured:
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    history = collector.history(outcome.run, scenario.processes, outcome.complete)
    cost = costs(history)
    busy = busy_shares(scenario, history)
    return Measured(
        steady_throughput(history, scenario.duration),
        outcome.mean_latency,
        cost.genuine_rate,
        cost.fast_rate,
        cost.steps,
        cost.volume,
        cost.header_bytes,
        sum(busy) / len(busy),
        max(busy),
        outcome.multicasts - outcome.answered,
    )


def steady_throughput(history: History, duration: float) -> float:
    messages, number = np.unique(history.deliveries.message, return_inverse=True)
    last = np.zeros(len(messages), dtype=np.int64)
    np.maximum.at(last, number, history.deliveries.time)
    start, end = duration / 5 * SECOND, duration * SECOND
    return int(((last >= start) & (last < end)).sum()) / (end - start) * SECOND


def busy_shares(scenario: Scenario, history: History) -> list[float]:
    """How much of the time each process spends on packets and answers."""
    network = parse_network(scenario.network)
    spent = np.zeros(scenario.processes)
    for packets, cost in (
        (history.sends, network.send_cost),
        (history.receives, network.receive_cost),
    ):
        paid = (packets.process < scenario.processes) & (packets.process != packets.peer)
        size = packets.header_bytes[paid] + packets.payload_bytes[paid]
        np.add.at(spent, packets.process[paid], cost + size * network.byte_cost_ps / 1000)
    answers = history.deliveries.process
    if parse_stack(scenario.stack).top.answers == LAST:
        multicasts = history.multicasts
        answers = multicasts.targets[multicasts.offsets[1:] - 1]
    np.add.at(spent, answers, network.send_cost)
    end = max(int(history.receives.time.max(initial=1)), 1)
    return [float(share) for share in spent / end]


class Sweep:
    """Measures points when they are asked for, each once."""

    def __init__(self, network: str, scale: Scale) -> None:
        self.network = network
        self.scale = scale
        self._known: dict[tuple[str, str, int, int], Measured] = {}

    def at(self, stack: str, workload: str, clients: int, processes: int = PROCESSES) -> Measured:
        key = (stack, workload, clients, processes)
        if key not in self._known:
            if sys.stderr.isatty():
                print(f"\r{stack} {workload} {clients}\033[K", end="", file=sys.stderr)
            runs = [
                measure(
                    Scenario(
                        stack,
                        processes,
                        clients,
                        workload,
                        self.network,
                        self.scale.duration,
                        seed,
                    )
                )
                for seed in self.scale.seeds
            ]
            self._known[key] = Measured(
                *(sum(getattr(run, f.name) for run in runs) / len(runs) for f in fields(Measured))
            )
        return self._known[key]

    def under_load(self, stack: str, workload: str) -> Measured:
        return self.at(stack, workload, MOST)

    def alone(self, stack: str, workload: str, processes: int = PROCESSES) -> Measured:
        return self.at(stack, workload, 1, processes)

    def peak(self, stack: str, workload: str) -> float:
        return max(self.at(stack, workload, clients).throughput for clients in self.scale.clients)

    def curve(self, stack: str, workload: str, name: str) -> Curve:
        curve = Curve(name)
        for clients in self.scale.clients:
            point = self.at(stack, workload, clients)
            curve.add(point.throughput, point.latency)
        return curve


# The claims.


@dataclass(frozen=True)
class Verdict:
    claim: str
    source: str
    words: str
    holds: bool
    evidence: str


def df_collapses(sweep: Sweep) -> Verdict:
    peaks = [sweep.peak("df", workload) for workload in RANDOM]
    busy = sweep.under_load("df", "random:8").busy
    return Verdict(
        "a",
        "7.1",
        "D&F collapses as destinations grow, although its processes are idle: the convoy effect",
        peaks[0] > 1.5 * peaks[1] > 2.25 * peaks[2] and peaks[0] > 5 * peaks[3] and busy < 0.3,
        f"peak with 2, 4, 8, N: {_peaks(peaks)}; processes busy {busy:.0%} of the time with 8",
    )


def skeen_loses(sweep: Sweep) -> Verdict:
    peaks = [sweep.peak("skeen", workload) for workload in RANDOM]
    busy = sweep.under_load("skeen", "random:8").busy
    return Verdict(
        "b",
        "7.1",
        "Skeen loses throughput as destinations grow: k^2 packets keep its processes busy",
        peaks[0] > 1.5 * peaks[1] > 2.25 * peaks[2] > 2.25 * peaks[3] and busy > 0.7,
        f"peak with 2, 4, 8, N: {_peaks(peaks)}; processes busy {busy:.0%} of the time with 8",
    )


def dcc_overtakes(sweep: Sweep) -> Verdict:
    full, reduced = (
        [sweep.peak(stack, workload) / sweep.peak("skeen", workload) for workload in RANDOM]
        for stack in ("dcc", "dcc/rv")
    )
    return Verdict(
        "c1",
        "7.1 (c, d)",
        "DCC overtakes Skeen when destinations are many",
        full[2] > 1.1 and full[3] > 1.1 and full[0] < full[1] < full[2],
        f"DCC / Skeen with 2, 4, 8, N: {_ratios(full)}; DCC/RV / Skeen: {_ratios(reduced)}",
    )


def dcc_behind_with_two(sweep: Sweep) -> Verdict:
    skeen = sweep.peak("skeen", "random:2")
    ratios = [sweep.peak(stack, "random:2") / skeen for stack in ("dcc", "dcc/rv")]
    return Verdict(
        "c2",
        "7.1 (a)",
        "DCC is behind Skeen with two destinations",
        max(ratios) < 0.9,
        f"DCC, DCC/RV / Skeen: {_ratios(ratios)}",
    )


def dcc_behind_in_tpcc(sweep: Sweep) -> Verdict:
    skeen = sweep.peak("skeen", "tpcc")
    ratios = [sweep.peak(stack, "tpcc") / skeen for stack in ("dcc", "dcc/rv", "df")]
    return Verdict(
        "c3",
        "7.2.1",
        "DCC is behind Skeen in TPC-C, even with the reduced clock",
        max(ratios[:2]) < 0.9,
        f"DCC, DCC/RV, D&F / Skeen: {_ratios(ratios)}",
    )


def dcc_best_in_large_groups(sweep: Sweep) -> Verdict:
    others = [max(sweep.peak("skeen", groups), sweep.peak("df", groups)) for groups in GROUPS]
    full, reduced = (
        [sweep.peak(stack, groups) / other for groups, other in zip(GROUPS, others, strict=True)]
        for stack in ("dcc", "dcc/rv")
    )
    return Verdict(
        "d",
        "7.2.2",
        "DCC sustains more than both others in fixed groups of 4 and 8, the more the larger",
        full[1] > 1.1 and full[2] > full[1] and full[0] > 0.7,
        f"DCC / the better of the others in 2x8, 4x4, 8x2: {_ratios(full)}; "
        f"DCC/RV / the same: {_ratios(reduced)}",
    )


def random_messages_cost(sweep: Sweep, groups: str, name: str) -> Verdict:
    without = sweep.peak("dcc", groups)
    ratios = [sweep.peak("dcc", with_random(groups, share)) / without for share in SHARES]
    return Verdict(
        name,
        "7.2.2",
        f"1, 2 and 5% of random messages cost DCC visibly in {groups}",
        1 > ratios[0] > ratios[1] > ratios[2] and ratios[2] < 0.9,
        f"DCC keeps {', '.join(f'{ratio:.1%}' for ratio in ratios)}",
    )


def reduced_clock_gains(sweep: Sweep) -> Verdict:
    full, reduced = (sweep.under_load(stack, "tpcc") for stack in ("dcc", "dcc/rv"))
    latency = reduced.latency / full.latency
    throughput = reduced.throughput / full.throughput
    low = sweep.alone("dcc/rv", "tpcc").latency / sweep.alone("dcc", "tpcc").latency
    return Verdict(
        "f1",
        "7.3",
        "The reduced clock lowers latency significantly and raises throughput too (TPC-C)",
        latency < 0.9 and throughput > 1.05,
        f"DCC/RV / DCC with {MOST} clients: latency {latency:.2f}, throughput {throughput:.2f}; "
        f"latency with 1 client {low:.2f}",
    )


def smaller_is_faster(sweep: Sweep) -> Verdict:
    latencies = [sweep.alone("dcc", "tpcc", size).latency for size in (4, 8, 16)]
    return Verdict(
        "f2",
        "7.3, 7.2b",
        "DCC is faster in smaller systems (TPC-C, 1 client)",
        latencies[0] < latencies[1] < latencies[2],
        f"latency with 4, 8, 16 processes: {_milliseconds(latencies)} ms",
    )


def dcc_has_higher_latency(sweep: Sweep) -> Verdict:
    ratios = []
    for workload in RANDOM:
        others = (sweep.alone(stack, workload).latency for stack in ("skeen", "df"))
        ratios.append(sweep.alone("dcc", workload).latency / max(others))
    return Verdict(
        "g",
        "7.1",
        "DCC's latency is above the others' in random loads (1 client)",
        min(ratios) > 1.1,
        f"DCC / the slower of the others with 2, 4, 8, N: {_ratios(ratios)}",
    )


def genuine_rates(sweep: Sweep) -> Verdict:
    others = min(sweep.under_load(s, w).genuine for s in ("skeen", "df") for w in RANDOM)
    dcc = [sweep.alone("dcc", "random:2", size).genuine for size in (4, 8, 16)]
    return Verdict(
        "h1",
        "7.4",
        "Skeen and D&F are always genuine; DCC less so in larger systems (random:2)",
        others == 1 and dcc[0] > dcc[1] > dcc[2],
        f"Skeen and D&F {others:.0%}; DCC with 4, 8, 16 processes {_percent(dcc)}",
    )


def fast_rates(sweep: Sweep) -> Verdict:
    unlocal = [sweep.under_load("dcc", workload).fast for workload in RANDOM]
    falling = [
        [sweep.under_load("dcc", with_random(groups, share)).fast for share in ("0", *SHARES)]
        for groups in GROUPS
    ]
    return Verdict(
        "h2",
        "7.4",
        "DCC's fast rate follows locality: high in fixed groups, less with 1, 2, 5% random",
        all(row[0] > 0.9 and row == sorted(row, reverse=True) for row in falling)
        and max(unlocal) < 0.5,
        f"random {_percent(unlocal)}; 2x8, 4x4, 8x2 with 0, 1, 2, 5% "
        + "; ".join(_percent(row) for row in falling),
    )


def steps_and_volume(sweep: Sweep) -> Verdict:
    holds = True
    seen = []
    for k in (2, 4, 8):
        skeen, df, dcc = (sweep.under_load(s, f"random:{k}") for s in ("skeen", "df", "dcc"))
        holds &= skeen.steps == 2 and skeen.volume == k * k
        holds &= df.steps == k and df.volume == 2 * (k - 1)
        holds &= k <= dcc.steps <= PROCESSES and k <= dcc.volume + 1 <= PROCESSES
        seen.append(
            f"k={k}: {skeen.steps:g}/{skeen.volume:g}, {df.steps:g}/{df.volume:g}, "
            f"{dcc.steps:.1f}/{dcc.volume:.1f}"
        )
    return Verdict(
        "i",
        "7.4, table 7.1",
        "Skeen takes 2 steps and k^2 packets, D&F k steps (and one for END) and 2(k-1) packets, "
        "DCC between k and n",
        holds,
        "steps/packets of Skeen, D&F, DCC: " + "; ".join(seen),
    )


CLAIMS: tuple[Callable[[Sweep], Verdict], ...] = (
    df_collapses,
    skeen_loses,
    dcc_overtakes,
    dcc_behind_with_two,
    dcc_behind_in_tpcc,
    dcc_best_in_large_groups,
    lambda sweep: random_messages_cost(sweep, GROUPS[0], "e1"),
    lambda sweep: random_messages_cost(sweep, GROUPS[1], "e2"),
    lambda sweep: random_messages_cost(sweep, GROUPS[2], "e3"),
    reduced_clock_gains,
    smaller_is_faster,
    dcc_has_higher_latency,
    genuine_rates,
    fast_rates,
    steps_and_volume,
)


def _peaks(peaks: Sequence[float]) -> str:
    return ", ".join(f"{peak:,.0f}" for peak in peaks) + " messages/s"


def _ratios(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def _milliseconds(seconds: Sequence[float]) -> str:
    return ", ".join(f"{value * 1000:.3f}" for value in seconds)


def _percent(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


# Output.


def print_table(title: str, head: Row, rows: Sequence[Row]) -> None:
    print(f"\n### {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def print_by_stack(
    title: str, workloads: Sequence[str], cell: Callable[[str, str], str], stacks: Row = STACKS
) -> None:
    rows = [[workload, *(cell(stack, workload) for stack in stacks)] for workload in workloads]
    print_table(title, ["workload", *stacks], rows)


def print_measurements(sweep: Sweep) -> None:
    everything = (*PLAIN, *MIXED)
    forms = ("dcc", "dcc/rv", "dcc-published")
    print_by_stack(
        "Peak throughput (thousand messages/s)",
        everything,
        lambda stack, workload: f"{sweep.peak(stack, workload) / 1000:.2f}",
    )
    print_by_stack(
        "Mean latency with 1 client (ms)",
        PLAIN,
        lambda stack, workload: f"{sweep.alone(stack, workload).latency * 1000:.3f}",
    )
    print_by_stack(
        f"Mean latency with {MOST} clients (ms)",
        everything,
        lambda stack, workload: f"{sweep.under_load(stack, workload).latency * 1000:.2f}",
    )
    print_by_stack(
        f"Share of the time that processes work with {MOST} clients: mean, busiest",
        PLAIN,
        lambda stack, workload: _busy(sweep.under_load(stack, workload)),
    )
    print_by_stack(
        f"Genuine rate, fast rate with {MOST} clients",
        everything,
        lambda stack, workload: _rates(sweep.under_load(stack, workload)),
        forms,
    )
    print_by_stack(
        f"Steps, packets a message, header bytes a packet with {MOST} clients",
        PLAIN,
        lambda stack, workload: _costs(sweep.under_load(stack, workload)),
    )
    lost = [
        [stack, workload, f"{point.unanswered:.0f}"]
        for workload in everything
        for stack in STACKS
        if (point := sweep.under_load(stack, workload)).unanswered
    ]
    print_table("Messages never answered", ["stack", "workload", "messages a run"], lost)


def _busy(point: Measured) -> str:
    return f"{point.busy:.0%}, {point.busiest:.0%}"


def _rates(point: Measured) -> str:
    return f"{point.genuine:.1%}, {point.fast:.1%}"


def _costs(point: Measured) -> str:
    return f"{point.steps:.2f}, {point.volume:.2f}, {point.header_bytes:.0f}"


def print_claims(verdicts: Sequence[Verdict]) -> None:
    print_table(
        "Claims",
        ["", "section", "claim", "", "evidence"],
        [
            [v.claim, v.source, v.words, "holds" if v.holds else "DOES NOT HOLD", v.evidence]
            for v in verdicts
        ],
    )


def draw(sweep: Sweep, folder: Path) -> None:
    for workload in ("random:2", "random:8", "tpcc", "partitioned:8x2"):
        latency_against_throughput(
            [sweep.curve(stack, workload, stack) for stack in STACKS],
            folder / f"chapter7-{workload.replace(':', '-')}.svg",
            f"{workload}, {PROCESSES} processes, {_clients(sweep)} clients",
        )
    groups = GROUPS[0]
    latency_against_throughput(
        [
            sweep.curve(stack, with_random(groups, share), f"{stack}, {float(share):.0%} random")
            for stack in ("dcc", "dcc/rv")
            for share in ("0", *SHARES)
        ],
        folder / "chapter7-random-share.svg",
        f"{groups} with a share of messages to random sets, {_clients(sweep)} clients",
    )


def _clients(sweep: Sweep) -> str:
    return f"{sweep.scale.clients[0]} to {sweep.scale.clients[-1]}"


# Sensitivity.


def variations(network: str) -> list[tuple[str, str]]:
    """A name and a network for the constants as they are and for each one varied."""
    given = parse_network(network)
    jitter = round(sum(given.jitter) / len(given.jitter)) if given.jitter else 0
    constants = {
        "delay": given.region_delays[0][0],
        "jitter": jitter,
        "send": given.send_cost,
        "receive": given.receive_cost,
        "byte": given.byte_cost_ps // 1000,
    }
    factors = dict.fromkeys(constants, (0.5, 2.0)) | {"byte": (0.0, 0.5, 2.0, 4.0)}
    varied = [("as given", network)]
    for option, value in constants.items():
        for factor in factors[option]:
            joint = "," if ":" in network else ":"
            spec = f"{network}{joint}{option}={round(value * factor)}ns"
            varied.append((f"{option} x {factor:g}", spec))
    return varied


def print_sensitivity(network: str) -> None:
    columns = variations(network)
    verdicts = []
    for name, spec in columns:
        print(f"{name}: {spec}", file=sys.stderr)
        sweep = Sweep(spec, SENSITIVITY)
        verdicts.append([claim(sweep) for claim in CLAIMS])
    print_table(
        f"Claims when one constant of the network is varied ({MOST} clients)",
        ["claim", *(name for name, _ in columns)],
        [
            [column[number].claim for column in verdicts[:1]]
            + ["yes" if column[number].holds else "**no**" for column in verdicts]
            for number in range(len(CLAIMS))
        ],
    )
    for number in range(len(CLAIMS)):
        print(f"\n{verdicts[0][number].claim}: {verdicts[0][number].words}")
        for (name, _), column in zip(columns, verdicts, strict=True):
            print(f"  {name:12} {column[number].evidence}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", choices=tuple(SCALES), default="small")
    parser.add_argument("--network", default="lan")
    parser.add_argument("--figures", type=Path, metavar="DIR")
    parser.add_argument("--sensitivity", action="store_true")
    options = parser.parse_args()
    started = time.perf_counter()
    if options.sensitivity:
        print_sensitivity(options.network)
    else:
        sweep = Sweep(options.network, SCALES[options.scale])
        print_measurements(sweep)
        print_claims([claim(sweep) for claim in CLAIMS])
        if options.figures is not None:
            draw(sweep, options.figures)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"\n{time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
