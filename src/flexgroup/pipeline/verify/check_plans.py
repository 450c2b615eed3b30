"""What to check of each run: what was promised, unless the user names the properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flexgroup.properties.catalogue import known_properties
from flexgroup.trace.history import Deliveries, Faults, History, Lost, Multicasts
from flexgroup.trace.run import Run


@dataclass(frozen=True)
class CheckPlan:
    """A run, how it ended, and what to check of it."""

    number: int
    run: str
    processes: int
    complete: bool
    properties: tuple[str, ...]
    lost: Lost = ()
    faulty: tuple[int, ...] = ()
    """The processes that are faulty by design."""

    def without(self, name: str) -> CheckPlan:
        """Return the plan without this property."""
        return replace(self, properties=tuple(each for each in self.properties if each != name))

    def history(
        self, multicasts: Multicasts, deliveries: Deliveries, crashes: Faults | None = None
    ) -> History:
        """Return a history of the run, or of a part of it, with these events."""
        return History(
            run=self.run,
            processes=self.processes,
            complete=self.complete,
            multicasts=multicasts,
            deliveries=deliveries,
            crashes=crashes or Faults(),
            lost=self.lost,
            faulty=self.faulty,
        )


def check_plans(runs: Sequence[Run], properties: Sequence[str] | None) -> list[CheckPlan]:
    """Plan what to check of each run: these properties, or what was promised."""
    chosen = None if properties is None else known_properties(properties)
    return [
        CheckPlan(
            number=number,
            run=run.run,
            processes=run.processes,
            complete=run.complete,
            properties=run.promised if chosen is None else chosen,
            faulty=run.faulty,
        )
        for number, run in enumerate(runs)
    ]
