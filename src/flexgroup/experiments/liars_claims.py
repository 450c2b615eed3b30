"""What papers claim of atomic multicast among liars, and what comes out here, as questions to
findings.

The bounds leave room: the claims are about who wins and where. What a conclusion says is computed
from the measurements, so that it cannot say anything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.experiments.experiment import Claim, Judgement
from flexgroup.experiments.figure import name_of
from flexgroup.experiments.findings import Findings, Point, listed
from flexgroup.experiments.groups_of_replicas import CFT, REPLICAS, UNIT, members, the
from flexgroup.liars.named import KINDS

PBFT = "pbft"
DF_BFT = "pbft df-bft"
DCC_BFT = "pbft dcc-bft"
CERTIFIED = "best-effort pbft dcc-bft/sealed"
BYZCAST = "pbft byzcast"
BINARY = "pbft byzcast/binary"
CHAIN = "pbft byzcast/chain"
TREES = (BYZCAST, BINARY, CHAIN)
BFT = (DF_BFT, DCC_BFT, CERTIFIED, BYZCAST)

OF_FOUR = 4
OF_SEVEN = 7

SEALS = "seal=59us,check=152us"
"""What `benchmarks/seals.py` measured of Ed25519 (docs/liars.md)."""
PRICED = f"lan:{SEALS}"
FREE = "lan"
"""The same network, with seals that cost nothing."""

# Delays: three groups, of which a message goes to one, two or all; four where messages meet.
THREE = 3
MEETING = 4
ONE_TWO_ALL = ("random:1", "random:2", "random:3")

# Groups and shapes of the tree.
ANY_TWO = "random:2"
SIZES = (2, 4, 8)

# Attacks: three groups of four, in which the first primary lies, or the last of each group.
ATTACKED = (DCC_BFT, CERTIFIED, BYZCAST)
PRIMARY, BACKUPS = "the primary", "a backup"
NOBODY = "nobody"

# What tolerance costs, in eight groups.
NODES = 8
PAIRS = "partitioned:2x4"
LOADS = ("random:1", ANY_TWO, "random:4", "random:8", PAIRS)
FAMILY = ("dcc", CFT[2], DCC_BFT)

# A wide-area network: a group in each of eight regions, or its members in four.
WIDE = 8
IN_ONE_REGION = f"wan:together={OF_FOUR},{SEALS}"
SPREAD = f"wan:{SEALS}"
WIDE_STACKS = (DCC_BFT, CERTIFIED, BYZCAST, CHAIN)
WIDE_WORKLOADS = (ANY_TWO, "random:8")


def pairs(groups: int) -> str:
    """Return messages to one of the fixed pairs that so many groups are."""
    return f"partitioned:2x{groups // 2}"


def replicas_of(stack: str) -> int:
    return REPLICAS if stack in CFT else OF_FOUR


def measured(findings: Findings, stack: str, workload: str, groups: int) -> Point:
    """Return the point with the most clients, without a liar."""
    return the(findings, stack, workload, members(stack, groups, replicas_of(stack)))


# (a) Delays.


def delays_of(
    findings: Findings, stack: str, workload: str, groups: int = THREE, replicas: int = OF_FOUR
) -> float:
    """Return the delays until all have delivered a message that is alone."""
    return the(findings, stack, workload, members(stack, groups, replicas)).shown(
        "latency_last_mean"
    )


def takes(
    name: str, words: str, stack: str, workloads: Sequence[str], expected: Sequence[float],
    groups: int = THREE, replicas: int = OF_FOUR,
) -> Claim:  # fmt: skip
    """Claim that messages with these destinations take so many delays, alone."""

    def verdict(findings: Findings) -> Judgement:
        found = [delays_of(findings, stack, w, groups, replicas) for w in workloads]
        holds = all(abs(one - other) < 1e-6 for one, other in zip(found, expected, strict=True))
        return holds, f"{', '.join(workloads)}: {listed(found, '.2f')}"

    return Claim(f"delays, {name}", "a", words, verdict, UNIT)


def certificates_take_turns(findings: Findings) -> Judgement:
    point = the(findings, CERTIFIED, ANY_TWO, members(CERTIFIED, 2, OF_SEVEN))
    mean, longest = (point.shown(f"latency_last_{which}") for which in ("mean", "max"))
    return 8 < mean < longest == 9, f"{ANY_TWO}: {mean:.2f}, at most {longest:.2f}"


def waits_for_others(findings: Findings) -> Judgement:
    found = {
        stack: the(findings, stack, ANY_TWO, MEETING * OF_FOUR).shown("latency_last_max")
        for stack in (DF_BFT, *ATTACKED)
    }
    return max(found, key=found.__getitem__) == DF_BFT, "at most: " + ", ".join(
        f"{name_of(stack)} {longest:.1f}" for stack, longest in found.items()
    )


DELAY_CLAIMS = (
    takes("PBFT", "PBFT: request, pre-prepare, prepare, commit", PBFT, ["random:1"], [4], 1),
    takes(
        "DCC-bft", "DCC-bft: 4 for each group on the way", DCC_BFT, ["random:1", "random:3"],
        [4, 12],
    ),
    takes("ByzCast", "ByzCast: 4 for each level of the tree", BYZCAST, ONE_TWO_ALL, [4, 8, 8]),
    takes(
        "ByzCast, chain", "as many levels as groups, if the tree is a chain", CHAIN,
        ["random:1", "random:3"], [4, 12],
    ),
    takes(
        "seven, copies", "with seven replicas f + 1 = 3 copies are needed, of which PBFT has two "
        "under way at a time: 7 for the second group", DCC_BFT, [ANY_TWO], [11], 2, OF_SEVEN,
    ),
    Claim(
        "delays, seven, certificates", "a", "and 5 with certificates, however many replicas: 4 if "
        "it is the turn of the primary to show one, and a delay until it has heard of it "
        "otherwise", certificates_take_turns, UNIT,
    ),
    Claim(
        "delays, locks", "a", "with others, who locks groups one after the other waits longest",
        waits_for_others, UNIT,
    ),
)  # fmt: skip


# (b) Groups, and shapes of the tree; (c) who takes part, and how much is sent.


def growth(findings: Findings, stack: str) -> float:
    """Return how many times the throughput to pairs of two groups that of eight groups is."""
    few, many = (measured(findings, stack, pairs(size), size).throughput for size in SIZES[::2])
    return many / few


def root_is_the_limit(findings: Findings) -> Judgement:
    ratios = {stack: growth(findings, stack) for stack in (BYZCAST, DCC_BFT)}
    return ratios[BYZCAST] < 2 < 3 < ratios[DCC_BFT], "four pairs / one pair: " + ", ".join(
        f"{name_of(stack)} {ratio:.2f}" for stack, ratio in ratios.items()
    )


def tree_that_fits(findings: Findings) -> Judgement:
    fitting, other = growth(findings, CHAIN), growth(findings, BYZCAST)
    return fitting > 3 > other, f"four pairs / one pair: a chain {fitting:.2f}, a star {other:.2f}"


def partly_genuine(findings: Findings) -> Judgement:
    to_one, to_two = (
        [measured(findings, stack, w, NODES).shown("genuine") for stack in TREES]
        for w in ("random:1", ANY_TWO)
    )
    return min(to_one) == 100 and max(to_two) < 60, (
        f"% genuine, two levels, binary and chain: to one group {listed(to_one, '.0f')}; to two "
        f"{listed(to_two, '.0f')}"
    )


def compared_in(findings: Findings, metric: str, workload: str) -> tuple[float, float]:
    """Return what DCC-bft has, and the two levels of ByzCast."""
    chain, tree = (
        measured(findings, stack, workload, NODES).shown(metric) for stack in (DCC_BFT, BYZCAST)
    )
    return chain, tree


def genuine_where_local(findings: Findings) -> Judgement:
    chain, tree = compared_in(findings, "genuine", PAIRS)
    sent, more = compared_in(findings, "volume", PAIRS)
    return chain == 100 and tree < 50 and sent < more, (
        f"in fixed pairs, DCC-bft {chain:.0f}% genuine, {sent:.0f} packets a message; ByzCast "
        f"{tree:.0f}%, {more:.0f}"
    )


def outsiders_where_random(findings: Findings) -> Judgement:
    chain, tree = compared_in(findings, "genuine", ANY_TWO)
    return tree < chain < 100, f"to any two of eight, DCC-bft {chain:.0f}%, ByzCast {tree:.0f}%"


def certificates_save(findings: Findings) -> Judgement:
    kept = [
        (one.shown("volume") / other.shown("volume"), one.throughput / other.throughput)
        for w in (ANY_TWO, "random:4", PAIRS)
        for one, other in [[measured(findings, stack, w, NODES) for stack in (CERTIFIED, DCC_BFT)]]
    ]
    volumes, rates = zip(*kept, strict=True)
    return max(volumes) < 0.8 and max(rates) < 1, (
        f"with certificates / with copies, {ANY_TWO}, random:4, {PAIRS}: packets "
        f"{listed(volumes, '.2f')}, throughput {listed(rates, '.2f')}"
    )


SHAPE_CLAIMS = (
    Claim(
        "tree, root", "b", "what goes to several groups passes the root of a tree of two levels, "
        "so that more groups do not help; DCC-bft has no root", root_is_the_limit, PRICED,
    ),
    Claim(
        "tree, shape", "b", "a tree that fits the destinations helps (Coelho and others 2018 "
        "choose it by the load): a chain has an ancestor of its own for each pair",
        tree_that_fits, PRICED,
    ),
)  # fmt: skip

VOLUME_CLAIMS = (
    Claim(
        "genuine, ByzCast", "c", "3.3.1: ByzCast is genuine where a message goes to one group, and "
        "needs others where it goes to several", partly_genuine, PRICED,
    ),
    Claim(
        "genuine, DCC-bft", "c", "7.5, of DCC: with locality, all is genuine, and fewer packets "
        "are sent", genuine_where_local, PRICED,
    ),
    Claim(
        "genuine, without locality", "c", "without it, DCC needs others, too; but fewer than a "
        "tree", outsiders_where_random, PRICED,
    ),
    Claim(
        "certificates", "c", "ours: one certificate in the place of n copies saves packets, but "
        "costs seals, which are dearer than packets", certificates_save, PRICED,
    ),
)  # fmt: skip


# (d) Attacks.


def positions(groups: int) -> dict[str, tuple[int, ...]]:
    """Return which processes lie, by the words for them."""
    last = tuple(group * OF_FOUR + OF_FOUR - 1 for group in range(groups))
    return {PRIMARY: (0,), BACKUPS: last}


def lying(where: str, kind: str, groups: int = THREE) -> str:
    """Return the liars as a run tells them."""
    return " ".join(f"{process}:{kind}" for process in positions(groups)[where])


def groups_of(stack: str) -> int:
    return 1 if stack == PBFT else THREE


def attack_load(stack: str) -> str:
    return "random:1" if stack == PBFT else ANY_TWO


def attacked(findings: Findings, stack: str, where: str = "", kind: str = "") -> Point:
    groups = groups_of(stack)
    liars = lying(where, kind, groups) if kind else ""
    return the(findings, stack, attack_load(stack), groups * OF_FOUR, liars)


def keeps(findings: Findings, stack: str, where: str, kind: str) -> float:
    """Return the share of the goodput that is left."""
    return attacked(findings, stack, where, kind).throughput / attacked(findings, stack).throughput


UNDER_ATTACK = (PBFT, *ATTACKED)


def verdicts(findings: Findings) -> str:
    """Tell, for each kind and place of liars, in how many checks promises held."""
    findings = findings.on(PRICED)
    rows = [
        "| | " + " | ".join(name_of(stack) for stack in UNDER_ATTACK) + " |",
        "|" + " --- |" * (len(UNDER_ATTACK) + 1),
    ]
    for where in (PRIMARY, BACKUPS):
        for kind in KINDS:
            cells = []
            for stack in UNDER_ATTACK:
                liars = lying(where, kind, groups_of(stack))
                checked = findings.runs_checked(stack, None, liars=liars)
                bad = findings.runs_violated(stack, None, liars=liars)
                cells.append(f"**{bad} of {checked} violated**" if bad else f"{checked} hold")
            rows.append(f"| {where}, `{kind}` | " + " | ".join(cells) + " |")
    return "**Verdicts**, of correct processes, on what the stacks promise:\n\n" + "\n".join(rows)


def nothing_broken(findings: Findings) -> Judgement:
    checked, bad = (
        sum(
            count(stack, None, liars=None) - count(stack, None)
            for stack in UNDER_ATTACK
        )
        for count in (findings.runs_checked, findings.runs_violated)
    )  # fmt: skip
    return checked > 0 == bad, f"{bad} violated of {checked} promises in runs with liars"


def all_answered(findings: Findings) -> Judgement:
    points = [point for point in findings.points if point.liars]
    left = sum(point.unanswered for point in points)
    return bool(points) and left == 0, (
        f"{left:.0f} messages unanswered in {len(points)} settings with liars"
    )


PATIENCE = 500.0
"""So many ms a request of PBFT may take at first, before a replica asks for another view."""
LEFT_OUT = 200.0
"""So many ms of a run are warm-up: a fifth of a second."""
REPLACED = ("twin", "silent", "skip", "forge", "equivocate")
"""Primaries that cannot do this for long without being replaced."""


def replaced_after_the_timer(findings: Findings) -> Judgement:
    gaps = {
        stack: [attacked(findings, stack, PRIMARY, kind).shown("gap_same") for kind in REPLACED]
        for stack in UNDER_ATTACK
    }
    found = [gap for each in gaps.values() for gap in each]
    rest = PATIENCE - LEFT_OUT
    return rest < min(found) and max(found) < rest + 50, (
        f"longest gap in ms, after {LEFT_OUT:.0f} ms of warm-up, with {', '.join(REPLACED)}: "
        + "; ".join(f"{name_of(stack)} {listed(each, '.0f')}" for stack, each in gaps.items())
    )


def slow_primary_stays(findings: Findings) -> Judgement:
    kept = {stack: keeps(findings, stack, PRIMARY, "slow") for stack in UNDER_ATTACK}
    gaps = [attacked(findings, s, PRIMARY, "slow").shown("gap_same") for s in UNDER_ATTACK]
    return max(kept.values()) < 0.2 and max(gaps) < PATIENCE, (
        ", ".join(f"{name_of(stack)} keeps {share:.0%}" for stack, share in kept.items())
        + f"; longest gaps {listed(gaps, '.0f')} ms"
    )


def backups_harmless(findings: Findings) -> Judgement:
    kinds = [kind for kind in KINDS if kind != "skip"]
    kept = {
        stack: [keeps(findings, stack, BACKUPS, kind) for kind in kinds]
        for stack in (PBFT, DCC_BFT, BYZCAST)
    }
    least = {stack: min(zip(shares, kinds, strict=True)) for stack, shares in kept.items()}
    return min(least.values())[0] > 0.7, "the least that is left: " + ", ".join(
        f"{name_of(stack)} {share:.0%} ({kind})" for stack, (share, kind) in least.items()
    )


def turns_cost(findings: Findings) -> Judgement:
    kinds = ("silent", "skip", "forge", "twin")
    kept = [keeps(findings, CERTIFIED, BACKUPS, kind) for kind in kinds]
    copies = [keeps(findings, DCC_BFT, BACKUPS, kind) for kind in kinds]
    return max(kept) < 0.3 and kept[0] < min(copies) / 2, (
        f"with {', '.join(kinds)} it keeps {listed(kept, '.0%')}; with copies "
        f"{listed(copies, '.0%')}"
    )


def a_relay_that_skips(findings: Findings) -> Judgement:
    """Whether a backup that leaves out some packets is worse than one that says nothing, and
    makes primaries fall."""
    told = []
    holds = True
    for stack in (DCC_BFT, BYZCAST):
        skips, silent = (attacked(findings, stack, BACKUPS, kind) for kind in ("skip", "silent"))
        changes = [point.row.get("packets_ViewChange") or 0.0 for point in (skips, silent)]
        holds &= skips.throughput < 0.75 * silent.throughput and changes[0] > changes[1]
        told.append(
            f"{name_of(stack)}: goodput with skip / with silent "
            f"{skips.throughput / silent.throughput:.2f}, view changes sent "
            f"{listed(changes, '.0f')}"
        )
    return holds, "; ".join(told)


ATTACK_CLAIMS = (
    Claim(
        "attacks, promises", "d", "with at most f liars in a group no promise to correct processes "
        "is broken (Castro and Liskov 1999; Louzada 2024, 5.3.2)", nothing_broken, PRICED,
    ),
    Claim(
        "attacks, answers", "d", "every message of a client is answered", all_answered, PRICED,
    ),
    Claim(
        "attacks, primary", "d", "a primary that does nothing useful is replaced when a timer has "
        "run out, and the group goes on", replaced_after_the_timer, PRICED,
    ),
    Claim(
        "attacks, slow primary", "d", "one that is just quicker than the timer is not, and costs "
        "more than all others (Clement and others 2009, of PBFT)", slow_primary_stays, PRICED,
    ),
    Claim(
        "attacks, backups", "d", "a backup in each group costs little, unless it leaves packets "
        "out", backups_harmless, PRICED,
    ),
    Claim(
        "attacks, relays", "d", "ours: one that leaves out some packets costs more than one that "
        "says nothing, as what it relays to another group makes a timer run out there",
        a_relay_that_skips, PRICED,
    ),
    Claim(
        "attacks, turns", "d", "ours: certificates in turns have others wait for whoever lets its "
        "turn pass", turns_cost, PRICED,
    ),
)  # fmt: skip


# (e) What tolerance costs.


def family(findings: Findings, workload: str) -> tuple[float, float]:
    """Return the share of DCC's throughput that tolerance of crashes leaves, and of liars."""
    none, crashes, liars = (measured(findings, s, workload, NODES).throughput for s in FAMILY)
    return crashes / none, liars / none


def liars_cost_more(findings: Findings) -> Judgement:
    kept = [family(findings, workload) for workload in LOADS]
    crashes, liars = zip(*kept, strict=True)
    return all(one < other for other, one in kept), (
        f"with {', '.join(LOADS)}: DCC-cft keeps {listed(crashes, '.1%')} of DCC; DCC-bft "
        f"{listed(liars, '.1%')}"
    )


def share_of_seals(findings: Findings) -> Judgement:
    ratios = {
        stack: [
            measured(findings.on(FREE), stack, w, NODES).throughput
            / measured(findings, stack, w, NODES).throughput
            for w in LOADS
        ]
        for stack in (DCC_BFT, BYZCAST)
    }
    return min(min(each) for each in ratios.values()) > 1.5, (
        f"throughput with free seals / with priced ones, {', '.join(LOADS)}: "
        + "; ".join(f"{name_of(stack)} {listed(each, '.1f')}" for stack, each in ratios.items())
    )


def chain_or_tree(findings: Findings) -> Judgement:
    ratios = {
        w: measured(findings, DCC_BFT, w, NODES).throughput
        / measured(findings, BYZCAST, w, NODES).throughput
        for w in LOADS
    }
    return ratios[PAIRS] > 1.2 and max(ratios[w] for w in LOADS[1:4]) < 1, (
        "DCC-bft / ByzCast: " + ", ".join(f"{w} {ratio:.2f}" for w, ratio in ratios.items())
    )


def paid(findings: Findings) -> str:
    findings = findings.on(PRICED)
    best = []
    for workload in LOADS:
        by_rate = sorted(
            ((measured(findings, stack, workload, NODES).throughput, stack) for stack in BFT),
            reverse=True,
        )
        (first, winner), (second, next_one) = by_rate[:2]
        best.append(
            f"`{workload}` {name_of(winner)} ({first:,.0f}), then {name_of(next_one)} "
            f"({second:,.0f})"
        )
    return (
        "**Who wins.** The highest throughput (messages/s) of those that tolerate liars: "
        f"{'; '.join(best)}. {liars_cost_more(findings)[1].capitalize()}."
    )


PRICE_CLAIMS = (
    Claim(
        "price, liars", "e", "tolerance of liars costs more than tolerance of crashes, on every "
        "load", liars_cost_more, PRICED,
    ),
    Claim(
        "price, seals", "e", "ours: most of that is the price of seals", share_of_seals, PRICED,
    ),
    Claim(
        "price, chain", "e", "8.2: not known how DCC behaves so; ours: in fixed groups better than "
        "a tree, with random destinations worse", chain_or_tree, PRICED,
    ),
)  # fmt: skip


# (f) A wide-area network.


def wide(findings: Findings, stack: str, workload: str, first: bool = True) -> float:
    """Return the latency to each group with the fewest clients, or the most."""
    curve = findings.curve(stack, workload, WIDE * OF_FOUR)
    return curve[0 if first else -1].shown("latency_group_mean")


def tree_is_shorter(findings: Findings) -> Judgement:
    ratios = [
        wide(findings, BYZCAST, w, first) / wide(findings, DCC_BFT, w, first)
        for first in (True, False)
        for w in WIDE_WORKLOADS
    ]
    return max(ratios) < 1, (
        "latency of ByzCast / of DCC-bft, to two and to eight, with the fewest clients, and the "
        f"most: {listed(ratios, '.2f')}"
    )


def spread_costs(findings: Findings) -> Judgement:
    ratios = [
        wide(findings.on(SPREAD), stack, w) / wide(findings.on(IN_ONE_REGION), stack, w)
        for stack in WIDE_STACKS
        for w in WIDE_WORKLOADS
    ]
    return min(ratios) > 1.5, (
        "latency with members in four regions / in one, with the fewest clients, "
        f"{', '.join(map(name_of, WIDE_STACKS))}, each to two and to eight: {listed(ratios, '.1f')}"
    )


def timers_run_out(findings: Findings) -> Judgement:
    """Whether primaries were replaced although nobody lies, and only where members are apart."""
    changes = [
        max(
            point.row.get("packets_ViewChange") or 0.0
            for stack in WIDE_STACKS
            for w in WIDE_WORKLOADS
            for point in findings.on(network).curve(stack, w, WIDE * OF_FOUR)
        )
        for network in (IN_ONE_REGION, SPREAD)
    ]
    return changes[0] == 0 < changes[1], (
        f"most view changes sent in a run, in one region and in four: {listed(changes, '.0f')}"
    )


WIDE_CLAIMS = (
    Claim(
        "wide area, tree", "f", "a tree of two levels is quicker than a chain of groups",
        tree_is_shorter, IN_ONE_REGION,
    ),
    Claim(
        "wide area, spread", "f", "with the members of a group in several regions, each of four "
        "delays is a long one", spread_costs, SPREAD,
    ),
    Claim(
        "wide area, timers", "f", "ours: then timers run out that suit one region, and correct "
        "primaries are replaced until the timers have doubled", timers_run_out, SPREAD,
    ),
)  # fmt: skip
