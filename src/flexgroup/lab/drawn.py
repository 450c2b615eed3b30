"""A run of the explorer performed once more on a bench: its trace, judged and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from flexgroup.core.message import MessageId, message_id, name_of
from flexgroup.diagram.drawing import Diagram, diagram
from flexgroup.diagram.events import TraceEvent, events_in_memory
from flexgroup.properties.catalogue import PROPERTIES, check
from flexgroup.properties.verdict import Verdict
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.explorer.schedule import ScheduleStep, is_over, stage
from flexgroup.worlds.explorer.scope import LETTERS, Scope


def letters_of(run: Sequence[ScheduleStep]) -> dict[MessageId, str]:
    """Return the letters of the messages that a run multicasts, by identity."""
    counts: dict[int, int] = {}
    found = {}
    for step in run:
        if step.kind == "cast":
            before = counts.get(step.process, 0)
            counts[step.process] = before + 1
            found[message_id(step.process, before)] = LETTERS[step.number]
    return dict(sorted(found.items(), key=lambda item: item[1]))


class PerformedRun:
    """What a bench makes of a run, and what the checks of traces say about it."""

    def __init__(
        self, plan: StackPlan, scope: Scope, run: Sequence[ScheduleStep], ended: bool | None = None
    ) -> None:
        """`ended` says whether nothing need happen any more; None, that nothing is in flight."""
        self._plan = plan
        self._scope = scope
        self._collector = Collector()
        recorder = Recorder(self._collector)
        self.bench = stage(plan, scope, run, recorder)
        recorder.flush()
        self.ended = is_over(self.bench) if ended is None else ended
        self._letters = letters_of(run)

    @cached_property
    def history(self) -> History:
        """The run as checks see it."""
        return self._collector.history(
            self._plan.name,
            self._scope.processes,
            self.ended,
            tuple(dict(self._scope.liars)),
            self._letters,
        )

    def verdicts(self, names: Sequence[str]) -> list[Verdict]:
        """Judge the properties of these names that the checks of traces know."""
        return check(self.history, [name for name in names if name in PROPERTIES])

    @cached_property
    def events(self) -> list[TraceEvent]:
        return events_in_memory(self._collector)

    def diagram(self, verdicts: Sequence[Verdict], title: str) -> Diagram:
        """The whole run, with the events emphasised that verdicts name."""
        witness = [step for verdict in verdicts for step in verdict.witness or ()]
        return diagram(
            self.events,
            {name_of(m): letter for m, letter in self._letters.items()},
            {(step.process, step.step) for step in witness},
            self._scope.processes,
            title,
            complete=self.ended,
            timed=False,
        )
