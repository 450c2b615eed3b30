"""The properties that group communication promises: their names, and what each guarantee promises.

A guarantee speaks of the boundary between two layers; a property speaks of what the applications
of a whole run see, and can be checked on its trace. Worlds write the names of what a stack promises
into the trace, and `flexgroup.properties` has a check for each name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from flexgroup.core.guarantees import Guarantee, Guarantees

UNIFORM: Final = "uniform agreement"

PROPERTIES = (
    "integrity",
    "validity",
    "agreement",
    UNIFORM,
    "fifo order",
    "causal order",
    "local order",
    "pairwise order",
    "prefix order",
    "acyclic order",
    "real-time order",
    "virtual synchrony",
    "minimality",
)
"""All that can be promised and checked."""

PROMISED_BY = {
    Guarantee.RELIABLE: ("validity", "agreement"),
    Guarantee.UNIFORM: (UNIFORM,),
    Guarantee.FIFO: ("fifo order",),
    Guarantee.CAUSAL: ("causal order",),
    Guarantee.TOTAL: ("local order", "pairwise order", "prefix order", "acyclic order"),
    Guarantee.VIRTUAL_SYNCHRONY: ("virtual synchrony",),
}


def level_of(promises: Collection[str]) -> str:
    """How much is certain of a message that is delivered, in the words of Transis and Totem."""
    if UNIFORM in promises:
        return "safe"
    if "acyclic order" in promises:
        return "agreed"
    return "reliable" if "agreement" in promises else "best-effort"


def promised_properties(guarantees: Guarantees, genuine: bool) -> tuple[str, ...]:
    """What a stack with these guarantees at its top promises; integrity is promised by all."""
    promised = ["integrity"]
    for guarantee, properties in PROMISED_BY.items():
        if guarantee in guarantees:
            promised += properties
    if genuine:
        promised.append("minimality")
    return tuple(promised)
