"""Virtual synchrony while a run goes on: which views processes were in, as far as it may matter.

A message that all its destinations delivered in one view cannot be missing in it, whatever views
follow: it may be forgotten. Others are kept until all processes that they concern have left the
views in which they were delivered.

Views and crashes are published apart from deliveries, and before those that follow them. So what
was published up to some delivery is known with the batch after the one that brought the delivery,
and what happened in a view is judged then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute

from flexgroup.core.message import NO_MESSAGE
from flexgroup.pipeline.in_memory.event_rows import CODES, EVENT_ROWS, integers
from flexgroup.pipeline.watch.pending import PendingHistory
from flexgroup.pipeline.watch.reassembly import RefusedError
from flexgroup.properties import virtual_synchrony
from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.history import Ints, View, views_of
from flexgroup.trace.schema import VIEW

MOST_ROWS = 2_000
"""So many rows of views and crashes are kept, at most."""

Passed = Callable[[int], int]
"""Tells of a process the step up to which everything that it did is known."""

EVERYTHING = int(np.iinfo(np.int64).max)


@dataclass
class ViewWindow:
    """The views of one run that may still matter, and the violations that were counted."""

    rows: pa.Table = field(default_factory=EVENT_ROWS.empty_table)
    """Views and crashes: of a view, `message` is its number and `destinations` are its members."""
    violations: int = 0
    counted: list[str] = field(default_factory=list)
    has_views: bool = False
    is_cut: bool = False
    """Rows were dropped that may still matter, or came after what they matter for was judged."""

    def take(self, rows: pa.Table, judged: Passed) -> None:
        """Take views and crashes, given up to where stays were judged without them."""
        is_view = integers(rows, "event") == CODES[VIEW]
        is_installed = ~is_view | (integers(rows, "message") != NO_MESSAGE)
        rows = rows.filter(pa.array(is_installed))
        if rows.filter(pa.compute.field("event") == CODES[VIEW])["destinations"].null_count:
            raise RefusedError("it has views without a number or members")
        process, step = integers(rows, "process").tolist(), integers(rows, "step").tolist()
        self.is_cut |= any(at <= judged(one) for one, at in zip(process, step, strict=True))
        self.rows = pa.concat_tables([self.rows, rows])
        self.has_views |= bool((integers(rows, "event") == CODES[VIEW]).any())

    def look(self, run: PendingHistory, passed: Passed) -> Verdict | None:
        """Return the verdict if more deliveries are missing in views than were counted."""
        if not self.has_views:
            return None
        whole = self._with_views(run)
        views = whole.history.views
        stays = virtual_synchrony.stays_in_views(whole)
        known = np.array([passed(process) for process in stays.process.tolist()])
        stays = stays.chosen(stays.left <= known) if len(known) else stays
        missed = virtual_synchrony.missing(whole, stays)
        names = [
            f"{views.distinct[before]} {views.distinct[after]} {whole.identity(message)} {process}"
            for change, message, process in missed.lines.tolist()
            for before, after in [divmod(change, len(views.distinct))]
        ]
        is_new = np.array([name not in set(self.counted) for name in names], dtype=np.bool_)
        self.counted = names
        if not is_new.any():
            return None
        self.violations += int(np.count_nonzero(is_new))
        news = virtual_synchrony.with_causes(whole, replace(missed, lines=missed.lines[is_new]))
        told = virtual_synchrony.violation(whole, news)
        return replace(told, violations=self.violations)

    def unsettled(self, run: PendingHistory, passed: Passed) -> Flags:
        """Tell of which messages it may still turn out that somebody misses them in a view."""
        unsettled = np.zeros(run.message_count, dtype=np.bool_)
        process, row = run.queues.process, run.queues.row
        step, message = run.history.deliveries.step[row], run.delivered[row]
        known = np.array([passed(each) for each in process.tolist()], dtype=np.int64)
        unsettled[message[step > known]] = True
        if not self.has_views:
            return unsettled
        view = self._view_at(process, step)
        lowest = np.full(run.message_count, EVERYTHING)
        highest = np.full(run.message_count, -EVERYTHING)
        np.minimum.at(lowest, message, view)
        np.maximum.at(highest, message, view)
        for split in np.flatnonzero((lowest < highest) & ~unsettled).tolist():
            mine = message == split
            concerned = {*process[mine].tolist(), *run.destinations(split)}
            places = {int(place) for place in view[mine] if place != NONE}
            unsettled[split] = not all(self._left(place, concerned, passed) for place in places)
        return unsettled

    def forget(self, run: PendingHistory, seen: Passed) -> None:
        """Drop the views that all their members have left, as far as deliveries were seen, and in
        which nothing that is kept was delivered."""
        if not self.has_views:
            return
        process, step = integers(self.rows, "process"), integers(self.rows, "step")
        codes, order = self._codes(), np.lexsort((step, process))
        queues = run.queues
        used = set(self._view_at(queues.process, run.history.deliveries.step[queues.row]).tolist())
        done: dict[int, bool] = {}
        kept = np.ones(len(order), dtype=np.bool_)
        for start, end in _blocks(process[order]):
            for place in range(start, end - 1):
                code = int(codes[order[place]])
                if code != NONE and code not in done:
                    done[code] = code not in used and self._left(code, None, seen)
                if code != NONE and not done[code]:
                    break
                kept[order[place]] = False
        if np.count_nonzero(kept) > MOST_ROWS:
            self.is_cut = True
            kept[: len(kept) - MOST_ROWS] = False
        if not kept.all():
            self.rows = self.rows.filter(pa.array(kept)).combine_chunks()

    def outcome_without_violations(self) -> Verdict | None:
        """Return the verdict of a run without views."""
        if self.has_views:
            return None
        return Verdict(virtual_synchrony.NAME, Outcome.UNKNOWN, 0, None, "the trace has no views")

    def _codes(self) -> Ints:
        """Return the place of the first row of the same view, or NONE for a crash."""
        firsts: dict[View, int] = {}
        codes = [
            firsts.setdefault(_view(row), place) if row["event"] == CODES[VIEW] else NONE
            for place, row in enumerate(self.rows.to_pylist())
        ]
        return np.array(codes, dtype=np.int64)

    def _view_at(self, process: Ints, step: Ints) -> Ints:
        """Return the code of the view in which each process was at a step, or NONE."""
        at, when, codes = integers(self.rows, "process"), integers(self.rows, "step"), self._codes()
        found = np.full(len(process), NONE)
        for one in np.unique(process).tolist():
            mine = np.flatnonzero(at == one)
            mine = mine[np.argsort(when[mine])]
            here = np.flatnonzero(process == one)
            before = np.searchsorted(when[mine], step[here]) - 1
            found[here] = np.where(before < 0, NONE, np.append(codes[mine], NONE)[before])
        return found

    def _left(self, code: int, concerned: set[int] | None, passed: Passed) -> bool:
        """Tell whether all members of a view, or those that a message concerns, have left it, and
        all that they did in it is known."""
        members = set(_view(self.rows.slice(code, 1).to_pylist()[0]).members)
        process, step, codes = (
            integers(self.rows, "process"), integers(self.rows, "step"), self._codes(),
        )  # fmt: skip
        for member in members if concerned is None else members & concerned:
            entered = step[(process == member) & (codes == code)]
            if len(entered) == 0:
                return False
            after = step[(process == member) & (step > entered.max())]
            if len(after) == 0:
                return False
            if after.min() > passed(member):
                return False
        return True

    def _with_views(self, run: PendingHistory) -> IndexedHistory:
        """Return the run with the views and crashes that are kept."""
        is_view = integers(self.rows, "event") == CODES[VIEW]
        process, step, time = (integers(self.rows, name) for name in ("process", "step", "time"))
        installed = [_view(row) for row in self.rows.filter(pa.array(is_view)).to_pylist()]
        crashes = replace(
            run.history.crashes, process=process[~is_view], step=step[~is_view], time=time[~is_view]
        )
        views = views_of(process[is_view], step[is_view], time[is_view], installed)
        return IndexedHistory(replace(run.history, views=views, crashes=crashes))


def _view(row: dict[str, object]) -> View:
    members = row["destinations"]
    assert isinstance(members, list)
    number = row["message"]
    assert isinstance(number, int)
    return View(number, tuple(sorted(set(members))))


def _blocks(values: Ints) -> list[tuple[int, int]]:
    """Return where equal values that follow each other begin and end."""
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
    ends = np.append(begins[1:], len(values))
    return list(zip(begins.tolist(), ends[: len(begins)].tolist(), strict=True))
