"""Variants of PrimCast that do not store something, or do not tell who starts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flexgroup.core.layer import Stored
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.testing.replica_schedules import Load

from .variant_parts import loaded_anew
from .variants_primcast import on_an_oracle


def nothing(*_: Any) -> None:
    """Do nothing."""


def with_handler(name: str, changed: Callable[[Any, Any], Any]) -> StackPlan:
    """PrimCast with one method replaced by what is made of its module and that method."""
    primcast = loaded_anew("primcast")
    setattr(primcast.PrimCast, name, changed(primcast, getattr(primcast.PrimCast, name)))
    return on_an_oracle(primcast)


def without_entries(stored: Stored, kind: type) -> None:
    for number in [number for number, entry in stored.log.items() if isinstance(entry, kind)]:
        del stored.log[number]


def primcast_that_cuts_its_log_all_the_time() -> StackPlan:
    """Nothing is taken out: what may be forgotten is looked for at every second message."""
    return on_an_oracle(with_a_short_log())


def with_a_short_log() -> Any:
    primcast = loaded_anew("primcast", "proposals")
    primcast.Proposals.is_time = lambda self: len(self.kept) >= 2
    return primcast


# What is stored.


def primcast_that_answers_before_it_writes() -> StackPlan:
    """An acknowledgement that counts is lost if the process crashes before its next event."""

    def changed(primcast: Any, careful: Any) -> Any:
        write = primcast.PrimCast.write

        def on_packet(self: Any, sender: int, packet: Any) -> None:
            for kept in self.T.kept:
                write(self, kept.ts, primcast.Entry(self.E_cur, kept.m, kept.final))
            careful(self, sender, packet)

        def nothing_new(self: Any, number: int, packet: Any) -> None:
            if not isinstance(packet, primcast.Entry) or packet.final:
                write(self, number, packet)

        primcast.PrimCast.write = nothing_new
        return on_packet

    return with_handler("on_packet", changed)


def primcast_that_does_not_write_what_it_acknowledges() -> StackPlan:
    def changed(primcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            for number, entry in list(stored.log.items()):
                if isinstance(entry, primcast.Entry) and not entry.final:
                    del stored.log[number]
            careful(self, stored)

        return on_restart

    return with_handler("on_restart", changed)


def primcast_that_does_not_write_what_it_delivers() -> StackPlan:
    def changed(primcast: Any, careful: Any) -> Any:
        def write(self: Any, number: int, packet: Any) -> None:
            if not isinstance(packet, primcast.Entry) or not packet.final:
                careful(self, number, packet)

        return write

    return with_handler("write", changed)


def primcast_that_does_not_write_its_clock() -> StackPlan:
    """It has told its group a clock, and promises with a lower one."""

    def changed(primcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            without_entries(stored, primcast.Reached)
            careful(self, stored)

        return on_restart

    return with_handler("on_restart", changed)


def primcast_that_does_not_save_its_promises() -> StackPlan:
    """Only the epochs that it is in."""

    def changed(primcast: Any, careful: Any) -> Any:
        def keep(self: Any) -> None:
            if self.E_prom == self.E_cur:
                careful(self)

        return keep

    return with_handler("keep", changed)


def primcast_that_does_not_save_the_state_of_an_epoch() -> StackPlan:
    """Only that it has promised it."""

    def changed(primcast: Any, careful: Any) -> Any:
        def keep(self: Any) -> None:
            if self.E_prom != self.E_cur:
                careful(self)

        return keep

    return with_handler("keep", changed)


def primcast_that_takes_over_entries_of_any_epoch() -> StackPlan:
    """What an epoch began without comes back when the process starts again."""
    primcast = loaded_anew("primcast", "proposals")
    careful = primcast.Proposals.load

    def load(self: Any, stored: Stored, *others: Any) -> Any:
        saved: Any = stored.saved
        for number, entry in list(stored.log.items()):
            if saved is not None and isinstance(entry, primcast.Entry):
                stored.log[number] = primcast.Entry(saved.current, entry.m, entry.final)
        return careful(self, stored, *others)

    primcast.Proposals.load = load
    return on_an_oracle(primcast)


def primcast_that_cuts_the_log_without_what_was_delivered() -> StackPlan:
    primcast = with_a_short_log()
    saved = primcast.Proposals.saved

    def without(self: Any, promised: int, current: int, clock: int, delivered: Any) -> Any:
        return saved(self, promised, current, clock, type(delivered)())

    primcast.Proposals.saved = without
    return on_an_oracle(primcast)


def primcast_that_delivers_again() -> StackPlan:
    """Though the application remembers what it was given."""

    def changed(primcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            stored.delivered = 0
            careful(self, stored)

        return on_restart

    return with_handler("on_restart", changed)


# What is done and told at a restart.


def primcast_that_proposes_on_in_its_old_epoch() -> StackPlan:
    """What it had sent last is lost, and its followers do not see the gap."""

    def changed(primcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            new_epoch = primcast.PrimCast.new_epoch
            primcast.PrimCast.new_epoch = nothing
            careful(self, stored)
            primcast.PrimCast.new_epoch = new_epoch
            if self.is_primary():
                self.recovering = False

        return on_restart

    return with_handler("on_restart", changed)


def primcast_that_goes_on_at_once() -> StackPlan:
    """It does not wait for the state of its epoch, and goes on behind what it missed."""

    def changed(primcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            careful(self, stored)
            self.recovering = False

        return on_restart

    return with_handler("on_restart", changed)


def primcast_that_starts_again_silently() -> StackPlan:
    return with_handler("on_restarted", lambda primcast, careful: nothing)


def primcast_that_does_not_tell_its_state_again() -> StackPlan:
    def changed(primcast: Any, careful: Any) -> Any:
        return lambda self: primcast.Bump(self.E_prom, self.clock)

    return with_handler("state", changed)


def primcast_that_acknowledges_nothing_again() -> StackPlan:
    """Who lost what others had acknowledged finds nobody who tells it."""
    primcast = loaded_anew("primcast", "proposals")
    primcast.Proposals.addressed_to = lambda self, process: []
    return on_an_oracle(primcast)


def primcast_that_acknowledges_again_only_within_its_group() -> StackPlan:
    def changed(primcast: Any, careful: Any) -> Any:
        def on_restarted(self: Any, sender: int) -> None:
            if sender in self.group:
                careful(self, sender)

        return on_restarted

    return with_handler("on_restarted", changed)


def primcast_that_forgets_what_its_own_group_has_delivered() -> StackPlan:
    """Other groups, of three as well, may have to be told again what it acknowledged."""
    primcast = with_a_short_log()

    def is_needed(self: Any, process: int, kept: Any) -> bool:
        others = [j for j in kept.m.destinations if j // 3 == process // 3 and j != process]
        return not kept.final or any(self.have.get(j, 0) < kept.final for j in others)

    primcast.Proposals.is_needed = is_needed
    return on_an_oracle(primcast)


def primcast_that_asks_for_no_promise_again() -> StackPlan:
    """Who starts again has lost that it was asked for one, or that it gave it."""

    def changed(primcast: Any, careful: Any) -> Any:
        def state(self: Any) -> Any:
            packet = careful(self)
            if isinstance(packet, primcast.NewEpoch):
                return primcast.Bump(packet.epoch, self.clock)
            return packet

        return state

    return with_handler("state", changed)


def primcast_that_tells_the_primary_nothing() -> StackPlan:
    """A primary that started again does not know what clients sent before and after."""
    return with_handler("tell_primary", lambda primcast, careful: nothing)


class Restarting(NamedTuple):
    """A variant, and random schedules with restarts of which one at least shows what it lacks."""

    variant: Callable[[], StackPlan]
    sizes: tuple[int, ...] = (3, 3)
    load: Load = Load(6, 6, 3, 2)
    seeds: range = range(50)


RESTARTED = [
    Restarting(primcast_that_answers_before_it_writes),
    Restarting(primcast_that_does_not_write_what_it_acknowledges),
    Restarting(primcast_that_does_not_write_what_it_delivers),
    Restarting(primcast_that_does_not_write_its_clock, seeds=range(6500, 6501)),
    Restarting(primcast_that_does_not_save_its_promises),
    Restarting(primcast_that_does_not_save_the_state_of_an_epoch),
    Restarting(primcast_that_cuts_the_log_without_what_was_delivered, seeds=range(112, 113)),
    Restarting(primcast_that_delivers_again),
    Restarting(primcast_that_proposes_on_in_its_old_epoch),
    Restarting(primcast_that_goes_on_at_once),
    Restarting(primcast_that_starts_again_silently),
    Restarting(primcast_that_does_not_tell_its_state_again),
    Restarting(primcast_that_acknowledges_nothing_again),
    Restarting(primcast_that_acknowledges_again_only_within_its_group),
    Restarting(primcast_that_forgets_what_its_own_group_has_delivered),
    Restarting(primcast_that_asks_for_no_promise_again),
    Restarting(primcast_that_tells_the_primary_nothing),
]
