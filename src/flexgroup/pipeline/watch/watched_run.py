"""One watched run from its first event to its end: what is asked of it, and what was said.

Events may be seen before it is known which properties the run's stack promises; violations found
by then are told as soon as that is known. The row in `runs` may be seen before the last events,
because folders are listed one after the other. It is written last, so whatever a later batch
lists is everything: the run is over one batch after its row was seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.verify.verdict_table import verdict_row
from flexgroup.pipeline.watch.follower import HOLD, Follower
from flexgroup.pipeline.watch.reassembly import RefusedError
from flexgroup.pipeline.watch.violation_counts import WATCHED
from flexgroup.properties.verdict import Verdict
from flexgroup.trace.run import lost_processes, run_of
from flexgroup.trace.schema import COMPLETE

Row = dict[str, object]
Description = Mapping[str, object]
"""What a row of `started` or `runs` tells."""


@dataclass
class BatchReport:
    """What a batch brings to light about one run."""

    violations: list[Row] = field(default_factory=list)
    """Rows of verdicts on properties of which violations were found."""
    final: list[Row] = field(default_factory=list)
    """The verdicts on all watched properties, once the run is over."""
    unwatched: list[str] = field(default_factory=list)
    """The properties that the stack promises and only `verify` can check, once the run is over."""
    refused: str = ""
    """Why the run is not followed any further."""

    def to_json(self) -> str | None:
        """Return the report as JSON, or None if there is nothing to say."""
        return json.dumps(asdict(self)) if self != BatchReport() else None


@dataclass
class Lifecycle:
    """How far a run has come."""

    wanted: list[str] | None = None
    """The properties asked for, or None as long as that is not known."""
    untold: dict[str, Row] = field(default_factory=dict)
    ended_in: int | None = None
    """The batch in which its row in `runs` was seen."""
    complete: bool = False
    lost: list[int] = field(default_factory=list)
    """The processes whose last events are lost."""
    over: bool = False
    refused: str = ""


class WatchedRun:
    """A follower, what is asked of its run, and how far that has come."""

    def __init__(self, follower: Follower, lifecycle: Lifecycle) -> None:
        self.follower = follower
        self.lifecycle = lifecycle

    @classmethod
    def new(cls, run: str, properties: Sequence[str] | None, hold: int = HOLD) -> WatchedRun:
        wanted = None if properties is None else list(properties)
        return cls(Follower(run, hold), Lifecycle(wanted))

    def advance(
        self, batch: int, events: pa.Table, started: Description | None, ended: Description | None
    ) -> BatchReport:
        """Take what a batch brings, unless the run is over or was refused before.

        Equal batches give equal notes.
        """
        lifecycle, notes = self.lifecycle, BatchReport()
        try:
            self._learn(started or ended)
            if events.num_rows:
                self._found(self.follower.take(events))
            if ended is not None and lifecycle.ended_in is None:
                lifecycle.ended_in = batch
                lifecycle.complete = ended["outcome"] == COMPLETE
                lifecycle.lost = _lost(ended)
            if self.to_be_finished(batch):
                self._finish(notes)
        except RefusedError as reason:
            lifecycle.refused = notes.refused = str(reason)
        self._tell(notes)
        return notes

    def to_be_finished(self, batch: int) -> bool:
        lifecycle = self.lifecycle
        return lifecycle.ended_in is not None and lifecycle.ended_in < batch and not lifecycle.over

    def _learn(self, told: Description | None) -> None:
        if told is None:
            return
        try:
            run = run_of(told)
        except UsageError as error:
            raise RefusedError(str(error)) from None
        if self.lifecycle.wanted is None:
            self.lifecycle.wanted = list(run.promised)
        if run.faulty != self.follower.faulty:
            if self.follower.multicasts or self.follower.deliveries:
                raise RefusedError(
                    "who is faulty by design was told only after some of its events; check it with"
                    " flexgroup verify"
                )
            self.follower.faulty = run.faulty

    def _found(self, verdicts: list[Verdict]) -> None:
        run = self.follower.run
        self.lifecycle.untold |= {
            verdict.property: verdict_row(run, verdict) for verdict in verdicts
        }

    def _finish(self, notes: BatchReport) -> None:
        new, final = self.follower.finish(self.lifecycle.complete, self.lifecycle.lost)
        self._found(new)
        self.lifecycle.over = True
        wanted = self.lifecycle.wanted or []
        notes.final = [
            verdict_row(self.follower.run, verdict)
            for verdict in final
            if verdict.property in wanted
        ]
        notes.unwatched = [name for name in wanted if name not in WATCHED]

    def _tell(self, notes: BatchReport) -> None:
        wanted = self.lifecycle.wanted
        if wanted is not None:
            notes.violations = [
                self.lifecycle.untold[name] for name in wanted if name in self.lifecycle.untold
            ]
            self.lifecycle.untold = {}


def _lost(ended: Description) -> list[int]:
    text = ended.get("lost")
    try:
        return list(lost_processes(None if text is None else str(text)))
    except UsageError as error:
        raise RefusedError(str(error)) from None
