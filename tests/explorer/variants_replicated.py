"""Variants of what rests on a log, and of the abstract log, with one of their ideas taken out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flexgroup.core.replicas import members_of_groups, replicas_of_sizes
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan, parse_stack
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from .variant_parts import Case, loaded_anew


def between_groups(
    sizes: list[int], *messages: tuple[int, ...], fifo: bool = True, **bounds: int
) -> Scope:
    """Groups of these sizes, and messages to them by clients, each to groups by their numbers."""
    replicas = replicas_of_sizes(sizes)
    casts = tuple(
        PlannedCast(sum(sizes) + client, members_of_groups(replicas, groups))
        for client, groups in enumerate(messages)
    )
    return Scope(sum(sizes), casts, fifo, bounds=Bounds(**bounds), replicas=replicas)


def hosting(replicated: Any, inner: str, below: str = "log") -> StackPlan:
    layer = Protocol("variant", replicated.Replicated, "", "", always=frozenset({inner}))
    return StackPlan.of(*parse_stack(below).protocols, layer)


# The adapter.


def channels_without_order() -> StackPlan:
    """The first copy of each transfer is taken as it comes, as chapter 5 prints it."""
    replicated = loaded_anew("replicated")
    replicated.FIRST_COPY = "dcc-published"
    return hosting(replicated, "dcc-published")


def channels_without_numbers() -> StackPlan:
    """What two members send because both take themselves for leader counts twice."""
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.on_transfer

    def on_transfer(self: Any, inner: Any, source: int, packet: Any) -> None:
        taken = self.incoming.setdefault(source, replicated.Incoming()).taken
        careful(self, inner, source, replicated.Transfer(taken, packet.messages))

    replicated.Replicated.on_transfer = on_transfer
    return hosting(replicated, "df", "leader log")


def copies_of_a_submission_that_are_all_taken() -> StackPlan:
    replicated = loaded_anew("replicated", "taken_messages")
    replicated.TakenMessages.has = lambda self, m: False
    return hosting(replicated, "skeen")


def a_leader_that_does_not_send_again() -> StackPlan:
    """What the old one sent is lost, if it crashed while it did."""
    replicated = loaded_anew("replicated")

    def on_notice(self: Any, notice: Any) -> None:
        if isinstance(notice, replicated.Leader):
            self.leads = notice.process == self.process
        self.pass_on(notice)

    replicated.Replicated.on_notice = on_notice
    return hosting(replicated, "dcc", "leader paxos")


def a_group_without_a_leader() -> StackPlan:
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.__init__

    def of(self: Any, context: Any) -> None:
        careful(self, context)
        self.leads = False

    replicated.Replicated.__init__ = of
    return hosting(replicated, "df")


def members_that_number_only_what_they_send() -> StackPlan:
    """Who did not lead before numbers its transfers from the beginning."""
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.transfer

    def transfer(self: Any, leaving: Any) -> None:
        if self.leads:
            careful(self, leaving)

    replicated.Replicated.transfer = transfer
    return hosting(replicated, "dcc", "leader log")


def groups_that_do_not_pass_on_what_an_origin_sent() -> StackPlan:
    """A group that the origin did not reach before it crashed is waited for in vain."""
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.on_submit

    def on_submit(self: Any, inner: Any, m: Any, leaving: Any) -> None:
        careful(self, inner, m, leaving)
        for number in list(leaving):
            leaving[number] = [sent for sent in leaving[number] if sent is not m]

    replicated.Replicated.on_submit = on_submit
    return hosting(replicated, "skeen", "leader paxos")


def a_packet_to_itself_that_is_forgotten() -> StackPlan:
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.gather

    def gather(self: Any, effect: Any, own: Any, leaving: Any) -> None:
        careful(self, effect, [], leaving)

    replicated.Replicated.gather = gather
    return hosting(replicated, "skeen")


def deliveries_to_the_first_member_only() -> StackPlan:
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.deliver

    def deliver(self: Any, m: Any) -> None:
        if self.leads:
            careful(self, m)

    replicated.Replicated.deliver = deliver
    return hosting(replicated, "df")


# ft-abcast.


def on_a_log(ft_abcast: Any) -> StackPlan:
    layer = Protocol("variant", ft_abcast.FtAbcast, "", "")
    return StackPlan.of(PROTOCOLS["leader"], PROTOCOLS["log"], layer)


def ft_abcast_that_does_not_wait() -> StackPlan:
    """Line 22 left out."""
    ft_abcast = loaded_anew("ft_abcast")
    careful = ft_abcast.FtAbcast.handle

    def handle(self: Any, m: Any) -> None:
        self.ended.add(m.id)
        careful(self, m)
        self.ended.discard(m.id)

    ft_abcast.FtAbcast.handle = handle
    return on_a_log(ft_abcast)


def ft_abcast_whose_followers_do_not_wait() -> StackPlan:
    """They send messages on as well, so it does not help that the first member waits."""
    ft_abcast = loaded_anew("ft_abcast")
    careful = ft_abcast.FtAbcast.handle

    def handle(self: Any, m: Any) -> None:
        follows = self.process != self.context.replicas[self.g][0]
        if follows:
            self.ended.add(m.id)
        careful(self, m)
        if follows:
            self.ended.discard(m.id)

    ft_abcast.FtAbcast.handle = handle
    return on_a_log(ft_abcast)


def ft_abcast_that_delivers_every_copy() -> StackPlan:
    """Line 11 left out."""
    ft_abcast = loaded_anew("ft_abcast", "taken_messages")
    ft_abcast.TakenMessages.has = lambda self, m: False
    return on_a_log(ft_abcast)


def ft_abcast_that_ends_only_the_first_group() -> StackPlan:
    """Line 19 sends to one group."""
    ft_abcast = loaded_anew("ft_abcast")
    careful = ft_abcast.FtAbcast.send

    def send(self: Any, to: Any, packet: Any) -> None:
        if not isinstance(packet, ft_abcast.End) or to == self.context.replicas[0]:
            careful(self, to, packet)

    ft_abcast.FtAbcast.send = send
    return on_a_log(ft_abcast)


def ft_abcast_that_forgets_an_early_end() -> StackPlan:
    """Line 22 as printed."""
    ft_abcast = loaded_anew("ft_abcast")
    ft_abcast.FtAbcast.is_awaited = lambda self, m: False
    return on_a_log(ft_abcast)


# The log.


def alone(log: Any) -> StackPlan:
    return StackPlan.of(Protocol("variant", log.Log, "", ""))


def log_without_places() -> StackPlan:
    log = loaded_anew("log")

    def on_entry(self: Any, packet: Any) -> None:
        self.early[packet.place] = packet.m
        self.deliver(packet.m)

    log.Log.on_entry = on_entry
    return alone(log)


def log_in_which_each_member_appends() -> StackPlan:
    """Every member puts into its own order what comes."""
    log = loaded_anew("log")
    log.Log.on_cast = lambda self, m: self.send(m.destinations, log.Append(m))
    log.Log.on_packet = lambda self, sender, packet: self.deliver(packet.m)
    return alone(log)


def log_of_the_first_member_only() -> StackPlan:
    log = loaded_anew("log")
    log.Log.append = lambda self, m: self.deliver(m)
    return alone(log)


ONE_OF_TWO = between_groups([2, 1], (0, 1))
RACE = between_groups([2, 1], (0, 1), (0, 1), fifo=False)
RING = between_groups([1, 1, 1], (0, 1), (0, 2), (1, 2), fifo=False)
CHAIN = between_groups([1, 1, 1], (0, 1, 2), (1, 2))
SUSPECTED = replace(between_groups([2, 1], (0, 1), suspicions=1), suspecting=((1, 0),))
TWO_LEADERS = replace(between_groups([2, 1], (0, 1), (0, 1), suspicions=1), suspecting=((1, 0),))
TWO_IN_A_GROUP = between_groups([2], (0,), (0,), fifo=False)

CASES = [
    Case(channels_without_order, "replicated dcc-published", RING, "acyclic order"),
    Case(channels_without_numbers, "replicated df", SUSPECTED, "integrity"),
    Case(copies_of_a_submission_that_are_all_taken, "replicated skeen", ONE_OF_TWO, "conduct"),
    Case(members_that_number_only_what_they_send, "replicated dcc", TWO_LEADERS, "validity"),
    Case(a_group_without_a_leader, "replicated df", ONE_OF_TWO, "validity"),
    Case(a_packet_to_itself_that_is_forgotten, "replicated skeen", ONE_OF_TWO, "validity"),
    Case(deliveries_to_the_first_member_only, "replicated df", ONE_OF_TWO, "validity"),
    Case(ft_abcast_that_does_not_wait, "ft_abcast", RACE, "acyclic order"),
    Case(ft_abcast_whose_followers_do_not_wait, "ft_abcast", RACE, "acyclic order"),
    Case(ft_abcast_that_delivers_every_copy, "ft_abcast", ONE_OF_TWO, "integrity"),
    Case(ft_abcast_that_ends_only_the_first_group, "ft_abcast", CHAIN, "validity"),
    Case(ft_abcast_that_forgets_an_early_end, "ft_abcast",
         between_groups([2, 1], (0, 1), (0,)), "validity"),
    Case(log_without_places, "log", TWO_IN_A_GROUP, "prefix order"),
    Case(log_in_which_each_member_appends, "log", TWO_IN_A_GROUP, "prefix order"),
    Case(log_of_the_first_member_only, "log", TWO_IN_A_GROUP, "validity"),
]  # fmt: skip

LOSING = [
    a_leader_that_does_not_send_again,
    groups_that_do_not_pass_on_what_an_origin_sent,
]
"""Variants that show only where what a process sent while it crashed may be lost, in part."""

LEFT_ALONE = {
    "replicated skeen": parse_stack("leader log skeen-cft"),
    "replicated df": parse_stack("leader log df-cft"),
    "replicated dcc": parse_stack("leader log dcc-cft"),
    "replicated dcc-published": hosting(loaded_anew("replicated"), "dcc-published"),
    "ft_abcast": parse_stack("leader log ft-abcast"),
    "log": parse_stack("log"),
}
"""The stacks of which variants replace a layer."""
