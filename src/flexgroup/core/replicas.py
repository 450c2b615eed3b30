"""Groups of replicas: a partition of the processes, known before a run begins.

The members of a group replicate each other: what goes to one of them goes to all of them. So the
destinations of a message, which are processes as everywhere, are a union of whole groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.core.errors import UsageError

Replicas = tuple[tuple[int, ...], ...]
"""Disjoint groups of consecutive processes, from 0 to the last. Empty where the processes are not
divided into groups."""


def replicas_of_sizes(sizes: Sequence[int]) -> Replicas:
    """Groups of these sizes, each of consecutive processes: with 3 and 1, 0 to 2 and 3."""
    groups: list[tuple[int, ...]] = []
    first = 0
    for size in sizes:
        groups.append(tuple(range(first, first + size)))
        first += size
    return tuple(groups)


def group_of(replicas: Replicas, process: int) -> tuple[int, ...]:
    """The group that a process is a member of; nobody, for a client."""
    for group in replicas:
        if process in group:
            return group
    return ()


def group_number(replicas: Replicas, process: int) -> int:
    """The place of that group among all groups; -1 for a client."""
    for number, group in enumerate(replicas):
        if process in group:
            return number
    return -1


def numbers_of_groups(replicas: Replicas, destinations: tuple[int, ...]) -> tuple[int, ...]:
    """The groups that have a member among these processes, by their places among all groups."""
    return tuple([n for n, group in enumerate(replicas) if not set(group).isdisjoint(destinations)])


def members_of_groups(replicas: Replicas, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """All members of these groups, ascending."""
    return tuple([process for number in numbers for process in replicas[number]])


def check_one_group(replicas: Replicas, destinations: tuple[int, ...], layer: str) -> None:
    """Raise UsageError unless a message to these goes to one whole group, in the words of a layer
    that orders each group's messages by themselves."""
    if destinations not in replicas:
        raise UsageError(
            f"a message to {','.join(map(str, destinations))} cannot be multicast: with {layer}, "
            "a message goes to all members of one group of replicas and to nobody else"
        )


def check_replicas(replicas: Replicas, processes: int) -> None:
    """Raise UsageError unless every process is in exactly one of the groups, or there is none."""
    sizes = [len(group) for group in replicas]
    divided = replicas == replicas_of_sizes(sizes) and sum(sizes) == processes and 0 not in sizes
    if replicas and not divided:
        raise UsageError(
            f"groups of {', '.join(map(str, sizes))} replicas do not divide {processes} processes: "
            "every process is in exactly one group, those of a group are numbered one after the "
            "other, and no group is empty"
        )


def check_destinations(replicas: Replicas, destinations: tuple[int, ...]) -> None:
    """Raise UsageError if a message goes to some members of a group and not to all of them."""
    for group in replicas:
        if not set(group) <= set(destinations) and not set(group).isdisjoint(destinations):
            raise UsageError(
                f"a message to {','.join(map(str, destinations))} goes to a part of the group "
                f"{','.join(map(str, group))}; replicas get the same messages: name all of them, "
                "or none"
            )
