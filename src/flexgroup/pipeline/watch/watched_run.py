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
from flexgroup.pipeline.in_memory.verdict_table import verdict_row
from flexgroup.pipeline.watch.follower import HOLD, Follower
from flexgroup.pipeline.watch.reassembly import RefusedError
from flexgroup.pipeline.watch.snapshot import from_bytes, to_bytes
from flexgroup.pipeline.watch.violation_counts import WATCHED
from flexgroup.properties.verdict import Verdict
from flexgroup.trace import schema
from flexgroup.trace.run import Run, lost_processes, run_of

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


class WatchedRun:
    """A run, what is asked of it, and how far it has come."""

    def __init__(self, run: str, properties: Sequence[str] | None, hold: int = HOLD) -> None:
        self.follower = Follower(run, hold)
        self.wanted = None if properties is None else list(properties)
        """The properties asked for, or None as long as that is not known."""
        self.untold: dict[str, Row] = {}
        self.ended_in: int | None = None
        """The batch in which its row in `runs` was seen."""
        self.complete = False
        self.lost: Sequence[int] = ()
        """The processes whose last events are lost."""
        self.over = False
        """Nothing more will be told of it: the run has ended, or is not followed any further."""

    @classmethod
    def from_bytes(cls, data: bytes) -> WatchedRun:
        state = from_bytes(data)
        self = cls(state["follower"]["run"], None)
        vars(self).update(state, follower=Follower.restored(state["follower"]))
        return self

    def to_bytes(self) -> bytes:
        return to_bytes(self)

    def advance(
        self, batch: int, events: pa.Table, started: Description | None, ended: Description | None
    ) -> BatchReport:
        """Take what a batch brings, unless the run is over.

        Equal batches give equal notes.
        """
        notes = BatchReport()
        try:
            told = started or ended
            if told is not None:
                self._learn(run_of(told, (*schema.OUTCOMES, schema.RUNNING)))
            if events.num_rows:
                self._found(self.follower.take(events))
            if ended is not None and self.ended_in is None:
                run = run_of(ended)
                self.ended_in, self.complete = batch, run.complete
                self.lost = lost_processes(run.lost)
            if self.ended_in is not None and self.ended_in < batch:
                self._finish(notes)
        except UsageError as reason:
            self.over, notes.refused = True, str(reason)
        self._tell(notes)
        return notes

    def _learn(self, run: Run) -> None:
        if self.wanted is None:
            self.wanted = list(run.promised)
        self.follower.judged, self.follower.processes = set(self.wanted), run.processes
        self.follower.nodes = run.nodes
        if run.faulty != self.follower.faulty:
            if self.follower.multicasts or self.follower.deliveries:
                raise RefusedError(
                    "who is faulty by design was told only after some of its events; check it with"
                    " flexgroup verify"
                )
            self.follower.faulty = run.faulty

    def _found(self, verdicts: list[Verdict]) -> None:
        run = self.follower.run
        self.untold |= {verdict.property: verdict_row(run, verdict) for verdict in verdicts}

    def _finish(self, notes: BatchReport) -> None:
        new, final = self.follower.finish(self.complete, self.lost)
        self._found(new)
        self.over = True
        wanted = self.wanted or []
        notes.final = [
            verdict_row(self.follower.run, verdict)
            for verdict in final
            if verdict.property in wanted
        ]
        notes.unwatched = [name for name in wanted if name not in WATCHED]

    def _tell(self, notes: BatchReport) -> None:
        if self.wanted is not None:
            notes.violations = [self.untold[name] for name in self.wanted if name in self.untold]
            self.untold = {}
