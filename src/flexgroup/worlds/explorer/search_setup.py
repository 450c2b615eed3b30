"""Setting up a search: what to look for and how, and the state in which it begins."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Layer
from flexgroup.core.message import message_id
from flexgroup.core.stack import BuildStack
from flexgroup.liars.named import with_liars
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer import property_checks as properties
from flexgroup.worlds.explorer.budgets import Budgets
from flexgroup.worlds.explorer.in_flight import EMPTY, InFlightPackets
from flexgroup.worlds.explorer.machine import (
    CAST,
    CRASH,
    KEPT,
    LOST,
    RESTART,
    SUSPECT,
    TRUST,
    Event,
    Machine,
)
from flexgroup.worlds.explorer.property_checks import PropertyChecks, StateProperty
from flexgroup.worlds.explorer.reduction import Reduction
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search
from flexgroup.worlds.explorer.staged import StagedRun
from flexgroup.worlds.explorer.symmetry import Symmetry


def promised(plan: StackPlan, scope: Scope) -> list[str]:
    """List what the stack promises over these channels, as far as the explorer checks it."""
    promises = plan.promises(scope.channels)
    return [
        *properties.ALWAYS,
        *(name for name in properties.CHECKED_IF_PROMISED if name in promises),
    ]


@dataclass(frozen=True)
class SearchOptions:
    """How to search, and for which properties."""

    reduce: bool = True
    """Let only one process move where that is enough (partial-order reduction)."""
    symmetry: bool = True
    """Take states for one that differ only in the names of clients."""
    follow_clients: bool = False
    """Make clients part of the state, as they must be if they take part in the protocol."""
    properties: tuple[str, ...] | None = None
    """The properties to check; None stands for what the stack promises."""
    extra_properties: tuple[StateProperty, ...] = ()
    begin: tuple[ScheduleStep, ...] = ()
    """The steps that have happened before the search begins."""


def new_search(plan: StackPlan, scope: Scope, options: SearchOptions, memory: int = 0) -> Search:
    """Return a search at its beginning, where every client has multicast what it has to.

    Beyond so many bytes of memory, states go to files; 0 stands for no limit.
    """
    if scope.clients and plan.closed:
        raise UsageError(
            f"only members multicast with '{plan.name}': "
            "say who, as in --message 0:1,2, with an origin below the number of processes"
        )
    promises = promised(plan, scope)  # refuses a stack that cannot stand on these channels
    names = list(options.properties or promises)
    # A client that multicasts several times has more to do when the search begins.
    follow = options.follow_clients or len(scope.client_casts) > scope.clients
    actors = scope.processes + (scope.clients if follow else 0)
    machine = Machine(scope, actors, Codec(plan.layers), _builder(plan, scope))
    in_flight = InFlightPackets(machine, scope.fifo)
    at_the_start = {} if follow else scope.client_casts
    known = {message_id(cast.origin, 0): place for place, cast in at_the_start.items()}
    checks = PropertyChecks(
        names,
        [c.destinations for c in scope.casts],
        known,
        list(options.extra_properties),
        frozenset(dict(scope.liars)),
    )
    symmetry = (
        Symmetry(machine, in_flight, _alike(scope))
        if options.symmetry and not follow and not options.begin
        else None
    )
    if symmetry is not None and not symmetry.mirrors:
        symmetry = None
    _name_faults(machine, scope)
    first = _first_state(plan, scope, machine, in_flight, actors, symmetry)
    faults = scope.bounds.crashes > 0 or scope.bounds.suspicions > 0
    notices = faults and _someone_listens(plan)
    search = Search(
        machine=machine,
        in_flight=in_flight,
        budgets=Budgets(astuple(scope.stock)),
        checks=checks,
        actors=actors,
        first=first,
        reduction=Reduction(machine, in_flight, actors, notices) if options.reduce else None,
        symmetry=symmetry,
        notices=notices,
        memory=memory,
    )
    if options.begin:
        run = StagedRun(search, scope)
        search.prelude = [run.follow(step) for step in options.begin[len(run.steps) :]]
        search = search.again()
    return search


def _first_state(
    plan: StackPlan,
    scope: Scope,
    machine: Machine,
    in_flight: InFlightPackets,
    actors: int,
    symmetry: Symmetry | None,
) -> list[int]:
    state = [EMPTY] * (2 * actors + 1)
    outputs: list[int] = []
    build = _builder(plan, scope)
    for process in range(scope.processes + scope.clients):
        begun = machine.first(build(process))
        if process < actors:
            state[2 * process] = begun.after
            if symmetry is not None:
                symmetry.begin(begun.after)
            outputs += begun.outputs
            continue
        place = next(n for n, cast in enumerate(scope.casts) if cast.origin == process)
        event = machine.event(Event(CAST, process, process, None, 0, "", place))
        outputs += machine.step(begun.after, event).outputs
    for output in outputs:
        target = machine.events[output].process
        state[2 * target + 1] = in_flight.append(state[2 * target + 1], output)
    # What clients did before the search began has no mirror: they are not part of its states.
    machine.recipes.clear()
    return state


def _name_faults(machine: Machine, scope: Scope) -> None:
    """Number the events that nothing leads to, which workers that share a search must all know."""
    if not scope.bounds.crashes and not scope.bounds.suspicions:
        return
    for process in range(scope.processes):
        machine.event(Event(CRASH, process, process, None, 0, "", 0))
        for suspect in range(scope.processes):
            machine.event(Event(SUSPECT, process, suspect, None, 0, "", 0))
            if scope.bounds.restarts:
                machine.event(Event(TRUST, process, suspect, None, 0, "", 0))
        if scope.bounds.restarts:
            for packets in (KEPT, LOST):
                machine.event(Event(RESTART, process, process, None, 0, "", packets))


def _builder(plan: StackPlan, scope: Scope) -> BuildStack:
    if scope.bounds.restarts:
        plan.check_restarts()

    return with_liars(plan.builder(scope.processes, scope.groups, scope.replicas), scope.liars)


def _alike(scope: Scope) -> list[list[int]]:
    """The clients, by what they multicast, where several multicast the same."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for cast in scope.client_casts.values():
        groups.setdefault(cast.destinations, []).append(cast.origin)
    return [clients for clients in groups.values() if len(clients) > 1]


def _someone_listens(plan: StackPlan) -> bool:
    """Some layer has a handler of its own for notices."""
    return any(layer.on_notice is not Layer.on_notice for layer in plan.layers)
