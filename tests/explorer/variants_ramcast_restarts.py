"""Variants of RamCast, and of the memory below it, that do not store something, or do not tell who
starts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flexgroup.core.layer import Stored
from flexgroup.protocols.catalogue import StackPlan

from .variant_parts import loaded_anew
from .variants_primcast_restarts import Restarting, nothing, without_entries
from .variants_ramcast import above_memory, below_ramcast


def with_handler(name: str, changed: Callable[[Any, Any], Any]) -> StackPlan:
    """RamCast with one method replaced by what is made of its module and that method."""
    ramcast = loaded_anew("ramcast")
    setattr(ramcast.RamCast, name, changed(ramcast, getattr(ramcast.RamCast, name)))
    return above_memory(ramcast)


def with_a_short_log() -> Any:
    ramcast = loaded_anew("ramcast", "proposals")
    ramcast.CUT = 1
    ramcast.Proposals.is_time = lambda self: len(self.kept) >= 2
    return ramcast


def ramcast_that_cuts_its_log_all_the_time() -> StackPlan:
    """Nothing is taken out: how far it has delivered is told after every message, and what may be
    forgotten is looked for at every second one."""
    return above_memory(with_a_short_log())


# What the memory holds.


def memory_that_is_gone_with_its_process() -> StackPlan:
    """What has landed last, and its writer knows it, is lost if it was not looked at."""
    memory = loaded_anew("protected_memory")
    memory.ProtectedMemory.save = nothing
    return below_ramcast(memory)


def memory_that_permits_whom_it_did_before() -> StackPlan:
    """What the leader proposes lands behind a state that was lost, and counts."""
    memory = loaded_anew("protected_memory")
    restart, permitted = memory.ProtectedMemory.on_restart, {}
    cast = memory.ProtectedMemory.on_cast

    def on_cast(self: Any, m: Any) -> None:
        cast(self, m)
        if isinstance(m.payload, memory.Permit):
            permitted[self.process] = m.payload.writer

    def on_restart(self: Any, stored: Stored) -> None:
        restart(self, stored)
        self.permitted = permitted.get(self.process, memory.NOBODY)

    memory.ProtectedMemory.on_cast = on_cast
    memory.ProtectedMemory.on_restart = on_restart
    return below_ramcast(memory)


def ramcast_that_does_not_write_what_it_proposes() -> StackPlan:
    """Nor what was proposed to it: the memory has the last write only."""

    def changed(ramcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            for number, entry in list(stored.log.items()):
                if isinstance(entry, ramcast.Entry) and not entry.final:
                    del stored.log[number]
            careful(self, stored)

        return on_restart

    return with_handler("on_restart", changed)


def ramcast_that_does_not_write_what_it_delivers() -> StackPlan:
    def changed(ramcast: Any, careful: Any) -> Any:
        def write(self: Any, number: int, packet: Any) -> None:
            if not isinstance(packet, ramcast.Entry) or not packet.final:
                careful(self, number, packet)

        return write

    return with_handler("write", changed)


def ramcast_that_does_not_write_its_clock() -> StackPlan:
    """It has acknowledged a timestamp of another group, and grants with a lower clock."""

    def changed(ramcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            without_entries(stored, ramcast.Reached)
            careful(self, stored)

        return on_restart

    return with_handler("on_restart", changed)


def ramcast_that_does_not_save_its_ballots() -> StackPlan:
    """Only those of which it has the state."""

    def changed(ramcast: Any, careful: Any) -> Any:
        def keep(self: Any) -> None:
            if self.ballot == self.synced:
                careful(self)

        return keep

    return with_handler("keep", changed)


def ramcast_that_does_not_save_the_state_of_a_ballot() -> StackPlan:
    """Only that it has granted it."""

    def changed(ramcast: Any, careful: Any) -> Any:
        def keep(self: Any) -> None:
            if self.ballot != self.synced:
                careful(self)

        return keep

    return with_handler("keep", changed)


def ramcast_that_delivers_again() -> StackPlan:
    """Though the application remembers what it was given."""

    def changed(ramcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            stored.delivered = 0
            careful(self, stored)

        return on_restart

    return with_handler("on_restart", changed)


# What is done and told at a restart.


def ramcast_that_leads_on_in_its_old_ballot() -> StackPlan:
    def changed(ramcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            ask = ramcast.RamCast.ask
            ramcast.RamCast.ask = nothing
            careful(self, stored)
            ramcast.RamCast.ask = ask
            if self.ballot == self.synced and ramcast.process_of(self.ballot) == self.process:
                self.leading = ramcast.LatestState(is_ready=True)
                self.recovering = False
                self.floor = self.clock

        return on_restart

    return with_handler("on_restart", changed)


def ramcast_that_delivers_before_it_has_the_state() -> StackPlan:
    """Acknowledgements of its leader tell it of timestamps below which something was lost."""

    def changed(ramcast: Any, careful: Any) -> Any:
        def on_restart(self: Any, stored: Stored) -> None:
            careful(self, stored)
            self.recovering = False

        return on_restart

    return with_handler("on_restart", changed)


def ramcast_that_starts_again_silently() -> StackPlan:
    return with_handler("on_restarted", lambda ramcast, careful: nothing)


def ramcast_that_does_not_write_its_state_again() -> StackPlan:
    def changed(ramcast: Any, careful: Any) -> Any:
        def admit(self: Any, member: int) -> None:
            restarts, self.restarts = self.restarts, False
            careful(self, member)
            self.restarts = restarts

        return admit

    return with_handler("admit", changed)


def ramcast_that_acknowledges_nothing_again() -> StackPlan:
    ramcast = loaded_anew("ramcast", "proposals")
    ramcast.Proposals.addressed_to = lambda self, process: []
    return above_memory(ramcast)


def ramcast_that_writes_again_only_within_its_group() -> StackPlan:
    def changed(ramcast: Any, careful: Any) -> Any:
        def on_restarted(self: Any, sender: int) -> None:
            if sender in self.group:
                careful(self, sender)

        return on_restarted

    return with_handler("on_restarted", changed)


def ramcast_that_forgets_what_its_own_group_has_delivered() -> StackPlan:
    """Other groups, of three as well, may have to be told again what it acknowledged."""
    ramcast = with_a_short_log()

    def is_needed(self: Any, process: int, kept: Any) -> bool:
        others = [j for j in kept.m.destinations if j // 3 == process // 3 and j != process]
        return not kept.final or any(self.have.get(j, 0) < kept.final for j in others)

    ramcast.Proposals.is_needed = is_needed
    return above_memory(ramcast)


def ramcast_that_tells_the_leader_nothing() -> StackPlan:
    """A leader that started again does not know what clients wrote before and after."""
    return with_handler("tell_leader", lambda ramcast, careful: nothing)


RESTARTED = [
    Restarting(ramcast_that_does_not_write_what_it_proposes),
    Restarting(ramcast_that_does_not_write_what_it_delivers),
    Restarting(ramcast_that_does_not_save_its_ballots),
    Restarting(ramcast_that_does_not_save_the_state_of_a_ballot),
    Restarting(ramcast_that_delivers_again),
    Restarting(ramcast_that_leads_on_in_its_old_ballot),
    Restarting(ramcast_that_delivers_before_it_has_the_state, seeds=range(177, 178)),
    Restarting(ramcast_that_starts_again_silently),
    Restarting(ramcast_that_does_not_write_its_state_again),
    Restarting(ramcast_that_acknowledges_nothing_again),
    Restarting(ramcast_that_writes_again_only_within_its_group),
    Restarting(ramcast_that_forgets_what_its_own_group_has_delivered),
    Restarting(ramcast_that_tells_the_leader_nothing, seeds=range(63, 64)),
]
