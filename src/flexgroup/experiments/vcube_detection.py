"""Atomic broadcast over VCube with detectors that are layers, and with suspicions that are wrong.

Tests and answers are packets like others here, but not about messages, so they do not count among
those of the algorithms.
"""

from __future__ import annotations

from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, Judgement
from flexgroup.experiments.figure import Figure, Kind, Series
from flexgroup.experiments.findings import Findings, Point
from flexgroup.experiments.vcube import AT_ONCE, source_after_its_copies
from flexgroup.experiments.vcube_beyond import EVERYBODY, NOBODY_MEASURED, OURS, any_violated
from flexgroup.experiments.vcube_claims import (
    ALL2ALL,
    AS_IN_THE_PAPER,
    HIERARCHICAL,
    SOURCE_LOST,
    STACKS,
)
from flexgroup.worlds.simulator.fault_plans import Faults

VCUBE_TESTS = f"vcube-detector {HIERARCHICAL}"
HEARTBEATS = f"heartbeat {ALL2ALL}"
MAJORITY = "vcube-atomic-majority"
VCUBE_TESTS_MAJORITY = f"vcube-detector {MAJORITY}"

SECOND_ROUND = 60
"""Milliseconds until the second round of tests."""

# The source crashes, and tests find out.


def tested(sizes: tuple[int, ...]) -> list[Grid]:
    """Detectors never stop, so a run ends half a second after the broadcast."""
    return [
        Grid(
            (stack,), ("broadcast",), (0,), (1,), 0.5, (size,), (AS_IN_THE_PAPER,),
            Faults(crashes=source_after_its_copies(stack.split()[1], size).crashes), AT_ONCE, 0.0,
        )
        for size in sizes
        for stack in (VCUBE_TESTS, HEARTBEATS)
    ]  # fmt: skip


def one_round_suffices(findings: Findings) -> Judgement:
    curve = findings.curve(VCUBE_TESTS, "broadcast", None, lost=SOURCE_LOST)
    return all(point.latency < SECOND_ROUND for point in curve), "; ".join(
        f"{point.processes}: {point.latency:.1f} ms" for point in curve
    )


def heartbeats_are_faster(findings: Findings) -> Judgement:
    slow, fast = (
        findings.curve(stack, "broadcast", None, lost=SOURCE_LOST)
        for stack in (VCUBE_TESTS, HEARTBEATS)
    )
    return all(
        one.latency > other.latency for one, other in zip(slow, fast, strict=True)
    ), "; ".join(
        f"{one.processes}: {one.latency:.1f} and {other.latency:.1f} ms"
        for one, other in zip(slow, fast, strict=True)
    )


DETECTORS = Experiment(
    "vcube-detectors",
    "Atomic broadcast over VCube: the source crashes, and the detectors' own tests find out",
    OURS,
    {SMALL: tested((32, 16, 8)), PAPER: tested((128, 64, 32, 16, 8))},
    (
        Figure(
            "4b-detectors",
            "Latency, the source crashes, with detectors that test",
            Kind.CURVES,
            (
                Series("hierarchical, VCube's tests", VCUBE_TESTS, "broadcast", None,
                       AS_IN_THE_PAPER, SOURCE_LOST),
                Series("All2All, heartbeats", HEARTBEATS, "broadcast", None, AS_IN_THE_PAPER,
                       SOURCE_LOST),
            ),
            ("processes", "latency"),
            "5.2",
            "VCube's diagnosis needs more than one round until all know of a crash. All2All's "
            "detector speaks to all directly and is faster.",
        ),
    ),
    (
        Claim(
            "one round", "ours", "nobody waits for a second round of tests: who finds out tells "
            "the others when it flushes", one_round_suffices, AS_IN_THE_PAPER,
        ),
        Claim(
            "direct", "5", "All2All's detector, which speaks to all directly, is faster",
            heartbeats_are_faster, AS_IN_THE_PAPER,
        ),
    ),
)  # fmt: skip


# Suspicions that are wrong.

TIMELY = "neko:jitter=100us"
UNTIMELY = "neko:jitter=2ms"
"""Answers often take longer than the time-out of 4 ms."""
PLANNED = "neko:jitter=50us"

WRONG = ("2:3@3ms-500ms",)
"""Process 2 takes process 3 for crashed."""
FENCED = Faults(crashes=("3@4ms",), suspicions=WRONG, detection="5ms")
"""The same, and process 3 is stopped for it."""
FENCED_LOST = "3"

TWICE = f"{EVERYBODY} all@70ms"
TESTING = (VCUBE_TESTS, HEARTBEATS)
WITH_MAJORITY = (*STACKS, MAJORITY)
TESTING_WITH_MAJORITY = (*TESTING, VCUBE_TESTS_MAJORITY)


def suspicious(seeds: tuple[int, ...]) -> list[Grid]:
    return [
        Grid(
            TESTING_WITH_MAJORITY, ("broadcast",), (0,), seeds, 0.1, (8,), (TIMELY, UNTIMELY),
            casts=TWICE, drain=0.4,
        ),
        Grid(WITH_MAJORITY, ("broadcast",), (0,), seeds, 0.1, (8,), (UNTIMELY,), casts=TWICE),
        Grid(
            WITH_MAJORITY, ("broadcast",), (0,), seeds, 0.1, (8,), (PLANNED,),
            Faults(suspicions=WRONG), EVERYBODY,
        ),
        Grid(WITH_MAJORITY, ("broadcast",), (0,), seeds, 0.1, (8,), (PLANNED,), FENCED, EVERYBODY),
    ]  # fmt: skip


def broken(findings: Findings, stacks: tuple[str, ...]) -> Judgement:
    """Tell whether each stack violates a promise, or leaves messages that are never delivered."""
    found, told = troubles(findings, stacks)
    return all(violated > 0 or point.unanswered > 0 for violated, point in found), told


def whole(findings: Findings, stacks: tuple[str, ...], lost: str = "") -> Judgement:
    """Tell whether no promise is violated, and what is to be delivered is."""
    found, told = troubles(findings, stacks, lost)
    # What a process that crashes broadcast may be lost with it.
    return all(
        violated == 0 and point.unanswered <= point.crashed for violated, point in found
    ), told


def troubles(
    findings: Findings, stacks: tuple[str, ...], lost: str = ""
) -> tuple[list[tuple[int, Point]], str]:
    """Return the violations of each stack, with its measures, and the same in words."""
    found = [
        (any_violated(findings, stack, lost), findings.at(stack, "broadcast", 0, 8, lost))
        for stack in stacks
    ]
    told = [
        f"{stack}: {violated} violations, {point.unanswered:.1f} messages a run undelivered"
        for stack, (violated, point) in zip(stacks, found, strict=True)
    ]
    return found, "; ".join(told)


FALSE_SUSPICIONS = Experiment(
    "vcube-false-suspicions",
    "Atomic broadcast over VCube: suspicions that are wrong, and what helps",
    OURS,
    {SMALL: suspicious((1, 2, 3)), PAPER: suspicious(tuple(range(1, 31)))},
    tuple(
        Figure(
            f"suspicions-{name}", title, Kind.TABLE,
            tuple(Series(stack, stack, "broadcast", 8, network, lost) for stack in stacks),
            ("unanswered", "volume", "latency"), "ours", NOBODY_MEASURED,
        )
        for name, title, stacks, network, lost in (
            ("timely", "Answers come in time", TESTING_WITH_MAJORITY, TIMELY, ""),
            ("untimely", "Answers often come too late", TESTING_WITH_MAJORITY, UNTIMELY,
             ""),
            ("unheard", "The same delays, and nobody suspects", WITH_MAJORITY, UNTIMELY,
             ""),
            ("wrong", "Process 2 wrongly suspects process 3", WITH_MAJORITY, PLANNED, ""),
            ("fenced", "The same, and process 3 is stopped", WITH_MAJORITY, PLANNED,
             FENCED_LOST),
        )
    ),
    (
        Claim(
            "too late", "ours", "answers that come too late break order or delivery",
            lambda findings: broken(findings, TESTING), UNTIMELY,
        ),
        Claim(
            "one", "ours", "one wrong suspicion of one process by one other suffices",
            lambda findings: broken(findings, STACKS), PLANNED,
        ),
        Claim(
            "delays", "ours", "delays alone do no harm: without a detector all is well",
            lambda findings: whole(findings, STACKS), UNTIMELY,
        ),
        Claim(
            "time-out", "ours", "a time-out that answers keep repairs it",
            lambda findings: whole(findings, TESTING), TIMELY,
        ),
        Claim(
            "fence", "ours", "stopping whoever is suspected repairs it",
            lambda findings: whole(findings, STACKS, FENCED_LOST), PLANNED,
        ),
        Claim(
            "majority, one", "ours", "so does a majority that decides on the order, and nobody has "
            "to be stopped", lambda findings: whole(findings, (MAJORITY,)), PLANNED,
        ),
        Claim(
            "majority, too late", "ours", "also if answers often come too late",
            lambda findings: whole(findings, (VCUBE_TESTS_MAJORITY,)), UNTIMELY,
        ),
        Claim(
            "majority, crash", "ours", "also if the suspect has crashed",
            lambda findings: whole(findings, (MAJORITY,), FENCED_LOST), PLANNED,
        ),
    ),
)  # fmt: skip
