"""What section 5 of the paper on atomic broadcast over VCube claims, as questions to findings.

Sizes are those that a scale runs, so the same question can be put to both scales. Where the paper
gives a figure, ours is asked to come near it; one that does not is a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from flexgroup.experiments.experiment import Claim, Judgement
from flexgroup.experiments.findings import Findings, Point, listed

HIERARCHICAL = "vcube-atomic"
ALL2ALL = "all2all-atomic"
PUBLISHED = "vcube-atomic-published"
STACKS = (HIERARCHICAL, ALL2ALL)

AS_IN_THE_PAPER = "neko:contention=no"
"""A copy of a message leaves after the one before; nothing else waits for anything."""
CONTENDED = "neko"
"""A process does one thing at a time."""

SOURCE_LOST = "0"
P1_LOST = "1"

CROSSING = 128
CROSSING_WITH_FAULTS = 512

Pair = tuple[Point, Point]
"""The hierarchical algorithm and All2All in a system of the same size."""


def pairs(findings: Findings, lost: str = "", stack: str = HIERARCHICAL) -> list[Pair]:
    """Return the pairs in systems of growing size."""
    hierarchical, all2all = (
        findings.curve(which, "broadcast", None, lost=lost) for which in (stack, ALL2ALL)
    )
    return list(zip(hierarchical, all2all, strict=True))


def savings(found: Sequence[Pair]) -> list[float]:
    return [1 - ours.volume / theirs.volume for ours, theirs in found]


def fewer_messages(findings: Findings, lost: str = "") -> Judgement:
    found = pairs(findings, lost)
    saved = savings(found)
    sizes = listed((ours.processes for ours, _ in found), "d")
    return min(saved) > 0, f"fewer by {listed(saved, '.1%')} with {sizes} processes"


def saves_on_average(findings: Findings, papers: float, lost: str = "") -> Judgement:
    saved = savings(pairs(findings, lost))
    mean = sum(saved) / len(saved)
    return abs(mean - papers) < 0.01, f"fewer by {mean:.2%} on average, in the paper {papers:.2%}"


def as_counted(findings: Findings) -> Judgement:
    """Compare with the counts of the paper, which hold without faults and with exact time."""
    found = pairs(findings)
    exact = all(
        ours.volume == 4 * (ours.processes**2 - 1) / 3
        and theirs.volume == 2 * theirs.processes * (theirs.processes - 1)
        for ours, theirs in found
    )
    return exact, "; ".join(
        f"{ours.processes}: {ours.volume:,.0f} and {theirs.volume:,.0f}" for ours, theirs in found
    )


def crosses(findings: Findings, size: int, lost: str = "", stack: str = HIERARCHICAL) -> Judgement:
    """All2All is faster in smaller systems, and the hierarchical algorithm from this size on."""
    found = pairs(findings, lost, stack)
    holds = all(
        (ours.latency < theirs.latency) == (ours.processes >= size) for ours, theirs in found
    )
    return holds, "; ".join(
        f"{ours.processes}: {ours.latency:.1f} and {theirs.latency:.1f} ms"
        for ours, theirs in found
    )


def linear_and_exponential(findings: Findings) -> Judgement:
    """Tell whether each doubling of the size adds the same to the one, and doubles the other."""
    found = pairs(findings)
    added = _steps([ours.latency for ours, _ in found])
    more = _steps([theirs.latency for _, theirs in found])
    doubles = all(1.9 * before < after < 2.1 * before for before, after in pairwise(more))
    holds = doubles and max(added) < 1.3 * min(added)
    return holds, (
        f"a doubling of the system adds {listed(added, '.1f')} ms; "
        f"to All2All {listed(more, '.1f')} ms"
    )


def delayed_by(findings: Findings, stack: str, papers: float, lost: str) -> Judgement:
    """Return how much longer an algorithm takes if a process crashes."""
    free, faulty = (findings.curve(stack, "broadcast", None, lost=who) for who in ("", lost))
    more = [after.latency - before.latency for before, after in zip(free, faulty, strict=True)]
    mean = sum(more) / len(more)
    return abs(mean - papers) < 1, (
        f"{mean:.2f} ms on average ({listed(more, '.1f')}), in the paper {papers}"
    )


def faster_by(findings: Findings, stack: str, papers: float) -> Judgement:
    """Return how much faster a broadcast is among the processes that are left."""
    free, left = (findings.curve(stack, "broadcast", None, lost=lost) for lost in ("", P1_LOST))
    less = [before.latency - after.latency for before, after in zip(free, left, strict=True)]
    return all(abs(each - papers) < 0.05 for each in less), (
        f"less by {listed(less, '.1f')} ms; paper: {papers}"
    )


def fewer_than_without_faults(findings: Findings) -> Judgement:
    less = [
        free.volume - left.volume
        for (_, left), (_, free) in zip(pairs(findings, P1_LOST), pairs(findings), strict=True)
    ]
    return min(less) > 0, f"All2All sends {listed(less, ',.0f')} fewer"


def like_a_lost_source(findings: Findings) -> Judgement:
    source, other = pairs(findings, SOURCE_LOST), pairs(findings, P1_LOST)
    both = [
        (one, another)
        for ones, others in zip(source, other, strict=True)
        for one, another in zip(ones, others, strict=True)
    ]
    holds = all(
        one.latency == another.latency and one.volume == another.volume for one, another in both
    )
    later = max(abs(one.latency - another.latency) for one, another in both)
    more = max(abs(1 - another.volume / one.volume) for one, another in both)
    return holds, f"latency differs by up to {later:.1f} ms, the number of messages by {more:.1%}"


FAULT_FREE_CLAIMS = (
    Claim(
        "fewer", "5.1", "the hierarchical algorithm sends fewer messages in systems of every size",
        fewer_messages, AS_IN_THE_PAPER,
    ),
    Claim(
        "21.45%", "5.1, figure 3a", "it sends 21.45% fewer messages on average",
        lambda findings: saves_on_average(findings, 0.2145), AS_IN_THE_PAPER, CROSSING,
    ),
    Claim(
        "counted", "ours", "4(n^2 - 1)/3 messages against 2n(n - 1)", as_counted, AS_IN_THE_PAPER,
    ),
    Claim(
        "crossing", "5.1, figure 3b",
        "All2All is faster in small systems, the hierarchical algorithm from 128 processes on",
        lambda findings: crosses(findings, CROSSING), AS_IN_THE_PAPER, CROSSING,
    ),
    Claim(
        "growth", "5.1, figure 3b",
        "against the logarithm of the size, latency grows linearly; All2All's exponentially",
        linear_and_exponential, AS_IN_THE_PAPER,
    ),
    Claim(
        "contended", "ours",
        "where a process does one thing at a time, the hierarchical algorithm is faster from 64 on",
        lambda findings: crosses(findings, 64), CONTENDED, 64,
    ),
)  # fmt: skip

SOURCE_CLAIMS = (
    Claim(
        "fewer", "5.2", "the hierarchical algorithm sends fewer messages in systems of every size",
        lambda findings: fewer_messages(findings, SOURCE_LOST), AS_IN_THE_PAPER,
    ),
    Claim(
        "21.74%", "5.2, figure 4a", "it sends 21.74% fewer messages on average",
        lambda findings: saves_on_average(findings, 0.2174, SOURCE_LOST),
        AS_IN_THE_PAPER, CROSSING_WITH_FAULTS,
    ),
    Claim(
        "29.63", "5.2, figure 4b",
        "the crash makes the hierarchical algorithm slower by 29.63 ms on average: as published",
        lambda findings: delayed_by(findings, PUBLISHED, 29.63, SOURCE_LOST), AS_IN_THE_PAPER,
    ),
    Claim(
        "29.63, corrected", "5.2, figure 4b",
        "the same, with an agreement on what the crashed process said",
        lambda findings: delayed_by(findings, HIERARCHICAL, 29.63, SOURCE_LOST), AS_IN_THE_PAPER,
    ),
    Claim(
        "crossing", "5.2, figure 4b", "All2All takes longer from 512 processes on",
        lambda findings: crosses(findings, CROSSING_WITH_FAULTS, SOURCE_LOST),
        AS_IN_THE_PAPER, CROSSING_WITH_FAULTS,
    ),
)  # fmt: skip

BEFORE_DETECTION_CLAIMS = (
    Claim(
        "fewer", "5.2", "the hierarchical algorithm sends fewer messages in systems of every size",
        lambda findings: fewer_messages(findings, P1_LOST), AS_IN_THE_PAPER,
    ),
    Claim(
        "identical", "5.2",
        "latency and messages are identical to those with the crash of the source",
        like_a_lost_source, AS_IN_THE_PAPER,
    ),
)  # fmt: skip

AFTER_DETECTION_CLAIMS = (
    Claim(
        "fewer", "5.2, figure 5a",
        "the hierarchical algorithm sends fewer messages in systems of every size",
        lambda findings: fewer_messages(findings, P1_LOST), AS_IN_THE_PAPER,
    ),
    Claim(
        "fewer than before", "5.2, figure 5a", "All2All sends fewer messages than without faults",
        fewer_than_without_faults, AS_IN_THE_PAPER,
    ),
    Claim(
        "0.2", "5.2, figure 5b", "All2All is faster by 0.2 ms in systems of every size",
        lambda findings: faster_by(findings, ALL2ALL, 0.2), AS_IN_THE_PAPER,
    ),
    Claim(
        "1.3", "5.2, figure 5b", "the hierarchical algorithm is faster by 1.3 ms",
        lambda findings: faster_by(findings, HIERARCHICAL, 1.3), AS_IN_THE_PAPER,
    ),
    Claim(
        "crossing", "5.2, figure 5b", "the hierarchical algorithm is faster from 128 processes on",
        lambda findings: crosses(findings, CROSSING, P1_LOST), AS_IN_THE_PAPER, CROSSING,
    ),
)  # fmt: skip


def _steps(values: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(values)]
