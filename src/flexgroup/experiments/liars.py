"""Atomic multicast among liars: what it takes, gives and costs, as data.

Groups of four replicas, of which one may lie. The dissertation on DCC (Louzada 2024) describes
DCC-bft and ByzCast (sections 5.2 and 3.3.1), measures neither, and leaves open how DCC fares with
such tolerance (8.2). What stands beside each figure is what papers say of it, in our words.
"""

from __future__ import annotations

from collections.abc import Iterable

from flexgroup.experiments.experiment import PAPER, SMALL, Experiment, Grid, together
from flexgroup.experiments.figure import Figure, Kind, Series, name_of
from flexgroup.experiments.groups_of_replicas import CFT, PLAIN, UNIT, in_groups, members, series
from flexgroup.experiments.liars_claims import (
    ANY_TWO,
    ATTACK_CLAIMS,
    BACKUPS,
    BFT,
    BYZCAST,
    CERTIFIED,
    DCC_BFT,
    DELAY_CLAIMS,
    DF_BFT,
    FAMILY,
    FREE,
    IN_ONE_REGION,
    LOADS,
    MEETING,
    NOBODY,
    NODES,
    OF_FOUR,
    OF_SEVEN,
    ONE_TWO_ALL,
    PAIRS,
    PBFT,
    PRICE_CLAIMS,
    PRICED,
    PRIMARY,
    SEALS,
    SHAPE_CLAIMS,
    SIZES,
    SPREAD,
    THREE,
    TREES,
    UNDER_ATTACK,
    VOLUME_CLAIMS,
    WIDE,
    WIDE_CLAIMS,
    WIDE_STACKS,
    WIDE_WORKLOADS,
    attack_load,
    groups_of,
    lying,
    paid,
    pairs,
    replicas_of,
    verdicts,
)
from flexgroup.experiments.tolerance_claims import ranked
from flexgroup.liars.named import KINDS
from flexgroup.worlds.simulator.fault_plans import Faults

SOURCE = (
    "Castro and Liskov 1999 (PBFT), Coelho and others 2018 (ByzCast), Clement and others 2009 "
    "(attacks on the performance of PBFT), Louzada 2024 (DCC-bft and ByzCast, sections 3.3.1, 5.2 "
    "and 8.2)"
)

INTRODUCTION = f"""
What does it take to multicast in one order to several groups, although a third of the members of
each may lie? The protocols are [PBFT](protocols/pbft.md), and over it
[ByzCast](protocols/byzcast.md) with a tree of two levels, a binary tree and a chain,
[DCC-bft](protocols/dcc-bft.md) with copies and with certificates, and D&F-bft; beside them those
that tolerate crashes ([tolerance-results.md](tolerance-results.md)), and those that tolerate
nothing. This page was written by

```sh
mkdir -p runs/liars
cp docs/liars-elsewhere.csv runs/liars/elsewhere.csv
flexgroup experiment liars --scale small --out runs/liars
cp runs/liars/figures.md docs/liars-results.md
cp runs/liars/figures/*.svg docs/figures/
```

Letters name its parts, which are experiments of their own: (a) `liars-delays`, (b) and (c)
`liars-shapes`, (d) `liars-attacks`, (e) `liars-price`, (f) `liars-wan`. Absolute figures are those
of the model in [simulator.md](simulator.md) and of no machine. Four things to keep in mind:

- Groups have four replicas, of which one may lie, and seven where that is said; those that tolerate
  crashes have three.
- Seals cost what they were [measured](liars.md#on-the-network) to cost, `{SEALS}`, if
  nothing else is said: a processor that signs or checks does nothing else meanwhile. That is far
  more than a packet costs.
- Throughput is that of correct processes: what a liar delivers counts nowhere, and nothing is
  expected of it ([measures.md](measures.md)). Verdicts speak of correct processes as well.
- Clients wait for answers, and do not lie themselves; attackers choose at random among what they
  can do ([liars.md](liars.md#attackers)).
""".strip()

UNMEASURED = "Louzada 2024, 8.2: how DCC behaves with tolerance of liars is not known."

# (a) Latency in delays.

EVERY = (DF_BFT, DCC_BFT, CERTIFIED, *TREES)


def delays(duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    """A message alone; and messages of clients each of whom is near to one of four groups: delays
    are one or nothing, which is what worst cases are made of."""
    return [
        *in_groups((PBFT,), 1, ("random:1",), (1,), (1,), 0.2, UNIT, OF_FOUR),
        *in_groups(EVERY, THREE, ONE_TWO_ALL, (1,), (1,), 0.2, UNIT, OF_FOUR),
        *in_groups(EVERY, 2, (ANY_TWO,), (1,), (1,), 0.2, UNIT, OF_SEVEN),
        *in_groups(
            EVERY, MEETING, (ANY_TWO,), (MEETING,), seeds, duration, UNIT, OF_FOUR, rate=30,
            near=True,
        ),
    ]  # fmt: skip


DELAYS = Experiment(
    "liars-delays",
    "Atomic multicast among liars: latency in communication delays",
    SOURCE,
    {SMALL: delays(2.0, (1,)), PAPER: delays(10.0, (1, 2))},
    (
        Figure(
            "bft-delays-alone",
            "Delays of a message alone to one, two and three of three groups of four",
            Kind.TABLE,
            (
                *series((PBFT,), 1, "random:1", network=UNIT, replicas=OF_FOUR),
                *series(EVERY, THREE, *ONE_TWO_ALL, network=UNIT, replicas=OF_FOUR),
            ),
            ("latency_group_mean", "latency_last_mean", "volume"),
            "a",
            "Castro and Liskov 1999: request, pre-prepare, prepare, commit. Coelho and others "
            "2018: a message passes the log of each group from the lowest common ancestor down. "
            "Louzada 2024, 5.2: and in DCC-bft that of one group after the other. (A delay is "
            "1 ms here.)",
        ),
        Figure(
            "bft-delays-seven",
            "The same to both of two groups of seven",
            Kind.TABLE,
            series(EVERY, 2, ANY_TWO, network=UNIT, replicas=OF_SEVEN),
            ("latency_group_mean", "latency_last_mean", "volume"),
            "a",
            "Nobody says what f + 1 copies cost in the log of the receiver: with f = 2 they take "
            "two rounds of PBFT's window here.",
        ),
        Figure(
            "bft-delays-concurrent",
            "Four groups of four, with others that come at the worst moment",
            Kind.TABLE,
            series(EVERY, MEETING, ANY_TWO, network=UNIT, replicas=OF_FOUR),
            ("latency_group_mean", "latency_group_max", "latency_last_max"),
            "a",
            "Nobody gives a bound for these protocols; a batch waits for the two before it.",
        ),
    ),
    DELAY_CLAIMS,
)

# (b) Groups and shapes of the tree; (c) who takes part, and how much is sent.

SHAPED = (DCC_BFT, CERTIFIED, *TREES)
MOVED = ("dcc", CFT[2], *SHAPED)
CLIENTS = 32
LONG = {SMALL: 0.2, PAPER: 0.5}
SHORT = {SMALL: 0.1, PAPER: 0.2}
"""Those that make no seals, or pay nothing for them, are many times faster."""


def priced(
    scale: str,
    stacks: Iterable[str],
    groups: int,
    workloads: tuple[str, ...],
    network: str = PRICED,
) -> list[Grid]:
    def length(stack: str) -> float:
        return (SHORT if stack in (*PLAIN, *CFT) or network == FREE else LONG)[scale]

    return [
        grid
        for stack in stacks
        for grid in in_groups(
            (stack,), groups, workloads, (CLIENTS,), (1,) if scale == SMALL else (1, 2),
            length(stack), network, replicas_of(stack),
        )
    ]  # fmt: skip


def shapes(scale: str) -> list[Grid]:
    sizes = SIZES if scale == SMALL else (*SIZES, 16)
    return [
        *(grid for n in sizes for grid in priced(scale, SHAPED, n, (ANY_TWO, pairs(n)))),
        *priced(scale, MOVED, NODES, ("random:1", ANY_TWO, "random:4", PAIRS)),
    ]


def on_priced(stacks: Iterable[str], groups: int, *workloads: str, under: str = "") -> list[Series]:
    """Return the series of stacks with as many replicas as each has."""
    return [
        one
        for workload in workloads
        for stack in stacks
        for one in series(
            (stack,), groups, workload, network=PRICED, replicas=replicas_of(stack), under=under
        )
    ]


SHAPES = Experiment(
    "liars-shapes",
    "Atomic multicast among liars: groups, trees, who takes part, and how much is sent",
    SOURCE,
    {scale: shapes(scale) for scale in (SMALL, PAPER)},
    (
        Figure(
            "bft-groups",
            f"Throughput of messages to any two groups of four, {CLIENTS} clients",
            Kind.CURVES,
            tuple(
                Series(name_of(stack), stack, ANY_TWO, None, PRICED)
                for stack in SHAPED
            ),
            ("processes", "throughput"),
            "b",
            "Coelho and others 2018: ByzCast grows with the groups while messages go to one; those "
            "to several pass an ancestor.",
        ),
        Figure(
            "bft-pairs",
            f"Throughput of messages to fixed pairs of groups of four, {CLIENTS} clients",
            Kind.BARS,
            tuple(one for n in SIZES for one in on_priced(SHAPED, n, pairs(n))),
            ("throughput",),
            "b",
            "Coelho and others 2018: the tree is to be chosen by the load. Louzada 2024, 7.5: DCC "
            "is at its best where messages go to the same groups again and again.",
        ),
        Figure(
            "bft-volume",
            "Who takes part, and how much is sent: eight groups",
            Kind.TABLE,
            tuple(on_priced(MOVED, NODES, "random:1", ANY_TWO, "random:4", PAIRS)),
            ("genuine", "steps_group", "volume", "volume_bytes"),
            "c",
            "Louzada 2024, 3.3.1: ByzCast is partly genuine, since messages to several groups need "
            "others. 7.4, of DCC without tolerance: genuine where messages have locality, with "
            "more packets the more of the groups are passed. It has no figures of DCC-bft or "
            "ByzCast.",
        ),
    ),
    (*SHAPE_CLAIMS, *VOLUME_CLAIMS),
)  # fmt: skip

# (d) Attacks.

ELSEWHERE = """
The same with real processes: four servers with PBFT, and eight with ByzCast, two groups of four of
which the first is the root, all on one machine. One server lies, the primary of the first group or
the last backup of all (`flexgroup server --attack KIND`). Each other server has a member process
with its share of 64 closed loops, and what these get back is the goodput, from a second after the
load began: a primary that is replaced has been by then. Servers record traces, which takes them
time in every row alike. In these, the liar is then named as faulty, and what the stack promises to
correct processes is verified on Spark. Groups are destroyed at the end, when all that was sent is
delivered: of what is under way then, the trace says only that it was not. This wrote the table,
except for the slow primary of PBFT, which is from a run of `--attacks slow` in pure Python:

```sh
python -m benchmarks.lying_servers --stacks PBFT --duration 1.5 --csv docs/liars-elsewhere.csv
python -m benchmarks.lying_servers --stacks BYZCAST --attacks silent,slow,skip,forge \\
    --duration 1.5 --csv docs/liars-elsewhere.csv
```
""".strip()


def attacks(seeds: tuple[int, ...]) -> list[Grid]:
    """Runs of a second at any scale: who lies does so from the beginning, and what that does first
    would be left out of longer ones."""
    return [
        grid
        for stack in UNDER_ATTACK
        for liars in ("", *(lying(w, k, groups_of(stack)) for w in PLACES for k in KINDS))
        for grid in in_groups(
            (stack,), groups_of(stack), (attack_load(stack),), (3,), seeds, 1.0, PRICED,
            OF_FOUR, Faults(liars=tuple(liars.split())),
        )
    ]  # fmt: skip


PLACES = (PRIMARY, BACKUPS)


def under_attack(where: str) -> tuple[Series, ...]:
    return tuple(
        one
        for kind in ("", *KINDS)
        for stack in UNDER_ATTACK
        for one in series(
            (stack,), groups_of(stack), attack_load(stack), network=PRICED, replicas=OF_FOUR,
            liars=lying(where, kind, groups_of(stack)) if kind else "", under=kind or NOBODY,
        )
    )  # fmt: skip


ATTACKS = Experiment(
    "liars-attacks",
    "Atomic multicast among liars: goodput and verdicts under each attacker",
    SOURCE,
    {SMALL: attacks((1,)), PAPER: attacks((1, 2, 3))},
    tuple(
        Figure(
            f"bft-attacks-{name}-{metric}",
            f"{title}: {whose}",
            Kind.BARS,
            under_attack(where),
            (shown,),
            "d",
            paper,
        )
        for name, where, whose, paper in (
            (
                "primary", PRIMARY, "the primary of the first of three groups (PBFT: of one)",
                "Castro and Liskov 1999: who does not order requests is replaced when a timer runs "
                "out, 500 ms here at first, of which 200 are warm-up and not counted. Clement and "
                "others 2009: a primary that is slow, but not too slow, is not.",
            ),
            (
                "backups", BACKUPS, "a backup in each of three groups (PBFT: in one)",
                "Quorums go on without f. Louzada 2024, 5.2: f + 1 equal copies are enough.",
            ),
        )
        for metric, shown, title in (
            ("goodput", "throughput", "Goodput under each attacker"),
            ("gap", "gap_same", "The longest time without a delivery at a correct member"),
        )
    ),
    ATTACK_CLAIMS,
    conclusions={"bft-attacks-backups-gap": verdicts},
    elsewhere=ELSEWHERE,
)  # fmt: skip

# (e) What tolerance costs.


def prices(scale: str) -> list[Grid]:
    return [
        *priced(scale, (*PLAIN, *CFT, *BFT), NODES, LOADS),
        *priced(scale, FOR_NOTHING, NODES, LOADS, FREE),
    ]


FOR_NOTHING = (DCC_BFT, BYZCAST)

PRICES = Experiment(
    "liars-price",
    "What tolerance of liars costs, against that of crashes and against none",
    SOURCE,
    {scale: prices(scale) for scale in (SMALL, PAPER)},
    tuple(
        Figure(
            f"bft-price-{name}",
            f"{title}: eight processes, groups of three, groups of four; {CLIENTS} clients",
            kind,
            (
                *on_priced(stacks, NODES, *LOADS),
                *(
                    Series(
                        f"{name_of(stack)}, free seals", stack, workload,
                        members(stack, NODES, OF_FOUR), FREE,
                    )
                    for workload in LOADS
                    for stack in FOR_NOTHING
                ),
            ),
            (metric,),
            "e",
            UNMEASURED,
        )
        for name, title, metric, kind, stacks in (
            ("throughput", "Throughput", "throughput", Kind.BARS, (*PLAIN, *CFT, *BFT)),
            ("latency", "Latency to each group", "latency_group_mean", Kind.BARS, (*FAMILY, *BFT)),
        )
    ),
    PRICE_CLAIMS,
    conclusions={"bft-price-throughput": paid},
)  # fmt: skip

# (f) A wide-area network.

WIDE_CLIENTS = {SMALL: (8, 32), PAPER: (8, 32, 128)}


def wide(scale: str, duration: float) -> list[Grid]:
    """A drain of a minute is enough for what waits behind each other around the world."""
    return [
        grid
        for network in (IN_ONE_REGION, SPREAD)
        for grid in in_groups(
            WIDE_STACKS, WIDE, WIDE_WORKLOADS, WIDE_CLIENTS[scale], (1,), duration, network,
            OF_FOUR, drain=60.0,
        )
    ]  # fmt: skip


WIDE_FIGURES = tuple(
    Figure(
        f"bft-wan-{name}-{workload.partition(':')[2]}",
        f"{title}, messages to {workload.partition(':')[2]}",
        Kind.CURVES,
        series(WIDE_STACKS, WIDE, workload, network=network, replicas=OF_FOUR),
        ("throughput", "latency_group_mean"),
        "f",
        "Louzada 2024, 8.2: DCC was not tried in a wide-area network, nor with tolerance of liars.",
    )
    for name, title, network in (
        ("region", "Eight groups of four, each in a region of its own", IN_ONE_REGION),
        ("spread", "Eight groups of four, the members of each in four regions", SPREAD),
    )
    for workload in WIDE_WORKLOADS
)

WIDE_AREA = Experiment(
    "liars-wan",
    "Atomic multicast among liars, in a wide-area network",
    SOURCE,
    {SMALL: wide(SMALL, 3.0), PAPER: wide(PAPER, 6.0)},
    WIDE_FIGURES,
    WIDE_CLAIMS,
    conclusions={
        figure.id: ranked(figure, "latency_group_mean", most_is_best=False)
        for figure in WIDE_FIGURES
    },
)

LIARS = together(
    "liars",
    "Atomic multicast among liars",
    SOURCE,
    (DELAYS, SHAPES, ATTACKS, PRICES, WIDE_AREA),
    INTRODUCTION,
)
