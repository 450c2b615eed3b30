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


# The claims. Each function tells whether one appears, and the figures that say so.

Verdict = tuple[bool, str]


def df_collapses(sweep: Sweep) -> Verdict:
    two, four, eight, some = peaks = [sweep.peak("df", workload) for workload in RANDOM]
    busy = sweep.under_load("df", "random:8").busy
    holds = two > 1.5 * four > 2.25 * eight and two > 5 * some and busy < 0.3
    return holds, f"peak with 2, 4, 8, N: {_peaks(peaks)}; processes busy {busy:.0%} with 8"


def skeen_loses(sweep: Sweep) -> Verdict:
    two, four, eight, some = peaks = [sweep.peak("skeen", workload) for workload in RANDOM]
    busy = sweep.under_load("skeen", "random:8").busy
    holds = two > 1.5 * four > 2.25 * eight > 2.25 * some and busy > 0.7
    return holds, f"peak with 2, 4, 8, N: {_peaks(peaks)}; processes busy {busy:.0%} with 8"


def dcc_overtakes(sweep: Sweep) -> Verdict:
    full, reduced = (
        [sweep.peak(stack, workload) / sweep.peak("skeen", workload) for workload in RANDOM]
        for stack in ("dcc", "dcc/rv")
    )
    holds = full[2] > 1.1 and full[3] > 1.1 and full[0] < full[1] < full[2]
    return holds, (
        f"DCC / Skeen with 2, 4, 8, N: {_ratios(full)}; DCC/RV / Skeen: {_ratios(reduced)}"
    )


def dcc_behind(sweep: Sweep, workload: str) -> Verdict:
    skeen = sweep.peak("skeen", workload)
    dcc, reduced, df = (sweep.peak(stack, workload) / skeen for stack in ("dcc", "dcc/rv", "df"))
    return max(dcc, reduced) < 0.9, f"DCC, DCC/RV, D&F / Skeen: {_ratios([dcc, reduced, df])}"


def dcc_best_in_large_groups(sweep: Sweep) -> Verdict:
    others = [max(sweep.peak("skeen", groups), sweep.peak("df", groups)) for groups in GROUPS]
    full, reduced = (
        [sweep.peak(stack, groups) / other for groups, other in zip(GROUPS, others, strict=True)]
        for stack in ("dcc", "dcc/rv")
    )
    return full[0] > 0.7 and full[1] > 1.1 and full[2] > full[1], (
        f"DCC / the better of the others in 2x8, 4x4, 8x2: {_ratios(full)}; "
        f"DCC/RV / the same: {_ratios(reduced)}"
    )


def random_messages_cost(sweep: Sweep, groups: str) -> Verdict:
    without = sweep.peak("dcc", groups)
    kept = [sweep.peak("dcc", with_random(groups, share)) / without for share in SHARES]
    holds = 1 > kept[0] > kept[1] > kept[2] and kept[2] < 0.9
    return holds, f"DCC keeps {', '.join(f'{share:.1%}' for share in kept)}"


def reduced_clock_gains(sweep: Sweep) -> Verdict:
    full, reduced = (sweep.under_load(stack, "tpcc") for stack in ("dcc", "dcc/rv"))
    latency = reduced.latency / full.latency
    throughput = reduced.throughput / full.throughput
    alone = sweep.alone("dcc/rv", "tpcc").latency / sweep.alone("dcc", "tpcc").latency
    return latency < 0.9 and throughput > 1.05, (
        f"DCC/RV / DCC with {MOST} clients: latency {latency:.2f}, throughput {throughput:.2f}; "
        f"latency with 1 client {alone:.2f}"
    )


def smaller_is_faster(sweep: Sweep) -> Verdict:
    four, eight, sixteen = (sweep.alone("dcc", "tpcc", size).latency for size in (4, 8, 16))
    return four < eight < sixteen, (
        f"latency with 4, 8, 16 processes: {_milliseconds([four, eight, sixteen])} ms"
    )


def dcc_has_higher_latency(sweep: Sweep) -> Verdict:
    ratios = []
    for workload in RANDOM:
        others = (sweep.alone(stack, workload).latency for stack in ("skeen", "df"))
        ratios.append(sweep.alone("dcc", workload).latency / max(others))
    return min(ratios) > 1.1, f"DCC / the slower of the others with 2, 4, 8, N: {_ratios(ratios)}"


def genuine_rates(sweep: Sweep) -> Verdict:
    others = min(sweep.under_load(s, w).genuine for s in ("skeen", "df") for w in RANDOM)
    dcc = [sweep.alone("dcc", "random:2", size).genuine for size in (4, 8, 16)]
    return others == 1 and dcc[0] > dcc[1] > dcc[2], (
        f"Skeen and D&F {others:.0%}; DCC with 4, 8, 16 processes {_percent(dcc)}"
    )


def fast_rates(sweep: Sweep) -> Verdict:
    scattered = [sweep.under_load("dcc", workload).fast for workload in RANDOM]
    local = [
        [sweep.under_load("dcc", with_random(groups, share)).fast for share in ("0", *SHARES)]
        for groups in GROUPS
    ]
    falling = all(row[0] > 0.9 and row == sorted(row, reverse=True) for row in local)
    return falling and max(scattered) < 0.5, (
        f"random:2, 4, 8, N {_percent(scattered)}; with 0, 1, 2, 5% random in 2x8 "
        f"{_percent(local[0])}, 4x4 {_percent(local[1])}, 8x2 {_percent(local[2])}"
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
    return holds, "steps/packets of Skeen, D&F, DCC with " + "; ".join(seen)


@dataclass(frozen=True)
class Claim:
    name: str
    section: str
    words: str
    verdict: Callable[[Sweep], Verdict]


CLAIMS = (
    Claim(
        "a", "7.1", "D&F collapses as destinations grow, and waits: the convoy effect", df_collapses
    ),
    Claim("b", "7.1", "Skeen loses throughput as destinations grow: k^2 packets", skeen_loses),
    Claim("c1", "7.1 (c, d)", "DCC overtakes Skeen with many destinations", dcc_overtakes),
    Claim(
        "c2", "7.1 (a)", "DCC is behind Skeen with two destinations",
        lambda sweep: dcc_behind(sweep, "random:2"),
    ),
    Claim(
        "c3", "7.2.1", "DCC is behind Skeen in TPC-C, even with the reduced clock",
        lambda sweep: dcc_behind(sweep, "tpcc"),
    ),
    Claim(
        "d", "7.2.2", "DCC sustains more than both others in groups of 4 and 8, and does well in 2",
        dcc_best_in_large_groups,
    ),
    Claim(
        "e1", "7.2.2", "1, 2, 5% random messages cost DCC visibly, 2x8",
        lambda sweep: random_messages_cost(sweep, GROUPS[0]),
    ),
    Claim(
        "e2", "7.2.2", "the same, 4x4", lambda sweep: random_messages_cost(sweep, GROUPS[1])
    ),
    Claim(
        "e3", "7.2.2", "the same, 8x2", lambda sweep: random_messages_cost(sweep, GROUPS[2])
    ),
    Claim(
        "f1", "7.3", "the reduced clock lowers latency significantly and raises throughput, TPC-C",
        reduced_clock_gains,
    ),
    Claim("f2", "7.3", "smaller systems are faster, TPC-C, 1 client", smaller_is_faster),
    Claim(
        "g", "7.1", "DCC's latency is above the others' in random loads, 1 client",
        dcc_has_higher_latency,
    ),
    Claim(
        "h1", "7.4", "Skeen and D&F are genuine; DCC the less the larger the system, random:2",
        genuine_rates,
    ),
    Claim("h2", "7.4", "DCC's fast rate follows locality", fast_rates),
    Claim(
        "i", "7.4, table 7.1", "Skeen: 2 steps, k^2 packets; D&F: k steps (and one for END), "
        "2(k-1) packets; DCC: between k and n", steps_and_volume,
    ),
)  # fmt: skip


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


def print_claims(sweep: Sweep) -> None:
    rows = []
    for claim in CLAIMS:
        holds, evidence = claim.verdict(sweep)
        rows.append(
            [claim.name, claim.section, claim.words, "yes" if holds else "**no**", evidence]
        )
    print_table("Claims", ["", "section", "claim", "holds", "evidence"], rows)


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
        verdicts.append([claim.verdict(sweep) for claim in CLAIMS])
    rows = [
        [claim.name, *("yes" if column[number][0] else "**no**" for column in verdicts)]
        for number, claim in enumerate(CLAIMS)
    ]
    title = f"Claims when one constant of the network is varied ({MOST} clients)"
    print_table(title, ["claim", *(name for name, _ in columns)], rows)
    for number, claim in enumerate(CLAIMS):
        print(f"\n{claim.name}: {claim.words}")
        for (name, _), column in zip(columns, verdicts, strict=True):
            print(f"  {name:13} {column[number][1]}")


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
        print_claims(sweep)
        if options.figures is not None:
            draw(sweep, options.figures)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"\n{time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
