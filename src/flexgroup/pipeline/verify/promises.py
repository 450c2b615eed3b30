"""What to check of each run: what its stack promises, unless the user names the properties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.core.stack import guarantees_above
from flexgroup.properties.catalogue import PROPERTIES
from flexgroup.properties.promises import promised_properties
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.history import Lost
from flexgroup.trace.reader import Run
from flexgroup.trace.schema import COMPLETE
from flexgroup.worlds.simulator.networks import channel_guarantees, parse_network

EVERYTHING = tuple(PROPERTIES)


@dataclass(frozen=True)
class Plan:
    """A run, how it ended, and what to check of it."""

    number: int
    run: str
    processes: int
    complete: bool
    properties: tuple[str, ...]
    lost: Lost = ()


def known(properties: Sequence[str]) -> tuple[str, ...]:
    for name in properties:
        if name not in PROPERTIES:
            raise UsageError(
                f"there is no property {name!r}; the properties are: {', '.join(PROPERTIES)}"
            )
    return tuple(dict.fromkeys(properties))


def promised_by(stack: str, network: str | None, faults: str | None) -> list[str]:
    """What a run's stack promises over its network; everything, if this project cannot tell."""
    try:
        plan = parse_stack(stack)
        drops = any("!drop" in cut for cut in json.loads(faults or "{}").get("partitions", ()))
        given = channel_guarantees(parse_network(network or "lan"), drops)
        promised = promised_properties(guarantees_above(plan.layers, given), plan.genuine)
    except (FlexGroupError, json.JSONDecodeError):
        return list(EVERYTHING)
    return promised


def planned(runs: Sequence[Run], properties: Sequence[str] | None) -> list[Plan]:
    """What to check of each run."""
    chosen = None if properties is None else known(properties)
    return [
        Plan(
            number,
            run.run,
            run.processes,
            run.outcome == COMPLETE,
            tuple(promised_by(run.stack, run.network, run.faults)) if chosen is None else chosen,
        )
        for number, run in enumerate(runs)
    ]
