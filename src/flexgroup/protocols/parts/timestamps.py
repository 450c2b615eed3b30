"""Timestamps as the broadcasts over VCube tell them: T of Ruchel and others 2021."""

from __future__ import annotations

from typing import Final

FAR: Final = 1 << 61
"""A number above all messages and timestamps, and small enough to be compared fast."""

Timestamps = tuple[int, ...]
"""T, flat: a process and its timestamp, another process and its, ..."""


def are_timestamps(T: Timestamps, size: int) -> bool:
    """Tell whether a correct process may have sent T: members, each with a timestamp."""
    if not T or len(T) % 2:
        return False
    return all(T[at] < size and T[at + 1] < FAR for at in range(0, len(T), 2))
