"""Variants of PrimCast with one of its ideas taken out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan, parse_stack
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from .variant_parts import Case, loaded_anew

NOBODY = -1


def grouped(sizes: tuple[int, ...], *casts: PlannedCast, **bounds: int) -> Scope:
    """Groups of replicas of these sizes, over fifo channels."""
    return Scope(sum(sizes), casts, bounds=Bounds(**bounds), replicas=replicas_of_sizes(sizes))


def on_an_oracle(primcast: Any) -> StackPlan:
    return StackPlan.of(PROTOCOLS["leader"], Protocol("variant", primcast.PrimCast, "", ""))


# Quorums.


def primcast_that_decides_with_one_ack_too_few() -> StackPlan:
    primcast = loaded_anew("primcast", "group_timestamps")
    careful = primcast.GroupTimestamps.count_ack

    def count_ack(self: Any, sender: int, m: int, epoch: int, ts: int) -> None:
        if not self.delivered.has(m) and len(primcast.group_of(self.replicas, sender)) > 1:
            self.known(m).acks.setdefault(epoch, set()).add(NOBODY)
        careful(self, sender, m, epoch, ts)

    primcast.GroupTimestamps.count_ack = count_ack
    return on_an_oracle(primcast)


def primcast_that_begins_with_one_promise_too_few() -> StackPlan:
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.check_promises

    def check_promises(self: Any, candidacy: Any) -> None:
        candidacy.promises.add(NOBODY)
        careful(self, candidacy)

    primcast.PrimCast.check_promises = check_promises
    return on_an_oracle(primcast)


def primcast_that_asks_only_the_primarys_clock() -> StackPlan:
    """A later epoch may begin with a lower clock."""
    primcast = loaded_anew("primcast")
    primcast.PrimCast.quorum_clock = lambda self: max(self.min_clock.values())
    return on_an_oracle(primcast)


def primcast_that_does_not_ask_the_primarys_clock() -> StackPlan:
    """The primary may propose something lower in this epoch."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.try_deliver

    def try_deliver(self: Any) -> None:
        if not self.group:
            return
        primary = primcast.process_of(self.E_cur)
        clock = self.min_clock[primary]
        quorum_clock = self.quorum_clock()
        self.min_clock[primary] = max(clock, quorum_clock)
        careful(self)
        self.min_clock[primary] = clock

    primcast.PrimCast.try_deliver = try_deliver
    return on_an_oracle(primcast)


def primcast_that_delivers_before_a_quorum_is_in_the_epoch() -> StackPlan:
    """As the public prototype does: another epoch may begin with a T that this one left out."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.try_deliver

    def try_deliver(self: Any) -> None:
        accepted = dict(self.accepted)
        self.accepted = dict.fromkeys(self.group, self.E_cur)
        careful(self)
        self.accepted = accepted

    primcast.PrimCast.try_deliver = try_deliver
    return on_an_oracle(primcast)


# Epochs.


def primcast_that_counts_acks_of_all_epochs_together() -> StackPlan:
    primcast = loaded_anew("primcast", "group_timestamps")
    careful = primcast.GroupTimestamps.count_ack

    def count_ack(self: Any, sender: int, m: int, epoch: int, ts: int) -> None:
        first = primcast.group_of(self.replicas, sender)[0]
        careful(self, sender, m, primcast.stamp(0, first), ts)

    primcast.GroupTimestamps.count_ack = count_ack
    return on_an_oracle(primcast)


def primcast_that_acknowledges_whatever_it_promised() -> StackPlan:
    """A primary that was deposed has timestamps decided beside its successor."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.on_proposal

    def on_proposal(self: Any, sender: int, packet: Any) -> None:
        promised = self.E_prom
        if sender in self.group and packet.epoch == self.E_cur:
            self.E_prom = self.E_cur
        careful(self, sender, packet)
        self.E_prom = max(promised, self.E_prom)

    primcast.PrimCast.on_proposal = on_proposal
    return on_an_oracle(primcast)


def primcast_that_delivers_though_it_promised_another_epoch() -> StackPlan:
    """It has not kept what the primary proposed since."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.try_deliver

    def try_deliver(self: Any) -> None:
        promised, self.E_prom = self.E_prom, self.E_cur
        careful(self)
        self.E_prom = promised

    primcast.PrimCast.try_deliver = try_deliver
    return on_an_oracle(primcast)


# A new epoch.


def primcast_that_begins_with_its_own_clock() -> StackPlan:
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.on_promise

    def on_promise(self: Any, sender: int, packet: Any) -> None:
        forgetful = primcast.Promise(packet.epoch, packet.current, 0, packet.ts, packet.messages)
        careful(self, sender, forgetful)

    primcast.PrimCast.on_promise = on_promise
    return on_an_oracle(primcast)


def primcast_that_begins_with_its_own_T() -> StackPlan:
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.on_promise

    def on_promise(self: Any, sender: int, packet: Any) -> None:
        careful(self, sender, primcast.Promise(packet.epoch, 0, packet.clock, (), ()))

    primcast.PrimCast.on_promise = on_promise
    return on_an_oracle(primcast)


def primcast_that_begins_with_the_longest_T_of_any_epoch() -> StackPlan:
    """Not that of the highest epoch: it may hold what was never decided."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.on_promise

    def on_promise(self: Any, sender: int, packet: Any) -> None:
        if self.candidacy is not None:
            self.candidacy.current = packet.current
        careful(self, sender, packet)

    primcast.PrimCast.on_promise = on_promise
    return on_an_oracle(primcast)


def primcast_without_the_state_of_the_epoch() -> StackPlan:
    """Followers keep the T that they have."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.on_new_state

    def on_new_state(self: Any, packet: Any) -> None:
        ts, messages = self.T.flat()
        careful(self, primcast.NewState(packet.epoch, packet.clock, ts, messages))

    primcast.PrimCast.on_new_state = on_new_state
    return on_an_oracle(primcast)


def primcast_that_does_not_acknowledge_the_state() -> StackPlan:
    primcast = loaded_anew("primcast")
    primcast.PrimCast.acknowledge_state = lambda self: None
    return on_an_oracle(primcast)


def primcast_that_does_not_tell_other_groups_again() -> StackPlan:
    primcast = loaded_anew("primcast")
    primcast.PrimCast.tell_other_groups = lambda self: None
    return on_an_oracle(primcast)


def primcast_that_does_not_propose_what_waited() -> StackPlan:
    primcast = loaded_anew("primcast", "group_timestamps")
    primcast.GroupTimestamps.waiting = lambda self: []
    return on_an_oracle(primcast)


def primcast_that_does_not_tell_who_is_next() -> StackPlan:
    """Who promised an epoch that never begins waits for ever."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.check_leader

    def check_leader(self: Any) -> None:
        if self.trusted[0] == self.process:
            careful(self)

    primcast.PrimCast.check_leader = check_leader
    return on_an_oracle(primcast)


def primcast_that_does_not_hear_of_epochs() -> StackPlan:
    """The next primary does not know which epoch others have promised."""
    primcast = loaded_anew("primcast")
    primcast.PrimCast.hear_of = lambda self, epoch: None
    return on_an_oracle(primcast)


# Timestamps.


def primcast_that_takes_the_lowest_timestamp() -> StackPlan:
    """Not the maximum of the local timestamps."""
    primcast = loaded_anew("primcast", "group_timestamps")
    careful = primcast.GroupTimestamps.place

    def place(self: Any, m: int, known: Any) -> None:
        local_ts, ts = known.local_ts, known.ts
        if ts and known.m is not None and self.is_final(known.m):
            known.local_ts, known.ts = {}, min(local_ts.values())
        careful(self, m, known)
        known.local_ts, known.ts = local_ts, ts

    primcast.GroupTimestamps.place = place
    return on_an_oracle(primcast)


def primcast_that_does_not_wait_for_lower_timestamps() -> StackPlan:
    primcast = loaded_anew("primcast", "group_timestamps")
    careful = primcast.GroupTimestamps.take_first

    def take_first(self: Any, until: int) -> Any:
        whole = self.order
        for entry in whole:
            self.order = [entry]
            if (m := careful(self, until)) is not None:
                self.order = [other for other in whole if other != entry]
                return m
        self.order = whole
        return None

    primcast.GroupTimestamps.take_first = take_first
    return on_an_oracle(primcast)


def primcast_that_keeps_its_clock() -> StackPlan:
    """It does not take over the clocks of other groups, so that nothing higher is delivered."""
    primcast = loaded_anew("primcast")
    primcast.PrimCast.advance = lambda self, ts: None
    return on_an_oracle(primcast)


def primcast_that_delivers_without_all_local_timestamps() -> StackPlan:
    primcast = loaded_anew("primcast", "group_timestamps")
    primcast.GroupTimestamps.is_final = lambda self, m: bool(self.pending[m.id].local_ts)
    return on_an_oracle(primcast)


# What is forgotten.


def primcast_that_forgets_what_it_has_delivered() -> StackPlan:
    """Though others have not."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.try_deliver

    def try_deliver(self: Any) -> None:
        careful(self)
        self.T.kept = [kept for kept in self.T.kept if not kept.final]

    primcast.PrimCast.try_deliver = try_deliver
    return on_an_oracle(primcast)


def primcast_that_sends_the_message_once() -> StackPlan:
    """Only its origin does: a primary's ack teaches nobody the message."""
    primcast = loaded_anew("primcast")
    careful = primcast.PrimCast.on_proposal

    def on_proposal(self: Any, sender: int, packet: Any) -> None:
        if sender not in self.group:
            self.advance(packet.ts)
            self.timestamps.count_ack(sender, packet.m.id, packet.epoch, packet.ts)
        else:
            careful(self, sender, packet)

    primcast.PrimCast.on_proposal = on_proposal
    return on_an_oracle(primcast)


GROUP = (0, 1, 2)

LEADER_CRASHES = replace(grouped((3,), PlannedCast(2, GROUP), crashes=1), crashing=(0,))
TWO_RACE = replace(
    grouped((3,), PlannedCast(0, GROUP), PlannedCast(1, GROUP), crashes=1), crashing=(0,)
)
WRONGLY_DEPOSED = replace(grouped((3,), PlannedCast(2, GROUP), suspicions=1), suspecting=((1, 0),))
ALIKE = grouped((1, 1), PlannedCast(2, (0, 1)), PlannedCast(3, (0, 1)))
ONE_IS_AHEAD = grouped((1, 1), PlannedCast(0, (0,)), PlannedCast(1, (0, 1)))

CASES = [
    Case(primcast_that_decides_with_one_ack_too_few, "primcast", TWO_RACE, "prefix order"),
    Case(primcast_that_begins_with_one_promise_too_few, "primcast", TWO_RACE, "prefix order"),
    Case(primcast_that_counts_acks_of_all_epochs_together, "primcast", TWO_RACE, "prefix order"),
    Case(primcast_that_acknowledges_whatever_it_promised, "primcast", TWO_RACE, "prefix order"),
    Case(primcast_that_begins_with_its_own_T, "primcast", LEADER_CRASHES, "uniform agreement"),
    Case(primcast_that_begins_with_its_own_clock, "primcast", LEADER_CRASHES, "validity"),
    Case(primcast_without_the_state_of_the_epoch, "primcast", LEADER_CRASHES, "validity"),
    Case(primcast_that_does_not_propose_what_waited, "primcast", LEADER_CRASHES, "validity"),
    Case(primcast_that_forgets_what_it_has_delivered, "primcast", LEADER_CRASHES, "validity"),
    Case(primcast_that_does_not_acknowledge_the_state, "primcast", WRONGLY_DEPOSED, "validity"),
    Case(primcast_that_delivers_without_all_local_timestamps, "primcast", ALIKE, "acyclic order"),
    Case(primcast_that_does_not_wait_for_lower_timestamps, "primcast", ALIKE, "acyclic order"),
    Case(primcast_that_keeps_its_clock, "primcast", ONE_IS_AHEAD, "validity"),
]

LEFT_ALONE = {"primcast": parse_stack("leader primcast")}
"""The stack of which variants replace a layer."""
