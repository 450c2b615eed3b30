"""Chapter 7 of the DCC dissertation: every figure and the table, as data.

The dissertation's figures show curves; their values are not in its text. What stands beside ours
is what the text says about each, in our words.
"""

from __future__ import annotations

from flexgroup.experiments.dcc_claims import (
    GROUP_CLAIMS,
    GROUPS,
    METRIC_CLAIMS,
    MOST,
    ONE,
    RANDOM,
    RANDOM_CLAIMS,
    SHARES,
    SIZES,
    TPCC_CLAIMS,
    with_random,
)
from flexgroup.experiments.experiment import PAPER, SMALL, Experiment, Grid, joined, together
from flexgroup.experiments.figure import Figure, Kind, Series, compared, name_of

SOURCE = "Louzada 2024 (dissertation), chapter 7"

COMPARED = ("skeen", "df", "dcc", "dcc/rv")
"""The dissertation compares the first three, and DCC with the reduced clock where clocks matter."""
DCC = ("dcc", "dcc/rv")

SMALL_CLIENTS = (ONE, 4, 16, MOST)
SMALL_SEEDS = (1,)
SMALL_DURATION = 0.05

PAPER_CLIENTS = (ONE, 2, 4, 8, 16, 32, MOST)
PAPER_SEEDS = (1, 2, 3)
PAPER_DURATION = 0.2

LOAD = ("throughput", "latency")


def grids(
    stacks: tuple[str, ...],
    workloads: tuple[str, ...],
    processes: tuple[int, ...] = (16,),
    clients: tuple[int, ...] | None = None,
) -> dict[str, list[Grid]]:
    """Return the same runs at both scales, unless the clients are given, with each scale's
    clients."""
    small, paper = (clients or SMALL_CLIENTS), (clients or PAPER_CLIENTS)
    return {
        SMALL: [Grid(stacks, workloads, small, SMALL_SEEDS, SMALL_DURATION, processes)],
        PAPER: [Grid(stacks, workloads, paper, PAPER_SEEDS, PAPER_DURATION, processes)],
    }


def against_load(
    id: str, title: str, series: tuple[Series, ...], section: str, paper: str
) -> Figure:
    return Figure(id, title, Kind.CURVES, series, LOAD, section, paper)


RANDOM_EXPERIMENT = Experiment(
    "dcc-7.1",
    "Random destinations, no locality",
    SOURCE,
    grids(COMPARED, RANDOM),
    (
        against_load(
            "7.1a",
            "Two random destinations",
            compared(COMPARED, "random:2"),
            "7.1",
            "With few destinations a DCC message may have to cross several nodes that it is not "
            "for, in spite of the fast mode. DCC's latency is regularly above that of the others: "
            "more nodes take part, and the clocks cost time.",
        ),
        against_load(
            "7.1b",
            "Four random destinations",
            compared(COMPARED, "random:4"),
            "7.1",
            "D&F loses clearly as destinations grow: more nodes are blocked, waiting to be "
            "released (the convoy effect). Skeen loses too, because its messages grow with the "
            "square of the destinations.",
        ),
        against_load(
            "7.1c",
            "Eight random destinations",
            compared(COMPARED, "random:8"),
            "7.1",
            "Compared with the others, DCC's throughput is the better the more destinations "
            "there are, since less of its traffic goes through nodes that are not destinations.",
        ),
        against_load(
            "7.1d",
            "Any number of random destinations, up to 16",
            compared(COMPARED, "random:N"),
            "7.1",
            "As with eight: DCC has the better throughput when destinations are many, at a "
            "latency above the others'.",
        ),
    ),
    RANDOM_CLAIMS,
)

TPCC_EXPERIMENT = Experiment(
    "dcc-7.2",
    "TPC-C, and smaller systems",
    SOURCE,
    joined(grids(COMPARED, ("tpcc",)), grids(DCC, ("tpcc",), SIZES)),
    (
        against_load(
            "7.2a",
            "TPC-C",
            compared(COMPARED, "tpcc"),
            "7.2.1 and 7.3",
            "Most messages have one destination, some two, few more. DCC does worse than the "
            "others, even with the reduced clock, which lowers its latency significantly and "
            "helps its throughput too.",
        ),
        Figure(
            "7.2b",
            "TPC-C in systems of 4, 8 and 16 processes",
            Kind.CURVES,
            tuple(
                Series(f"{name_of(stack)}, {size} processes", stack, "tpcc", size)
                for stack in DCC
                for size in SIZES
            ),
            ("clients", "latency"),
            "7.3",
            "The clock grows with the edges of the graph; the latency was measured with 8 and "
            "with 4 nodes in place of 16. The text does not put the difference in words.",
        ),
    ),
    TPCC_CLAIMS,
)


def group_figures(plain: str, mixed: str, groups: str, size: str) -> tuple[Figure, Figure]:
    return (
        against_load(
            plain,
            f"Fixed groups of {size} processes",
            compared(COMPARED, groups),
            "7.2.2",
            "DCC does well in general while messages stay within the groups. As groups grow, its "
            "pipeline, which blocks nobody, sustains higher rates than the others.",
        ),
        against_load(
            mixed,
            f"Fixed groups of {size} processes, 0 to 5% of messages to random sets",
            tuple(
                Series(
                    f"{name_of(stack)}, {float(share):.0%} random",
                    stack,
                    with_random(groups, share),
                )
                for stack in DCC
                for share in ("0", *SHARES)
            ),
            "7.2.2 and 7.3",
            "With 1, 2 and 5% of messages to random sets DCC often changes from fast to slow, "
            "which costs it performance. The reduced clock is compared with the full one here "
            "too.",
        ),
    )


GROUP_EXPERIMENT = Experiment(
    "dcc-7.3",
    "Partitioned systems: fixed groups, and some messages to random sets",
    SOURCE,
    joined(
        grids(COMPARED, GROUPS),
        grids(DCC, tuple(with_random(groups, share) for groups in GROUPS for share in SHARES)),
        # Not in the dissertation: what the same messages cost the others.
        grids(("skeen", "df"), tuple(with_random(groups, SHARES[-1]) for groups in GROUPS)),
    ),
    (
        *group_figures("7.3a", "7.3b", GROUPS[0], "two"),
        *group_figures("7.3c", "7.3d", GROUPS[1], "four"),
        *group_figures("7.3e", "7.3f", GROUPS[2], "eight"),
    ),
    GROUP_CLAIMS,
)

BASIC = ("skeen", "df", "dcc")
PLAIN = (*RANDOM, "tpcc", *GROUPS)
LOCAL = tuple(with_random(groups, share) for groups in GROUPS for share in ("0", *SHARES))

METRIC_EXPERIMENT = Experiment(
    "dcc-7.4",
    "Genuine and fast messages, steps and volume",
    SOURCE,
    joined(
        grids(BASIC, PLAIN, clients=(MOST,)),
        grids(("dcc",), LOCAL, clients=(MOST,)),
        grids(("dcc",), ("random:2",), SIZES, (ONE,)),
    ),
    (
        Figure(
            "7.4a",
            "Share of genuine messages",
            Kind.BARS,
            compared(BASIC, *PLAIN),
            ("genuine",),
            "7.4",
            "Skeen and D&F involve destinations only. How genuine DCC is depends on the load, and "
            "the larger the topology, the more messages involve others.",
        ),
        Figure(
            "7.4b",
            "Share of fast messages",
            Kind.BARS,
            compared(("dcc",), *RANDOM, "tpcc", *LOCAL),
            ("fast",),
            "7.4",
            "The share of fast messages is proportional to the locality of the load.",
        ),
        Figure(
            "7.5a",
            "Steps to deliver a message",
            Kind.BARS,
            compared(BASIC, *PLAIN),
            ("steps",),
            "7.4",
            "Two for Skeen always; k + 1 for D&F; between k and n for DCC, depending on how many "
            "nodes are crossed that are not destinations.",
        ),
        Figure(
            "7.5b",
            "Messages exchanged to deliver one",
            Kind.BARS,
            compared(BASIC, *PLAIN),
            ("volume",),
            "7.4",
            "k^2 for Skeen, k + 1 for D&F, between k and n for DCC.",
        ),
        Figure(
            "table-7.1",
            "Messages to k of 16 processes",
            Kind.TABLE,
            compared(BASIC, *RANDOM[:3], *GROUPS),
            ("volume", "header_bytes", "steps", "genuine", "fast"),
            "7.4",
            "Volume: Skeen k^2, D&F k + 1, DCC k to n. Additional size: constant for Skeen and "
            "D&F; k to n(n-1)/2 clock entries for DCC. Steps: Skeen 2, D&F k + 1, DCC k to n. "
            "Genuine and fast messages of DCC: in the order of 3n/4 and of n/2, without an "
            "explanation of these two.",
        ),
    ),
    METRIC_CLAIMS,
)

CHAPTER = together(
    "dcc",
    "Chapter 7 of the DCC dissertation: all figures and the table",
    SOURCE,
    (RANDOM_EXPERIMENT, TPCC_EXPERIMENT, GROUP_EXPERIMENT, METRIC_EXPERIMENT),
)
