"""Two stacks side by side, system by system: are their orders the same, and their verdicts?

Where both are explored whole, the orders in which a run can end are compared. Where that is too
much, there is a shorter way. Runs that end with everything delivered in an acyclic order can end
only in the orders of `acyclic_orders`. If both stacks reach all of these, by delivering one message
everywhere before the next is heard of, they differ only if some run breaks a promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import permutations

from flexgroup.core.message import message_id
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.machine import ClientAddressedError
from flexgroup.worlds.explorer.random_walks import RandomWalks
from flexgroup.worlds.explorer.result import ExplorationResult, Orders
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search, Transition
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search, promised
from flexgroup.worlds.explorer.workers import orders_of


@dataclass(frozen=True)
class Verdict:
    """What was learnt of one system."""

    scope: Scope
    exhausted: bool
    broken: frozenset[str]
    orders: frozenset[Orders]
    """The orders in which a run can end: all of them, if every schedule was explored."""
    incomplete: bool
    """Whether some end lacks a delivery."""


def verdict_on(outcome: ExplorationResult) -> Verdict:
    return Verdict(
        outcome.scope,
        outcome.exhausted,
        outcome.broken,
        outcome.terminal_orders,
        outcome.complete < outcome.terminals,
    )


@dataclass
class Comparison:
    """How two stacks compare in all systems of a size."""

    exhausted: int = 0
    """Both were explored whole, and orders and verdicts are the same."""
    reached: int = 0
    """Not both were, but both reach all acyclic orders, and nothing was seen that breaks one."""
    walks: int = 0
    """The random walks of each stack, over all systems that were not explored whole."""
    unlike: list[Scope] = field(default_factory=list)
    """Where orders or verdicts differ, as far as they are known."""

    @property
    def systems(self) -> int:
        return self.exhausted + self.reached + len(self.unlike)

    def to_json(self) -> dict[str, object]:
        return {
            "exhausted_and_equal": self.exhausted,
            "all_orders_reached": self.reached,
            "walks": self.walks,
            "unlike": [[cast.destinations for cast in scope.casts] for scope in self.unlike],
        }


def compare(
    plans: tuple[StackPlan, StackPlan],
    verdicts: Iterable[tuple[Verdict, Verdict]],
    walks: int = 0,
    seed: int = 1,
    report: Callable[[Comparison], None] = lambda found: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Comparison:
    """Compare two stacks by what was learnt of each system, and by walks where that is not all."""
    found = Comparison()
    for pair in verdicts:
        if interrupted():
            break
        scopes = pair[0].scope, pair[1].scope
        both = frozenset(promised(plans[0], scopes[0])) & frozenset(promised(plans[1], scopes[1]))
        broken = [verdict.broken & both for verdict in pair]
        if all(verdict.exhausted for verdict in pair):
            same = broken[0] == broken[1] and pair[0].incomplete == pair[1].incomplete
            same = same and pair[0].orders == pair[1].orders
            found.exhausted += same
        else:
            same = not any(broken) and all(
                orders_one_by_one(plan, scope) == acyclic_orders(scope)
                for plan, scope in zip(plans, scopes, strict=True)
            )
            for plan, scope in zip(plans, scopes, strict=True):
                if same and walks:
                    same = not RandomWalks(plan, scope, walks, seed).take().violations
            found.reached += same
            found.walks += walks
        if not same:
            found.unlike.append(scopes[0])
        report(found)
    return found


def acyclic_orders(scope: Scope) -> frozenset[Orders]:
    """All orders in which everything can be delivered if the order is acyclic.

    Such an order is one of all messages, of which each process sees its own.
    """
    messages = [(message_id(cast.origin, 0), cast.destinations) for cast in scope.casts]
    return frozenset(
        tuple(
            tuple(m for m, destinations in order if process in destinations)
            for process in range(scope.processes)
        )
        for order in permutations(messages)
    )


def orders_one_by_one(plan: StackPlan, scope: Scope) -> frozenset[Orders]:
    """The orders that a stack ends in if each message, of a client of its own, waits for another.

    One for each order of the clients: nothing else is left to do when the next is heard of.
    """
    origins = [cast.origin for cast in scope.casts]
    options = SearchOptions(reduce=False, symmetry=False)
    try:
        search = new_search(plan, scope, options)
        return frozenset(_one_by_one(search, order) for order in permutations(origins))
    except ClientAddressedError:
        search = new_search(plan, scope, SearchOptions(False, False, follow_clients=True))
        return frozenset(_one_by_one(search, order) for order in permutations(origins))


def _one_by_one(search: Search, origins: tuple[int, ...]) -> Orders:
    state = search.first
    while transitions := search.possible_from(state):
        state = search.followed(state, most_urgent(search, origins, transitions)).after
    return orders_of(search, [search.machine.locals[number].order for number in state[:-1:2]])


def most_urgent(
    search: Search, origins: tuple[int, ...], transitions: list[Transition]
) -> Transition:
    """What members have to do goes first, then what comes from the first of these origins."""
    sources = [search.machine.events[transition.event].source for transition in transitions]
    ranks = [origins.index(source) if source in origins else -1 for source in sources]
    return transitions[ranks.index(min(ranks))]
