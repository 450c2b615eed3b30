"""All properties by name, and checking a run of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flexgroup.core.errors import UsageError
from flexgroup.properties import (
    acyclic_order,
    agreement,
    causal_order,
    fifo_order,
    integrity,
    local_order,
    minimality,
    pairwise_order,
    prefix_order,
    real_time_order,
    uniform_agreement,
    validity,
    virtual_synchrony,
)
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.verdict import Verdict
from flexgroup.trace.history import History

Check = Callable[[IndexedHistory], Verdict]

PROPERTIES: dict[str, Check] = {
    "integrity": integrity.check,
    "validity": validity.check,
    "agreement": agreement.check,
    "uniform agreement": uniform_agreement.check,
    "fifo order": fifo_order.check,
    "causal order": causal_order.check,
    "local order": local_order.check,
    "pairwise order": pairwise_order.check,
    "prefix order": prefix_order.check,
    "acyclic order": acyclic_order.check,
    "real-time order": real_time_order.check,
    "virtual synchrony": virtual_synchrony.check,
    "minimality": minimality.check,
}


def known_properties(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, each once; raise a UsageError if there is no property of some name."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in PROPERTIES:
            known = ", ".join(PROPERTIES)
            raise UsageError(f"there is no property {name!r}; the properties are: {known}")
    return chosen


def check(history: History, names: Iterable[str] | None = None) -> list[Verdict]:
    """Return the verdicts on the named properties, or on all, in the order of the names."""
    chosen = PROPERTIES if names is None else known_properties(names)
    run = IndexedHistory(history)
    return [PROPERTIES[name](run) for name in chosen]
