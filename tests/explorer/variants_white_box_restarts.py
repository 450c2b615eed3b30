"""Variants of White-Box that do not store something, or do not tell who starts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flexgroup.core.message import clock_of
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.testing.replica_schedules import Load

from .variants_white_box import with_handler, with_messages


def nothing(*_: Any) -> None:
    """Do nothing."""


# What is stored.


def white_box_that_answers_before_it_writes() -> StackPlan:
    """An acknowledgement that counts is lost if the process crashes before its next event."""

    def changed(white_box: Any, careful: Any) -> Any:
        write = white_box.WhiteBox.write

        def on_packet(self: Any, sender: int, packet: Any) -> None:
            for known in self.messages.all():
                if known.phase >= white_box.ACCEPTED:
                    entry = white_box.Entry(known.m, known.phase, known.gts, self.clock)
                    write(self, clock_of(known.lts), entry)
            careful(self, sender, packet)

        white_box.WhiteBox.write = nothing
        return on_packet

    return with_handler("on_packet", changed)


def white_box_that_does_not_write_what_it_accepts() -> StackPlan:
    """It is written when it is delivered."""

    def changed(white_box: Any, careful: Any) -> Any:
        def keep(self: Any, known: Any) -> None:
            if known.phase == white_box.COMMITTED:
                careful(self, known)

        return keep

    return with_handler("keep", changed)


def white_box_that_does_not_write_what_it_delivers() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def settle(self: Any, known: Any) -> None:
            self.messages.settle(known)
            self.deliver(known.m)

        return settle

    return with_handler("settle", changed)


def white_box_that_does_not_save_its_ballots() -> StackPlan:
    return with_handler("save", lambda white_box, careful: nothing)


def white_box_that_does_not_save_the_ballot_that_it_joins() -> StackPlan:
    """Only that of which it has the state."""

    def changed(white_box: Any, careful: Any) -> Any:
        def keep_ballots(self: Any) -> None:
            if self.ballot == self.cballot:
                careful(self)

        return keep_ballots

    return with_handler("keep_ballots", changed)


def white_box_that_does_not_store_its_clock() -> StackPlan:
    """It begins with the highest local timestamp that it accepted."""

    def changed(careful: Any) -> Any:
        def load(self: Any, stored: Any, is_top: bool) -> Any:
            ballot, cballot, _ = careful(self, stored, is_top)
            return ballot, cballot, max(stored.log, default=0)

        return load

    return with_messages("load", changed)


def white_box_that_does_not_write_what_falls_back() -> StackPlan:
    """What a new leader did not take over is accepted again when the process starts again."""

    def changed(careful: Any) -> Any:
        def fall_back(self: Any) -> Any:
            careful(self)
            return []

        return fall_back

    return with_messages("fall_back", changed)


def white_box_that_does_not_write_the_state_of_a_ballot() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def store(self: Any, told: Any, least: int) -> None:
            self.messages.take_over(told, least)

        return store

    return with_handler("store", changed)


def white_box_that_cuts_the_log_without_what_was_delivered() -> StackPlan:
    """What comes late is a message that was never heard of."""

    def changed(careful: Any) -> Any:
        def joined(self: Any, ballot: int, cballot: int, clock: int) -> Any:
            delivered, self.delivered = self.delivered, type(self.delivered)()
            whole = careful(self, ballot, cballot, clock)
            self.delivered = delivered
            return whole

        return joined

    return with_messages("joined", changed)


def white_box_that_delivers_again() -> StackPlan:
    """Though the application remembers what it was given."""

    def changed(white_box: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Any) -> None:
            stored.delivered = 0
            careful(self, stored)

        return on_restart

    return with_handler("on_restart", changed)


# What is done and told at a restart.


def white_box_that_leads_on_in_its_old_ballot() -> StackPlan:
    """A leader that starts again gives a message a second timestamp in the same ballot."""

    def changed(white_box: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Any) -> None:
            recover = white_box.WhiteBox.recover
            white_box.WhiteBox.recover = white_box.WhiteBox.lead
            careful(self, stored)
            white_box.WhiteBox.recover = recover

        return on_restart

    return with_handler("on_restart", changed)


def white_box_that_goes_on_at_once() -> StackPlan:
    """It does not wait for the state of its leader, and delivers behind what it missed."""

    def changed(white_box: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Any) -> None:
            careful(self, stored)
            if self.ballot == self.cballot and self.status == white_box.RECOVERING:
                self.status = white_box.FOLLOWER

        return on_restart

    return with_handler("on_restart", changed)


def white_box_that_falls_back_when_its_state_is_told_again() -> StackPlan:
    """What it accepted in this ballot, and its leader did not yet, is forgotten."""

    def changed(white_box: Any, careful: Any) -> Any:
        def begin_ballot(self: Any, clock: int) -> None:
            self.cballot = min(self.cballot, self.ballot - 1)
            careful(self, clock)

        return begin_ballot

    return with_handler("begin_ballot", changed)


def white_box_that_starts_again_silently() -> StackPlan:
    return with_handler("on_restarted", lambda white_box, careful: nothing)


def white_box_that_tells_the_leader_nothing() -> StackPlan:
    """A leader that started again does not know what clients sent before and after."""
    return with_handler("tell_leader", lambda white_box, careful: nothing)


def white_box_that_sends_again_only_within_its_group() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def on_restarted(self: Any, sender: int) -> None:
            if sender in self.group:
                careful(self, sender)

        return on_restarted

    return with_handler("on_restarted", changed)


def white_box_that_acknowledges_nothing_that_came_before_the_state() -> StackPlan:
    def changed(white_box: Any, careful: Any) -> Any:
        def on_new_state(self: Any, sender: int, packet: Any) -> None:
            accepts = white_box.WhiteBox.check_accepts
            white_box.WhiteBox.check_accepts = nothing
            careful(self, sender, packet)
            white_box.WhiteBox.check_accepts = accepts

        return on_new_state

    return with_handler("on_new_state", changed)


class Restarting(NamedTuple):
    """A variant, and random schedules with restarts of which one at least shows what it lacks."""

    variant: Callable[[], StackPlan]
    sizes: tuple[int, ...] = (3, 3)
    load: Load = Load(6, 6, 3, 2)
    seeds: range = range(50)


RESTARTED = [
    Restarting(white_box_that_answers_before_it_writes),
    Restarting(white_box_that_does_not_write_what_it_accepts, seeds=range(50, 75)),
    Restarting(white_box_that_does_not_write_what_it_delivers),
    Restarting(white_box_that_does_not_save_its_ballots),
    Restarting(white_box_that_does_not_save_the_ballot_that_it_joins, seeds=range(68, 69)),
    Restarting(white_box_that_does_not_write_the_state_of_a_ballot, seeds=range(340, 350)),
    Restarting(white_box_that_cuts_the_log_without_what_was_delivered),
    Restarting(white_box_that_delivers_again),
    Restarting(white_box_that_leads_on_in_its_old_ballot),
    Restarting(white_box_that_goes_on_at_once),
    Restarting(white_box_that_starts_again_silently),
    Restarting(white_box_that_tells_the_leader_nothing, seeds=range(60, 70)),
    Restarting(white_box_that_sends_again_only_within_its_group),
    Restarting(white_box_that_acknowledges_nothing_that_came_before_the_state, seeds=range(20, 30)),
]
