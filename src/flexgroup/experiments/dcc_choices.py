"""Choices that decide a claim of chapter 7, where the dissertation is silent: both, side by side.

Fixed groups may be of consecutive or of alternating processes; *genuine* may be said of messages or
of visits; a mean may be of all latencies, or of what is left without the extremes, as section 6.1.4
has it; and what was measured is the algorithm as published.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flexgroup.experiments.dcc import (
    COMPARED,
    PAPER_CLIENTS,
    PAPER_DURATION,
    PAPER_SEEDS,
    PLAIN,
    SMALL_DURATION,
    SMALL_SEEDS,
    SOURCE,
)
from flexgroup.experiments.dcc_claims import (
    GROUPS,
    MOST,
    ONE,
    RANDOM,
    SHARES,
    dcc_best_in_large_groups,
    random_messages_cost,
    with_random,
)
from flexgroup.experiments.dcc_published import PUBLISHED
from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, Judgement
from flexgroup.experiments.figure import Figure, Kind, Series, name_of
from flexgroup.experiments.findings import Findings, listed
from flexgroup.workloads.fixed_sets import ALTERNATING, CONSECUTIVE

MEASURED = (*COMPARED, PUBLISHED)
INTRODUCTION = """
Where the dissertation on DCC leaves something open, we had to choose, and some of these choices
decide whether a claim appears. Here are both sides of each, with a verdict each. This page was
written by

```sh
flexgroup experiment dcc-choices --scale small --out runs/dcc-choices
cp runs/dcc-choices/figures.md docs/dcc-choices-results.md
cp runs/dcc-choices/figures/*.svg docs/figures/
```

[dcc-results.md](dcc-results.md#where-it-differs) discusses what comes out.
""".strip()

OURS = ("dcc", "dcc/rv", PUBLISHED)

LAYOUTS = {
    name: tuple(groups.replace(CONSECUTIVE, kind) for groups in GROUPS)
    for name, kind in (("consecutive", CONSECUTIVE), ("alternating", ALTERNATING))
}
"""The fixed groups of figure 7.3, by how they lie in the order of the processes."""

LARGEST_SHARE = SHARES[-1]


# Where groups lie.


def ahead_of_skeen(findings: Findings, groups: str) -> Judgement:
    """Tell whether DCC still delivers more than Skeen with the largest share of random messages."""
    workload = with_random(groups, LARGEST_SHARE)
    skeen, full, reduced = (findings.peak(s, workload) for s in ("skeen", "dcc", "dcc/rv"))
    return full > skeen, (
        f"Skeen, DCC, DCC/RV: {listed([skeen, full, reduced], ',.0f')} messages/s; "
        f"DCC / Skeen {full / skeen:.2f}, DCC/RV / Skeen {reduced / skeen:.2f}"
    )


def of_layout(name: str) -> list[Claim]:
    """Return what figure 7.3 is said to show, if groups lie like that."""
    layout = LAYOUTS[name]
    sizes = [groups.partition(":")[2] for groups in layout]
    return [
        Claim(
            f"d, {name}", "7.2.2",
            "DCC sustains more than both others in groups of 4 and 8, and does well in 2",
            partial(dcc_best_in_large_groups, layout=layout),
        ),
        *(
            Claim(
                f"e {size}, {stack}, {name}", "7.2.2",
                f"1, 2, 5% random messages cost {name_of(stack)} visibly, {size}",
                partial(random_messages_cost, groups=groups, stack=stack),
            )
            for stack in ("dcc", PUBLISHED)
            for size, groups in zip(sizes, layout, strict=True)
        ),
        *(
            Claim(
                f"ahead {size}, {name}", "7.2.2, ours",
                f"with 5% random messages DCC is still ahead of Skeen, {size}",
                partial(ahead_of_skeen, groups=groups),
            )
            for size, groups in zip(sizes, layout, strict=True)
        ),
    ]  # fmt: skip


# As published, and as corrected.


def little_apart(findings: Findings, layout: tuple[str, ...]) -> Judgement:
    """Tell whether the two forms differ by less than a tenth wherever figure 7.3 has them."""
    ratios = [
        [
            findings.peak(PUBLISHED, with_random(groups, share))
            / findings.peak("dcc", with_random(groups, share))
            for share in ("0", *SHARES)
        ]
        for groups in layout
    ]
    told = "; ".join(
        f"{groups.partition(':')[2]} {listed(row, '.2f')}"
        for groups, row in zip(layout, ratios, strict=True)
    )
    return all(abs(ratio - 1) < 0.1 for row in ratios for ratio in row), (
        f"published / corrected with 0, 1, 2, 5% random messages: {told}"
    )


# Two readings of table 7.1.


def genuine_messages(findings: Findings, workload: str) -> float:
    """The share of messages that visit destinations only."""
    return findings.at("dcc", workload, MOST).genuine


def genuine_visits(findings: Findings, workload: str) -> float:
    """The share of visits that are at destinations; a message visits one process more than it has
    packets."""
    point = findings.at("dcc", workload, MOST)
    destinations = point.shown("deliveries") / point.shown("messages")
    return destinations / (1 + point.volume)


def fast_messages(findings: Findings, workload: str) -> float:
    return findings.at("dcc", workload, MOST).fast


def on_average(
    findings: Findings, share: Callable[[Findings, str], float], papers: float
) -> Judgement:
    """Tell whether the mean over the loads of figure 7.4 is within a tenth of table 7.1's share."""
    shares = [share(findings, workload) for workload in PLAIN]
    mean = sum(shares) / len(shares)
    told = ", ".join(
        f"{workload} {value:.0%}" for workload, value in zip(PLAIN, shares, strict=True)
    )
    return abs(mean - papers) < papers / 10, (
        f"{mean:.1%} on average over the loads, in the paper {papers:.0%} ({told})"
    )


# Two kinds of means.

MEANS = {"all": "latency_last_mean", "trimmed": "latency_last_trimmed"}


def above_the_others(findings: Findings, mean: str) -> Judgement:
    ratios = []
    for workload in RANDOM:
        dcc, *others = (
            findings.at(stack, workload, ONE).shown(MEANS[mean]) for stack in ("dcc", "skeen", "df")
        )
        ratios.append(dcc / max(others))
    return min(ratios) > 1.1, (
        f"DCC / the slower of the others with 2, 4, 8, N: {listed(ratios, '.2f')}"
    )


def gains_latency(findings: Findings, mean: str) -> Judgement:
    few, many = (
        findings.at("dcc/rv", "tpcc", clients).shown(MEANS[mean])
        / findings.at("dcc", "tpcc", clients).shown(MEANS[mean])
        for clients in (ONE, MOST)
    )
    return many < 0.9, f"DCC/RV / DCC with {ONE} and {MOST} clients: {few:.2f}, {many:.2f}"


def most_latency_left(findings: Findings, mean: str) -> Judgement:
    """Tell who comes first under load, where a few messages wait longest."""
    behind = []
    told = []
    for workload in RANDOM:
        skeen, dcc = (findings.at(s, workload, MOST).shown(MEANS[mean]) for s in ("skeen", "dcc"))
        behind.append(dcc > skeen)
        told.append(dcc / skeen)
    return all(behind), f"DCC / Skeen with {MOST} clients, 2, 4, 8, N: {listed(told, '.2f')}"


READING_CLAIMS = (
    Claim(
        "genuine 3/4, of messages", "7.4, table 7.1",
        "three quarters are genuine: messages that visit destinations only",
        partial(on_average, share=genuine_messages, papers=0.75),
    ),
    Claim(
        "genuine 3/4, of visits", "7.4, table 7.1",
        "three quarters are genuine: visits that are at destinations",
        partial(on_average, share=genuine_visits, papers=0.75),
    ),
    Claim(
        "fast 1/2, of messages", "7.4, table 7.1", "one half is fast: messages",
        partial(on_average, share=fast_messages, papers=0.5),
    ),
    *(
        claim
        for mean in MEANS
        for claim in (
            Claim(
                f"g, mean of {mean}", "6.1.4, 7.1",
                "DCC's latency is above the others' in random loads, 1 client",
                partial(above_the_others, mean=mean),
            ),
            Claim(
                f"g under load, mean of {mean}", "6.1.4, 7.1",
                "DCC's latency is above Skeen's in random loads, 64 clients",
                partial(most_latency_left, mean=mean),
            ),
            Claim(
                f"f, mean of {mean}", "6.1.4, 7.3",
                "the reduced clock lowers latency significantly, TPC-C",
                partial(gains_latency, mean=mean),
            ),
        )
    ),
)  # fmt: skip


def of_form(name: str) -> Claim:
    return Claim(
        f"published, {name}", "7.3", "as published and corrected, DCC is about as fast",
        partial(little_apart, layout=LAYOUTS[name]),
    )  # fmt: skip


def _grids(clients: tuple[int, ...], seeds: tuple[int, ...], duration: float) -> list[Grid]:
    grids = [Grid(COMPARED, (*RANDOM, "tpcc"), (ONE, MOST), seeds, duration)]
    for layout in LAYOUTS.values():
        mixed = tuple(with_random(groups, share) for groups in layout for share in SHARES)
        most = tuple(with_random(groups, LARGEST_SHARE) for groups in layout)
        grids += [
            Grid(MEASURED, layout, clients, seeds, duration),
            Grid(OURS, mixed, clients, seeds, duration),
            Grid(("skeen", "df"), most, clients, seeds, duration),
        ]
    return grids


def side_by_side(stacks: tuple[str, ...], share: str) -> tuple[Series, ...]:
    """Return both layouts of each size, one beside the other."""
    return tuple(
        Series(name_of(stack), stack, with_random(groups, share))
        for both in zip(*LAYOUTS.values(), strict=True)
        for groups in both
        for stack in stacks
    )


CHOICES = Experiment(
    "dcc-choices",
    "Chapter 7 of the DCC dissertation: choices that decide a claim",
    SOURCE,
    {
        SMALL: _grids((MOST,), SMALL_SEEDS, SMALL_DURATION),
        PAPER: _grids(PAPER_CLIENTS, PAPER_SEEDS, PAPER_DURATION),
    },
    (
        Figure(
            "choices-groups",
            "Groups of consecutive and of alternating processes",
            Kind.TABLE,
            side_by_side(MEASURED, "0"),
            ("throughput", "latency", "genuine", "fast", "volume"),
            "7.2.2",
            "The text does not say how groups lie in the order of the nodes.",
        ),
        Figure(
            "choices-mixed",
            "The same with 5% of messages to random sets",
            Kind.TABLE,
            side_by_side(MEASURED, LARGEST_SHARE),
            ("throughput", "latency", "genuine", "fast", "volume"),
            "7.2.2",
            "Random messages change the mode from fast to slow in many situations, which has an "
            "impact on performance.",
        ),
        *(
            Figure(
                f"choices-{name}",
                f"Throughput with 0 to 5% of messages to random sets, {name} processes",
                Kind.BARS,
                tuple(
                    Series(name_of(stack), stack, with_random(groups, share))
                    for groups in layout
                    for share in ("0", *SHARES)
                    for stack in OURS
                ),
                ("throughput",),
                "7.2.2 and 7.3",
                "Measured as published; the reduced clock is compared here, too.",
            )
            for name, layout in LAYOUTS.items()
        ),
    ),
    (
        *of_layout("consecutive"),
        *of_layout("alternating"),
        of_form("consecutive"),
        of_form("alternating"),
        *READING_CLAIMS,
    ),
    INTRODUCTION,
)
