"""What chapter 7 of the DCC dissertation (Louzada 2024) claims, as questions to findings.

The bounds leave room: the claims are about who wins and where, not about figures. Each function
tells whether one appears and the figures that say so.
"""

from __future__ import annotations

from flexgroup.experiments.experiment import Claim, Judgement
from flexgroup.experiments.figure import name_of
from flexgroup.experiments.findings import PROCESSES, Findings, listed

ONE = 1
MOST = 64
"""Clients at the lowest and at the highest load."""

RANDOM = ("random:2", "random:4", "random:8", "random:N")
GROUPS = ("partitioned:2x8", "partitioned:4x4", "partitioned:8x2")
SHARES = ("0.01", "0.02", "0.05")
SIZES = (4, 8, 16)


def with_random(groups: str, share: str) -> str:
    """Return the groups with a share of messages to random sets."""
    return groups if share == "0" else f"{groups}@{share}"


def with_more_destinations(findings: Findings, stack: str) -> tuple[list[float], float, str]:
    """Return the peaks with 2, 4, 8 and N destinations, how busy processes are with 8, and both in
    words."""
    peaks = [findings.peak(stack, workload) for workload in RANDOM]
    busy = findings.at(stack, "random:8", MOST).busy
    return (
        peaks,
        busy,
        (
            f"peak with 2, 4, 8, N: {listed(peaks, ',.0f')} messages/s; "
            f"processes busy {busy:.0%} with 8"
        ),
    )


def df_collapses(findings: Findings) -> Judgement:
    (two, four, eight, some), busy, told = with_more_destinations(findings, "df")
    return two > 1.5 * four > 2.25 * eight and two > 5 * some and busy < 0.3, told


def skeen_loses(findings: Findings) -> Judgement:
    (two, four, eight, some), busy, told = with_more_destinations(findings, "skeen")
    return two > 1.5 * four > 2.25 * eight > 2.25 * some and busy > 0.7, told


def dcc_overtakes(findings: Findings) -> Judgement:
    full, reduced = (
        [findings.peak(stack, workload) / findings.peak("skeen", workload) for workload in RANDOM]
        for stack in ("dcc", "dcc/rv")
    )
    holds = full[2] > 1.1 and full[3] > 1.1 and full[0] < full[1] < full[2]
    return holds, (
        f"DCC / Skeen with 2, 4, 8, N: {listed(full, '.2f')}; "
        f"DCC/RV / Skeen: {listed(reduced, '.2f')}"
    )


def dcc_behind(findings: Findings, workload: str) -> Judgement:
    skeen = findings.peak("skeen", workload)
    dcc, reduced, df = (findings.peak(stack, workload) / skeen for stack in ("dcc", "dcc/rv", "df"))
    return max(dcc, reduced) < 0.9, f"DCC, DCC/RV, D&F / Skeen: {listed([dcc, reduced, df], '.2f')}"


def dcc_best_in_large_groups(findings: Findings, layout: tuple[str, ...] = GROUPS) -> Judgement:
    others = [max(findings.peak("skeen", groups), findings.peak("df", groups)) for groups in layout]
    full, reduced = (
        [findings.peak(stack, groups) / other for groups, other in zip(layout, others, strict=True)]
        for stack in ("dcc", "dcc/rv")
    )
    return full[0] > 0.7 and full[1] > 1.1 and full[2] > full[1], (
        f"DCC / the better of the others in 2x8, 4x4, 8x2: {listed(full, '.2f')}; "
        f"DCC/RV / the same: {listed(reduced, '.2f')}"
    )


def random_messages_cost(findings: Findings, groups: str, stack: str = "dcc") -> Judgement:
    without = findings.peak(stack, groups)
    kept = [findings.peak(stack, with_random(groups, share)) / without for share in SHARES]
    holds = 1 > kept[0] > kept[1] > kept[2] and kept[2] < 0.9
    return holds, f"{name_of(stack)} keeps {listed(kept, '.1%')}"


def reduced_clock_gains(findings: Findings) -> Judgement:
    full, reduced = (findings.at(stack, "tpcc", MOST) for stack in ("dcc", "dcc/rv"))
    latency = reduced.latency / full.latency
    throughput = reduced.throughput / full.throughput
    alone = findings.at("dcc/rv", "tpcc", ONE).latency / findings.at("dcc", "tpcc", ONE).latency
    return latency < 0.9 and throughput > 1.05, (
        f"DCC/RV / DCC with {MOST} clients: latency {latency:.2f}, throughput {throughput:.2f}; "
        f"latency with 1 client {alone:.2f}"
    )


def smaller_is_faster(findings: Findings) -> Judgement:
    four, eight, sixteen = (findings.at("dcc", "tpcc", ONE, size).latency for size in SIZES)
    return four < eight < sixteen, (
        f"latency with 4, 8, 16 processes: {four:.3f}, {eight:.3f}, {sixteen:.3f} ms"
    )


def dcc_has_higher_latency(findings: Findings) -> Judgement:
    ratios = []
    for workload in RANDOM:
        others = (findings.at(stack, workload, ONE).latency for stack in ("skeen", "df"))
        ratios.append(findings.at("dcc", workload, ONE).latency / max(others))
    return min(ratios) > 1.1, (
        f"DCC / the slower of the others with 2, 4, 8, N: {listed(ratios, '.2f')}"
    )


def genuine_rates(findings: Findings) -> Judgement:
    others = min(findings.at(s, w, MOST).genuine for s in ("skeen", "df") for w in RANDOM)
    dcc = [findings.at("dcc", "random:2", ONE, size).genuine for size in SIZES]
    return others == 1 and dcc[0] > dcc[1] > dcc[2], (
        f"Skeen and D&F {others:.0%}; DCC with 4, 8, 16 processes {listed(dcc, '.0%')}"
    )


def fast_rates(findings: Findings) -> Judgement:
    scattered = [findings.at("dcc", workload, MOST).fast for workload in RANDOM]
    local = [
        [findings.at("dcc", with_random(groups, share), MOST).fast for share in ("0", *SHARES)]
        for groups in GROUPS
    ]
    falling = all(row[0] > 0.9 and row == sorted(row, reverse=True) for row in local)
    return falling and max(scattered) < 0.5, (
        f"random:2, 4, 8, N {listed(scattered, '.0%')}; with 0, 1, 2, 5% random in 2x8 "
        f"{listed(local[0], '.0%')}, 4x4 {listed(local[1], '.0%')}, 8x2 {listed(local[2], '.0%')}"
    )


def steps_and_volume(findings: Findings) -> Judgement:
    holds = True
    seen = []
    for k in (2, 4, 8):
        skeen, df, dcc = (findings.at(s, f"random:{k}", MOST) for s in ("skeen", "df", "dcc"))
        holds &= skeen.steps == 2 and skeen.volume == k * k
        holds &= df.steps == k and df.volume == 2 * (k - 1)
        holds &= k <= dcc.steps <= PROCESSES and k <= dcc.volume + 1 <= PROCESSES
        seen.append(
            f"k={k}: {skeen.steps:g}/{skeen.volume:g}, {df.steps:g}/{df.volume:g}, "
            f"{dcc.steps:.1f}/{dcc.volume:.1f}"
        )
    return holds, "steps/packets of Skeen, D&F, DCC with " + "; ".join(seen)


# Figure 7.1: random sets of destinations.
RANDOM_CLAIMS = (
    Claim(
        "a", "7.1", "D&F collapses as destinations grow, and waits: the convoy effect", df_collapses
    ),
    Claim("b", "7.1", "Skeen loses throughput as destinations grow: k^2 packets", skeen_loses),
    Claim("c1", "7.1 (c, d)", "DCC overtakes Skeen with many destinations", dcc_overtakes),
    Claim(
        "c2", "7.1 (a)", "DCC is behind Skeen with two destinations",
        lambda findings: dcc_behind(findings, "random:2"),
    ),
    Claim(
        "g", "7.1", "DCC's latency is above the others' in random loads, 1 client",
        dcc_has_higher_latency,
    ),
)  # fmt: skip

# Figure 7.2: TPC-C.
TPCC_CLAIMS = (
    Claim(
        "c3", "7.2.1", "DCC is behind Skeen in TPC-C, even with the reduced clock",
        lambda findings: dcc_behind(findings, "tpcc"),
    ),
    Claim(
        "f1", "7.3", "the reduced clock lowers latency significantly and raises throughput, TPC-C",
        reduced_clock_gains,
    ),
    Claim("f2", "7.3", "smaller systems are faster, TPC-C, 1 client", smaller_is_faster),
)  # fmt: skip

# Figure 7.3: fixed groups.
GROUP_CLAIMS = (
    Claim(
        "d", "7.2.2", "DCC sustains more than both others in groups of 4 and 8, and does well in 2",
        dcc_best_in_large_groups,
    ),
    Claim(
        "e1", "7.2.2", "1, 2, 5% random messages cost DCC visibly, 2x8",
        lambda findings: random_messages_cost(findings, GROUPS[0]),
    ),
    Claim(
        "e2", "7.2.2", "1, 2, 5% random messages cost DCC visibly, 4x4",
        lambda findings: random_messages_cost(findings, GROUPS[1]),
    ),
    Claim(
        "e3", "7.2.2", "1, 2, 5% random messages cost DCC visibly, 8x2",
        lambda findings: random_messages_cost(findings, GROUPS[2]),
    ),
)  # fmt: skip

# Figures 7.4 and 7.5 and table 7.1: the metrics.
METRIC_CLAIMS = (
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

CLAIMS = (*RANDOM_CLAIMS, *TPCC_CLAIMS, *GROUP_CLAIMS, *METRIC_CLAIMS)
