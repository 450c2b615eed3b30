"""Variants of RamCast, and of the protected memory below it, with one of their ideas taken out."""

from __future__ import annotations

from operator import ge
from typing import Any

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan, parse_stack
from flexgroup.protocols.parts.timestamps import FAR
from flexgroup.worlds.explorer.scope import Bounds, Destinations, PlannedCast, Scope

from .variant_parts import Case, loaded_anew

RAMCAST = parse_stack("leader protected-memory ramcast")

FIRST = (0, 1, 2)
"""The members of the first group, of three."""
BOTH = (0, 1, 2, 3)
"""Those of the first group, and the only one of the second."""


def casts(*multicasts: tuple[int, Destinations]) -> tuple[PlannedCast, ...]:
    return tuple([PlannedCast(origin, destinations) for origin, destinations in multicasts])


def grouped(
    sizes: tuple[int, ...],
    *multicasts: tuple[int, Destinations],
    crash: Destinations = (),
    suspect: tuple[tuple[int, int], ...] = (),
) -> Scope:
    """Groups of these sizes, in which each of these may crash, or suspect the other wrongly."""
    bounds = Bounds(crashes=len(crash), suspicions=len(suspect))
    return Scope(
        sum(sizes),
        casts(*multicasts),
        bounds=bounds,
        crashing=crash,
        suspecting=suspect,
        replicas=replicas_of_sizes(sizes),
    )


def above_memory(ramcast: Any) -> StackPlan:
    below = PROTOCOLS["leader"], PROTOCOLS["protected-memory"]
    return StackPlan.of(*below, Protocol("variant", ramcast.RamCast, "", ""))


def below_ramcast(memory: Any) -> StackPlan:
    variant = Protocol("variant", memory.ProtectedMemory, "", "")
    return StackPlan.of(PROTOCOLS["leader"], variant, PROTOCOLS["ramcast"])


# The memory.


def memory_that_never_revokes() -> StackPlan:
    """Who was permitted to write once may write for ever."""
    memory = loaded_anew("protected_memory")
    careful = memory.ProtectedMemory.on_write

    def on_write(self: Any, sender: int, m: Any) -> None:
        latest = self.permitted
        if sender < self.size:
            self.permitted = sender
        careful(self, sender, m)
        self.permitted = latest

    memory.ProtectedMemory.on_write = on_write
    return below_ramcast(memory)


def memory_that_checks_when_a_write_is_sent() -> StackPlan:
    """A writer that has permitted nobody else takes that for the permission of all others."""
    memory = loaded_anew("protected_memory")
    careful, posting = memory.ProtectedMemory.on_write, memory.ProtectedMemory.on_cast

    def on_cast(self: Any, m: Any) -> None:
        if not m.payload.PROTECTED or self.permitted == self.process:
            posting(self, m)

    def on_write(self: Any, sender: int, m: Any) -> None:
        latest, self.permitted = self.permitted, sender
        careful(self, sender, m)
        self.permitted = latest

    memory.ProtectedMemory.on_cast = on_cast
    memory.ProtectedMemory.on_write = on_write
    return below_ramcast(memory)


def memory_that_calls_every_write_landed() -> StackPlan:
    memory = loaded_anew("protected_memory")
    memory.FAILED = memory.LANDED
    return below_ramcast(memory)


def memory_that_permits_only_the_first() -> StackPlan:
    """An election grants nothing."""
    memory = loaded_anew("protected_memory")
    careful = memory.ProtectedMemory.on_cast

    def on_cast(self: Any, m: Any) -> None:
        if not isinstance(m.payload, memory.Permit) or self.permitted == memory.NOBODY:
            careful(self, m)

    memory.ProtectedMemory.on_cast = on_cast
    return below_ramcast(memory)


def memory_that_permits_nobody() -> StackPlan:
    memory = loaded_anew("protected_memory")
    careful = memory.ProtectedMemory.on_cast

    def on_cast(self: Any, m: Any) -> None:
        if not isinstance(m.payload, memory.Permit):
            careful(self, m)

    memory.ProtectedMemory.on_cast = on_cast
    return below_ramcast(memory)


def memory_without_completions() -> StackPlan:
    memory = loaded_anew("protected_memory")
    memory.ProtectedMemory.pass_on = lambda self, notice: (
        None if isinstance(notice, memory.WriteCompleted) else self.effects.append(notice)
    )
    return below_ramcast(memory)


# Quorums.


def ramcast_that_needs_one_acknowledgement_too_few() -> StackPlan:
    ramcast = loaded_anew("ramcast", "timestamp_vectors")

    def is_decided(self: Any, groups: Any, V: Any) -> bool:
        counts = [len(self.acks[V].intersection(group)) for group in groups]
        needed = [max(1, (len(group) - 1) // 2) for group in groups]
        return all(map(ge, counts, needed))

    ramcast.GroupTimestamps.is_decided = is_decided
    return above_memory(ramcast)


def ramcast_that_takes_over_alone() -> StackPlan:
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.on_grant

    def on_grant(self: Any, owner: int, packet: Any) -> None:
        if self.leading is not None:
            self.leading.granted.update(self.group)
        careful(self, owner, packet)

    ramcast.RamCast.on_grant = on_grant
    return above_memory(ramcast)


# Timestamps.


def ramcast_that_takes_its_own_timestamp() -> StackPlan:
    """Each group delivers by the timestamp of its leader, not by the highest."""
    ramcast = loaded_anew("ramcast", "timestamp_vectors")
    careful = ramcast.GroupTimestamps.check_acks

    def check_acks(self: Any, groups: Any, own: Any) -> None:
        careful(self, groups, own)
        if self.final and own[0] in self.ts:
            self.final = ramcast.stamp(self.ts[own[0]][1], own[0])

    ramcast.GroupTimestamps.check_acks = check_acks
    return above_memory(ramcast)


def ramcast_that_delivers_what_is_final() -> StackPlan:
    """Whatever else has a lower timestamp."""
    ramcast = loaded_anew("ramcast", "timestamp_vectors")
    ramcast.GroupTimestamps.bound = lambda self, lowest: self.final or FAR
    return above_memory(ramcast)


def ramcast_without_a_floor() -> StackPlan:
    """A follower does not care whether its leader may have proposed less."""
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.deliver_final

    def deliver_final(self: Any) -> None:
        self.floor = FAR
        careful(self)

    ramcast.RamCast.deliver_final = deliver_final
    return above_memory(ramcast)


def ramcast_that_believes_a_leader_without_permission() -> StackPlan:
    """It learns what an old leader proposes no more, though what it proposed failed here."""
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.learn_floor

    def learn_floor(self: Any, sender: int, V: Any) -> None:
        ballot, self.ballot = self.ballot, self.synced
        careful(self, sender, V)
        self.ballot = ballot

    ramcast.RamCast.learn_floor = learn_floor
    return above_memory(ramcast)


# Recovery.


def ramcast_that_ignores_what_it_reads() -> StackPlan:
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.take_over

    def take_over(self: Any, leading: Any) -> None:
        leading.reported.clear()
        careful(self, leading)

    ramcast.RamCast.take_over = take_over
    return above_memory(ramcast)


def ramcast_that_reads_no_clock() -> StackPlan:
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.take_over

    def take_over(self: Any, leading: Any) -> None:
        leading.clock = self.clock = 0
        careful(self, leading)

    ramcast.RamCast.take_over = take_over
    return above_memory(ramcast)


def ramcast_that_takes_any_state() -> StackPlan:
    """It takes timestamps also from those that missed the latest state."""
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.take_over

    def take_over(self: Any, leading: Any) -> None:
        for identity, (_, ts, m) in list(leading.reported.items()):
            leading.reported[identity] = (leading.synced, ts, m)
        careful(self, leading)

    ramcast.RamCast.take_over = take_over
    return above_memory(ramcast)


def ramcast_that_acknowledges_to_an_old_leader() -> StackPlan:
    """A follower acknowledges timestamps after it has permitted another leader to write."""
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.acknowledge

    def acknowledge(self: Any, m: Any, entry: Any, silently: Any = ()) -> None:
        ballot, self.ballot = self.ballot, self.synced
        careful(self, m, entry, silently)
        self.ballot = ballot

    ramcast.RamCast.acknowledge = acknowledge
    return above_memory(ramcast)


def ramcast_that_tells_nobody_of_an_abandoned_ballot() -> StackPlan:
    """Who should lead may not know of the ballot of one that crashed, which others wait for."""
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.check_leader

    def check_leader(self: Any) -> None:
        if self.trusted[0] == self.process:
            careful(self)

    ramcast.RamCast.check_leader = check_leader
    return above_memory(ramcast)


def ramcast_that_tells_only_its_own_group() -> StackPlan:
    """A new leader does not tell the other groups what it takes over."""
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.give

    def give(self: Any, m: Any, entry: Any, ts: int) -> None:
        leading, self.leading = self.leading, self.leading if ts == self.clock else None
        careful(self, m, entry, ts)
        self.leading = leading

    ramcast.RamCast.give = give
    return above_memory(ramcast)


def ramcast_that_is_done_with_what_it_delivered() -> StackPlan:
    """Who has delivered a message acknowledges no later timestamps of it."""
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.acknowledge

    def acknowledge(self: Any, m: Any, entry: Any, silently: Any = ()) -> None:
        if m.id not in self.known.done:
            careful(self, m, entry, silently)

    ramcast.RamCast.acknowledge = acknowledge
    return above_memory(ramcast)


def ramcast_that_forgets_what_it_delivered() -> StackPlan:
    """A message is forgotten although some destination has not delivered it."""
    ramcast = loaded_anew("ramcast")
    careful = ramcast.RamCast.deliver_final

    def deliver_final(self: Any) -> None:
        careful(self)
        self.known.done.clear()
        self.T.kept = [kept for kept in self.T.kept if not kept.final]

    ramcast.RamCast.deliver_final = deliver_final
    return above_memory(ramcast)


LEADER_CRASHES = grouped((3,), (2, FIRST), crash=(0,))
TWO_LEADERS_OF_ONE = grouped((1, 1), (2, (0, 1)), (3, (0, 1)))
TWO_RACE = grouped((3,), (0, FIRST), (1, FIRST), crash=(0,))
WRONGLY_DEPOSED = grouped((3,), (0, FIRST), (1, FIRST), suspect=((1, 0),))

CASES = [
    Case(memory_without_completions, "protected_memory", LEADER_CRASHES, "validity"),
    Case(memory_that_permits_nobody, "protected_memory", LEADER_CRASHES, "validity"),
    Case(memory_that_permits_only_the_first, "protected_memory", LEADER_CRASHES, "validity"),
    Case(ramcast_that_takes_its_own_timestamp, "ramcast", TWO_LEADERS_OF_ONE, "acyclic order"),
    Case(ramcast_that_delivers_what_is_final, "ramcast", TWO_LEADERS_OF_ONE, "acyclic order"),
    Case(ramcast_that_is_done_with_what_it_delivered, "ramcast", LEADER_CRASHES,
         "uniform agreement"),
    Case(ramcast_that_forgets_what_it_delivered, "ramcast", LEADER_CRASHES, "uniform agreement"),
]  # fmt: skip

DEEP_CASES = [
    Case(memory_that_never_revokes, "protected_memory", WRONGLY_DEPOSED, "prefix order"),
    Case(memory_that_checks_when_a_write_is_sent, "protected_memory", WRONGLY_DEPOSED,
         "prefix order"),
    Case(memory_that_calls_every_write_landed, "protected_memory", WRONGLY_DEPOSED,
         "prefix order"),
    Case(ramcast_that_needs_one_acknowledgement_too_few, "ramcast", TWO_RACE, "prefix order"),
    Case(ramcast_that_takes_over_alone, "ramcast", TWO_RACE, "prefix order"),
    Case(ramcast_that_ignores_what_it_reads, "ramcast", TWO_RACE, "prefix order"),
    Case(ramcast_that_reads_no_clock, "ramcast", TWO_RACE, "prefix order"),
]  # fmt: skip
"""Variants that show only in scopes that take long to exhaust."""

LEFT_ALONE = {"ramcast": RAMCAST, "protected_memory": RAMCAST}
"""The stacks of which variants replace a layer."""
