"""Means with their 95% confidence intervals, and as much of the t distribution as these need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import atan2, cos, fsum, pi, sin, sqrt, tan

LARGE = 30
"""The series TAIL is exact to the sixth digit above so many degrees of freedom."""

_Z = 1.959963984540054  # the same quantile of the normal distribution

TAIL = (
    _Z,
    (_Z**3 + _Z) / 4,
    (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96,
    (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / 384,
)
"""Coefficients of 1/d^0, 1/d^1, ... for d degrees of freedom (Abramowitz and Stegun 26.7.5)."""


def interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the mean, and half the width of its 95% confidence interval."""
    count = len(values)
    if count == 0:
        return None, None
    mean = fsum(values) / count
    if count == 1:
        return mean, None
    deviation = sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1))
    return mean, student_95(count - 1) * deviation / sqrt(count)


@cache
def student_95(freedom: int) -> float:
    """Return what |t| does not exceed with probability 0.95."""
    if freedom > LARGE:
        return sum(coefficient / float(freedom) ** power for power, coefficient in enumerate(TAIL))
    low, high = 0.0, atan2(1, 0)
    # Halving the angle's range until doubles have no finer step.
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if _central(middle, freedom) < 0.95 else (low, middle)
    return tan(low) * sqrt(freedom)


def _central(angle: float, freedom: int) -> float:
    """Return the probability of |t| < tan(angle) * sqrt(freedom) (ibid. 26.7.3 and 26.7.4)."""
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0 if freedom == 1 else term
    for factor in range(2 + odd, freedom - 1, 2):
        term *= (factor - 1) / factor * cos(angle) ** 2
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
