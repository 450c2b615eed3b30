"""Faults by name: the reduced search finds what the full one finds, in fewer states."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee
from flexgroup.core.layer import Context, Layer, Notice, Suspect
from flexgroup.core.message import Message, Packet
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.explorer import SearchLimits, explore
from flexgroup.worlds.explorer.random_walks import RandomWalks
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variant_parts import Case, plan_of
from .variants import CASES, named
from .variants_paxos import TWO_RACE, WRONGLY_DEPOSED, replicated

FULL = SearchOptions(reduce=False, symmetry=False)
REDUCED = SearchOptions(reduce=True, symmetry=False)
BOTH = SearchOptions(reduce=True, symmetry=True)

PATIENCE = SearchLimits(states=10_000)
ENOUGH = 4


def faulty(
    scope: Scope, crashing: tuple[int, ...] = (), suspecting: tuple[tuple[int, int], ...] = ()
) -> Scope:
    """The same scope with faults by name."""
    bounds = replace(scope.bounds, crashes=len(crashing), suspicions=len(suspecting))
    return replace(scope, bounds=bounds, crashing=crashing, suspecting=suspecting)


def found(outcome: ExplorationResult) -> tuple[object, ...]:
    assert outcome.exhausted
    return outcome.broken, outcome.terminal_orders, outcome.seen_orders


def compare(plan: StackPlan, scope: Scope) -> bool:
    """Compare a reduced search with the full one; False if that is too large."""
    full = explore(plan, scope, FULL, PATIENCE, keep_going=True)
    if not full.exhausted:
        return False
    reduced = explore(plan, scope, REDUCED, keep_going=True)
    assert found(reduced) == found(full), scope
    # Every state of the reduced search is one of the full search: equal numbers are equal ends.
    assert (reduced.terminals, reduced.complete) == (full.terminals, full.complete), scope
    assert reduced.states <= full.states
    assert found(explore(plan, scope, BOTH, keep_going=True)) == found(full), scope
    return True


def random_scope(random: Random, plan: StackPlan, replicas: bool) -> Scope:
    """One or two messages, a crash or two, and some wrong suspicions, all by name."""
    processes = 3 if replicas else random.randint(2, 4)
    casts: list[PlannedCast] = []
    client = processes
    for _ in range(random.choice((1, 1, 2))):
        size = processes if replicas else random.randint(1, processes)
        destinations = tuple(sorted(random.sample(range(processes), size)))
        if plan.closed or random.random() < 0.5:
            casts.append(PlannedCast(random.randrange(processes), destinations))
        else:
            casts.append(PlannedCast(client, destinations))
            client += 1
    scope = Scope(
        processes,
        tuple(casts),
        fifo=replicas or random.random() < 0.7,
        replicas=replicas_of_sizes([3]) if replicas else (),
    )
    crashing = random.sample(range(processes), random.choice((0, 1, 1, 2)))
    pairs = [(p, q) for p in range(processes) for q in range(processes) if p != q]
    suspecting = random.sample(pairs, random.choice((0, 1, 1, 2)))
    return faulty(scope, tuple(crashing), tuple(suspecting))


STACKS = (
    "best-effort", "reliable", "fifo", "causal", "skeen", "df", "dcc", "dcc-published", "safe",
    "leader paxos", "vcube-best-effort", "vcube-reliable", "vcube-atomic", "vcube-atomic-majority",
    "all2all-atomic", "atomic", "xamp-reliable", "xamp-atomic-published",
)  # fmt: skip


@pytest.mark.parametrize("stack", STACKS)
def test_on_generated_systems(stack: str) -> None:
    plan = parse_stack(stack)
    random = Random(f"named faults/{stack}")
    compared = 0
    for _ in range(40):
        scope = random_scope(random, plan, replicas="paxos" in stack)
        if any(Guarantee.FIFO in layer.NEEDS for layer in plan.layers):
            scope = replace(scope, fifo=True)
        compared += compare(plan, scope)
        if compared == ENOUGH:
            return
    pytest.fail(f"{compared} of 40 scopes are small enough")


def by_name(scope: Scope) -> list[Scope]:
    """The scopes in which faults that are drawn from a stock are by name instead, one of each."""
    if not scope.bounds.crashes and not scope.bounds.suspicions:
        return []
    crashing = tuple(range(min(scope.bounds.crashes, 1)))
    suspecting = ((1, 0),) if scope.bounds.suspicions else ()
    return [faulty(scope, crashing, suspecting), faulty(scope, (1,)), faulty(scope, (), ((1, 0),))]


BROKEN = [case for case in CASES if by_name(case.scope)]


@pytest.mark.parametrize("case", BROKEN, ids=named)
def test_on_broken_protocols(case: Case) -> None:
    for scope in by_name(case.scope):
        compare(case.variant(), scope)


def test_a_stock_of_one_is_one_of_the_names() -> None:
    """Whoever of two may crash, but not both: what each alone leads to."""
    plan = parse_stack("leader paxos")
    either = replace(replicated(2, crashes=1), crashing=(0, 1))
    assert not either.crashes_by_name
    drawn = explore(plan, either, FULL)
    alone = [explore(plan, faulty(either, (p,)), REDUCED) for p in (0, 1)]
    assert drawn.terminal_orders == alone[0].terminal_orders | alone[1].terminal_orders
    assert sum(outcome.states for outcome in alone) < 2 * drawn.states


@pytest.mark.parametrize(
    ("scope", "full", "reduced"),
    [
        (faulty(replicated(1), (0,), ((1, 0),)), 4_097, 2_193),
        (faulty(replicated(0, 1), (0,)), 33_213, 19_898),
    ],
    ids=["crash and suspicion", "crash"],
)
def test_it_pays(scope: Scope, full: int, reduced: int) -> None:
    plan = parse_stack("leader paxos")
    assert explore(plan, scope, FULL).states == full
    assert explore(plan, scope, REDUCED).states == reduced


def test_several_workers_find_the_same() -> None:
    plan = parse_stack("leader paxos")
    scope = faulty(replicated(1), (0,), ((1, 0),))
    alone = explore(plan, scope, REDUCED)
    together = explore(plan, scope, REDUCED, workers=2)
    assert found(together) == found(alone)
    assert together.terminals == alone.terminals


class Alarm(Layer):
    """Process 1 says so when it suspects 0, and who hears of that before the message is silent."""

    __slots__ = ("heard",)
    PACKETS = (Data,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.heard = False

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Data)
        if sender < self.size:
            self.heard = True
        elif not self.heard:
            self.deliver(packet.m)

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and self.process == 1:
            self.send((2,), Data(Message(0, (2,), b"")))


@pytest.mark.parametrize(
    ("crashing", "suspecting", "silent"),
    [
        ((), (), False),
        ((0,), (), True),
        ((), ((1, 0),), True),
        ((0,), ((2, 0),), True),
        ((1,), (), False),
    ],
    ids=["nothing", "a crash", "a suspicion", "a crash that 2 may foresee", "nobody is told"],
)
def test_what_a_fault_leads_to_counts_before_it_has_happened(
    crashing: tuple[int, ...], suspecting: tuple[tuple[int, int], ...], silent: bool
) -> None:
    """Moving process 2 first would hide that the alarm can overtake the message."""
    scope = faulty(from_clients(3, (2,)), crashing, suspecting)
    options = replace(REDUCED, properties=("integrity",))
    outcome = explore(plan_of(Alarm), scope, options)
    assert ((), (), ()) in outcome.terminal_orders or not silent
    assert len(outcome.terminal_orders) == 1 + silent


class Impatient(Layer):
    """Delivers when it suspects process 0, and otherwise never."""

    __slots__ = ("kept", "suspicious")
    PACKETS = (Data,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.kept: list[Message] = []
        self.suspicious = False

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Data)
        self.kept.append(packet.m)
        self.check_kept()

    def on_notice(self, notice: Notice) -> None:
        self.suspicious = isinstance(notice, Suspect)
        self.check_kept()

    def check_kept(self) -> None:
        if self.suspicious:
            for m in self.kept:
                self.deliver(m)
            self.kept = []


@pytest.mark.parametrize("options", [FULL, REDUCED], ids=["full", "reduced"])
@pytest.mark.parametrize("drawn", [False, True], ids=["by name", "from a stock"])
def test_a_fault_need_not_happen(options: SearchOptions, drawn: bool) -> None:
    """A run in which all wait for a fault that never comes is over, and is judged."""
    scope = from_clients(2, (1,))
    scope = (
        replace(scope, bounds=Bounds(crashes=1, suspicions=1))
        if drawn
        else faulty(scope, (0,), ((1, 0),))
    )
    chosen = replace(options, properties=("validity",))
    outcome = explore(plan_of(Impatient), scope, chosen, keep_going=True)
    assert outcome.broken == {"validity"}
    assert () in {orders[1] for orders in outcome.terminal_orders}


def test_nor_does_it_on_a_walk() -> None:
    scope = faulty(from_clients(2, (1,)), (), ((1, 0),))
    options = SearchOptions(properties=("validity",))
    outcome = RandomWalks(plan_of(Impatient), scope, 100, options=options).take()
    assert outcome.broken == {"validity"}
    assert not any(step.kind == "suspect" for step in outcome.violations[0].run)


def test_the_full_search_has_no_longer_counterexample() -> None:
    for case in BROKEN:
        if case.scope in (TWO_RACE, WRONGLY_DEPOSED):
            looked_for = (case.broken,)
            reduced = explore(case.variant(), case.scope, replace(REDUCED, properties=looked_for))
            full = explore(case.variant(), case.scope, replace(FULL, properties=looked_for))
            assert case.broken in reduced.broken
            assert reduced.violations[0].steps >= full.violations[0].steps


def test_nobody_may_be_named_who_suspects_itself() -> None:
    with pytest.raises(UsageError, match="process 1 cannot suspect itself"):
        faulty(replicated(0), (), ((1, 1),))
