"""What a run in memory cost: steps, packets, bytes, and how many messages stayed among their own.

These are metrics of section 6.1.4 of the DCC dissertation (Louzada 2024). Their definitions stand
in `flexgroup.metrics.catalogue`, under the names in COST_METRICS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial

from flexgroup.core.replicas import Replicas
from flexgroup.metrics.catalogue import METRICS, Number
from flexgroup.metrics.counting import count
from flexgroup.metrics.in_memory import packets_of
from flexgroup.metrics.period import NO_PERIOD
from flexgroup.trace.history import History

COST_METRICS = {
    "genuine_rate": "genuine",
    "fast_rate": "fast",
    "steps": "steps",
    "steps_group": "steps_group",
    "steps_first": "steps_first",
    "volume": "volume",
    "header_bytes": "header_bytes",
}


@dataclass(frozen=True)
class Costs:
    """Means over the messages of a run, and of header bytes over the packets among the processes;
    rates are between 0 and 1."""

    genuine_rate: float
    fast_rate: float
    steps: float
    """Steps to the last delivery; then to the first in the slowest group, and to the first."""
    steps_group: float
    steps_first: float
    volume: float
    header_bytes: float

    @classmethod
    def among(cls, metrics: Mapping[str, Number]) -> Costs:
        """Return those of these metrics that are costs."""
        return cls(**{field: float(metrics[name] or 0.0) for field, name in COST_METRICS.items()})

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    def __str__(self) -> str:
        fields = ["steps", "volume", "header_bytes", "genuine_rate", "fast_rate"]
        if self.steps_group != self.steps:
            fields[1:1] = ["steps_group", "steps_first"]
        return ", ".join(METRICS[COST_METRICS[name]].phrase(getattr(self, name)) for name in fields)


def costs(history: History, replicas: Replicas = ()) -> Costs:
    """Measure a history that has its packets; without, it looks as if none had been sent."""
    sums = count(history, partial(packets_of, history), NO_PERIOD, replicas=replicas)
    return Costs.among({name: METRICS[name].formula(sums) for name in COST_METRICS.values()})
