"""What a layer needs below it and gives above it, and the check of a whole stack."""

from __future__ import annotations

from enum import Enum


class Guarantee(Enum):
    """A promise about the messages that pass a boundary between two layers."""

    RELIABLE = "reliable"
    FIFO = "fifo"
    CAUSAL = "causal"
    TOTAL = "total"
    UNIFORM = "uniform"
    VIRTUAL_SYNCHRONY = "virtual-synchrony"
    LEADER = "leader"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Guarantee.RELIABLE: "what is sent between correct processes arrives exactly once",
    Guarantee.FIFO: "what one process sends to another arrives in the order it was sent",
    Guarantee.CAUSAL: "no message arrives before one that happened before it",
    Guarantee.TOTAL: "the order of deliveries, over all processes together, has no cycle",
    Guarantee.UNIFORM: "what one process delivers, even if it crashes, all correct ones deliver",
    Guarantee.VIRTUAL_SYNCHRONY: "who goes from one view to the next delivers what others that do"
    " deliver before it",
    Guarantee.LEADER: "in the end, all correct members of a group of replicas are told of the same"
    " correct one that should lead it",
}

Guarantees = frozenset[Guarantee]

NOTHING: Guarantees = frozenset()


def guarantees_of_channels(reliable: bool, fifo: bool) -> Guarantees:
    """What channels give to the lowest layer; even a bounded number of faults voids a guarantee."""
    given = {Guarantee.RELIABLE: reliable, Guarantee.FIFO: fifo}
    return frozenset([guarantee for guarantee, is_given in given.items() if is_given])


def names(guarantees: Guarantees) -> str:
    return ", ".join(sorted(guarantee.value for guarantee in guarantees)) or "nothing"
