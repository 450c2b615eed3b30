"""The times that servers go by when they wait for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flexgroup.core.errors import UsageError

BEAT: Final = 0.2
"""How often servers beat, where nothing asks for more."""

BEATS_OF_PATIENCE: Final = 10
"""So many beats are to fit into the patience of a server."""

SHORTEST_PATIENCE: Final = 0.5
"""Servers look at the clock every 50 ms. With less patience they would take a look that is a little
late for a pause of their own (`patience.stall`), and notice no silence."""

LEAST_BEATS: Final = 5
"""Where nothing is late, a confirmation is two beats old at worst before the next one comes, and
leases are to last longer."""


@dataclass(frozen=True, slots=True)
class Timings:
    """The times that the failure detector goes by, all in seconds."""

    beat: float = BEAT
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

    @classmethod
    def of(cls, patience: float, least: float | None = None) -> Timings:
        """Those of a server that has so much patience: who has little beats more often. Leases
        would otherwise end before the next beat renews them, and servers stand still although
        nothing is wrong."""
        if patience < SHORTEST_PATIENCE:
            raise UsageError(
                f"a patience of {patience:g} s is not possible, since servers look at the clock "
                f"every 0.05 s; give at least {SHORTEST_PATIENCE:g}"
            )
        return cls(min(BEAT, patience / BEATS_OF_PATIENCE), patience, least)

    @property
    def shortest_patience(self) -> float:
        """What servers ask for where nothing is ever late."""
        least = self.patience / 4 if self.least is None else self.least
        return min(self.patience, max(least, LEAST_BEATS * self.beat, SHORTEST_PATIENCE))
