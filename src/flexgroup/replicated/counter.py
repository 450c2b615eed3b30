"""A number that all processes count on together."""

from __future__ import annotations

from flexgroup.replica.calls import ordered
from flexgroup.replica.object import Replica


class Counter(Replica):
    def __init__(self, value: int = 0) -> None:
        self.value = value

    @ordered
    def add(self, n: int = 1) -> int:
        """Add, and return the sum; no two calls that add 1 return the same."""
        self.value += n
        return self.value

    @ordered
    def set_if(self, expected: int, value: int) -> bool:
        """Set the value if it is as expected, and return whether it was."""
        is_so = self.value == expected
        if is_so:
            self.value = value
        return is_so
