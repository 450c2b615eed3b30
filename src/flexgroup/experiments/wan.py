"""What the DCC dissertation leaves open (8.2): a wide-area network, larger systems, a wider rule.

Skeen, D&F and the forms of DCC between processes in eight regions whose delays were measured, with
8 to 64 processes; the protocols that tolerate crashes, with a group of three in each region; and
the same systems on one switch, where clocks weigh most.
"""

from __future__ import annotations

from functools import partial

from flexgroup.experiments.dcc import COMPARED
from flexgroup.experiments.dcc_choices import LARGEST_SHARE, LAYOUTS
from flexgroup.experiments.dcc_claims import RANDOM, with_random
from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, Judgement
from flexgroup.experiments.figure import Figure, Kind, Series, name_of
from flexgroup.experiments.findings import Findings, Point, listed
from flexgroup.experiments.groups_of_replicas import CFT, REPLICAS, in_groups, series

SOURCE = "Louzada 2024 (dissertation), section 8.2"
INTRODUCTION = """
The dissertation on DCC leaves open how it behaves in a wide-area network, in systems of more than
16 nodes, and whether nodes that have nothing to do with a message can be spared (section 8.2). This
page was written by

```sh
flexgroup experiment wan --scale small --out runs/wan
cp runs/wan/figures.md docs/wan-results.md
cp runs/wan/figures/*.svg docs/figures/
```

Delays between regions are round trips of Amazon EC2, measured by ping in June 2020, halved
([simulator.md](simulator.md) tells from where). With 16 processes the order of the chain is open
as well: neighbours in different regions, as when processes are numbered region by region
in turn, and neighbours in one region. The wider rule is [`dcc-wide`](protocols/dcc-wide.md). The
claims are ours, since the dissertation makes none; a claim that does not appear is a finding.
""".strip()

OPEN = "Not known: the dissertation's experiments were in one rack, with up to 16 nodes."

WIDE = "dcc-wide"
STACKS = (*COMPARED, WIDE)
TOLERANT = (*CFT, "leader white-box", "leader primcast")

REGIONS = 8
LAN = "lan"
SCATTERED = "wan"
"""Neighbours in the order of processes are in different regions."""

FEW, MANY = 1, 64

WIDE_SIZES = {SMALL: (8, 16), PAPER: (8, 16, 32, 64)}
LAN_SIZES = {SMALL: (16, 32), PAPER: (16, 32, 64, 128)}
LOADS = ("random:2", "random:8")


def gathered(processes: int) -> str:
    """The network in which neighbours share a region as far as it goes, so that a chain crosses
    each border once."""
    return f"wan:together={processes // REGIONS}" if processes > REGIONS else SCATTERED


def networks(processes: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys((SCATTERED, gathered(processes))))


def wide(scale: str, duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    """A drain of a minute is enough for what waits behind each other around the world."""
    return [
        Grid(
            STACKS, LOADS, (FEW, MANY), seeds, duration, (size,), networks(size), drain=60.0,
        )
        for size in WIDE_SIZES[scale]
    ]  # fmt: skip


def tolerant(duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    return in_groups(
        TOLERANT, REGIONS, LOADS, (FEW, MANY), seeds, duration, f"wan:together={REPLICAS}",
        drain=60.0,
    )  # fmt: skip


def larger(scale: str, duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    return [Grid(STACKS, LOADS, (MANY,), seeds, duration, LAN_SIZES[scale])]


def some_random(layout: str) -> tuple[str, ...]:
    """The fixed groups of figure 7.3, with the largest share of messages to random sets."""
    return tuple(with_random(groups, LARGEST_SHARE) for groups in LAYOUTS[layout])


def wider(duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    """Where the wider rule is to save visits: on the loads of chapter 7, in both layouts."""
    mixed = tuple(each for layout in LAYOUTS for each in some_random(layout))
    return [Grid(("dcc", WIDE), (*RANDOM, "tpcc", *mixed), (MANY,), seeds, duration)]


# Claims.


def skeen_is_fastest(findings: Findings, workload: str) -> Judgement:
    """Compare the latency of a client alone in the smallest system."""
    found = {stack: findings.at(stack, workload, FEW, REGIONS).latency for stack in STACKS}
    told = ", ".join(f"{name_of(stack)} {value:.0f}" for stack, value in found.items())
    return min(found, key=found.__getitem__) == "skeen", f"{told} ms"


def chain_wins_under_load(findings: Findings, workload: str) -> Judgement:
    skeen, df, dcc = (
        findings.at(stack, workload, MANY, REGIONS).throughput for stack in ("skeen", "df", "dcc")
    )
    return dcc > max(skeen, df), f"Skeen, D&F, DCC: {listed([skeen, df, dcc], ',.0f')} messages/s"


def grows(findings: Findings, stack: str, workload: str) -> tuple[list[int], list[float]]:
    curve = [point for point in findings.curve(stack, workload, None) if point.clients == FEW]
    return [point.processes for point in curve], [point.latency for point in curve]


def walks_grow(findings: Findings) -> Judgement:
    """Scattered over regions, every node of the chain is another journey; Skeen's are two."""
    sizes, dcc = grows(findings, "dcc", "random:2")
    _, skeen = grows(findings, "skeen", "random:2")
    ratios = [ours / theirs for ours, theirs in zip(dcc, skeen, strict=True)]
    return ratios == sorted(ratios), (
        f"DCC / Skeen with {listed(sizes, 'd')} processes: {listed(ratios, '.1f')}"
    )


def order_decides(findings: Findings) -> Judgement:
    """The same systems, with neighbours of the chain in one region."""
    told, holds = [], True
    for size in sorted(
        {point.processes for point in findings.points if point.network == SCATTERED}
    ):
        if size == REGIONS:
            continue
        there = findings.on(SCATTERED).at("dcc", "random:2", FEW, size).latency
        here = findings.on(gathered(size)).at("dcc", "random:2", FEW, size).latency
        holds = holds and here < there / 1.5
        told.append(f"{size}: {there:.0f} and {here:.0f} ms")
    return holds, "; ".join(told)


def of_size(findings: Findings, stack: str, workload: str) -> dict[int, Point]:
    return {
        point.processes: point
        for point in findings.curve(stack, workload, None)
        if point.clients == MANY
    }


def clocks_weigh(findings: Findings) -> Judgement:
    """Whole clocks have a counter for each edge, n(n - 1)/2; the reduced one tells what changed."""
    whole, reduced = (of_size(findings, stack, "random:8") for stack in ("dcc", "dcc/rv"))
    bytes_whole, bytes_reduced = (
        [point.row["header_bytes"] for point in found.values()] for found in (whole, reduced)
    )
    gain = [reduced[size].throughput / whole[size].throughput for size in whole]
    return gain == sorted(gain), (
        f"with {listed(whole, 'd')} processes: header bytes {listed(bytes_whole, '.0f')} and "
        f"{listed(bytes_reduced, '.0f')}; throughput of DCC/RV / DCC {listed(gain, '.2f')}"
    )


def still_ahead(findings: Findings, stack: str) -> Judgement:
    """DCC overtakes Skeen with eight destinations of 16; of more, it has more to cross."""
    chain, skeen = (of_size(findings, each, "random:8") for each in (stack, "skeen"))
    ratios = [chain[size].throughput / skeen[size].throughput for size in chain]
    return min(ratios) > 1, (
        f"{name_of(stack)} / Skeen with {listed(chain, 'd')} processes: {listed(ratios, '.2f')}"
    )


def tolerant_order(findings: Findings, workload: str) -> Judgement:
    """DCC-cft takes longer than each other protocol of that family with one client."""
    found = {
        stack: findings.curve(stack, workload, REGIONS * REPLICAS)[0].shown("latency_group_mean")
        for stack in TOLERANT
    }
    told = ", ".join(f"{name_of(stack)} {value:.0f}" for stack, value in found.items())
    return max(found, key=found.__getitem__) == CFT[-1], f"{told} ms"


def saves_visits(findings: Findings, workloads: tuple[str, ...]) -> Judgement:
    saved, gained = [], []
    for workload in workloads:
        dcc, wider_rule = (findings.at(stack, workload, MANY) for stack in ("dcc", WIDE))
        saved.append(1 - wider_rule.volume / dcc.volume)
        gained.append(wider_rule.throughput / dcc.throughput)
    return min(saved) > 0.02, (
        f"{', '.join(workloads)}: fewer packets by {listed(saved, '.1%')}; throughput "
        f"{listed(gained, '.2f')} of DCC's"
    )


CLAIMS = (
    *(
        Claim(
            f"wan {workload}, one client", "8.2, ours",
            f"in a wide-area network Skeen takes the least time, one client, {workload}",
            partial(skeen_is_fastest, workload=workload), SCATTERED,
        )
        for workload in LOADS
    ),
    *(
        Claim(
            f"wan {workload}, load", "8.2, ours",
            f"in a wide-area network DCC delivers more than both others, 64 clients, {workload}",
            partial(chain_wins_under_load, workload=workload), SCATTERED,
        )
        for workload in LOADS
    ),
    Claim(
        "wan, larger", "8.2, ours",
        "the larger the system, the further DCC falls behind Skeen: one client, random:2",
        walks_grow, SCATTERED,
    ),
    Claim(
        "wan, order", "8.2, ours",
        "neighbours of the chain in one region save DCC at least a third of its latency",
        order_decides, SCATTERED,
    ),
    *(
        Claim(
            f"wan {workload}, crashes", "8.2, ours",
            f"of those that tolerate crashes DCC-cft takes longest, one client, {workload}",
            partial(tolerant_order, workload=workload), f"wan:together={REPLICAS}",
        )
        for workload in LOADS
    ),
    Claim(
        "clocks", "8.2, ours",
        "the larger the system, the more the reduced clock gains: one switch, random:8",
        clocks_weigh,
    ),
    *(
        Claim(
            f"larger, {stack}", "7.1, ours",
            f"{name_of(stack)} stays ahead of Skeen in larger systems: one switch, random:8",
            partial(still_ahead, stack=stack),
        )
        for stack in ("dcc", "dcc/rv")
    ),
    *(
        Claim(
            f"wider rule, {name}", "8.2",
            f"nodes without any relation to a message can be spared: {name}",
            partial(saves_visits, workloads=workloads),
        )
        for name, workloads in (
            ("random sets", RANDOM),
            *((f"{layout} groups, 5% random", some_random(layout)) for layout in LAYOUTS),
        )
    ),
)  # fmt: skip


def across_sizes(id_: str, title: str, workload: str, network: str | None, metric: str) -> Figure:
    return Figure(
        id_, title, Kind.CURVES,
        tuple(Series(name_of(stack), stack, workload, None, network) for stack in STACKS),
        ("processes", metric), "8.2", OPEN,
    )  # fmt: skip


EXPERIMENT = Experiment(
    "wan",
    "DCC in a wide-area network, in larger systems, and with a wider rule for fast",
    SOURCE,
    {
        SMALL: [
            *wide(SMALL, 2.0, (1,)), *tolerant(2.0, (1,)), *larger(SMALL, 0.05, (1,)),
            *wider(0.05, (1,)),
        ],
        PAPER: [
            *wide(PAPER, 6.0, (1, 2, 3)), *tolerant(6.0, (1, 2)), *larger(PAPER, 0.2, (1, 2, 3)),
            *wider(0.2, (1, 2, 3)),
        ],
    },
    (
        *(
            Figure(
                f"regions-{workload.partition(':')[2]}-{where}",
                f"Eight regions, {title}, {workload}",
                Kind.CURVES,
                tuple(
                    Series(name_of(stack), stack, workload, size, network)
                    for stack in STACKS
                ),
                ("throughput", "latency"), "8.2", OPEN,
            )
            for workload in LOADS
            for where, title, size, network in (
                ("8", "a process in each", REGIONS, SCATTERED),
                ("16-scattered", "16 processes, neighbours in different regions", 16, SCATTERED),
                ("16-gathered", "16 processes, neighbours in one region", 16, gathered(16)),
            )
        ),
        *(
            Figure(
                f"regions-tolerant-{workload.partition(':')[2]}",
                f"Eight regions, a group of three in each, {workload}",
                Kind.CURVES,
                series(TOLERANT, REGIONS, workload, network=f"wan:together={REPLICAS}"),
                ("throughput", "latency_group_mean"), "8.2", OPEN,
            )
            for workload in LOADS
        ),
        *(
            across_sizes(
                f"larger-{workload.partition(':')[2]}",
                f"Throughput of larger and larger systems on one switch, {workload}",
                workload, LAN, "throughput",
            )
            for workload in LOADS
        ),
        Figure(
            "wider-rule",
            "Who is visited: DCC, and with the wider rule",
            Kind.TABLE,
            tuple(
                Series(name_of(stack), stack, workload)
                for workload in (
                    *RANDOM, "tpcc",
                    *(
                        workload
                        for both in zip(*map(some_random, LAYOUTS), strict=True)
                        for workload in both
                    ),
                )
                for stack in ("dcc", WIDE)
            ),
            ("throughput", "latency", "genuine", "fast", "volume"), "8.2",
            "A graph of dependencies from the history of each node might spare nodes that have no "
            "relation to the message; it was not tried.",
        ),
    ),
    CLAIMS,
    INTRODUCTION,
)  # fmt: skip
