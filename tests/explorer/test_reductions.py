"""The reduced search finds what the full one finds: verdicts, ends, and orders that were seen."""

from __future__ import annotations

from random import Random

import pytest

from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.explorer import NO_SYMMETRY, ONE_WORKER, Exploration, explore
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import PlannedCast, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variant_parts import Case, plan_of
from .variants import CASES, named

FULL = SearchOptions(reduce=False, symmetry=False)
REDUCED = {
    "order": SearchOptions(reduce=True, symmetry=False),
    "symmetry": SearchOptions(reduce=False, symmetry=True),
    "both": SearchOptions(reduce=True, symmetry=True),
}


def found(outcome: ExplorationResult) -> tuple[object, ...]:
    """All that a reduction must not change."""
    assert outcome.exhausted
    return (
        outcome.broken,
        outcome.terminal_orders,
        outcome.seen_orders,
        outcome.complete < outcome.terminals,
    )


def compare(plan: StackPlan, scope: Scope) -> None:
    full = explore(plan, scope, FULL, keep_going=True)
    for options in REDUCED.values():
        reduced = explore(plan, scope, options, keep_going=True)
        assert found(reduced) == found(full), scope.described()
        assert reduced.states <= full.states


def random_scope(random: Random, fifo: bool, most: int, largest: int) -> Scope:
    """Some processes, up to `most` messages; some cast by members, and some more than once."""
    processes = random.randint(2, largest)
    casts: list[PlannedCast] = []
    client = processes
    for _ in range(random.randint(2, most)):
        size = random.choice((1, 2, 2, 3))
        destinations = tuple(sorted(random.sample(range(processes), min(size, processes))))
        if random.random() < 0.3:
            casts.append(PlannedCast(random.randrange(processes), destinations))
        else:
            if casts and random.random() < 0.4:
                destinations = casts[-1].destinations  # so that there is symmetry
            casts.append(PlannedCast(client, destinations))
            client += 1
    return Scope(processes, tuple(casts), fifo, any_order=random.random() < 0.3)


GENERATED = [
    pytest.param(stack, fifo, most, seed, id=f"{stack}-{seed}")
    for stack, fifo, most, count in (
        ("best-effort", False, 3, 8),
        ("fifo", False, 3, 8),
        ("skeen", True, 2, 6),
        ("df", False, 4, 8),
        ("dcc", True, 4, 8),
        ("dcc/any", True, 4, 8),
        ("dcc-published", True, 5, 8),
        ("dcc-published/any", True, 5, 8),
        ("fifo dcc/rv", False, 2, 4),
    )
    for seed in range(count)
]


@pytest.mark.parametrize(("stack", "fifo", "most", "seed"), GENERATED)
def test_on_generated_systems(stack: str, fifo: bool, most: int, seed: int) -> None:
    largest = 3 if stack == "skeen" else 4  # with four, it takes minutes
    compare(parse_stack(stack), random_scope(Random(f"{stack}/{seed}"), fifo, most, largest))


SMALL_CASES = [case for case in CASES if case.variant.__name__ != "skeen_without_line_14"]


@pytest.mark.usefixtures("attackers_of_groups")
@pytest.mark.parametrize("case", SMALL_CASES, ids=named)
def test_on_broken_protocols(case: Case) -> None:
    compare(case.variant(), case.scope)


def test_reduction_pays() -> None:
    """Against a reduction that is right because it reduces nothing."""
    plan = parse_stack("dcc")
    scope = from_clients(4, (0, 2), (0, 2), (1, 3), (0, 3))
    states = {name: explore(plan, scope, options).states for name, options in REDUCED.items()}
    full = explore(plan, scope, FULL).states
    assert states["order"] < full / 3
    assert states["symmetry"] < full * 0.6
    assert states["both"] < min(states["order"], states["symmetry"])


class ByNumber(Layer):
    """Process 0 keeps what comes until it has two, and delivers the lower client's first."""

    __slots__ = ("kept",)
    PACKETS = (Data,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.kept: list[Message] = []

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Data)
        self.kept.append(packet.m)
        if len(self.kept) == 2:
            for m in sorted(self.kept, key=lambda kept: kept.id):
                self.deliver(m)


def test_a_protocol_that_tells_clients_apart_is_explored_without_symmetry() -> None:
    scope = from_clients(1, (0,), (0,))
    outcome = explore(plan_of(ByNumber), scope, REDUCED["symmetry"], keep_going=True)
    assert NO_SYMMETRY in outcome.notes
    assert found(outcome) == found(explore(plan_of(ByNumber), scope, FULL, keep_going=True))
    assert NO_SYMMETRY not in explore(parse_stack("skeen"), scope).notes


class Token(Packet):
    """Goes round; counts nothing, so states come back."""

    lap: int


class Ring(Layer):
    """A token goes round for ever, and who has it delivers what waits there."""

    __slots__ = ("waiting",)
    PACKETS = (Data, Token)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.waiting: list[Message] = []

    def on_start(self) -> None:
        if self.process == 0:
            self.send((1 % self.size,), Token(0))

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data):
            self.waiting.append(packet.m)
            return
        for m in self.waiting:
            self.deliver(m)
        self.waiting = []
        self.send(((self.process + 1) % self.size,), Token(0))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loop_does_not_put_off_the_others_for_ever(workers: int) -> None:
    """There is no end in which anything could be found missing; what is seen must be the same."""
    scope = from_clients(3, (1, 2), (1, 2), fifo=False)
    plan = plan_of(Ring)
    options = SearchOptions(properties=("integrity", "acyclic order"))
    full = explore(
        plan, scope, SearchOptions(False, False, properties=options.properties), keep_going=True
    )
    exploration = Exploration(plan, scope, options, keep_going=True, workers=workers, join_at=1)
    reduced = exploration.run()
    assert (ONE_WORKER in reduced.notes) is (workers > 1)
    assert full.terminals == 0
    assert full.broken == {"acyclic order"}
    assert found(reduced) == found(full)
