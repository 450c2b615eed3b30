"""All properties by name, and checking a run of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from flexgroup.core.errors import UsageError
from flexgroup.properties import (
    acyclic_order,
    causal_order,
    fifo_order,
    integrity,
    minimality,
    missing_deliveries,
    opposite_orders,
    prefix_order,
    real_time_order,
    virtual_synchrony,
)
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.verdict import Verdict
from flexgroup.trace.history import History

Check = Callable[[IndexedHistory], Verdict]

PROPERTIES: dict[str, Check] = {
    integrity.NAME: integrity.check,
    **{name: partial(missing_deliveries.check, name=name) for name in missing_deliveries.FIND},
    fifo_order.NAME: fifo_order.check,
    causal_order.NAME: causal_order.check,
    opposite_orders.LOCAL: opposite_orders.check_local,
    opposite_orders.PAIRWISE: opposite_orders.check_pairwise,
    prefix_order.NAME: prefix_order.check,
    acyclic_order.NAME: acyclic_order.check,
    real_time_order.NAME: real_time_order.check,
    virtual_synchrony.NAME: virtual_synchrony.check,
    minimality.NAME: minimality.check,
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
