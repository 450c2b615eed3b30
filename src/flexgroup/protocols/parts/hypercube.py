"""VCube, the virtual hypercube: who is whose neighbour, and who stands in for the crashed.

Source: Duarte, Bona and Ruoso 2014; section 3.1 of Ruchel and others 2021, whose names are used
here. Process i sees the others in clusters 1 to log2(n):
cluster s holds the 2^(s-1) processes whose number differs from i in bit s and in no higher
one, in the order in which they are to be tried. Written out, the recursion of the paper says
that the x-th of them is i xor 2^(s-1) xor x.

A number of processes that is no power of two is a hypercube some of whose processes are absent;
they are passed over like those that crashed.
"""

from __future__ import annotations

from typing import Final

NOBODY: Final = -1


def dimension(n: int) -> int:
    """How many clusters a process has: log2 n, rounded up."""
    return (n - 1).bit_length()


def members(i: int, s: int, n: int) -> list[int]:
    """c(i, s): the processes in cluster s of process i, in order."""
    first = i ^ (1 << (s - 1))
    return [first ^ x for x in range(1 << (s - 1)) if first ^ x < n]


def ff_neighbor(i: int, s: int, n: int, crashed: set[int]) -> int:
    """FF_neighbor: the first process in cluster s of i that is fault-free, or NOBODY."""
    first = i ^ (1 << (s - 1))
    if first < n and not (crashed and first in crashed):
        return first
    for x in range(1, 1 << (s - 1)):
        j = first ^ x
        if j < n and j not in crashed:
            return j
    return NOBODY


def neighborhood(i: int, low: int, high: int, n: int, crashed: set[int]) -> list[int]:
    """The first fault-free process of each cluster from `low` to `high`, in that order.

    With low = 1 it is the paper's neighborhood(high).
    """
    found: list[int] = []
    for s in range(low, high + 1):
        j = ff_neighbor(i, s, n, crashed)
        if j != NOBODY:
            found.append(j)
    return found


def cluster(i: int, j: int) -> int:
    """The number of the cluster of i that j is in; the same seen from j."""
    return (i ^ j).bit_length()
