"""Options of commands as arguments of functions."""

from __future__ import annotations

from collections.abc import Sequence


def each(values: str | Sequence[str]) -> tuple[str, ...]:
    """Return the values of an option that may be given several times."""
    return (values,) if isinstance(values, str) else tuple(values)
