"""Times of a trace as one reads them: as exact as what is looked at needs, and no more."""

from __future__ import annotations

from math import ceil, log10

UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))

LONG_AGO = 100
"""Times that begin so many times later than the run lasts count from its first event."""


class Times:
    """The times of a run whose first event is at `first`, and whose last is before `last`."""

    def __init__(self, first: int, last: int) -> None:
        self._zero = first if first > LONG_AGO * (last - first) else 0

    def told(self, time: int, resolution: int) -> str:
        """Return a time so exactly that times which lie this far apart can be told apart."""
        return since(time - self._zero, resolution) if self._zero else _exactly(time, resolution)


def since(time: int, resolution: int) -> str:
    """Return how long before or after something a time is, just as exactly."""
    return f"{'' if time < 0 else '+'}{_exactly(time, resolution)}"


def lasting(span: int) -> str:
    """Return how long something takes, in three digits or so."""
    size, unit = next((u for u in UNITS if span >= u[0]), UNITS[-1])
    return f"{span / size:.3g} {unit}" if span < 1000 * size else f"{span // size:,} {unit}"


def _exactly(time: int, resolution: int) -> str:
    size, unit = next((u for u in UNITS if abs(time) >= u[0]), UNITS[-1])
    digits = max(0, ceil(log10(size / max(1, resolution))))
    whole, rest = divmod(abs(time), size)
    fraction = f".{rest * 10**digits // size:0{digits}}" if digits else ""
    return f"{'-' if time < 0 else ''}{whole}{fraction} {unit}"
