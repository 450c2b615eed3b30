"""The times that servers go by when they wait for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flexgroup.core.errors import UsageError

LEAST_BEATS: Final = 5
"""Where nothing is late, a confirmation is two beats old at worst before the next one comes, and
leases are to last longer."""


@dataclass(frozen=True, slots=True)
class Timings:
    """The times that the failure detector goes by, all in seconds."""

    beat: float = 0.2
    """The longest that a server says nothing, and the time between repetitions."""
    patience: float = 2.0
    """How long another may say nothing, or not answer, before it is suspected, at most."""
    least: float | None = None
    """How long at least, however quick its link is; None: a quarter of `patience`."""

    def __post_init__(self) -> None:
        if self.least is not None and not 0 < self.least <= self.patience:
            raise UsageError(
                f"servers cannot wait at least {self.least:g} s and at most {self.patience:g} s "
                "for each other; give a least patience above 0, no longer than the patience"
            )

    @property
    def shortest_patience(self) -> float:
        """What servers ask for where nothing is ever late."""
        least = self.patience / 4 if self.least is None else self.least
        return min(self.patience, max(least, LEAST_BEATS * self.beat))
