"""Variants of PBFT with one of its ideas taken out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flexgroup.core.message import Message
from flexgroup.protocols.catalogue import Protocol, StackPlan, parse_stack

from ..explorer.variant_parts import loaded_anew
from .liar_schedules import Load


def fresh() -> Any:
    """The protocol, loaded again with all of its parts that a variant may change."""
    return loaded_anew("pbft", "pbft_log", "pbft_sequence", "pbft_catching_up", "view_changes")


def plan(pbft: Any, *options: str) -> StackPlan:
    return StackPlan.of(Protocol("variant", pbft.Pbft, "", "", always=frozenset(options)))


# Quorums.


def pbft_that_prepares_with_one_too_few() -> StackPlan:
    pbft = fresh()
    careful = pbft.Slot.prepare
    pbft.Slot.prepare = lambda self, view, most: careful(self, view, most - 1)
    return plan(pbft)


def pbft_that_commits_with_one_too_few() -> StackPlan:
    pbft = fresh()
    careful = pbft.Slot.is_committed
    pbft.Slot.is_committed = lambda self, most: careful(self, most - 1)
    return plan(pbft)


def pbft_that_changes_views_with_one_too_few() -> StackPlan:
    """Then a batch that f + 1 correct replicas have prepared may be unknown to those that go on."""
    pbft = fresh()
    pbft.Quorums.is_new_view = lambda self, packet, is_sealed: True
    for name in ("is_left_by_most", "new_view"):
        setattr(pbft.Views, name, with_one_less(getattr(pbft.Views, name)))
    return plan(pbft)


def with_one_less(careful: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What counts quorums, with one less in each."""

    def careless(self: Any) -> Any:
        quorums, self.quorums = self.quorums, OneLess(self.quorums)
        found = careful(self)
        self.quorums = quorums
        return found

    return careless


class OneLess:
    """The quorums of a group, each of which lacks one."""

    def __init__(self, quorums: Any) -> None:
        self.quorums = quorums

    @property
    def most(self) -> int:
        return int(self.quorums.most) - 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.quorums, name)


def pbft_that_believes_a_single_copy() -> StackPlan:
    pbft = fresh()
    careful = pbft.CatchingUp.take

    def take(self: Any, sender: int, packet: Any, last: int) -> Any:
        self.enough -= 1
        found = careful(self, sender, packet, last)
        self.enough += 1
        return found

    pbft.CatchingUp.take = take
    return plan(pbft)


def pbft_that_stays_although_some_correct_one_has_left() -> StackPlan:
    pbft = fresh()
    pbft.Views.higher = lambda self: 0
    return plan(pbft)


# Contents.


def pbft_that_counts_prepares_for_any_batch() -> StackPlan:
    """What counts is who says something, and not what."""
    pbft = fresh()

    def prepare(self: Any, view: int, most: int) -> bool:
        if not self.is_accepted_in(view) or len(self.prepares) < most:
            return False
        self.prepared = self.accepted
        return True

    pbft.Slot.prepare = prepare
    return plan(pbft)


def pbft_that_counts_commits_for_any_batch() -> StackPlan:
    pbft = fresh()
    pbft.Slot.is_committed = lambda self, most: len(self.commits) >= most
    return plan(pbft)


def pbft_that_does_not_ask_who_a_request_is_from() -> StackPlan:
    pbft = fresh()
    pbft.Pbft.is_authentic = lambda self, request: True
    return plan(pbft)


def pbft_that_accepts_a_second_proposal() -> StackPlan:
    """The primary may change its mind, and the others vote again."""
    pbft = fresh()
    careful = pbft.Pbft.consider

    def consider(self: Any, packet: Any) -> None:
        slot = self.slot(packet.number)
        before, slot.accepted = slot.accepted, None
        careful(self, packet)
        if slot.accepted is None:
            slot.accepted = before

    pbft.Pbft.consider = consider
    pbft.Slot.is_prepared_in = lambda self, view: False
    return plan(pbft)


# View changes.


def pbft_that_does_not_verify_view_changes() -> StackPlan:
    pbft = fresh()
    pbft.Quorums.is_valid = lambda self, change, is_sealed: True
    pbft.has_batches = lambda change: True
    return plan(pbft)


def pbft_that_takes_the_batch_of_the_oldest_view() -> StackPlan:
    def choice(count: int, commits: list[Any], prepares: list[Any], quorums: Any) -> bytes | None:
        return min(((vote.view, bytes(vote.digest)) for vote in commits), default=(0, None))[1]

    return pbft_that_chooses(choice)


def pbft_that_chooses(choice: Any) -> StackPlan:
    """What has to be proposed again is chosen in another way."""
    pbft = fresh()
    pbft.has_batches.__globals__["choice"] = choice
    return plan(pbft)


def pbft_that_proposes_nothing_again() -> StackPlan:
    pbft = fresh()
    pbft.has_batches.__globals__["choices"] = lambda V, quorums: []
    return plan(pbft)


def pbft_without_null_requests() -> StackPlan:
    """A hole before what is prepared stays one."""
    pbft = fresh()
    view_changes = pbft.has_batches.__globals__
    careful = view_changes["choices"]

    def choices(V: list[Any], quorums: Any) -> list[tuple[int, bytes]] | None:
        again = careful(V, quorums)
        if again is None:
            return None
        return [(number, digest) for number, digest in again if digest != view_changes["NULL"]]

    view_changes["choices"] = choices
    return plan(pbft)


def pbft_that_forgets_what_was_prepared() -> StackPlan:
    """In a view change it tells only of what is prepared in the view that it leaves."""
    pbft = fresh()
    careful = pbft.Pbft.begin_view

    def begin_view(self: Any, packet: Any) -> None:
        for slot in self.slots.values():
            slot.prepared = None
        careful(self, packet)

    pbft.Pbft.begin_view = begin_view
    return plan(pbft)


def pbft_without_patience_for_the_primary() -> StackPlan:
    """No timer runs: who waits for a primary that is down waits for ever."""
    pbft = fresh()
    pbft.Pbft.set_timer = lambda self, name, ticks: None
    return plan(pbft)


# The sequence.


def pbft_that_delivers_what_is_ordered_twice() -> StackPlan:
    pbft = fresh()

    def take_next(self: Any) -> list[Message]:
        self.last += 1
        batch: tuple[Message, ...] = self.batches[self.last]
        for m in batch:
            if not self.taken.has(m.id):
                self.taken.add(m.id)
        return list(batch)

    pbft.Sequence.take_next = take_next
    return plan(pbft)


def pbft_that_never_tells_who_lags() -> StackPlan:
    pbft = fresh()
    pbft.CatchingUp.answer = lambda self, layer, sequence, process: None
    return plan(pbft)


def pbft_whose_checkpoints_need_no_quorum() -> StackPlan:
    """Each replica drops what it has delivered itself, and proves nothing to others."""
    pbft = fresh()
    careful = pbft.Checkpoints.equal
    pbft.Checkpoints.equal = lambda self, process, number: careful(self, process, number) * 3
    return plan(pbft, "short")


class VariantCase(NamedTuple):
    """A variant, and a schedule of four replicas in which a promise is seen broken."""

    variant: Callable[[], StackPlan]
    broken: str
    seed: int
    load: Load
    whole: StackPlan = parse_stack("pbft")
    """What it is a variant of, which keeps its promises in the same schedule."""


CASES = (
    VariantCase(
        pbft_that_prepares_with_one_too_few,
        "validity",
        839,
        Load(6, 1, 0, 0, False, ("equivocate",)),
    ),
    VariantCase(
        pbft_that_commits_with_one_too_few,
        "order",
        1212,
        Load(6, 1, 0, 9, True, ("twin",)),
    ),
    VariantCase(
        pbft_that_changes_views_with_one_too_few,
        "order",
        4343,
        Load(6, 1, 0, 7, True, ("equivocate",)),
    ),
    VariantCase(
        pbft_that_believes_a_single_copy,
        "forged",
        671,
        Load(3, 1, 0, 9, True, ("forge",)),
    ),
    VariantCase(
        pbft_that_stays_although_some_correct_one_has_left,
        "validity",
        308,
        Load(5, 1, 0, 9, False),
    ),
    VariantCase(
        pbft_that_counts_prepares_for_any_batch,
        "validity",
        2185,
        Load(4, 1, 0, 7, True, ("equivocate",)),
    ),
    VariantCase(
        pbft_that_counts_commits_for_any_batch,
        "order",
        251,
        Load(6, 1, 0, 9, True, ("impersonate",)),
    ),
    VariantCase(
        pbft_that_does_not_ask_who_a_request_is_from,
        "forged",
        89,
        Load(3, 1, 0, 8, False, ("impersonate",)),
    ),
    VariantCase(
        pbft_that_accepts_a_second_proposal,
        "conduct",
        595,
        Load(5, 1, 0, 1, False, ("twin",)),
    ),
    VariantCase(
        pbft_that_does_not_verify_view_changes,
        "validity",
        3409,
        Load(5, 1, 0, 6, False, ("forge",)),
    ),
    VariantCase(
        pbft_that_takes_the_batch_of_the_oldest_view,
        "order",
        204,
        Load(3, 1, 0, 8, False, ("equivocate",)),
    ),
    VariantCase(
        pbft_that_proposes_nothing_again,
        "order",
        2831,
        Load(6, 1, 0, 9, True, ("reorder",)),
    ),
    VariantCase(
        pbft_without_null_requests,
        "validity",
        3007,
        Load(5, 1, 0, 7, False, ("forge",)),
    ),
    VariantCase(
        pbft_that_forgets_what_was_prepared,
        "order",
        1064,
        Load(2, 1, 0, 9, False, ("skip",)),
    ),
    VariantCase(
        pbft_without_patience_for_the_primary, "validity", 2, Load(4, 1, 0, 2, True, ("skip",))
    ),
    VariantCase(
        pbft_that_delivers_what_is_ordered_twice,
        "integrity",
        3241,
        Load(5, 1, 0, 8, True, ("impersonate",)),
    ),
    VariantCase(
        pbft_that_never_tells_who_lags,
        "validity",
        0,
        Load(5, 1, 0, 8, False, ("impersonate",)),
    ),
    VariantCase(
        pbft_whose_checkpoints_need_no_quorum,
        "conduct",
        1,
        Load(3, 1, 0, 1, False, ("equivocate",)),
        parse_stack("pbft/short"),
    ),
)
