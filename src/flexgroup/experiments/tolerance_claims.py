"""What papers claim of atomic multicast that tolerates crashes, and what comes out here, as
questions to findings.

The bounds leave room: the claims are about who wins and where. What a conclusion says is computed
from the measurements, so that it cannot say anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from flexgroup.experiments.experiment import Claim, Conclusion, Judgement
from flexgroup.experiments.figure import Figure, Kind, name_of
from flexgroup.experiments.findings import Findings, Point, listed
from flexgroup.experiments.groups_of_replicas import CFT, PLAIN, REPLICAS, UNIT, members, the
from flexgroup.metrics.catalogue import find_metric

SKEEN_CFT, DF_CFT, DCC_CFT = CFT
FT_ABCAST = "leader paxos ft-abcast"
WHITE_BOX = "leader white-box"
PRIMCAST = "leader primcast"
RAMCAST = "leader protected-memory ramcast"
TOLERANT = (*CFT, FT_ABCAST, WHITE_BOX, PRIMCAST, RAMCAST)

# Delays: two groups alone, three of which messages choose two.
ALONE = 2
CONCURRENT = 3

# Destinations, and local messages beside global ones.
GROUPS = 10
DESTINATIONS = ("random:1", "random:2", "random:4", "random:8")
SHARES = ("0", "0.01", "0.05", "0.2", "0.5")
UNORDERED = "leader best-effort"
CONVOY_CLIENTS = 16

# A wide-area network: a group in each of eight regions, or its members in three.
WIDE = 8
IN_ONE_REGION = f"wan:together={REPLICAS}"
SPREAD = "wan"
WIDE_WORKLOADS = ("random:2", "random:8")

# Chapter 7 of the DCC dissertation.
NODES = 16
CHAPTER = (
    "random:2", "random:4", "random:8", "random:N", "tpcc", "partitioned:2x8", "partitioned:4x4",
    "partitioned:8x2",
)  # fmt: skip

# Crashes: four groups of five, of which two may crash.
STRUCK = 4
OF_FIVE = 5
LEADER, FOLLOWER, TWO, LAST = "0", "4", "0,1", "15"
CRASHES = {
    LEADER: "the leader of the first group",
    FOLLOWER: "a follower",
    TWO: "the leader and the next",
    LAST: "the leader of the last group",
}
"""Chains lead from the first group to the last, so that it matters which one is struck."""
DETECTIONS = ("10ms", "30ms", "100ms")
CRASH_WORKLOAD = "random:2"


def with_share(share: str) -> str:
    """Return local messages, and a share of them to random sets of groups instead.

    It is written where it is nothing, too: other experiments run `random:1` with other clients.
    """
    return f"random:1@{share}"


CONVOYS = tuple(with_share(share) for share in SHARES)


# Conclusions.


def ranked(figure: Figure, metric: str, most_is_best: bool) -> Conclusion:
    """Return a paragraph that says of each workload of a figure who is first, second and last, with
    the most clients, and of curves with the fewest, too.

    Where some tolerate crashes, it is about these.
    """
    shown = find_metric(metric)
    tolerant = tuple(series for series in figure.series if series.stack in TOLERANT)

    def order(findings: Findings, at: int) -> str:
        rows = [point.row for point in findings.points]
        by_workload: dict[str, list[tuple[float, str]]] = {}
        unknown: dict[str, list[str]] = {}
        for series in tolerant or figure.series:
            workload, found = str(series.workload), figure.points_of(series, rows)
            value = shown.shown(found[at].get(shown.name)) if found else None
            if value is None:
                unknown.setdefault(workload, []).append(series.label)
            else:
                by_workload.setdefault(workload, []).append((value, series.label))
        told = []
        for workload, values in by_workload.items():
            words = [
                f"{label} ({format(value, shown.digits)})"
                for value, label in sorted(values, reverse=most_is_best)
            ]
            last = f", and last {words[-1]}" if len(words) > 2 else ""
            without = unknown.get(workload)
            silent = f" (nothing to measure of {' and '.join(without)})" if without else ""
            told.append(f"`{workload}` {', then '.join(words[:2])}{last}{silent}")
        return "; ".join(told)

    def conclude(findings: Findings) -> str:
        loads = {"with the most clients": -1}
        if figure.kind is Kind.CURVES:
            loads = {"with the fewest clients": 0, **loads}
        told = [f"{load}: {order(findings, at)}" for load, at in loads.items()]
        best = "highest" if most_is_best else "lowest"
        whose = " of those that tolerate crashes" if tolerant else ""
        return f"**Who wins.** The {best} {shown.heading}{whose}, {'; '.join(told)}."

    return conclude


def after_crashes(findings: Findings) -> str:
    """Say how much longer than the detection each protocol stands still, and for how long others
    do."""
    told = []
    for stack in TOLERANT:
        first, last = (struck(findings, stack, lost) for lost in (LEADER, LAST))
        waits = [point.shown("gap_same") - point.shown("detection") for point in first]
        others = [points[-1].shown("gap_elsewhere") for points in (first, last)]
        told.append((waits[-1], f"{name_of(stack)} {listed(waits, '.1f')}", stack, others))
    told.sort()
    still = [f"{name_of(stack)} {listed(others, '.0f')}" for _, _, stack, others in told]
    return (
        "**Who wins.** When a leader crashes, its group stands still until that is detected, and "
        f"then for so many ms more, with detection after {', '.join(DETECTIONS)}: "
        f"{'; '.join(words for _, words, _, _ in told)}. With detection after {DETECTIONS[-1]}, "
        "other groups stand still for so many ms, if the first group is struck and if the last is: "
        f"{'; '.join(still)}."
    )


def fewest_delays(findings: Findings) -> str:
    """Say who needs the fewest delays, and how far from the published bounds they were seen."""
    findings = findings.on(UNIT)
    told = []
    for stack in (*PLAIN, *TOLERANT):
        alone = delays(findings, stack, ALONE, "latency_group_mean")
        worst = delays(findings, stack, CONCURRENT, "latency_group_max")
        told.append((alone, worst, f"{name_of(stack)} {alone:.0f} and {worst:.1f}"))
    told.sort()
    return (
        "**Who wins.** Delays alone, and the most that were seen with others, the fewest first: "
        f"{', '.join(words for _, _, words in told)}."
    )


# (a) Delays.


def delays(findings: Findings, stack: str, groups: int, metric: str) -> float:
    return the(findings, stack, "random:2", members(stack, groups)).shown(metric)


def takes(stack: str, alone: float, worst: float, room: float = 0.3) -> Claim:
    """Claim that a message takes so many delays to the first members of groups, alone and at
    worst."""

    def verdict(findings: Findings) -> Judgement:
        first = delays(findings, stack, ALONE, "latency_group_mean")
        seen = delays(findings, stack, CONCURRENT, "latency_group_max")
        holds = abs(first - alone) < 1e-6 and worst - room < seen <= worst
        return holds, f"{first:.2f} alone, at most {seen:.2f} with others"

    name = name_of(stack)
    return Claim(
        f"delays, {name}", "a", f"{name}: {alone:g} delays alone, up to {worst:g} with others",
        verdict, UNIT,
    )  # fmt: skip


def followers_one_later(findings: Findings) -> Judgement:
    found = [
        delays(findings, stack, ALONE, "latency_last_mean")
        - delays(findings, stack, ALONE, "latency_group_mean")
        for stack in (WHITE_BOX, *CFT)
    ]
    return all(abs(one - 1) < 1e-6 for one in found), f"later by {listed(found, '.2f')}"


def skeen_over_consensus(findings: Findings) -> Judgement:
    first = delays(findings, SKEEN_CFT, ALONE, "latency_group_mean")
    seen = delays(findings, SKEEN_CFT, CONCURRENT, "latency_group_max")
    return abs(first - 6) < 1e-6 and 9 < seen < 14, (
        f"{first:.2f} alone, at most {seen:.2f} with others: 10, and 2 for each batch of "
        "a log that is ahead"
    )


def chains_have_no_bound(findings: Findings) -> Judgement:
    seen = [delays(findings, s, CONCURRENT, "latency_last_max") for s in ("df", DF_CFT, FT_ABCAST)]
    return min(seen) > 6 and max(seen) > 12, (
        f"D&F, D&F-cft and ft-abcast at most {listed(seen, '.1f')}"
    )


DELAY_CLAIMS = (
    takes("skeen", 2, 4),
    takes(WHITE_BOX, 3, 5),
    takes(PRIMCAST, 3, 5),
    takes(RAMCAST, 3, 5),
    Claim(
        "delays, Skeen over consensus", "a", "Skeen's algorithm over consensus: 6 delays alone, up "
        "to 12 with others", skeen_over_consensus, UNIT,
    ),
    Claim(
        "delays, followers", "a", "followers of White-Box deliver one delay after leaders; so do "
        "those over a log", followers_one_later, UNIT,
    ),
    Claim(
        "delays, D&F", "a", "who locks groups one after the other has no bound with others",
        chains_have_no_bound, UNIT,
    ),
)  # fmt: skip


# (b) Destinations.


def peaks(findings: Findings, stack: str) -> list[float]:
    size = members(stack, GROUPS)
    return [the(findings, stack, workload, size).throughput for workload in DESTINATIONS]


def chain_overtakes(findings: Findings) -> Judgement:
    chain = peaks(findings, DCC_CFT)
    others = [
        max(each)
        for each in zip(
            *(peaks(findings, stack) for stack in (SKEEN_CFT, WHITE_BOX, PRIMCAST)), strict=True
        )
    ]
    ratios = [one / other for one, other in zip(chain, others, strict=True)]
    return ratios[1] < 1 < ratios[-1], (
        f"DCC-cft / the best of Skeen-cft, White-Box and PrimCast with 1, 2, 4, 8: "
        f"{listed(ratios, '.2f')}"
    )


def all_lose(findings: Findings) -> Judgement:
    kept = {stack: peaks(findings, stack) for stack in TOLERANT}
    ratios = {stack: values[-1] / values[0] for stack, values in kept.items()}
    return all(ratio < 0.5 for ratio in ratios.values()), "; ".join(
        f"{name_of(stack)} keeps {ratio:.1%}" for stack, ratio in ratios.items()
    )


DESTINATION_CLAIMS = (
    Claim(
        "destinations, chain", "b", "as without crashes (7.1), a chain has the better throughput "
        "the more destinations there are", chain_overtakes,
    ),
    Claim("destinations, all", "b", "with eight groups all lose more than half", all_lose),
)  # fmt: skip


# (c) A wide-area network.


def against(
    findings: Findings, chain: str, others: Sequence[str], workload: str, first: bool
) -> float:
    """Return the latency of a chain over that of the best of others, with the fewest or with the
    most clients. In a closed loop, throughput is the clients over that."""
    at = 0 if first else -1
    own, *theirs = (
        findings.curve(stack, workload, members(stack, WIDE))[at].shown("latency_group_mean")
        for stack in (chain, *others)
    )
    return own / min(theirs)


def chain_in_wide_area(
    name: str,
    words: str,
    chain: str,
    others: tuple[str, ...],
    network: str,
    wins: dict[tuple[str, bool], bool],
) -> Claim:
    """Claim that a chain wins or loses, by workload, and with the fewest or the most clients."""

    def verdict(findings: Findings) -> Judgement:
        ratios = {
            (workload, first): against(findings, chain, others, workload, first)
            for first in (True, False)
            for workload in WIDE_WORKLOADS
        }
        few, many = ([ratios[w, first] for w in WIDE_WORKLOADS] for first in (True, False))
        return all((ratios[where] < 1) is expected for where, expected in wins.items()), (
            f"latency of {name_of(chain)} / {' or '.join(map(name_of, others))} to 2 and "
            f"to 8, with the fewest clients: {listed(few, '.2f')}; with the most: "
            f"{listed(many, '.2f')}"
        )

    return Claim(f"wide area, {name}", "c", words, verdict, network)


TWO_OF, EIGHT_OF = WIDE_WORKLOADS
LOSES = dict.fromkeys([(w, first) for w in WIDE_WORKLOADS for first in (True, False)], False)

WIDE_CLAIMS = (
    chain_in_wide_area(
        "DCC, few clients", "with few clients, DCC takes longer than Skeen", "dcc", ("skeen",),
        SPREAD, {(TWO_OF, True): False, (EIGHT_OF, True): False},
    ),
    chain_in_wide_area(
        "DCC, two", "with many clients, DCC is faster than Skeen to two destinations", "dcc",
        ("skeen",), SPREAD, {(TWO_OF, False): True},
    ),
    chain_in_wide_area(
        "DCC, eight", "and to eight, when processes have no time left", "dcc", ("skeen",), SPREAD,
        {(EIGHT_OF, False): True},
    ),
    chain_in_wide_area(
        "DCC-cft, region", "with the replicas of a group in one region, DCC-cft is faster than "
        "Skeen-cft to two groups with many clients, and slower otherwise", DCC_CFT, (SKEEN_CFT,),
        IN_ONE_REGION, {**LOSES, (TWO_OF, False): True},
    ),
    chain_in_wide_area(
        "DCC-cft, PrimCast", "and always slower than PrimCast", DCC_CFT, (PRIMCAST,),
        IN_ONE_REGION, LOSES,
    ),
    chain_in_wide_area(
        "DCC-cft, spread", "with the replicas of a group in several regions, DCC-cft is slower "
        "than the best of Skeen-cft, White-Box and PrimCast", DCC_CFT,
        (SKEEN_CFT, WHITE_BOX, PRIMCAST), SPREAD, LOSES,
    ),
)  # fmt: skip


# (d) The convoy effect.


def local(findings: Findings, stack: str, share: str, metric: str = "local_latency") -> float:
    size = members(stack, GROUPS)
    return the(findings, stack, with_share(share), size).shown(metric)


def slower(findings: Findings, stack: str) -> float:
    """Return what 5% of global messages make of the latency of local ones."""
    return local(findings, stack, "0.05") / local(findings, stack, "0")


def locks_suffer(findings: Findings) -> Judgement:
    skeen, df, dcc = ratios = [slower(findings, stack) for stack in PLAIN]
    return df > skeen > dcc, (
        "latency of local messages with 5% global ones / with none, Skeen, D&F, DCC: "
        f"{listed(ratios, '.2f')}"
    )


def chain_lets_pass(findings: Findings) -> Judgement:
    ratios = {stack: slower(findings, stack) for stack in TOLERANT}
    others = [ratio for stack, ratio in ratios.items() if stack != DCC_CFT]
    return ratios[DCC_CFT] < 1.2 and ratios[DCC_CFT] < min(others), (
        "latency of local messages with 5% global ones / with none: "
        + ", ".join(f"{name_of(stack)} {ratio:.2f}" for stack, ratio in ratios.items())
    )


def more_than_load(findings: Findings) -> Judgement:
    """Whether messages wait for order, and not only for processes that are busy."""
    load = local(findings, UNORDERED, "0.2", "convoy_delay")
    added = {stack: local(findings, stack, "0.2", "convoy_delay") for stack in TOLERANT}
    # Where every local message meets a global one, none is left to compare with.
    return all(one > load or isnan(one) for one in added.values()), (
        f"with 20% global ones, ms added without order {load:.3f}; with: "
        + ", ".join(f"{name_of(stack)} {one:.3f}" for stack, one in added.items())
    )


CONVOY_CLAIMS = (
    Claim("convoy, locks", "d", "D&F suffers from it, more than Skeen and DCC", locks_suffer),
    Claim(
        "convoy, chain", "d", "of those that tolerate crashes, DCC-cft lets local messages pass",
        chain_lets_pass,
    ),
    Claim(
        "convoy, order", "d", "local messages wait for global ones in every protocol that "
        "tolerates crashes, by more than load explains", more_than_load,
    ),
)  # fmt: skip


# (e) What tolerance costs.


def price(findings: Findings, plain: str, tolerant: str, workload: str) -> float:
    """Return the share of the throughput that is left."""
    kept, had = (
        the(findings, stack, workload, members(stack, NODES)).throughput
        for stack in (tolerant, plain)
    )
    return kept / had


def prices(findings: Findings) -> dict[str, list[float]]:
    return {
        plain: [price(findings, plain, tolerant, workload) for workload in CHAPTER]
        for plain, tolerant in zip(PLAIN, CFT, strict=True)
    }


def told_prices(kept: dict[str, list[float]]) -> str:
    return "; ".join(
        f"{name_of(plain)} keeps {listed(values, '.0%')}" for plain, values in kept.items()
    )


def all_pay(findings: Findings) -> Judgement:
    kept = prices(findings)
    return max(max(values) for values in kept.values()) < 1, (
        f"with {', '.join(CHAPTER)}: {told_prices(kept)}"
    )


def chain_still_overtakes(findings: Findings) -> Judgement:
    """Whether what chapter 7 says of DCC and Skeen is true of both with tolerance."""
    ratios = {
        workload: the(findings, DCC_CFT, workload, members(DCC_CFT, NODES)).throughput
        / the(findings, SKEEN_CFT, workload, members(SKEEN_CFT, NODES)).throughput
        for workload in CHAPTER
    }
    few, many = ("random:2", "tpcc"), ("random:8", "random:N", "partitioned:4x4", "partitioned:8x2")
    holds = max(ratios[w] for w in few) < 1 < min(ratios[w] for w in many)
    return holds, "DCC-cft / Skeen-cft: " + ", ".join(
        f"{workload} {ratio:.2f}" for workload, ratio in ratios.items()
    )


def paid(findings: Findings) -> str:
    kept = prices(findings)
    means = {plain: sum(values) / len(values) for plain, values in kept.items()}
    order = sorted(means, key=lambda plain: -means[plain])
    return (
        f"**Who wins.** Of their throughput, with {', '.join(f'`{w}`' for w in CHAPTER)}: "
        f"{told_prices(kept)}. Tolerance costs {name_of(order[0])} least on average and "
        f"{name_of(order[-1])} most; {chain_still_overtakes(findings)[1]}."
    )


PRICE_CLAIMS = (
    Claim("price", "e", "tolerance costs throughput on every load", all_pay),
    Claim(
        "price, DCC", "e", "with tolerance as without, DCC loses to Skeen with few destinations "
        "and wins with many and in groups", chain_still_overtakes,
    ),
)  # fmt: skip


# (f) Crashes.


def struck(findings: Findings, stack: str, lost: str) -> list[Point]:
    """Return the points with these crashes, as detection takes longer."""
    curve = findings.curve(stack, CRASH_WORKLOAD, members(stack, STRUCK, OF_FIVE), lost)
    return sorted(curve, key=lambda point: point.shown("detection"))


def undisturbed(findings: Findings, stack: str) -> float:
    """Return the longest gap where nobody crashes, in ms."""
    return struck(findings, stack, "")[0].shown("gap_elsewhere")


AFTERWARDS = 15.0
"""So many ms after the detection, or after a gap that comes by itself, groups go on."""
BEHIND = 0.3
"""And so much of the time that they stood still, to work on what came meanwhile."""


def waits_for_detection(findings: Findings, lost: str) -> Judgement:
    holds, told = True, []
    for stack in TOLERANT:
        points = struck(findings, stack, lost)
        waits = [point.shown("gap_same") - point.shown("detection") for point in points]
        holds &= all(
            0
            <= wait
            < AFTERWARDS + undisturbed(findings, stack) + BEHIND * point.shown("detection")
            for wait, point in zip(waits, points, strict=True)
        )
        told.append(f"{name_of(stack)} {listed(waits, '.1f')}")
    return holds, f"ms after the detection: {'; '.join(told)}"


def nobody_notices(findings: Findings) -> Judgement:
    found = {
        stack: (
            undisturbed(findings, stack),
            [p.shown("gap_same") for p in struck(findings, stack, FOLLOWER)],
        )
        for stack in TOLERANT
    }
    holds = all(max(gaps) < AFTERWARDS + usual for usual, gaps in found.values())
    return holds, "gaps in ms, without a crash and with one: " + "; ".join(
        f"{name_of(stack)} {usual:.1f}, {listed(gaps, '.1f')}"
        for stack, (usual, gaps) in found.items()
    )


def elsewhere(findings: Findings, stack: str, lost: str) -> float:
    """Return the longest gap in other groups, with the longest detection, over that time."""
    point = struck(findings, stack, lost)[-1]
    return point.shown("gap_elsewhere") / point.shown("detection")


def told_elsewhere(shares: dict[tuple[str, str], float]) -> str:
    """Write these down, of the first group struck and of the last."""
    stacks = dict.fromkeys(stack for stack, _ in shares)
    return "longest gap elsewhere / detection, the first group struck, and the last: " + "; ".join(
        f"{name_of(stack)} {shares[stack, LEADER]:.2f}, {shares[stack, LAST]:.2f}"
        for stack in stacks
    )


def all_wait(findings: Findings) -> Judgement:
    """Whether groups wait in which nobody crashed, wherever somebody did."""
    stacks = (SKEEN_CFT, WHITE_BOX, PRIMCAST, RAMCAST)
    shares = {(s, lost): elsewhere(findings, s, lost) for s in stacks for lost in (LEADER, LAST)}
    return min(shares.values()) > 0.7, told_elsewhere(shares)


def locks_wait_behind(findings: Findings) -> Judgement:
    stacks = (DF_CFT, FT_ABCAST)
    shares = {(s, lost): elsewhere(findings, s, lost) for s in stacks for lost in (LEADER, LAST)}
    holds = all(shares[s, LEADER] < 0.5 and shares[s, LAST] > 0.7 for s in stacks)
    return holds, told_elsewhere(shares)


def chain_goes_on(findings: Findings) -> Judgement:
    shares = {(DCC_CFT, lost): elsewhere(findings, DCC_CFT, lost) for lost in (LEADER, LAST)}
    return max(shares.values()) < 0.5, told_elsewhere(shares)


def nothing_lost(findings: Findings) -> Judgement:
    points = [point for stack in TOLERANT for point in findings.points if point.stack == stack]
    crashed = [point for point in points if point.lost]
    left = sum(point.unanswered for point in crashed)
    return left == 0, f"{left:.0f} messages unanswered in {len(crashed)} settings with crashes"


CRASH_CLAIMS = (
    Claim(
        "crashes, leader", "f", "when a leader crashes, its group goes on right after that is "
        "detected",
        lambda findings: waits_for_detection(findings, LEADER),
    ),
    Claim(
        "crashes, two", "f", "so it does when two of five crash, the leader and the next",
        lambda findings: waits_for_detection(findings, TWO),
    ),
    Claim("crashes, follower", "f", "when a follower crashes, nobody waits", nobody_notices),
    Claim(
        "crashes, elsewhere", "f", "where timestamps decide, all other groups wait as well: for "
        "messages that go to both", all_wait,
    ),
    Claim(
        "crashes, locks", "f", "where groups are locked one after the other, those before the one "
        "that is struck wait", locks_wait_behind,
    ),
    Claim("crashes, chain", "f", "in DCC-cft, other groups hardly wait", chain_goes_on),
    Claim("crashes, answers", "f", "every message of a client is answered", nothing_lost),
)  # fmt: skip
