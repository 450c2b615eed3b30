"""Variants of White-Box with one of its quorums, comparisons, maxima or other ideas taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan, parse_stack
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from ..protocols.replica_schedules import Load
from .variant_parts import Case, loaded_anew

NOBODY = -1


def to_groups(sizes: list[int], *casts: tuple[int, tuple[int, ...]], **bounds: int) -> Scope:
    """Groups of these sizes, and messages by an origin to destinations."""
    planned = tuple(PlannedCast(origin, destinations) for origin, destinations in casts)
    replicas = replicas_of_sizes(sizes)
    return Scope(sum(sizes), planned, bounds=Bounds(**bounds), replicas=replicas)


def on_an_oracle(white_box: Any) -> StackPlan:
    return StackPlan.of(PROTOCOLS["leader"], Protocol("variant", white_box.WhiteBox, "", ""))


def with_handler(name: str, changed: Callable[[Any, Any], Callable[..., Any]]) -> StackPlan:
    """The protocol with this method replaced by what is made of the module and the method."""
    white_box = loaded_anew("white_box")
    setattr(white_box.WhiteBox, name, changed(white_box, getattr(white_box.WhiteBox, name)))
    return on_an_oracle(white_box)


def with_message(name: str, changed: Callable[[Any], Callable[..., Any]]) -> StackPlan:
    """The protocol with this method of its messages replaced by what is made of the method."""
    white_box = loaded_anew("white_box", "white_box_progress", "white_box_messages")
    message = white_box.Progress
    setattr(message, name, changed(getattr(message, name)))
    return on_an_oracle(white_box)


def with_messages(name: str, changed: Callable[[Any], Callable[..., Any]]) -> StackPlan:
    """The protocol with this method of what it knows of all messages replaced."""
    white_box = loaded_anew("white_box", "white_box_messages")
    messages = white_box.WhiteBoxMessages
    setattr(messages, name, changed(getattr(messages, name)))
    return on_an_oracle(white_box)


# Quorums.


def white_box_that_waits_for_all() -> StackPlan:
    """A quorum of 2f + 1, as section 3.2.1 of the DCC dissertation has it."""

    def changed(careful: Any) -> Any:
        def is_acknowledged(self: Any, ballots: Any, replicas: Any) -> bool:
            members = [member for group in self.groups for member in replicas[group]]
            return bool(ballots) and all(self.acks.get(j) == ballots for j in members)

        return is_acknowledged

    return with_message("is_acknowledged", changed)


def white_box_that_commits_with_one_acknowledgement_too_few() -> StackPlan:
    def changed(careful: Any) -> Any:
        def is_acknowledged(self: Any, ballots: Any, replicas: Any) -> bool:
            acks = dict(self.acks)
            found = False
            for group in self.groups if ballots else ():
                for member in replicas[group] if len(replicas[group]) > 1 else ():
                    self.acks = {**acks, member: ballots}
                    found = found or careful(self, ballots, replicas)
            self.acks = acks
            return found or bool(careful(self, ballots, replicas))

        return is_acknowledged

    return with_message("is_acknowledged", changed)


def white_box_that_recovers_with_one_answer_too_few() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def recover(self: Any) -> None:
            careful(self)
            own = self.newleader_acks.pop(self.process)
            self.newleader_acks[NOBODY] = own
            self.on_newleader_ack(self.process, own)

        return recover

    return with_handler("recover", changed)


def white_box_that_leads_before_its_state_is_stored() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def on_newleader_ack(self: Any, sender: int, packet: Any) -> None:
            before = self.cballot
            careful(self, sender, packet)
            if before < self.cballot == self.ballot:
                self.lead()

        return on_newleader_ack

    return with_handler("on_newleader_ack", changed)


# Comparisons of ballots.


def white_box_that_joins_any_ballot() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def on_new_leader(self: Any, sender: int, packet: Any) -> None:
            self.ballot = min(self.ballot, packet.ballot)
            self.cballot = min(self.cballot, packet.ballot - 1)
            careful(self, sender, packet)

        return on_new_leader

    return with_handler("on_new_leader", changed)


def white_box_that_accepts_from_whoever_led_last() -> StackPlan:
    """Not only in the ballot whose state it has."""

    def changed(careful: Any) -> Any:
        def ballots(self: Any, own: int, cballot: int) -> Any:
            return careful(self, own, self.accepts[own][0] if own in self.accepts else cballot)

        return ballots

    return with_message("ballots", changed)


def white_box_that_accepts_while_it_recovers() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def check_accepts(self: Any, known: Any) -> None:
            status = self.status
            if status == white_box.RECOVERING and self.ballot != self.cballot:
                self.status = white_box.FOLLOWER
            careful(self, known)
            self.status = status

        return check_accepts

    return with_handler("check_accepts", changed)


def white_box_that_keeps_the_last_proposal() -> StackPlan:
    """Though it is that of a leader which was deposed before."""

    def changed(white_box: Any, careful: Any) -> Any:
        def accept(self: Any, known: Any, group: int, ballot: int, lts: int) -> None:
            if known.accepts.get(group) != (ballot, lts):
                known.accepts.pop(group, None)
            careful(self, known, group, ballot, lts)

        return accept

    return with_handler("accept", changed)


def white_box_that_delivers_in_any_ballot() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def on_deliver(self: Any, packet: Any) -> None:
            status, cballot = self.status, self.cballot
            self.status, self.cballot = white_box.FOLLOWER, packet.ballot
            careful(self, packet)
            self.status, self.cballot = status, cballot

        return on_deliver

    return with_handler("on_deliver", changed)


def in_the_ballot_of(packet_of: str) -> Callable[[Any, Any], Any]:
    """A handler that takes the packet for one of the ballot that this process takes part in."""

    def changed(white_box: Any, careful: Any) -> Any:
        def handler(self: Any, sender: int, packet: Any) -> None:
            fields = [getattr(packet, name) for name, _ in packet.FIELDS]
            fields[0] = self.ballot
            careful(self, sender, getattr(white_box, packet_of)(*fields))

        return handler

    return changed


def white_box_that_counts_answers_to_an_earlier_ballot() -> StackPlan:
    return with_handler("on_newleader_ack", in_the_ballot_of("NewLeaderAck"))


def white_box_that_takes_the_state_of_an_earlier_ballot() -> StackPlan:
    return with_handler("on_new_state", in_the_ballot_of("NewState"))


def white_box_that_leads_when_the_state_of_an_earlier_ballot_is_stored() -> StackPlan:
    return with_handler("on_newstate_ack", in_the_ballot_of("NewStateAck"))


def white_box_that_counts_acknowledgements_of_other_ballots() -> StackPlan:
    """The vectors of ballots need not be equal."""

    def changed(careful: Any) -> Any:
        def is_acknowledged(self: Any, ballots: Any, replicas: Any) -> bool:
            acks = self.acks
            self.acks = dict.fromkeys(acks, ballots)
            found = bool(careful(self, ballots, replicas))
            self.acks = acks
            return found

        return is_acknowledged

    return with_message("is_acknowledged", changed)


# Maxima.


def white_box_that_takes_the_lowest_proposal() -> StackPlan:
    return with_message("highest", lambda careful: lambda self: min(
        lts for _, lts in self.accepts.values()
    ))  # fmt: skip


def white_box_whose_clocks_do_not_advance() -> StackPlan:
    """When all proposals are known, and so the global timestamp."""

    def changed(white_box: Any, careful: Any) -> Any:
        def check_accepts(self: Any, known: Any) -> None:
            clock = self.clock
            careful(self, known)
            self.clock = clock

        return check_accepts

    return with_handler("check_accepts", changed)


def white_box_that_begins_with_its_own_clock() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def begin_ballot(self: Any, clock: int) -> None:
            careful(self, self.clock)

        return begin_ballot

    return with_handler("begin_ballot", changed)


def white_box_that_takes_what_anybody_accepted() -> StackPlan:
    """Not only those that have the state of the highest ballot."""

    def changed(white_box: Any, careful: Any) -> Any:
        def store(self: Any, told: Any, least: int) -> None:
            careful(self, told, white_box.ACCEPTED)

        return store

    return with_handler("store", changed)


# Delivery.


def white_box_that_does_not_wait_for_lower_proposals() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def deliver_committed(self: Any) -> None:
            waiting = self.messages.undelivered
            self.messages.undelivered = {m for m in waiting if self.messages.known[m].gts}
            later = waiting - self.messages.undelivered
            careful(self)
            self.messages.undelivered |= later

        return deliver_committed

    return with_handler("deliver_committed", changed)


def white_box_that_delivers_again() -> StackPlan:
    """A new leader has all delivered that may be lacking, by those that have it, too."""

    def changed(white_box: Any, careful: Any) -> Any:
        def on_deliver(self: Any, packet: Any) -> None:
            self.messages.max_delivered_gts = min(self.messages.max_delivered_gts, packet.gts - 1)
            careful(self, packet)

        return on_deliver

    return with_handler("on_deliver", changed)


# Recovery.


def white_box_that_asks_only_the_newest_what_is_committed() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def store(self: Any, told: Any, least: int) -> None:
            if least == white_box.ACCEPTED:
                careful(self, told, least)

        return store

    return with_handler("store", changed)


def white_box_that_takes_over_nothing() -> StackPlan:
    return with_handler("store", lambda white_box, careful: lambda self, told, least: None)


def white_box_that_proposes_again_only_what_is_not_committed() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def propose(self: Any, known: Any) -> None:
            if known.phase != white_box.COMMITTED:
                careful(self, known)

        return propose

    return with_handler("propose", changed)


def white_box_that_delivers_only_what_is_new() -> StackPlan:
    """What the old leader had some deliver, the new one does not have the others deliver."""

    def changed(white_box: Any, careful: Any) -> Any:
        def lead(self: Any) -> None:
            settled, self.messages.settled = self.messages.settled, []
            careful(self)
            self.messages.settled = settled + self.messages.settled

        return lead

    return with_handler("lead", changed)


def white_box_whose_followers_do_not_remember() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def on_multicast(self: Any, m: Any) -> Any:
            is_known = self.status == white_box.LEADER or m.id in self.messages.known
            return careful(self, m) if is_known else None

        return on_multicast

    def on_accept(self: Any, packet: Any) -> None:
        known = self.messages.remember(packet.m)
        if known is not None:
            self.on_multicast(packet.m)
            self.accept(known, packet.lts % (1 << 20), packet.ballot, packet.lts)

    white_box = loaded_anew("white_box")
    white_box.WhiteBox.on_multicast = changed(white_box, white_box.WhiteBox.on_multicast)
    white_box.WhiteBox.on_accept = on_accept
    return on_an_oracle(white_box)


def white_box_that_waits_for_its_own_multicast() -> StackPlan:
    """An ACCEPT of another group does not stand for it."""

    def changed(white_box: Any, careful: Any) -> Any:
        def on_accept(self: Any, packet: Any) -> None:
            known = self.messages.remember(packet.m)
            if known is not None:
                self.accept(known, white_box.process_of(packet.lts), packet.ballot, packet.lts)

        return on_accept

    return with_handler("on_accept", changed)


def white_box_that_tells_nobody_of_an_abandoned_ballot() -> StackPlan:
    return with_handler("on_abandoned", lambda white_box, careful: lambda self, packet: None)


# Forgetting.


def white_box_that_forgets_what_it_forgot() -> StackPlan:
    """A MULTICAST that comes late is a message that was never heard of."""

    def changed(careful: Any) -> Any:
        def remember(self: Any, m: Any) -> Any:
            delivered, self.delivered = self.delivered, type(self.delivered)()
            known = careful(self, m)
            self.delivered = delivered
            return known

        return remember

    return with_messages("remember", changed)


def white_box_that_forgets_what_a_majority_has() -> StackPlan:
    return with_messages("stable_at", lambda careful: lambda self, leader: self.max_delivered_gts)


def white_box_in_which_nothing_stays_committed() -> StackPlan:
    """A new leader that does not know of it makes it accepted again, as in the paper."""

    def changed(white_box: Any, careful: Any) -> Any:
        def on_new_state(self: Any, sender: int, packet: Any) -> None:
            if self.status == white_box.RECOVERING and packet.ballot == self.ballot:
                for known in self.messages.known.values():
                    known.phase = min(known.phase, white_box.ACCEPTED)
            careful(self, sender, packet)

        return on_new_state

    return with_handler("on_new_state", changed)


def with_its_own_clock_after(name: str) -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def handler(self: Any, *told: Any) -> None:
            clock = self.clock
            careful(self, *told)
            self.clock = clock

        return handler

    return with_handler(name, changed)


def white_box_whose_followers_keep_their_clocks() -> StackPlan:
    """When a new leader tells its own."""
    return with_its_own_clock_after("on_new_state")


def white_box_whose_clocks_do_not_advance_with_deliveries() -> StackPlan:
    return with_its_own_clock_after("on_deliver")


REPLICAS = (0, 1, 2)
ALIKE = to_groups([1, 1], (2, (0, 1)), (3, (0, 1)))
LEADER_CRASHES = replace(to_groups([3], (2, REPLICAS), crashes=1), crashing=(0,))
WRONGLY_DEPOSED = replace(to_groups([3], (0, REPLICAS), suspicions=1), suspecting=((1, 0),))
TWO_GROUPS = replace(to_groups([2, 1], (0, REPLICAS), suspicions=1), suspecting=((1, 0),))

CASES = [
    Case(white_box_that_takes_the_lowest_proposal, "white_box", ALIKE, "prefix order"),
    Case(white_box_that_does_not_wait_for_lower_proposals, "white_box", ALIKE, "prefix order"),
    Case(white_box_that_forgets_what_it_forgot, "white_box", ALIKE, "integrity"),
    Case(white_box_that_delivers_again, "white_box", LEADER_CRASHES, "integrity"),
    Case(white_box_that_delivers_only_what_is_new, "white_box", LEADER_CRASHES,
         "uniform agreement"),
    Case(white_box_that_keeps_the_last_proposal, "white_box", LEADER_CRASHES, "validity"),
    Case(white_box_that_takes_over_nothing, "white_box", LEADER_CRASHES, "conduct"),
    Case(white_box_that_waits_for_all, "white_box", LEADER_CRASHES, "validity"),
    Case(white_box_whose_followers_do_not_remember, "white_box", LEADER_CRASHES, "validity"),
    Case(white_box_that_accepts_while_it_recovers, "white_box", WRONGLY_DEPOSED, "conduct"),
    Case(white_box_that_waits_for_its_own_multicast, "white_box", TWO_GROUPS, "validity"),
]  # fmt: skip


class Scheduled(NamedTuple):
    """A variant, and random schedules of which one at least shows what it lacks."""

    variant: Callable[[], StackPlan]
    load: Load = Load(8, 1, 8)
    seeds: range = range(60)


SCHEDULED = [
    Scheduled(white_box_that_commits_with_one_acknowledgement_too_few),
    Scheduled(white_box_that_recovers_with_one_answer_too_few),
    Scheduled(white_box_that_joins_any_ballot),
    Scheduled(white_box_that_accepts_from_whoever_led_last),
    Scheduled(white_box_that_delivers_in_any_ballot, seeds=range(540, 580)),
    Scheduled(white_box_that_takes_the_state_of_an_earlier_ballot),
    Scheduled(
        white_box_that_leads_when_the_state_of_an_earlier_ballot_is_stored, seeds=range(80, 120)
    ),
    Scheduled(white_box_that_counts_acknowledgements_of_other_ballots),
    Scheduled(white_box_whose_clocks_do_not_advance),
    Scheduled(white_box_that_begins_with_its_own_clock),
    Scheduled(white_box_that_takes_what_anybody_accepted, seeds=range(1150, 1160)),
    Scheduled(white_box_that_proposes_again_only_what_is_not_committed),
    Scheduled(white_box_that_tells_nobody_of_an_abandoned_ballot, Load(6, 1, 3), range(90, 100)),
    Scheduled(white_box_that_forgets_what_a_majority_has),
    Scheduled(white_box_in_which_nothing_stays_committed, seeds=range(270, 290)),
]

HARMLESS = [
    white_box_that_asks_only_the_newest_what_is_committed,
    white_box_whose_clocks_do_not_advance_with_deliveries,
]
"""What the paper asks for, and nobody needs."""

LEFT_ALONE = {"white_box": parse_stack("leader white-box")}
"""The stack of which variants replace a layer."""
