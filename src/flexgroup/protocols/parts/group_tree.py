"""A tree of groups of replicas: group 0 is the root, and its shape says who stands below whom.

Every group has a lower number than those below it.
"""

from __future__ import annotations

from typing import Final

from flexgroup.core.errors import UsageError

BINARY: Final = "binary"
CHAIN: Final = "chain"

SHAPES: Final = (BINARY, CHAIN)
"""Shapes by name; without any of them, all other groups are children of the root."""


def shape_of(options: frozenset[str]) -> str:
    """The shape that the options of a layer name, if they name any."""
    chosen = [shape for shape in SHAPES if shape in options]
    if len(chosen) > 1:
        raise UsageError(f"a tree is either {' or '.join(chosen)}; name one of them")
    return chosen[0] if chosen else ""


def parent_of(shape: str, group: int) -> int:
    """The group above this one; the root has none, and stands for it itself."""
    if shape == BINARY:
        return max(group - 1, 0) // 2
    if shape == CHAIN:
        return max(group - 1, 0)
    return 0


def lowest_common_ancestor(shape: str, groups: tuple[int, ...]) -> int:
    """The lowest group of the tree that all of these are below, unless it is one of them."""
    left = set(groups)
    while len(left) > 1:
        highest = max(left)
        left.remove(highest)
        left.add(parent_of(shape, highest))
    return left.pop()


def child_towards(shape: str, group: int, descendant: int) -> int:
    """The child of a group that reaches this one; -1 if the group itself does not."""
    while descendant > group:
        above = parent_of(shape, descendant)
        if above == group:
            return descendant
        descendant = above
    return -1
