"""The row of a run: what was run, over what, what was promised, and how it ended.

Worlds build it, the writer writes it, and readers get the same object back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flexgroup import __version__
from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.promises import PROPERTIES
from flexgroup.core.replicas import Replicas
from flexgroup.trace import schema
from flexgroup.trace.cost_models import EXAMPLE, parse_cost_model
from flexgroup.trace.names import Names
from flexgroup.trace.version1 import Described, described

SOFTWARE = f"flexgroup {__version__}"
"""The name and version that stand in all rows that this software writes."""

GUARANTEES = tuple(guarantee.value for guarantee in Guarantee)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A row of `runs`; docs/trace.md tells what each column means."""

    run: str
    world: str
    stack: str
    options: str = "{}"
    processes: int
    clients: int = 0
    groups: str | None = None
    workload: str | None = None
    network: str | None = None
    faults: str | None = None
    seed: int | None = None
    outcome: str = schema.CUT
    schema_version: int = schema.VERSION
    software: str = SOFTWARE
    started: int | None = None
    lost: str | None = None
    channels: tuple[str, ...] | None = None
    promises: tuple[str, ...] | None = None
    cost_model: str | None = None
    faulty: tuple[int, ...] = ()
    events: str | None = None
    nodes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Tell whether nothing was under way any more when the run ended."""
        return self.outcome == schema.COMPLETE

    @property
    def replicas(self) -> Replicas:
        """Return the groups of replicas that the processes were divided into, if they were."""
        told = json.loads(self.groups or "[]")
        return tuple(map(tuple, told)) if isinstance(told, list) else ()

    @property
    def told_events(self) -> dict[str, int] | None:
        """Return how many events of each kind the row tells of, if it does."""
        return None if self.events is None else dict(json.loads(self.events))

    @property
    def names(self) -> Names:
        """Return what its processes and clients are called."""
        return Names(self.processes, self.nodes)

    @property
    def promised(self) -> tuple[str, ...]:
        """Return what to check of the run: all properties, if nobody has told what was promised."""
        return PROPERTIES if self.promises is None else self.promises


def channel_names(channels: Guarantees) -> tuple[str, ...]:
    """Return the guarantees of channels in the words of the trace."""
    return tuple(guarantee.value for guarantee in Guarantee if guarantee in channels)


def run_of(row: Mapping[str, Any], outcomes: Collection[str] = schema.OUTCOMES) -> Run:
    """Return the run that a row of `runs` tells of, whichever version wrote it; with the outcomes
    that it has there, a row of `started`.

    Raises UsageError if the row says something that cannot be.
    """
    told: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in row.items()
        if value is not None
    }
    for problem in row_problems(told, outcomes):
        raise UsageError(f"run '{told['run']}': {problem}")
    run = Run(**{**schema.RUN_DEFAULTS, **told})
    if run.schema_version > 1:
        return run
    return replace(run, **described(run.world, run.stack, run.network, run.faults)._asdict())


def row_problems(
    told: Mapping[str, Any], outcomes: Collection[str] = schema.OUTCOMES
) -> Iterator[str]:
    """Yield what is wrong with what a row tells: words and numbers that the schema does not
    know."""
    outcome = told.get("outcome", schema.CUT)
    if outcome not in outcomes:
        yield f"its outcome is '{outcome}', not {' or '.join(outcomes)}"
    processes, clients = told["processes"], told.get("clients", 0)
    if processes < 1 or clients < 0:
        yield f"it has {processes} processes and {clients} clients"
    for column, (is_sound, example) in JSON_COLUMNS.items():
        if column in told and not _is_json(told[column], is_sound):
            yield f"column '{column}' is {told[column]!r}, and must be JSON such as {example}"
    version = told["schema_version"]
    if version > schema.VERSION:
        yield (
            f"it was written by a newer version (schema {version}, this one reads "
            f"{schema.VERSION}); upgrade flexgroup"
        )
    if version < 1:
        yield f"there is no schema version {version}; the first one is 1"
    if version == 1:
        for column in Described._fields:
            if column in told:
                yield f"column '{column}' has a value, and schema version 1 has no such column"
    for column, words in (("channels", GUARANTEES), ("promises", PROPERTIES)):
        for word in told.get(column, ()):
            if word not in words:
                yield f"'{word}' in column '{column}' is none of: {', '.join(words)}"
    for process in told.get("faulty", ()):
        if process is None or not 0 <= process < told["processes"]:
            yield f"there is no process {process}, which column 'faulty' names"
    yield from _node_problems(told.get("nodes", ()), processes + clients)
    model = told.get("cost_model", "")
    if ":" in model and parse_cost_model(model) is None:
        yield f"the cost model '{model}' is no name with figures such as {EXAMPLE}"


def _node_problems(nodes: Sequence[str | None], number: int) -> Iterator[str]:
    if nodes and len(nodes) != number:
        yield f"column 'nodes' has {len(nodes)} names, and there are {number} processes and clients"
    for name in nodes:
        if name is None or not name.strip() or not name.isprintable():
            yield f"{name!r} in column 'nodes' is no name that one could read"
    if len(set(nodes)) < len(nodes):
        yield "column 'nodes' has the same name twice"


def _are_naturals(values: object) -> bool:
    return isinstance(values, list) and all(type(each) is int and each >= 0 for each in values)


JSON_COLUMNS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "groups": (
        lambda told: (
            isinstance(told, dict) or (isinstance(told, list) and all(map(_are_naturals, told)))
        ),
        "[[0,1],[2]]",
    ),
    "lost": (_are_naturals, "[0,2]"),
    "events": (
        lambda told: isinstance(told, dict) and _are_naturals([*told.values()]),
        '{"deliver":20,"multicast":10}',
    ),
}
"""The columns that checks and measures take apart: what they must hold, and an example."""


def _is_json(text: str, is_sound: Callable[[Any], bool]) -> bool:
    try:
        return is_sound(json.loads(text))
    except ValueError:
        return False


def planned_crashes(faults: str | None) -> str:
    """Return the processes that were to crash, as in `1,3`, from the column `faults`."""
    crashes = json.loads(faults or "{}").get("crashes", ())
    return ",".join(map(str, sorted({int(crash.partition("@")[0]) for crash in crashes})))


def planned_liars(faults: str | None) -> tuple[str, ...]:
    """Return who was Byzantine, and how, as in `2:skip`, from the column `faults`."""
    return tuple(json.loads(faults or "{}").get("liars", ()))


def with_liars(run: Run, liars: Iterable[str]) -> Run:
    """Return the row of a run in which these were Byzantine as well, each as in `2:skip`."""
    all_liars = sorted({*planned_liars(run.faults), *liars}, key=_process_of)
    if not all_liars:
        return run
    faults = {**json.loads(run.faults or "{}"), "liars": all_liars}
    return replace(
        run,
        faulty=tuple(sorted({*run.faulty, *map(_process_of, all_liars)})),
        faults=json.dumps(faults, separators=(",", ":"), sort_keys=True),
    )


def _process_of(liar: str) -> int:
    return int(liar.partition(":")[0])


SECONDS_OF = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def planned_detection(faults: str | None) -> float | None:
    """Return after how many seconds crashes were to be told, from the column `faults`."""
    try:
        told = json.loads(faults or "{}").get("detection")
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)?", told or "")
    except (ValueError, AttributeError, TypeError):
        return None  # the plan of another system
    return float(match[1]) * SECONDS_OF[match[2] or "s"] if match else None


def lost_processes(text: str | None) -> tuple[int, ...]:
    """Return the processes whose last events are missing, from the column `lost`."""
    try:
        lost = json.loads(text or "[]")
    except json.JSONDecodeError:
        lost = None
    if not isinstance(lost, list) or not all(type(process) is int for process in lost):
        raise UsageError(
            f"the column 'lost' of runs is {text!r}, and must be a list of processes in JSON, as"
            " [0,2]; see docs/trace.md for the columns"
        )
    return tuple(sorted(set(lost)))
