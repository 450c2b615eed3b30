"""What to check of each run: what was promised, unless the user names the properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flexgroup.core.errors import UsageError
from flexgroup.properties.catalogue import PROPERTIES
from flexgroup.trace.history import Lost
from flexgroup.trace.run import Run


@dataclass(frozen=True)
class Plan:
    """A run, how it ended, and what to check of it."""

    number: int
    run: str
    processes: int
    complete: bool
    properties: tuple[str, ...]
    lost: Lost = ()
    faulty: tuple[int, ...] = ()
    """The processes that are faulty by design."""


def known(properties: Sequence[str]) -> tuple[str, ...]:
    for name in properties:
        if name not in PROPERTIES:
            raise UsageError(
                f"there is no property {name!r}; the properties are: {', '.join(PROPERTIES)}"
            )
    return tuple(dict.fromkeys(properties))


def planned(runs: Sequence[Run], properties: Sequence[str] | None) -> list[Plan]:
    """What to check of each run."""
    chosen = None if properties is None else known(properties)
    return [
        Plan(
            number,
            run.run,
            run.processes,
            run.complete,
            run.promised if chosen is None else chosen,
            faulty=run.faulty,
        )
        for number, run in enumerate(runs)
    ]
