"""Which properties a stack promises, by the guarantees it gives."""

from __future__ import annotations

from flexgroup.core.guarantees import Guarantee, Guarantees

ALWAYS = ("integrity",)

PROMISED_BY = {
    Guarantee.RELIABLE: ("validity", "agreement"),
    Guarantee.FIFO: ("fifo order",),
    Guarantee.CAUSAL: ("causal order",),
    Guarantee.TOTAL: ("local order", "pairwise order", "prefix order", "acyclic order"),
}


def promised_properties(guarantees: Guarantees, genuine: bool) -> list[str]:
    promised = list(ALWAYS)
    for guarantee, properties in PROMISED_BY.items():
        if guarantee in guarantees:
            promised += properties
    if genuine:
        promised.append("minimality")
    return promised
