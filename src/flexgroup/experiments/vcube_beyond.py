"""What the paper on atomic broadcast over VCube did not measure.

All processes broadcasting at once; up to a quarter of them crashing; delays that vary.
"""

from __future__ import annotations

from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, Judgement
from flexgroup.experiments.figure import Figure, Kind, Series, name_of
from flexgroup.experiments.findings import Findings, listed
from flexgroup.experiments.vcube import AT_ONCE, against_size, series
from flexgroup.experiments.vcube_claims import (
    AS_IN_THE_PAPER,
    CONTENDED,
    HIERARCHICAL,
    STACKS,
    fewer_messages,
    pairs,
    savings,
)
from flexgroup.properties.catalogue import PROPERTIES
from flexgroup.worlds.simulator.fault_plans import Faults

OURS = "ours, not in the paper"
NOBODY_MEASURED = "The paper did not measure it."
EVERYBODY = "all@0s"


def in_each_size(
    sizes: tuple[int, ...],
    casts: str,
    networks: tuple[str, ...],
    seeds: tuple[int, ...] = (1,),
) -> list[Grid]:
    return [
        Grid(STACKS, ("broadcast",), (0,), seeds, 1.0, (size,), networks, casts=casts)
        for size in sizes
    ]


def any_violated(findings: Findings, stack: str, lost: str | None = "") -> int:
    """Tell how many verdicts about runs of this stack are bad."""
    return sum(findings.runs_violated(stack, name, lost) for name in PROPERTIES)


# All at once.


def more_throughput(findings: Findings) -> Judgement:
    found = pairs(findings)
    ratios = [ours.throughput / theirs.throughput for ours, theirs in found]
    told = ", ".join(
        f"{ours.processes}: {ratio:.2f}" for (ours, _), ratio in zip(found, ratios, strict=True)
    )
    return min(ratios) > 1, f"throughput of the hierarchical algorithm / All2All with {told}"


THROUGHPUT = Experiment(
    "vcube-throughput",
    "Atomic broadcast over VCube: all processes broadcast at once",
    OURS,
    {
        SMALL: in_each_size((32, 16, 8), EVERYBODY, (CONTENDED,)),
        PAPER: in_each_size((128, 64, 32, 16, 8), EVERYBODY, (CONTENDED,)),
    },
    (
        against_size(
            "throughput", "Messages delivered everywhere, a second", "throughput",
            series(network=CONTENDED), "ours", NOBODY_MEASURED,
        ),
        against_size(
            "throughput-latency", "Latency when all broadcast at once", "latency",
            series(network=CONTENDED), "ours", NOBODY_MEASURED,
        ),
    ),
    (
        Claim(
            "throughput", "ours", "fewer messages let the hierarchical algorithm deliver more",
            more_throughput, CONTENDED,
        ),
    ),
)  # fmt: skip


# Up to a quarter crash.

LOSSES_ON = "neko:jitter=100us"


def losses(crashed: int) -> Faults:
    """Crash every fourth process, one each two milliseconds; each is found out 5 ms later."""
    return Faults(
        crashes=tuple(f"{1 + 4 * number}@{1 + 2 * number}ms" for number in range(crashed)),
        detection="5ms" if crashed else None,
    )


def up_to_a_quarter(size: int, seeds: tuple[int, ...]) -> list[Grid]:
    counts = [0, *(1 << power for power in range(size.bit_length() - 2))]
    return [
        Grid(
            STACKS, ("broadcast",), (0,), seeds, 1.0, (size,), (LOSSES_ON,), losses(crashed),
            EVERYBODY,
        )
        for crashed in counts
    ]  # fmt: skip


def keeps_promises(findings: Findings) -> Judgement:
    violated = {stack: any_violated(findings, stack, None) for stack in STACKS}
    runs = {stack: findings.runs_checked(stack, "acyclic order", None) for stack in STACKS}
    curve = findings.curve(HIERARCHICAL, "broadcast", None, lost=None)
    most = max(point.crashed for point in curve)
    return not any(violated.values()), "; ".join(
        f"{name_of(stack)}: {violated[stack]} violations in {runs[stack]} runs with up to "
        f"{most} crashes"
        for stack in STACKS
    )


def against_losses(id: str, title: str, metric: str) -> Figure:
    shown = tuple(
        Series(name_of(stack), stack, "broadcast", None, LOSSES_ON, None) for stack in STACKS
    )
    return Figure(id, title, Kind.CURVES, shown, ("crashed", metric), "ours", NOBODY_MEASURED)


LOSSES = Experiment(
    "vcube-losses",
    "Atomic broadcast over VCube: up to a quarter of the processes crash",
    OURS,
    {SMALL: up_to_a_quarter(16, (1, 2)), PAPER: up_to_a_quarter(64, (1, 2, 3))},
    (
        against_losses("losses-latency", "Latency as processes crash", "latency"),
        against_losses("losses-messages", "Messages as processes crash", "volume"),
    ),
    (Claim("promises", "ours", "crashes break no promise", keeps_promises, LOSSES_ON),),
)


# Delays that vary.

JITTERS = ("10us", "50us", "100us", "300us")
JITTERY = tuple(f"{AS_IN_THE_PAPER},jitter={jitter}" for jitter in JITTERS)


def saving_shrinks(findings: Findings) -> Judgement:
    means = []
    for network in (AS_IN_THE_PAPER, *JITTERY):
        saved = savings(pairs(findings.on(network)))
        means.append(sum(saved) / len(saved))
    return means == sorted(means, reverse=True) and means[-1] < means[0], (
        f"fewer by {listed(means, '.1%')} with delays that vary by "
        f"{', '.join(('0', *JITTERS))} on average"
    )


def near_the_papers(findings: Findings) -> Judgement:
    saved = savings(pairs(findings))
    mean = sum(saved) / len(saved)
    return abs(mean - 0.2145) < 0.03, f"fewer by {mean:.2%} on average, in the paper 21.45%"


JITTER = Experiment(
    "vcube-jitter",
    "Atomic broadcast over VCube: who comes first decides how many messages are saved",
    OURS,
    {
        SMALL: in_each_size((64, 32, 16, 8), AT_ONCE, (AS_IN_THE_PAPER, *JITTERY), (1, 2, 3)),
        PAPER: in_each_size((256, 128, 64, 32, 16, 8), AT_ONCE, (AS_IN_THE_PAPER, *JITTERY),
                            (1, 2, 3)),
    },
    tuple(
        against_size(
            f"jitter-{jitter}", f"Messages, delays vary by {jitter} on average", "volume",
            series(network=network), "ours", NOBODY_MEASURED,
        )
        for jitter, network in zip(JITTERS, JITTERY, strict=True)
    ),
    (
        Claim(
            "shrinks", "ours", "the more delays vary, the fewer messages the trees save",
            saving_shrinks, AS_IN_THE_PAPER,
        ),
        Claim(
            "near", "5.1, figure 3a", "it sends 21.45% fewer messages on average: delays that vary "
            "by a tenth of a time unit", near_the_papers, JITTERY[2],
        ),
        *(
            Claim(
                f"fewer, {jitter}", "5.1", "the hierarchical algorithm sends fewer messages",
                fewer_messages, network,
            )
            for jitter, network in zip(JITTERS, JITTERY, strict=True)
        ),
    ),
)  # fmt: skip
