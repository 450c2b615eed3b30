"""Section 5 of the paper on atomic broadcast over VCube: figures 3, 4 and 5, as data.

One broadcast by process 0. A time unit of the paper is a millisecond here: 0.1 to send a copy,
0.8 on the way, 0.1 to receive it. The simulator's own failure detector tells crashes when the
paper's would find them out by its tests, every 30 ms with a time-out of 4 ms; tests are no messages
of the algorithms, here as there. The figures of the paper are curves whose values are not in its
text; what stands beside ours is what the text says about each, in our words.
"""

from __future__ import annotations

from collections.abc import Callable

from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, joined
from flexgroup.experiments.figure import Figure, Kind, Series, name_of
from flexgroup.experiments.vcube_claims import (
    AFTER_DETECTION_CLAIMS,
    ALL2ALL,
    AS_IN_THE_PAPER,
    BEFORE_DETECTION_CLAIMS,
    CONTENDED,
    FAULT_FREE_CLAIMS,
    P1_LOST,
    PUBLISHED,
    SOURCE_CLAIMS,
    SOURCE_LOST,
    STACKS,
)
from flexgroup.worlds.simulator.fault_plans import Faults

SOURCE = "Ruchel and others 2021, hierarchical leaderless atomic broadcast over VCube, section 5"

SIZES = {SMALL: (64, 32, 16, 8), PAPER: (1024, 512, 256, 128, 64, 32, 16, 8)}
MICROSECONDS_A_COPY = 100
TEST_INTERVAL = 30_000
TIMEOUT = 4_000

AT_ONCE = "0@0s"
AFTER_DETECTION = "0@300ms"
"""When the agreement that follows the detection is over in the largest system, too."""

WITH_PUBLISHED = (*STACKS, PUBLISHED)
"""Where a process crashes, the corrected algorithm does more than the published one."""

FaultsOf = Callable[[str, int], Faults]
"""What goes wrong with this stack, in a system of this size."""


def found_out(crashed: str, microsecond: int) -> Faults:
    """Return one crash, which all find out with the first test after it."""
    tested = -(-microsecond // TEST_INTERVAL) * TEST_INTERVAL or TEST_INTERVAL
    noticed = tested + TIMEOUT - microsecond
    return Faults(crashes=(f"{crashed}@{microsecond}us",), detection=f"{noticed}us")


def nothing(stack: str, size: int) -> Faults:
    return Faults()


def source_after_its_copies(stack: str, size: int) -> Faults:
    """Process 0 crashes when the last copy of its message has left."""
    copies = size - 1 if stack == ALL2ALL else size.bit_length() - 1
    return found_out(SOURCE_LOST, copies * MICROSECONDS_A_COPY)


def p1_at_once(stack: str, size: int) -> Faults:
    return found_out(P1_LOST, 0)


def one_broadcast(
    faults_of: FaultsOf,
    casts: str = AT_ONCE,
    networks: tuple[str, ...] = (AS_IN_THE_PAPER,),
    stacks: tuple[str, ...] = STACKS,
) -> dict[str, list[Grid]]:
    return {
        scale: [
            Grid(
                (stack,), ("broadcast",), (0,), (1,), 1.0, (size,), networks,
                faults_of(stack, size), casts,
            )
            for size in sizes
            for stack in stacks
        ]
        for scale, sizes in SIZES.items()
    }  # fmt: skip


def series(
    lost: str = "", network: str = AS_IN_THE_PAPER, stacks: tuple[str, ...] = STACKS
) -> tuple[Series, ...]:
    return tuple(
        Series(name_of(stack), stack, "broadcast", None, network, lost) for stack in stacks
    )


def against_size(
    id: str, title: str, metric: str, shown: tuple[Series, ...], section: str, paper: str
) -> Figure:
    return Figure(id, title, Kind.CURVES, shown, ("processes", metric), section, paper)


FAULT_FREE = Experiment(
    "vcube-faultfree",
    "Atomic broadcast over VCube: one broadcast, no faults",
    SOURCE,
    one_broadcast(nothing, networks=(AS_IN_THE_PAPER, CONTENDED)),
    (
        against_size(
            "3a", "Messages, without faults", "volume", series(), "5.1",
            "The hierarchical algorithm needs fewer messages, 21.45% on average, because a message "
            "can carry the timestamps of several processes.",
        ),
        against_size(
            "3a-tree", "TREE messages, without faults", "packets_Tree", series(), "5.1",
            "The paper counts both types together: every TREE is confirmed by an ACK.",
        ),
        against_size(
            "3a-ack", "ACK messages, without faults", "packets_Ack", series(), "5.1",
            "The paper counts both types together: every TREE is confirmed by an ACK.",
        ),
        against_size(
            "3b", "Latency, without faults", "latency", series(), "5.1",
            "With few processes All2All is faster; from 128 on the hierarchical algorithm is. "
            "Against the logarithm of the size, its latency is linear, All2All's exponential.",
        ),
        against_size(
            "3b-contended", "Latency if a process does one thing at a time", "latency",
            series(network=CONTENDED), "ours",
            "The paper's figures come from a model in which receptions and confirmations do not "
            "hold up what a process sends. Here they do.",
        ),
    ),
    FAULT_FREE_CLAIMS,
)  # fmt: skip


def with_a_crash(
    name: str,
    title: str,
    figure: str,
    grids: dict[str, list[Grid]],
    lost: str,
    papers: tuple[str, str],
    claims: tuple[Claim, ...],
    stacks: tuple[str, ...] = STACKS,
) -> Experiment:
    """Return messages and latency beside those of the same broadcast without faults."""
    shown = series(lost, stacks=stacks)
    return Experiment(
        name,
        f"Atomic broadcast over VCube: {title}",
        SOURCE,
        grids,
        (
            against_size(f"{figure}a", f"Messages, {title}", "volume", shown, "5.2", papers[0]),
            against_size(f"{figure}b", f"Latency, {title}", "latency", shown, "5.2", papers[1]),
        ),
        claims,
    )


SOURCE_FAILS = with_a_crash(
    "vcube-source-fails",
    "the source crashes",
    "4",
    joined(
        one_broadcast(nothing, stacks=WITH_PUBLISHED),
        one_broadcast(source_after_its_copies, stacks=WITH_PUBLISHED),
    ),
    SOURCE_LOST,
    (
        "Little changes: the hierarchical algorithm needs 21.74% fewer messages on average.",
        "The latency depends on how often the detector tests: the hierarchical algorithm takes "
        "29.63 longer on average than without the crash. All2All takes longer from 512 processes "
        "on.",
    ),
    SOURCE_CLAIMS,
    WITH_PUBLISHED,
)

BEFORE_DETECTION = with_a_crash(
    "vcube-p1-before-detection",
    "process 1 has crashed, and nobody knows yet",
    "4-p1-",
    joined(one_broadcast(source_after_its_copies), one_broadcast(p1_at_once)),
    P1_LOST,
    (
        "Identical to the crash of the source.",
        "Identical to the crash of the source.",
    ),
    BEFORE_DETECTION_CLAIMS,
)

AFTER_DETECTION_EXPERIMENT = with_a_crash(
    "vcube-p1-after-detection",
    "process 1 has crashed, and everybody knows",
    "5",
    joined(one_broadcast(nothing), one_broadcast(p1_at_once, AFTER_DETECTION)),
    P1_LOST,
    (
        "All2All needs fewer messages than without the crash, since fewer processes take part; the "
        "hierarchical algorithm needs fewer than All2All.",
        "Latency is lower: by 0.2 for All2All, by 1.3 for the hierarchical algorithm, which is the "
        "faster one from 128 processes on.",
    ),
    AFTER_DETECTION_CLAIMS,
)
