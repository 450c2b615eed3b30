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
from flexgroup.pipeline.watch.refusal import RefusedError
from flexgroup.pipeline.watch.tally import WATCHED
from flexgroup.properties.verdict import Verdict
from flexgroup.trace.run import lost_processes, run_of
from flexgroup.trace.schema import COMPLETE

Row = dict[str, object]
Description = Mapping[str, object]
"""What a row of `started` or `runs` tells."""


@dataclass
class Notes:
    """What a batch brings to light about one run."""

    violations: list[Row] = field(default_factory=list)
    """Rows of verdicts on properties of which violations were found."""
    final: list[Row] = field(default_factory=list)
    """The verdicts on all watched properties, once the run is over."""
    unwatched: list[str] = field(default_factory=list)
    """With them: the properties that the stack promises and only `verify` can check."""
    refused: str = ""
    """Why the run is not followed any further."""

    def to_json(self) -> str | None:
        """Nothing if there is nothing to say."""
        return json.dumps(asdict(self)) if self != Notes() else None


@dataclass
class Life:
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


class Watched:
    def __init__(self, follower: Follower, life: Life) -> None:
        self.follower = follower
        self.life = life

    @classmethod
    def new(cls, run: str, properties: Sequence[str] | None, hold: int = HOLD) -> Watched:
        wanted = None if properties is None else list(properties)
        return cls(Follower(run, hold), Life(wanted))

    def advance(
        self, batch: int, events: pa.Table, started: Description | None, ended: Description | None
    ) -> Notes:
        """Take what a batch brings, unless the run is over or was refused before.

        Equal batches give equal notes.
        """
        life, notes = self.life, Notes()
        try:
            self._learn(started or ended)
            if events.num_rows:
                self._found(self.follower.take(events))
            if ended is not None and life.ended_in is None:
                life.ended_in = batch
                life.complete = ended["outcome"] == COMPLETE
                life.lost = _lost(ended)
            if self.to_be_finished(batch):
                self._finish(notes)
        except RefusedError as reason:
            life.refused = notes.refused = str(reason)
        self._tell(notes)
        return notes

    def to_be_finished(self, batch: int) -> bool:
        life = self.life
        return life.ended_in is not None and life.ended_in < batch and not life.over

    def _learn(self, told: Description | None) -> None:
        if told is None:
            return
        try:
            run = run_of(told)
        except UsageError as error:
            raise RefusedError(str(error)) from None
        if self.life.wanted is None:
            self.life.wanted = list(run.promised)

    def _found(self, verdicts: list[Verdict]) -> None:
        run = self.follower.run
        self.life.untold |= {verdict.property: verdict_row(run, verdict) for verdict in verdicts}

    def _finish(self, notes: Notes) -> None:
        new, final = self.follower.finish(self.life.complete, self.life.lost)
        self._found(new)
        self.life.over = True
        wanted = self.life.wanted or []
        notes.final = [
            verdict_row(self.follower.run, verdict)
            for verdict in final
            if verdict.property in wanted
        ]
        notes.unwatched = [name for name in wanted if name not in WATCHED]

    def _tell(self, notes: Notes) -> None:
        wanted = self.life.wanted
        if wanted is not None:
            notes.violations = [
                self.life.untold[name] for name in wanted if name in self.life.untold
            ]
            self.life.untold = {}


def _lost(ended: Description) -> list[int]:
    text = ended.get("lost")
    try:
        return list(lost_processes(None if text is None else str(text)))
    except UsageError as error:
        raise RefusedError(str(error)) from None
