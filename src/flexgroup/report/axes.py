"""Axes of charts: where a value lies, which values get a label, and how numbers are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

LEAST = 1e-300
"""What is less is nothing: there is no room for a step below it."""

LOG_FROM = 40.0
"""With the largest value so many times the smallest, equal distances would hide the small ones."""


@dataclass(frozen=True)
class Axis:
    """From a value to its place between two ends."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        if self.log:
            share = (log10(max(value, self.low)) - log10(self.low)) / (
                log10(self.high) - log10(self.low)
            )
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        if self.log:
            return _log_ticks(self.low, self.high, most)
        step = _step(self.high - self.low, most)
        first = ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, floor(self.high / step + 1e-9) + 1)]


def axis(
    values: Iterable[float], start: float, end: float, log: bool = False, most: int = 6
) -> Axis:
    """An axis that shows all values, from 0 unless it is logarithmic, and ends at a round one."""
    shown = [value for value in values if isfinite(value) and (value >= LEAST or not log)]
    if log and shown:
        low, high = min(shown), max(shown)
        return Axis(_round_down(low), _round_up(high, low), start, end, log=True)
    low, high = min(0.0, *shown, 0.0), max(0.0, *shown, 0.0)
    if high - low < LEAST:
        low, high = 0.0, 1.0
    step = _step(high - low, most)
    return Axis(floor(low / step) * step, ceil(high / step - 1e-9) * step, start, end)


def spans_wide(values: Iterable[float]) -> bool:
    """Whether the values are better seen on a logarithmic axis."""
    shown = [value for value in values if isfinite(value) and value > 0]
    return bool(shown) and max(shown) >= LOG_FROM * min(shown)


def _step(span: float, most: int) -> float:
    rough = span / most
    magnitude = 10.0 ** floor(log10(rough))
    return next((s * magnitude for s in STEPS if s * magnitude >= rough * (1 - 1e-9)), 10 * rough)


def _round_down(value: float) -> float:
    magnitude = 10.0 ** floor(log10(value))
    return max(s for s in (1.0, 2.0, 5.0) if s * magnitude <= value * (1 + 1e-9)) * magnitude


def _round_up(value: float, above: float) -> float:
    magnitude = 10.0 ** floor(log10(value))
    found = min(s for s in (1.0, 2.0, 5.0, 10.0) if s * magnitude >= value * (1 - 1e-9)) * magnitude
    return found if found > _round_down(above) else found * 2


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    every = max(1, ceil(len(decades) / most))
    for digits in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [d * 10.0**n for n in decades[::every] for d in digits]
        found = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(found) <= most:
            break
    return found


def short(value: float) -> str:
    """A number as at an axis: 0, 0.25, 2.5, 40, 1.2k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (1 - 1e-9):
            return f"{_plain(value / size)}{letter}"
    return _plain(value)


def _plain(value: float) -> str:
    written = f"{value:.3g}"
    return f"{float(written):g}" if "e" in written and abs(value) >= 1e-4 else written


def figure(value: float) -> str:
    """A number as in a table: four digits that count, thousands apart."""
    if not isfinite(value):
        return "-"
    if value != 0 and abs(value) < 1e-4:
        return f"{value:.2e}"
    written = f"{value:,.{_decimals(value)}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def interval(value: float, half: float) -> str:
    """A mean and half the width of its confidence interval, to the same decimal."""
    decimals = max(_decimals(value), 1 - floor(log10(half)) if 0 < half < 0.1 else 0)
    return f"{value:,.{decimals}f} ± {half:,.{decimals}f}"


def _decimals(value: float) -> int:
    return max(0, 3 - floor(log10(abs(value)))) if value else 0
