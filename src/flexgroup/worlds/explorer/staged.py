"""A run performed once more, on a bench, for traces and diagrams.

Nothing of the search is used: that the staged run ends as the search said is a check of the search.
"""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.core.journal import Journal
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.bench import Bench, ImpossibleError
from flexgroup.worlds.explorer.outcome import Happening
from flexgroup.worlds.explorer.scope import Scope


def stage(
    plan: StackPlan, scope: Scope, run: Sequence[Happening], journal: Journal | None = None
) -> Bench:
    """Let all of a run happen on a bench; an ImpossibleError says what cannot.

    A handler may raise: such runs are what the search is looking for.
    """
    bench = Bench(plan, scope.processes, scope.groups, journal)
    for happening in run:
        try:
            _perform(bench, scope, happening)
        except ImpossibleError:
            raise
        except Exception:
            continue
    return bench


def _perform(bench: Bench, scope: Scope, happening: Happening) -> None:
    process, source, place = happening.process, happening.source, happening.place
    if happening.kind == "receive":
        bench.deliver(source, process, place)
    elif happening.kind == "lost":
        bench.remove(source, process, place)
    elif happening.kind == "doubled":
        bench.duplicate(source, process, place)
    elif happening.kind == "cast":
        bench.cast(process, scope.casts[happening.number].destinations)
    elif happening.kind == "timer":
        level = bench.level_of_timer(process, happening.name)
        bench.end_timer(process, level, happening.name)
    elif happening.kind == "choice":
        bench.choose(process, happening.number)
    elif happening.kind == "crash":
        bench.crash(process)
    else:
        bench.suspect(process, source)
