"""One scope, searched level by level on Spark: for what is too large for one machine.

Each level is a job, whose pieces are the parts of the states (`search_part`). A level counts when
its file `committed.json` is there, which names the folders of its parts and is written last. So
a search that was killed at any point goes on with the level it was in, and nothing that a task
leaves behind that was given up gets in its way.

The reduction by order is learnt, as in memory: a search that ends knowing more than it began with
is made again, as another pass, with a folder of its own.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from flexgroup.core.errors import FlexGroupError
from flexgroup.sweeps.folder import refuse_if_unseen, taken_up, write_whole
from flexgroup.sweeps.search_part import (
    ABOUT_CLIENTS,
    ASYMMETRIC,
    FOUND,
    TABLES,
    VISITED,
    Level,
    PartTotals,
    Question,
    Tables,
    begin_search,
    parent_in,
    read_ends,
    refuse_too_deep,
    remove_uncommitted,
    search_part,
)
from flexgroup.sweeps.systems import options_described
from flexgroup.sweeps.tasks import shared_out, tasks_at_once
from flexgroup.trace.run import SOFTWARE
from flexgroup.worlds.explorer.explorer import (
    LEARNING,
    NO_SYMMETRY,
    TIMERS_IGNORED,
    SearchLimits,
    SearchProgress,
    nobody,
)
from flexgroup.worlds.explorer.machine import ClientAddressedError
from flexgroup.worlds.explorer.paths import path_to, schedule_of
from flexgroup.worlds.explorer.property_checks import VALIDITY
from flexgroup.worlds.explorer.result import ExplorationResult, Violation
from flexgroup.worlds.explorer.search_setup import SearchOptions
from flexgroup.worlds.explorer.snapshot import FORMAT
from flexgroup.worlds.explorer.workers import seen_orders, terminal_orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_ORDER = "states come back to earlier ones: the reduction by order was not used"

PARTS_OF_A_TASK = 4
"""How many parts of the states there are for each task: so many times less has to be in memory."""

COMMITTED = "committed.json"
PASS = "pass.json"

DoParts = Callable[[Sequence[int], Callable[[int], PartTotals], Path], list[PartTotals]]
"""Does these parts of a level, each by this function, with a folder for what is not whole."""


def parts_on_spark(spark: SparkSession) -> DoParts:
    """Return what does parts as the pieces of a job."""

    def do_parts(
        parts: Sequence[int], work: Callable[[int], PartTotals], folder: Path
    ) -> list[PartTotals]:
        def do(piece: int) -> PartTotals:
            return work(parts[piece])

        def begin() -> Callable[[int], PartTotals]:
            return do

        try:
            return shared_out(spark, len(parts), begin, folder)
        except FlexGroupError as problem:
            raise FlexGroupError(f"a level of the search failed: {problem}") from None

    return do_parts


def parts_for(spark: SparkSession) -> int:
    """Return into how many parts the states should be divided on this Spark."""
    return PARTS_OF_A_TASK * max(2, tasks_at_once(spark))


@dataclass
class Pass:
    """A search from its beginning, in a folder: its levels, as far as they are committed."""

    folder: Path
    question: Question
    notes: list[str]
    number: int = 1
    """How many passes there are with these options, with this one."""
    tables: list[str] = field(default_factory=list)
    """The folders with the tables of the passes before, which were made in the same way."""
    levels: list[list[PartTotals]] = field(default_factory=list)
    begun: str = field(default_factory=lambda: f"start-{uuid4().hex}")
    """The name of the folder with the first state: of this search alone, so that workers that kept
    the tables of another, which was removed, do not take it for this."""

    @property
    def start(self) -> str:
        return str(self.folder / self.begun)

    @property
    def states(self) -> int:
        return self.sum("states")

    def sum(self, what: str) -> int:
        return sum(getattr(part, what) for level in self.levels for part in level)

    def folders(self) -> list[str]:
        return [part.folder for level in self.levels for part in level if part.folder]

    def all_tables(self) -> tuple[str, ...]:
        return (*self.tables, self.start, *self.folders())

    def findings(self) -> list[tuple[str, int, int]]:
        """Return each broken property with a state, as early as any that breaks it."""
        first: dict[str, tuple[str, int, int]] = {}
        for level in self.levels:
            for part in level:
                for name, fingerprint, found in part.findings:
                    if name not in first or found < first[name][2]:
                        first[name] = (name, fingerprint, found)
        # Among properties broken at the same depth, a missing delivery says most.
        return sorted(first.values(), key=lambda found: (found[2], found[0] != VALIDITY, found[0]))

    def next_level(self, is_last: bool) -> tuple[Level, list[int]]:
        """Return the level behind those that are committed, and its parts that have states."""
        before = self.levels[-1] if self.levels else []
        posted = sorted({part for totals in before for part in totals.posted})
        visited: list[list[str]] = [[] for _ in range(self.question.parts)]
        for level in self.levels:
            for totals in level:
                visited[totals.part].append(totals.folder)
        number = len(self.levels)
        refuse_too_deep(number)
        return (
            Level(
                number,
                str(self.folder / f"level-{number:05}"),
                tuple(part.folder for part in before) if number else (self.start,),
                self.all_tables(),
                tuple(map(tuple, visited)),
                is_last,
            ),
            posted if number else list(range(self.question.parts)),
        )


@dataclass
class LargeSearch:
    """What to search and where; `run` does it, or goes on where it was killed or stopped."""

    question: Question
    """It has as many parts as there should be if the search is new."""
    folder: Path
    do_parts: DoParts
    limits: SearchLimits = field(default_factory=SearchLimits)
    keep_going: bool = False
    report: Callable[[SearchProgress], None] = nobody
    interrupted: Callable[[], bool] = lambda: False

    @property
    def options(self) -> SearchOptions:
        """How the search is made at last."""
        return self.question.options

    def run(self) -> ExplorationResult:
        self._began = time.monotonic()
        self.folder = self.folder.absolute()
        described = {
            "search": FORMAT,
            "stack": self.question.stack,
            "scope": asdict(self.question.scope),
            **options_described(self.question.options),
            "software": SOFTWARE,
        }
        with taken_up(self.folder, "a search", described):
            self._pass = self._last_pass() or self._begin_first()
            while True:
                self.question = self._pass.question
                ended = self._levels()
                if isinstance(ended, str):
                    return self._outcome(ended)
                self._pass = ended

    def _levels(self) -> str | Pass:
        """Search the pass level by level; return what stopped it, if anything but its end did, or
        the next pass if there has to be one."""
        now = self._pass
        while True:
            stopped_at = ""
            if now.levels:
                is_over = not any(part.posted for part in now.levels[-1])
                if now.findings() and not self.keep_going:
                    return ""
                if self.options.reduce and now.sum("strays"):
                    return self._another(replace(self.options, reduce=False), NO_ORDER)
                if (is_over or now.states >= LEARNING) and self._has_learnt():
                    return self._another(self.options)
                if is_over:
                    return ""
                stopped_at = self._limit()
            trouble = self._search_level(is_last=bool(stopped_at))
            if trouble == ASYMMETRIC:
                return self._another(replace(self.options, symmetry=False), NO_SYMMETRY)
            if trouble == ABOUT_CLIENTS:
                return self._another(replace(self.options, follow_clients=True))
            if stopped_at and any(part.states for part in now.levels[-1]):
                return stopped_at
            if stopped_at:  # there was nothing behind the bound
                return self._another(self.options) if self._has_learnt() else ""
            seconds = time.monotonic() - self._began
            found = sum(part.states for part in now.levels[-1])
            self.report(
                SearchProgress(now.states, len(now.levels), found, seconds, now.sum("transitions"))
            )

    def _limit(self) -> str:
        depth, seconds = len(self._pass.levels), time.monotonic() - self._began
        if self.limits.depth is not None and depth >= self.limits.depth:
            return f"--max-depth {self.limits.depth}"
        if self.interrupted():
            return "an interrupt"
        return self.limits.reached(self._pass.states, seconds, 0)

    def _search_level(self, is_last: bool) -> str:
        """Search the next level and commit it, unless it is the last for now; return what keeps
        the search from being made in this way, if anything does."""
        now = self._pass
        level, parts = now.next_level(is_last)
        place = Path(level.place)
        place.mkdir(exist_ok=True)
        totals = self.do_parts(parts, partial(search_part, self.question, level), place)
        totals.sort(key=lambda part: part.part)
        trouble = next((part.trouble for part in totals if part.trouble), "")
        if trouble:
            return trouble
        unseen = [part for part in totals if not Path(part.folder, VISITED).exists()]
        refuse_if_unseen(self.folder, len(unseen), "parts", "--spark")
        if not is_last:
            write_whole(place / COMMITTED, json.dumps([asdict(part) for part in totals]).encode())
            for folder in level.found:
                Path(folder, FOUND).unlink(missing_ok=True)
        now.levels.append(totals)
        return ""

    def _has_learnt(self) -> bool:
        """Tell whether the reduction knows more than when this pass began."""
        if not self.options.reduce:
            return False
        tables = Tables(self.question)
        tables.learn([*self._pass.tables, self._pass.start])
        known = tables.search.machine.growth
        tables.learn(self._pass.folders())
        learnt = tables.search.machine.growth != known
        tables.search.machine.forget()
        return learnt

    # Passes.

    def _begin_first(self) -> Pass:
        try:
            return self._begin_pass(Pass(self.folder / "pass-00001", self.question, []))
        except ClientAddressedError:
            options = replace(self.options, follow_clients=True)
            question = replace(self.question, options=options)
            return self._begin_pass(Pass(self.folder / "pass-00001", question, []))

    def _another(self, options: SearchOptions, *notes: str) -> Pass:
        """Begin another pass: with the tables of this one, if it is made in the same way."""
        before = self._pass
        is_alike = options == before.question.options
        number = int(before.folder.name.rpartition("-")[2]) + 1
        return self._begin_pass(
            Pass(
                self.folder / f"pass-{number:05}",
                replace(before.question, options=options),
                [*before.notes, *notes],
                before.number + 1 if is_alike else 1,
                list(before.all_tables()) if is_alike else [],
            )
        )

    def _begin_pass(self, new: Pass) -> Pass:
        shutil.rmtree(new.folder, ignore_errors=True)
        Path(new.start).mkdir(parents=True)
        begin_search(new.question, Path(new.start))
        document = {
            **options_described(new.question.options),
            "parts": new.question.parts,
            "notes": new.notes,
            "number": new.number,
            "begun": new.begun,
            "tables": [str(Path(folder).relative_to(self.folder)) for folder in new.tables],
        }
        write_whole(new.folder / PASS, json.dumps(document).encode())
        return new

    def _last_pass(self) -> Pass | None:
        """Return the last pass that was begun, with the levels of it that count."""
        begun = sorted(self.folder.glob(f"pass-*/{PASS}"))
        if not begun:
            return None
        document: dict[str, Any] = json.loads(begun[-1].read_text())
        options = replace(
            self.options, **{key: document[key] for key in ("reduce", "symmetry", "follow_clients")}
        )
        found = Pass(
            begun[-1].parent,
            replace(self.question, options=options, parts=document["parts"]),
            document["notes"],
            document["number"],
            [str(self.folder / folder) for folder in document["tables"]],
            begun=document["begun"],
        )
        for level in sorted(found.folder.glob("level-*")):
            try:
                parts: list[dict[str, Any]] = json.loads((level / COMMITTED).read_text())
            except FileNotFoundError:
                shutil.rmtree(level, ignore_errors=True)
                continue
            totals = [_part_from(level, part) for part in parts]
            remove_uncommitted(level, [part.folder for part in totals])
            found.levels.append(totals)
        return found

    # The result.

    def _outcome(self, stopped_at: str) -> ExplorationResult:
        now = self._pass
        tables = Tables(self.question)
        search = tables.search
        counted = [folder for folder in now.all_tables() if Path(folder, TABLES).exists()]
        tables.learn(counted)
        search.terminal_orders = set()
        for folder in counted:
            if folder in now.folders():
                for histories in read_ends(folder):
                    numbers = [search.machine.history_of(history) for history in histories]
                    search.terminal_orders.add(tuple(numbers))
        notes = list(now.notes)
        if search.machine.timers_seen and not self.question.scope.bounds.timers:
            notes.append(TIMERS_IGNORED)
        depth = sum(any(part.states for part in level) for level in now.levels)
        decided = bool(now.findings()) and not self.keep_going
        result = ExplorationResult(
            scope=self.question.scope,
            states=now.states,
            transitions=now.sum("transitions"),
            depth=depth - 1 if stopped_at or decided else depth,
            frontier=sum(part.states for part in now.levels[-1]) if stopped_at else 0,
            terminals=now.sum("terminals"),
            complete=now.sum("complete"),
            stopped_at=stopped_at,
            violations=tuple(map(self._violation, now.findings())),
            seen_orders=seen_orders(search),
            terminal_orders=terminal_orders(search),
            notes=tuple(notes),
            passes=now.number,
            seconds=time.monotonic() - self._began,
            memory=sum(file.stat().st_size for file in self.folder.rglob("*.parquet")),
            exchanges=1 + (len(search.symmetry.mirrors) if search.symmetry else 0),
            local_states=len(search.machine.locals),
        )
        search.machine.forget()
        return result

    def _violation(self, finding: tuple[str, int, int]) -> Violation:
        name, fingerprint, level = finding
        levels = self._pass.levels[: level + 1]

        def parent_of(state: int) -> int:
            for part in levels.pop():
                parent = parent_in(part.folder, state)
                if parent is not None:
                    return parent
            raise FlexGroupError(
                f"'{self.folder}' lacks a state that led to a violation; remove it and begin anew"
            )

        search = self.question.new_search()
        path = path_to(search, fingerprint, parent_of)
        run = schedule_of(search, self.question.scope, path)
        search.machine.forget()
        return Violation(name, run, shortest=not self.options.reduce)


def _part_from(level: Path, document: dict[str, Any]) -> PartTotals:
    """Return what was committed of a part; the folder may have been moved since."""
    totals = PartTotals(**document)
    totals.folder = str(level / Path(totals.folder).name)
    totals.findings = [(name, state, found) for name, state, found in totals.findings]
    return totals
