"""Variants of atomic broadcast over VCube with epochs that a majority closes."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import StackPlan

from .variant_parts import Case, loaded_anew, plan_of
from .variants_vcube import broadcasts

LAYERS = {"vcube_atomic_majority": "VCubeAtomicMajority"}


def fresh() -> Any:
    """The module of the protocol and of its agreement, to be spoilt."""
    return loaded_anew("vcube_atomic_majority", "majority_agreement")


def majority_that_does_not_put_first_what_may_be_delivered() -> StackPlan:
    module = fresh()
    module.MajorityAgreement.choose = lambda self: tuple(sorted(self.pending))
    return plan_of(module.VCubeAtomicMajority)


def majority_that_does_not_wait_for_lower_timestamps() -> StackPlan:
    module = fresh()

    def deliverable(self: Any) -> list[int]:
        return sorted(m for m, known in self.received.items() if known.is_stable)

    module.VCubeAtomicMajority.deliverable = deliverable
    return plan_of(module.VCubeAtomicMajority)


def majority_of_one() -> StackPlan:
    module = fresh()
    module.MajorityAgreement.is_majority = lambda self, count: count > 0
    return plan_of(module.VCubeAtomicMajority)


def majority_that_keeps_messages_to_itself() -> StackPlan:
    """Those that closed the epoch wait for messages of the batch for ever."""
    module = fresh()
    module.MajorityAgreement.share = lambda self, layer, m: None
    return plan_of(module.VCubeAtomicMajority)


# Random schedules catch these: it takes more processes and messages to see what they do.


def majority_that_confirms_at_once() -> StackPlan:
    """As `vcube-atomic` does: who delivers knows what some of the others may not know."""
    module = fresh()
    careful = module.VCubeAtomicMajority.check_acks

    def check_acks(self: Any, m: int, known: Any) -> None:
        missing, known.missing = known.missing, 0
        careful(self, m, known)
        known.missing = missing

    module.VCubeAtomicMajority.check_acks = check_acks
    return plan_of(module.VCubeAtomicMajority)


def majority_that_forgets_what_it_accepted() -> StackPlan:
    """Two coordinators may have different batches accepted by majorities."""
    module = fresh()
    careful = module.MajorityAgreement.take_part

    def take_part(self: Any, layer: Any, round: int) -> None:
        self.accepted_in, self.accepted = 0, ()
        careful(self, layer, round)

    module.MajorityAgreement.take_part = take_part
    return plan_of(module.VCubeAtomicMajority)


TWO_RACE = broadcasts(2, 0, 1, suspicions=1)

CASES = [
    Case(majority_that_does_not_put_first_what_may_be_delivered, "vcube_atomic_majority",
         TWO_RACE, "acyclic order"),
    Case(majority_that_does_not_wait_for_lower_timestamps, "vcube_atomic_majority",
         TWO_RACE, "acyclic order"),
    Case(majority_of_one, "vcube_atomic_majority", TWO_RACE, "agreement"),
    Case(majority_that_keeps_messages_to_itself, "vcube_atomic_majority", TWO_RACE, "validity"),
]  # fmt: skip
