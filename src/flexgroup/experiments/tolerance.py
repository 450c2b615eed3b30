"""Atomic multicast that tolerates crashes: what it takes, gives and costs, as data.

Groups of three replicas, or of five where two crash, run protocols that papers compare only in part
and never all of them; the dissertation on DCC (Louzada 2024, section 8.2) leaves open how DCC fares
with tolerance of crashes and in a wide-area network. What stands beside each figure is what papers
say of it, in our words.
"""

from __future__ import annotations

from flexgroup.experiments.experiment import PAPER, SMALL, Experiment, Grid, together
from flexgroup.experiments.figure import Figure, Kind, Series
from flexgroup.experiments.groups_of_replicas import (
    CFT,
    PAXOS,
    PLAIN,
    UNIT,
    in_groups,
    series,
)
from flexgroup.experiments.tolerance_claims import (
    ALONE,
    CHAPTER,
    CONCURRENT,
    CONVOY_CLAIMS,
    CONVOY_CLIENTS,
    CONVOYS,
    CRASH_CLAIMS,
    CRASH_WORKLOAD,
    CRASHES,
    DELAY_CLAIMS,
    DESTINATION_CLAIMS,
    DESTINATIONS,
    DETECTIONS,
    GROUPS,
    IN_ONE_REGION,
    NODES,
    OF_FIVE,
    PRICE_CLAIMS,
    SPREAD,
    STRUCK,
    TOLERANT,
    UNORDERED,
    WIDE,
    WIDE_CLAIMS,
    WIDE_WORKLOADS,
    after_crashes,
    fewest_delays,
    paid,
    ranked,
)
from flexgroup.worlds.simulator.fault_plans import Faults

SOURCE = (
    "Gotsman, Lefort and Chockler 2019 (White-Box), Coelho, Schiper and Pedone 2017 (FastCast), "
    "Pacheco, Coelho and Pedone 2023 (PrimCast), Le and others 2021 (RamCast), Delporte-"
    "Gallet and Fauconnier 2000 (ft-abcast), Louzada 2024 (DCC, section 8.2)"
)

INTRODUCTION = """
What does it take to multicast in one order to several groups, of which each goes on although some
of its members crash? The protocols are those of [protocols/README.md](protocols/README.md):
Skeen's algorithm, D&F and DCC between [groups of replicas](protocols/replicated.md) (Skeen-cft,
D&F-cft, DCC-cft), [ft-abcast](protocols/ft-abcast.md), [White-Box](protocols/white-box.md),
[PrimCast](protocols/primcast.md) and [RamCast](protocols/ramcast.md), beside
[Skeen](protocols/skeen.md), [D&F](protocols/df.md) and [DCC](protocols/dcc.md), which tolerate no
crash and have one process where the others have a group. This page was written by

```sh
mkdir -p runs/tolerance
cp docs/tolerance-elsewhere.csv runs/tolerance/elsewhere.csv
flexgroup experiment tolerance --scale small --out runs/tolerance
cp runs/tolerance/figures.md docs/tolerance-results.md
cp runs/tolerance/figures/*.svg docs/figures/
```

Letters name its parts, which are experiments of their own: (a) `tolerance-delays`, (b)
`tolerance-destinations`, (c) `tolerance-wan`, (d) `tolerance-convoy`, (e) `tolerance-price`, (f)
`tolerance-crashes`. Absolute figures are those of the model in [simulator.md](simulator.md) and
of no machine. Three things to keep in mind:

- Latency is counted until some member of every destination group has delivered, which is what a
  client waits for, if nothing else is said.
- RamCast writes into the memory of others, which costs these no processor. The others have no
  such hardware.
- Delays between regions are round trips of Amazon EC2, measured by ping in June 2020, halved
  ([simulator.md](simulator.md) tells from where); regions are in the order of that list, and so
  is DCC's chain.
""".strip()

NOBODY = "Nobody has measured these protocols beside each other."


# (a) Latency in delays.

EVERY = (*PLAIN, *TOLERANT)


def delays(duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    """A message alone, between two groups; and messages of clients each of whom is near to one of
    three groups: delays are one or nothing, which is what worst cases are made of."""
    return [
        *in_groups(EVERY, ALONE, ("random:2",), (1,), (1,), 0.2, UNIT),
        *in_groups((PAXOS,), 1, ("random:1",), (1,), (1,), 0.2, UNIT),
        *in_groups(
            EVERY, CONCURRENT, ("random:2",), (CONCURRENT,), seeds, duration, UNIT, rate=60,
            near=True,
        ),
    ]  # fmt: skip


DELAYS = Experiment(
    "tolerance-delays",
    "Atomic multicast that tolerates crashes: latency in communication delays",
    SOURCE,
    {SMALL: delays(4.0, (1,)), PAPER: delays(20.0, (1, 2))},
    (
        Figure(
            "delays-alone",
            "Delays of a message alone to two groups of three (Paxos: to one)",
            Kind.TABLE,
            (
                *series(EVERY, ALONE, "random:2", network=UNIT),
                *series((PAXOS,), 1, "random:1", network=UNIT),
            ),
            ("latency_first_mean", "latency_group_mean", "latency_last_mean", "steps", "volume"),
            "a",
            "Gotsman and others 2019: Skeen's algorithm takes 2 delays; over consensus, so that it "
            "tolerates crashes, 6; FastCast 4; White-Box 3 at leaders and one more at followers. "
            "Pacheco and others 2023: PrimCast 3 everywhere. (A delay is 1 ms here.)",
        ),
        Figure(
            "delays-concurrent",
            "The longest that was seen, with others that come at the worst moment",
            Kind.TABLE,
            series(EVERY, CONCURRENT, "random:2", network=UNIT),
            ("latency_group_mean", "latency_group_max", "latency_last_max"),
            "a",
            "At worst, with other messages: Skeen 4, over consensus 12, FastCast 8, White-Box 5 at "
            "leaders. Ours over consensus is bound by 10 while logs are not busy, since a "
            "timestamp is fixed when the leader proposes it (docs/protocols/replicated.md).",
        ),
    ),
    DELAY_CLAIMS,
    conclusions={"delays-concurrent": fewest_delays},
)

# (b) Destinations.


def destinations(clients: tuple[int, ...], duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    return in_groups(EVERY, GROUPS, DESTINATIONS, clients, seeds, duration)


def against_load(
    id_: str, title: str, shown: tuple[Series, ...], section: str, paper: str
) -> Figure:
    metrics = ("throughput", "latency_group_mean")
    return Figure(id_, title, Kind.CURVES, shown, metrics, section, paper)


DESTINATION_FIGURES = (
    Figure(
        "destinations-throughput",
        "Throughput against the number of destination groups, 10 groups of 3",
        Kind.BARS,
        series(EVERY, GROUPS, *DESTINATIONS),
        ("throughput",),
        "b",
        "White-Box is reported ahead of FastCast and of Skeen over consensus (Gotsman and others "
        "2019), and PrimCast with the lower latency beside White-Box (Pacheco and others 2023). "
        "Neither compares with a protocol that passes messages along a chain, as DCC does.",
    ),
    Figure(
        "destinations-latency",
        "Latency to each group against the number of destination groups, 10 groups of 3",
        Kind.BARS,
        series(EVERY, GROUPS, *DESTINATIONS),
        ("latency_group_mean",),
        "b",
        "In a closed loop, latency is the clients divided by the throughput.",
    ),
    *(
        against_load(
            f"destinations-{workload.partition(':')[2]}",
            f"{workload.partition(':')[2]} of ten groups of three, more and more clients",
            series(EVERY, GROUPS, workload),
            "b",
            NOBODY,
        )
        for workload in ("random:2", "random:8")
    ),
)

MANY_DESTINATIONS = Experiment(
    "tolerance-destinations",
    "Atomic multicast that tolerates crashes: more and more destination groups",
    SOURCE,
    {SMALL: destinations((1, 32), 0.1, (1,)), PAPER: destinations((1, 4, 16, 64), 0.2, (1, 2))},
    DESTINATION_FIGURES,
    DESTINATION_CLAIMS,
    conclusions={
        "destinations-throughput": ranked(DESTINATION_FIGURES[0], "throughput", most_is_best=True),
        "destinations-latency": ranked(
            DESTINATION_FIGURES[1], "latency_group_mean", most_is_best=False
        ),
    },
)

# (c) A wide-area network.

WIDE_CLIENTS = {SMALL: (24, 96), PAPER: (24, 192, 768)}
WIDE_PLAIN_CLIENTS = {SMALL: (24, 1536), PAPER: (24, 192, 768, 3072)}
"""It takes more of them until processes have no time left, if these have no replicas."""


def wide(scale: str, duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    """A drain of a minute is enough for what waits behind each other around the world."""
    return [
        *in_groups(
            PLAIN, WIDE, WIDE_WORKLOADS, WIDE_PLAIN_CLIENTS[scale], seeds, duration, SPREAD,
            drain=60.0,
        ),
        *(
            grid
            for network in (IN_ONE_REGION, SPREAD)
            for grid in in_groups(
                TOLERANT, WIDE, WIDE_WORKLOADS, WIDE_CLIENTS[scale], seeds, duration, network,
                drain=60.0,
            )
        ),
    ]  # fmt: skip


WIDE_FIGURES = tuple(
    against_load(
        f"wan-{name}-{workload.partition(':')[2]}",
        f"{title}, messages to {workload.partition(':')[2]}",
        series(stacks, WIDE, workload, network=network),
        "c",
        paper,
    )
    for name, title, stacks, network, paper in (
        (
            "plain", "Eight processes in eight regions", PLAIN, SPREAD,
            "Louzada 2024, 8.2: DCC was not tried in a wide-area network, and how it behaves "
            "there is not known.",
        ),
        (
            "region", "Eight groups of three, each in a region of its own", TOLERANT,
            IN_ONE_REGION,
            "Louzada 2024, 8.2: nor is it known how DCC behaves with tolerance of crashes.",
        ),
        (
            "spread", "Eight groups of three, the members of each in three regions", TOLERANT,
            SPREAD,
            "Gotsman and others 2019 mean White-Box for replicas that are in several data centres: "
            "it needs fewer delays between them than Skeen over consensus.",
        ),
    )
    for workload in WIDE_WORKLOADS
)  # fmt: skip

WIDE_AREA = Experiment(
    "tolerance-wan",
    "Atomic multicast that tolerates crashes, in a wide-area network",
    SOURCE,
    {SMALL: wide(SMALL, 4.0, (1,)), PAPER: wide(PAPER, 6.0, (1,))},
    WIDE_FIGURES,
    WIDE_CLAIMS,
    conclusions={
        figure.id: ranked(figure, "latency_group_mean", most_is_best=False)
        for figure in WIDE_FIGURES
    },
)

# (d) The convoy effect.

ORDERED_OR_NOT = (*EVERY, UNORDERED)


def convoys(duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    return in_groups(ORDERED_OR_NOT, GROUPS, CONVOYS, (CONVOY_CLIENTS,), seeds, duration)


CONVOY_FIGURES = tuple(
    Figure(
        f"convoy-{name}",
        f"{title}, 10 groups of 3, {CONVOY_CLIENTS} clients",
        Kind.BARS,
        series(ORDERED_OR_NOT, GROUPS, *CONVOYS),
        (metric,),
        "d",
        paper,
    )
    for name, metric, title, paper in (
        (
            "local", "local_latency",
            "Latency of messages to one group, 0 to 50% of messages to random sets of groups",
            "Ahmed-Nacer, Sutra and Conan 2016: messages within a group may be delayed by "
            "those to several. Louzada 2024 sees D&F suffer from it.",
        ),
        (
            "delay", "convoy_delay",
            "What a global message under way adds to a local one",
            "The same; without order (the last series) what is added is load alone.",
        ),
    )
)  # fmt: skip

CONVOY = Experiment(
    "tolerance-convoy",
    "Atomic multicast that tolerates crashes: local messages behind global ones",
    SOURCE,
    {SMALL: convoys(0.05, (1,)), PAPER: convoys(0.3, (1, 2))},
    CONVOY_FIGURES,
    CONVOY_CLAIMS,
    conclusions={
        "convoy-local": ranked(CONVOY_FIGURES[0], "local_latency", most_is_best=False),
        "convoy-delay": ranked(CONVOY_FIGURES[1], "convoy_delay", most_is_best=False),
    },
)

# (e) What tolerance costs.


def prices(clients: tuple[int, ...], duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    return in_groups((*PLAIN, *CFT), NODES, CHAPTER, clients, seeds, duration)


PRICES = Experiment(
    "tolerance-price",
    "What tolerance of crashes costs Skeen, D&F and DCC on the loads of chapter 7",
    SOURCE,
    {SMALL: prices((32,), 0.1, (1,)), PAPER: prices((1, 64), 0.25, (1, 2))},
    tuple(
        Figure(
            f"price-{name}",
            f"{title}: 16 processes, and 16 groups of three",
            Kind.BARS,
            series((*PLAIN, *CFT), NODES, *CHAPTER),
            (metric,),
            "e",
            "Louzada 2024, 8.2: how DCC behaves with a mechanism that tolerates crashes, as "
            "chapter 5 has it, is not known.",
        )
        for name, metric, title in (
            ("throughput", "throughput", "Throughput"),
            ("latency", "latency_group_mean", "Latency to each group"),
            ("packets", "volume", "Packets a message"),
        )
    ),
    PRICE_CLAIMS,
    conclusions={"price-throughput": paid},
)

# (f) Crashes.

ELSEWHERE = """
The same with real processes and `kill -9`: one group of five replicas, each of them a server in a
network namespace of its own, with default settings and a member that sends every millisecond, all
on one machine. The leader is killed, a follower, and both, as many as may crash. The gap is the
longest time from then on in which some member elsewhere was given nothing. It is held against how
long the next leader took to suspect who was killed, and ten round trips of a request to a server
under that load; and against the same load without a fault, which every round has as well, since
what else the machine does makes gaps, too. The table has medians of rounds, with the least and the
most; as root, this writes it:

```sh
python -m benchmarks.availability --replicated 'LEADER PAXOS,LEADER WHITE-BOX' --rounds 6 \\
    --csv docs/tolerance-elsewhere.csv
```
""".strip()

CRASH_AT = "120ms"


def crashes(
    seeds: tuple[int, ...], duration: float, detections: tuple[str, ...] = DETECTIONS
) -> list[Grid]:
    """Clients do not wait for answers; one run without a crash is beside those with one."""
    plans = [
        Faults(),
        *(
            Faults(
                crashes=tuple(f"{process}@{CRASH_AT}" for process in lost.split(",")),
                detection=detection,
            )
            for lost in CRASHES
            for detection in detections
        ),
    ]
    return [
        grid
        for plan in plans
        for grid in in_groups(
            TOLERANT, STRUCK, (CRASH_WORKLOAD,), (8,), seeds, duration, replicas=OF_FIVE,
            faults=plan, rate=150,
        )
    ]  # fmt: skip


AFTER_CRASHES = Experiment(
    "tolerance-crashes",
    "Atomic multicast that tolerates crashes: how long groups stand still",
    SOURCE,
    {SMALL: crashes((1,), 0.3), PAPER: crashes((1, 2), 0.5)},
    (
        Figure(
            "crashes-none",
            "The longest time without a delivery at a process, nobody crashes",
            Kind.TABLE,
            series(TOLERANT, STRUCK, CRASH_WORKLOAD, replicas=OF_FIVE),
            ("gap_elsewhere", "latency_group_mean"),
            "f",
            "What chance alone does: messages are 1,200 a second, and each goes to two of four "
            "groups.",
        ),
        *(
            Figure(
                f"crashes-{name}-{where}",
                f"The longest time without a delivery, {whose}: {CRASHES[lost]} crashes",
                Kind.CURVES,
                series(TOLERANT, STRUCK, CRASH_WORKLOAD, replicas=OF_FIVE, lost=lost),
                ("detection", metric),
                "f",
                paper,
            )
            for name, lost, paper in (
                (
                    "leader", "0",
                    "Papers tell of delays after a suspicion: White-Box needs 7 until all deliver "
                    "what was under way, PrimCast and RamCast 4 (docs/protocols).",
                ),
                ("follower", "4", "A majority goes on: nobody should notice."),
                ("two", "0,1", "As many as may crash: the third in line has to lead."),
                (
                    "last", "15",
                    "As with the first group; but chains lead to this one, and D&F keeps those "
                    "before it locked until it has delivered.",
                ),
            )
            for where, whose, metric in (
                ("same", "at those that are left of the group", "gap_same"),
                ("elsewhere", "in other groups", "gap_elsewhere"),
            )
        ),
    ),
    CRASH_CLAIMS,
    conclusions={"crashes-last-elsewhere": after_crashes},
    elsewhere=ELSEWHERE,
)  # fmt: skip

TOLERANCE = together(
    "tolerance",
    "Atomic multicast that tolerates crashes",
    SOURCE,
    (DELAYS, MANY_DESTINATIONS, WIDE_AREA, CONVOY, PRICES, AFTER_CRASHES),
    INTRODUCTION,
)
