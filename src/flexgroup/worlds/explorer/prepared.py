"""From a stack and a scope to a search that can begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Layer
from flexgroup.core.message import MessageId, message_id
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer import judge as properties
from flexgroup.worlds.explorer.inboxes import EMPTY, Inboxes
from flexgroup.worlds.explorer.judge import Judge, Watch
from flexgroup.worlds.explorer.machine import CAST, CRASH, SUSPECT, Casting, Event, Machine
from flexgroup.worlds.explorer.moves import Budgets
from flexgroup.worlds.explorer.reduction import Reduction
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search
from flexgroup.worlds.explorer.symmetry import Symmetry


def promised(plan: StackPlan, scope: Scope) -> list[str]:
    """What the stack promises over the channels of the scope, as far as the explorer judges it."""
    promises = plan.promises(scope.channels)
    return [*properties.ALWAYS, *(name for name in properties.JUDGED if name in promises)]


@dataclass(frozen=True)
class Manner:
    """How to search."""

    reduce: bool = True
    """Let one process move where that is enough."""
    symmetry: bool = True
    """Take states for one that differ only in the names of clients."""
    follow_clients: bool = False
    properties: tuple[str, ...] | None = None
    """None stands for what the stack promises."""
    watches: tuple[Watch, ...] = ()


def prepare(plan: StackPlan, scope: Scope, manner: Manner, workers: int = 1, me: int = 0) -> Search:
    """A search at its beginning, every client having multicast what it has to."""
    if scope.clients and plan.closed:
        raise UsageError(
            f"only members multicast with '{plan.name}': "
            "say who, as in --message 0:1,2, with an origin below the number of processes"
        )
    promises = promised(plan, scope)  # refuses a stack that cannot stand on these channels
    names = list(manner.properties or promises)
    follow = manner.follow_clients or _some_client_has_more_to_do(scope)
    actors = scope.processes + (scope.clients if follow else 0)
    machine = Machine(
        scope.processes, actors, Codec(plan.layers), _castings(scope), scope.bounds.timers > 0
    )
    inboxes = Inboxes(machine, scope.fifo)
    known = {} if follow else cast_at_the_start(scope)
    judge = Judge(names, [c.destinations for c in scope.casts], known, list(manner.watches))
    symmetry = Symmetry(machine, inboxes, _alike(scope)) if manner.symmetry and not follow else None
    if symmetry is not None and not symmetry.mirrors:
        symmetry = None
    _name_faults(machine, scope)
    first = _first_state(plan, scope, machine, inboxes, actors, symmetry)
    return Search(
        machine,
        inboxes,
        Budgets(scope.bounds.as_tuple()),
        judge,
        actors,
        first,
        Reduction(machine, inboxes, actors) if manner.reduce else None,
        symmetry,
        _someone_listens(plan) and (scope.bounds.crashes > 0 or scope.bounds.suspicions > 0),
        workers,
        me,
    )


def _first_state(
    plan: StackPlan,
    scope: Scope,
    machine: Machine,
    inboxes: Inboxes,
    actors: int,
    symmetry: Symmetry | None,
) -> list[int]:
    state = [EMPTY] * (2 * actors + 1)
    outputs: list[int] = []
    for process in range(scope.processes + scope.clients):
        begun = machine.first(process, plan.build(process, scope.processes, scope.groups))
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
        state[2 * target + 1] = inboxes.append(state[2 * target + 1], output)
    # What clients did before the search began has no mirror: they are not part of its states.
    machine.recipes.clear()
    return state


def _name_faults(machine: Machine, scope: Scope) -> None:
    """Events that nothing leads to: searches that share their work must all know them."""
    if not scope.bounds.crashes and not scope.bounds.suspicions:
        return
    for process in range(scope.processes):
        machine.event(Event(CRASH, process, process, None, 0, "", 0))
        for suspect in range(scope.processes):
            machine.event(Event(SUSPECT, process, suspect, None, 0, "", 0))


def cast_at_the_start(scope: Scope) -> dict[MessageId, int]:
    return {
        message_id(cast.origin, 0): place
        for place, cast in enumerate(scope.casts)
        if cast.origin >= scope.processes
    }


def _castings(scope: Scope) -> dict[int, Casting]:
    found: dict[int, Casting] = {}
    for origin in sorted({cast.origin for cast in scope.casts}):
        places = [place for place, cast in enumerate(scope.casts) if cast.origin == origin]
        sets = [scope.casts[place].destinations for place in places]
        found[origin] = Casting(places, sets, scope.any_order)
    return found


def _some_client_has_more_to_do(scope: Scope) -> bool:
    origins = [cast.origin for cast in scope.casts if cast.origin >= scope.processes]
    return len(origins) > len(set(origins))


def _alike(scope: Scope) -> list[list[int]]:
    """The clients, by what they multicast, where several multicast the same."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for cast in scope.casts:
        if cast.origin >= scope.processes:
            groups.setdefault(cast.destinations, []).append(cast.origin)
    return [clients for clients in groups.values() if len(clients) > 1]


def _someone_listens(plan: StackPlan) -> bool:
    def handlers(layers: Sequence[type[Layer]]) -> list[object]:
        return [layer.__dict__.get("on_notice") for cls in layers for layer in cls.__mro__[:-1]
                if layer is not Layer]  # fmt: skip

    return any(handler is not None for handler in handlers(plan.layers))
