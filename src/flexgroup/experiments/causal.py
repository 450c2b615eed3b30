"""What causal order costs on the wire: every protocol here that gives it, as data.

Raynal, Schiper and Toueg close their paper (section 5) with a claim about sizes: that of what is
added to a message is bounded in their algorithm, and not in that of Isis. They measure nothing.
"""

from __future__ import annotations

from itertools import pairwise

from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid, Judgement
from flexgroup.experiments.figure import Figure, Kind, Series
from flexgroup.experiments.findings import Findings, Point, listed

SOURCE = (
    "Raynal, Schiper and Toueg 1991, sections 3.1 and 5; Birman and Joseph 1987 (Isis); Schiper, "
    "Eggli and Sandoz 1989; Birman, Schiper and Stephenson 1991; Rodrigues and Veríssimo 1992"
)

VECTOR, MATRIX, TIMES, ISIS, XAMP = STACKS = (
    "causal", "causal-rst", "causal-ses", "causal-isis", "xamp-causal",
)  # fmt: skip

REORDERING = "lan:fifo=no"
THREE, ALL, FOUR = "random:3", "broadcast", "random:4"
BY_SIZE = (THREE, ALL)
SIZES = {SMALL: (4, 8, 16, 32), PAPER: (4, 8, 16, 32, 48)}
LOADS = (1, 4, 16, 64)
CLIENTS = 16
NODES = 16
"""How many processes there are where the load varies."""

GROWN = 1.1
"""What a load makes so many times larger, it makes larger."""

BYTES_A_NUMBER = 2
"""What a number of these runs takes on the wire at most: none reaches 2 to the power of 14."""

INTRODUCTION = """
What does a protocol add to a message, so that it can be delivered in causal order? The protocols
are [`causal`](protocols/causal.md) with a vector, [`causal-rst`](protocols/causal-rst.md) with a
matrix, [`causal-ses`](protocols/causal-ses.md) with vector times,
[`causal-isis`](protocols/causal-isis.md) and [`xamp-causal`](protocols/xamp.md), which bring along
messages, or their identities, that may not have arrived. This page was written by

```sh
flexgroup experiment causal --scale small --out runs/causal
cp runs/causal/figures.md docs/causal-results.md
cp runs/causal/figures/*.svg docs/figures/
```

Messages have 64 bytes, and go to three processes, to all, or to four. *Bytes a message* are all
that is sent among the processes for one message: each copy of it, with its header, and responses.
What `causal-isis` brings along is messages with 64 bytes of their own, which no header counts, so
this is the figure to compare. `causal` sends every message to all processes. Clients wait for
answers; 16 of them where the number of processes varies.

Runs are short: with 32 processes and messages to three, a matrix is not full by their end. How
`causal-isis` learns what need not be sent any more is [its own](protocols/causal-isis.md), and
under load most of its packets are about that.
""".strip()


def curves(workload: str, processes: int | None) -> tuple[Series, ...]:
    return tuple(Series(stack, stack, workload, processes, REORDERING) for stack in STACKS)


def grids(sizes: tuple[int, ...], duration: float, seeds: tuple[int, ...]) -> list[Grid]:
    where = (REORDERING,)
    return [
        Grid(STACKS, BY_SIZE, (CLIENTS,), seeds, duration, sizes, where),
        Grid(STACKS, (FOUR,), LOADS, seeds, duration, (NODES,), where),
    ]


# Claims.


def by_size(findings: Findings, stack: str, workload: str) -> list[Point]:
    return findings.curve(stack, workload, None)


def by_load(findings: Findings, stack: str) -> list[Point]:
    return findings.curve(stack, FOUR, NODES)


def header(point: Point) -> float:
    return point.shown("header_bytes")


def bytes_of(point: Point) -> float:
    return point.shown("volume_bytes")


def destinations(point: Point) -> int:
    return {THREE: 3, FOUR: 4}.get(point.workload, point.processes)


def every(findings: Findings, stack: str) -> list[Point]:
    return [
        *(point for workload in BY_SIZE for point in by_size(findings, stack, workload)),
        *by_load(findings, stack),
    ]


def is_bounded_by_a_matrix(findings: Findings) -> Judgement:
    """Header bytes never exceed those of n² numbers, and of what every header has."""
    points = every(findings, MATRIX)
    room = [
        header(point) / (BYTES_A_NUMBER * (point.processes**2 + destinations(point) + 6))
        for point in points
    ]
    sizes = by_size(findings, MATRIX, THREE)
    return max(room) <= 1, (
        f"{listed(map(header, sizes), '.0f')} bytes with "
        f"{listed((point.processes for point in sizes), 'd')} processes; at most {max(room):.0%} "
        f"of n² numbers of {BYTES_A_NUMBER} bytes"
    )


def has_the_same_bound(findings: Findings) -> Judgement:
    """A vector time, and at most n - 1 pairs of a process and another: n² + n numbers."""
    points = every(findings, TIMES)
    room = [
        header(point)
        / (BYTES_A_NUMBER * (point.processes**2 + point.processes + destinations(point) + 7))
        for point in points
    ]
    pairs = zip(by_size(findings, TIMES, THREE), by_size(findings, MATRIX, THREE), strict=True)
    more = [header(times) / header(matrix) for times, matrix in pairs]
    return max(room) <= 1, (
        f"at most {max(room):.0%} of that; {listed(more, '.2f')} times a matrix, as systems grow"
    )


def only_isis_goes_on_growing(findings: Findings) -> Judgement:
    """Each load makes its messages larger than the one before; a matrix is full some day."""
    matrix, isis = ([bytes_of(point) for point in by_load(findings, s)] for s in (MATRIX, ISIS))
    grows = all(GROWN * less < more for less, more in pairwise(isis))
    holds = grows and matrix[-1] <= GROWN * matrix[-2]
    return holds, (
        f"bytes with {listed(LOADS, 'd')} clients: {ISIS} {listed(isis, ',.0f')}; "
        f"{MATRIX} {listed(matrix, ',.0f')}"
    )


def a_matrix_is_less(findings: Findings) -> Judgement:
    """Everywhere: that is what the contrast with Isis suggests, and the paper does not say."""
    pairs = list(zip(every(findings, MATRIX), every(findings, ISIS), strict=True))
    less = [(matrix, isis) for matrix, isis in pairs if bytes_of(matrix) < bytes_of(isis)]
    told = "; ".join(
        f"{workload}, {matrix.processes} processes: "
        f"{bytes_of(matrix):,.0f} and {bytes_of(isis):,.0f}"
        for workload in BY_SIZE
        for matrix, isis in zip(
            by_size(findings, MATRIX, workload), by_size(findings, ISIS, workload), strict=True
        )
    )
    return len(less) == len(pairs), f"in {len(less)} of {len(pairs)} points; {told}"


def a_vector_to_all_is_less(findings: Findings) -> Judgement:
    pairs = zip(by_size(findings, VECTOR, ALL), by_size(findings, MATRIX, ALL), strict=True)
    both = [(bytes_of(vector), bytes_of(matrix)) for vector, matrix in pairs]
    return all(vector < matrix for vector, matrix in both), (
        f"{listed((vector for vector, _ in both), ',.0f')} bytes against "
        f"{listed((matrix for _, matrix in both), ',.0f')}"
    )


def a_matrix_to_few_is_less(findings: Findings) -> Judgement:
    pairs = zip(by_size(findings, VECTOR, THREE), by_size(findings, MATRIX, THREE), strict=True)
    both = [(bytes_of(vector), bytes_of(matrix)) for vector, matrix in pairs]
    return all(matrix < vector for vector, matrix in both), (
        f"{listed((matrix for _, matrix in both), ',.0f')} bytes against "
        f"{listed((vector for vector, _ in both), ',.0f')}"
    )


CLAIMS = tuple(
    Claim(name, section, words, verdict, REORDERING)
    for name, section, words, verdict in (
        (
            "bounded", "5", "what is added to a message is a matrix of n by n, however many "
            "messages are under way", is_bounded_by_a_matrix,
        ),
        (
            "the same bound", "3.1",
            "with pairs of destinations and vector times, there is a bounded number of them",
            has_the_same_bound,
        ),
        (
            "unbounded", "5",
            "what Isis adds has no bound: it grows with each load, a matrix until it is full",
            only_isis_goes_on_growing,
        ),
        (
            "less", "5, as it may be read", "a bounded matrix is less than what Isis adds",
            a_matrix_is_less,
        ),
        ("vector", "ours", "to all processes, a vector takes fewer bytes than a matrix",
         a_vector_to_all_is_less),
        ("few", "ours", "to three processes, a matrix takes fewer bytes than a vector sent to all",
         a_matrix_to_few_is_less),
    )
)  # fmt: skip

BOUND = (
    "Section 5: a matrix of n by n numbers, which themselves are not bounded; in contrast to Isis, "
    "where what is added may grow without a bound."
)

CAUSAL = Experiment(
    "causal",
    "Causal order: what is added to a message",
    SOURCE,
    {SMALL: grids(SIZES[SMALL], 0.02, (1,)), PAPER: grids(SIZES[PAPER], 0.2, (1, 2, 3))},
    (
        Figure(
            "causal-size-3", "Bytes a message to three processes", Kind.CURVES,
            curves(THREE, None), ("processes", "volume_bytes"), "5", BOUND,
        ),
        Figure(
            "causal-size-all", "Bytes a message to all processes", Kind.CURVES,
            curves(ALL, None), ("processes", "volume_bytes"), "5", BOUND,
        ),
        Figure(
            "causal-header-3", "Header bytes a packet, messages to three processes", Kind.CURVES,
            curves(THREE, None), ("processes", "header_bytes"), "5", BOUND
            + " Here the messages that Isis brings along count with what is written beside "
            "them, and without what they say; responses count as packets.",
        ),
        Figure(
            "causal-load", "Bytes a message to four of 16 processes, as the load grows",
            Kind.CURVES, curves(FOUR, NODES), ("clients", "volume_bytes"), "5", BOUND,
        ),
        Figure(
            "causal-under-load", "All of it with 64 clients, to four of 16 processes", Kind.TABLE,
            curves(FOUR, NODES),
            ("header_bytes", "volume", "volume_bytes", "latency", "genuine"), "3.1",
            "The mechanism by which Isis is told what need not be sent any more is rather complex.",
        ),
    ),
    CLAIMS,
    INTRODUCTION,
)  # fmt: skip
