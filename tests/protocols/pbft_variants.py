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
    return loaded_anew("pbft", "pbft_log", "pbft_sequence", "view_changes")


def plan(pbft: Any, *options: str) -> StackPlan:
    return StackPlan.of(Protocol("variant", pbft.Pbft, "", "", always=frozenset(options)))


# Quorums.


def pbft_that_prepares_with_one_too_few() -> StackPlan:
    pbft = fresh()
    careful = pbft.Slot.prepare
    pbft.Slot.prepare = lambda self, most: careful(self, most - 1)
    return plan(pbft)


def pbft_that_commits_with_one_too_few() -> StackPlan:
    pbft = fresh()
    careful = pbft.Slot.is_committed
    pbft.Slot.is_committed = lambda self, most: careful(self, most - 1)
    return plan(pbft)


def pbft_that_changes_views_with_one_too_few() -> StackPlan:
    """Then a certificate that f + 1 correct replicas have may be unknown to those that go on."""
    pbft = fresh()
    careful = pbft.Pbft.check_changes

    def check_changes(self: Any) -> None:
        quorums, self.quorums = self.quorums, OneLess(self.quorums)
        careful(self)
        self.quorums = quorums

    def are_distinct(self: Any, processes: list[int]) -> bool:
        return bool(len(processes) == len(set(processes) & set(self.group)) >= self.most - 1)

    pbft.Pbft.check_changes = check_changes
    pbft.Quorums.are_distinct = are_distinct
    return plan(pbft)


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
    pbft.CatchingUp.take = lambda self, number, sender, messages, count: careful(
        self, number, sender, messages, count - 1
    )
    return plan(pbft)


def pbft_that_stays_although_some_correct_one_has_left() -> StackPlan:
    pbft = fresh()
    careful = pbft.Pbft.on_view_change

    def on_view_change(self: Any, sender: int, packet: Any) -> None:
        quorums, self.quorums = self.quorums, NobodyLies(self.quorums)
        careful(self, sender, packet)
        self.quorums = quorums

    pbft.Pbft.on_view_change = on_view_change
    return plan(pbft)


class NobodyLies(OneLess):
    """The quorums of a group in which f + 1 is never reached."""

    @property
    def most(self) -> int:
        return int(self.quorums.most)

    @property
    def faulty(self) -> int:
        return len(self.quorums.group)


# Contents.


def pbft_that_counts_prepares_for_any_batch() -> StackPlan:
    """What counts is who says something, and not what."""
    pbft = fresh()

    def prepare(self: Any, most: int) -> bool:
        votes = [self.prepares[j] for j in sorted(self.prepares)]
        if self.accepted is None or len(votes) < most:
            return False
        self.certificate = tuple(votes[:most])
        self.certified = self.accepted
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


def pbft_that_takes_the_certificate_of_the_oldest_view() -> StackPlan:
    pbft = fresh()
    view_changes = pbft.proposals_again.__globals__

    def obligations(changes: list[Any]) -> list[tuple[int, bytes]]:
        stable = max(change.stable for change in changes)
        lowest: dict[int, Any] = {}
        for change in changes:
            for number, votes in view_changes["certificates_in"](change).items():
                if number not in lowest or votes[0].view < lowest[number].view:
                    lowest[number] = votes[0]
        numbers = range(stable + 1, max(lowest, default=stable) + 1)
        null = view_changes["NULL"]
        return [(n, lowest[n].digest if n in lowest else null) for n in numbers]

    view_changes["obligations"] = obligations
    return plan(pbft)


def pbft_that_proposes_nothing_again() -> StackPlan:
    pbft = fresh()
    pbft.proposals_again.__globals__["obligations"] = lambda changes: []
    return plan(pbft)


def pbft_without_null_requests() -> StackPlan:
    """A hole before what is prepared stays one."""
    pbft = fresh()
    view_changes = pbft.proposals_again.__globals__
    careful = view_changes["obligations"]

    def obligations(changes: list[Any]) -> list[tuple[int, bytes]]:
        again = careful(changes)
        return [(number, digest) for number, digest in again if digest != view_changes["NULL"]]

    view_changes["obligations"] = obligations
    return plan(pbft)


def pbft_that_forgets_what_was_prepared() -> StackPlan:
    """In a view change it tells only of what is prepared in the view that it leaves."""
    pbft = fresh()
    careful = pbft.Pbft.begin_view

    def begin_view(self: Any, packet: Any) -> None:
        for slot in self.slots.values():
            slot.certificate, slot.certified = (), None
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
    pbft.Pbft.answer = lambda self, process: None
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
        pbft_that_prepares_with_one_too_few, "conduct", 2, Load(4, 1, 0, 2, True, ("skip",))
    ),
    VariantCase(
        pbft_that_commits_with_one_too_few, "order", 2270, Load(4, 1, 0, 2, True, ("twin",))
    ),
    VariantCase(
        pbft_that_changes_views_with_one_too_few,
        "conduct",
        1723,
        Load(5, 1, 0, 4, False, ("forge",)),
    ),
    VariantCase(
        pbft_that_believes_a_single_copy, "order", 76, Load(2, 1, 0, 4, True, ("equivocate",))
    ),
    VariantCase(
        pbft_that_stays_although_some_correct_one_has_left,
        "validity",
        186,
        Load(4, 1, 0, 6, True, ("equivocate",)),
    ),
    VariantCase(
        pbft_that_counts_prepares_for_any_batch, "conduct", 8, Load(2, 1, 0, 8, True, ("forge",))
    ),
    VariantCase(
        pbft_that_counts_commits_for_any_batch, "order", 98, Load(4, 1, 0, 8, True, ("forge",))
    ),
    VariantCase(
        pbft_that_does_not_ask_who_a_request_is_from,
        "forged",
        89,
        Load(3, 1, 0, 8, False, ("impersonate",)),
    ),
    VariantCase(
        pbft_that_accepts_a_second_proposal, "order", 595, Load(5, 1, 0, 1, False, ("twin",))
    ),
    VariantCase(
        pbft_that_does_not_verify_view_changes, "validity", 23, Load(5, 1, 0, 5, False, ("forge",))
    ),
    VariantCase(
        pbft_that_takes_the_certificate_of_the_oldest_view,
        "order",
        347,
        Load(5, 1, 0, 5, False, ("skip",)),
    ),
    VariantCase(
        pbft_that_proposes_nothing_again, "order", 6, Load(4, 1, 0, 6, True, ("equivocate",))
    ),
    VariantCase(pbft_without_null_requests, "validity", 3, Load(5, 1, 0, 3, False, ("forge",))),
    VariantCase(
        pbft_that_forgets_what_was_prepared, "order", 287, Load(5, 1, 0, 8, False, ("skip",))
    ),
    VariantCase(
        pbft_without_patience_for_the_primary, "validity", 2, Load(4, 1, 0, 2, True, ("skip",))
    ),
    VariantCase(
        pbft_that_delivers_what_is_ordered_twice,
        "integrity",
        583,
        Load(5, 1, 0, 7, False, ("forge",)),
    ),
    VariantCase(
        pbft_that_never_tells_who_lags, "validity", 49, Load(3, 1, 0, 4, False, ("impersonate",))
    ),
    VariantCase(
        pbft_whose_checkpoints_need_no_quorum,
        "conduct",
        1,
        Load(3, 1, 0, 1, False, ("equivocate",)),
        parse_stack("pbft/short"),
    ),
)
