"""Counting the violations of a run while it goes on: each once, with its evidence when it shows.

What a process did up to some step does not change any more, so every violation that shows in the
events so far is one for good. The exceptions wait for the end of the run: a delivery that is
missing may still come, and so may the multicast of a message that was delivered already.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flexgroup.core.message import ORIGIN_BITS
from flexgroup.pipeline.watch.pending import PendingHistory
from flexgroup.pipeline.watch.real_time import RealTimeOrder
from flexgroup.properties import (
    causal_order,
    fifo_order,
    integrity,
    missing_deliveries,
    prefix_order,
    real_time_order,
    virtual_synchrony,
)
from flexgroup.properties.catalogue import PROPERTIES
from flexgroup.properties.indexed_history import Flags
from flexgroup.properties.integrity import (
    DUPLICATE,
    KINDS,
    NEVER_MULTICAST,
    UNRECORDED,
    wrong_deliveries,
)
from flexgroup.properties.kernels.disagreement import Disagreements
from flexgroup.properties.opposite_orders import LOCAL, PAIRWISE, judge, opposed_locally
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import Deliveries, Ints, no_ints
from flexgroup.trace.names import Names

FIFO, PREFIX, ACYCLIC = "fifo order", "prefix order", "acyclic order"
CAUSAL, REAL_TIME = causal_order.NAME, real_time_order.NAME
AT_THE_END = tuple(missing_deliveries.FIND)
ORDERS = (FIFO, CAUSAL, LOCAL, PAIRWISE, PREFIX, ACYCLIC, REAL_TIME)
VIEWS = virtual_synchrony.NAME
WATCHED = (integrity.NAME, *AT_THE_END, *ORDERS, VIEWS)

STEP_BITS = 43
"""A delivery is named by one integer: so many low bits are its step, and the process is above."""


@dataclass
class ViolationCounts:
    """The violations of one run that were counted, by property."""

    wrong: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    """Wrong deliveries by kind, as integrity counts them."""
    too_early: int = 0
    components: int = 0
    """Cyclic components that were forgotten; those still kept come on top."""
    pairs: dict[str, Ints] = field(
        default_factory=lambda: {LOCAL: no_ints(), PAIRWISE: no_ints(), PREFIX: no_ints()}
    )
    """Pairs of processes that disagree, each as one integer: sorted, every pair once."""
    told: dict[str, int] = field(default_factory=dict)
    """The last number of violations that a verdict gave."""
    wrong_here: Ints = field(default_factory=no_ints)
    too_early_here: Ints = field(default_factory=no_ints)
    """The deliveries among those that are kept that were counted already."""
    too_early_causally: int = 0
    too_early_causally_here: Ints = field(default_factory=no_ints)
    contradicts_itself: bool = False
    """A message was delivered before it was multicast, or something that follows from it was."""
    real_time: RealTimeOrder = field(default_factory=RealTimeOrder)

    @classmethod
    def restored(cls, state: dict[str, Any]) -> ViolationCounts:
        """Return the counts of these attributes, as a snapshot gives them."""
        return cls(**{**state, "real_time": RealTimeOrder(**state.get("real_time", {}))})

    def look(self, run: PendingHistory, over: bool, judged: Collection[str]) -> list[Verdict]:
        """Return the verdicts on properties of which more violations are known than were told;
        what costs most is done only if it is to be judged."""
        found = [
            self._causal(run) if CAUSAL in judged else None,
            self.real_time.look(run) if REAL_TIME in judged else None,
            self._integrity(run, over),
            self._fifo(run),
            self._opposed(run, LOCAL, opposed_locally(run)),
            self._opposed(run, PAIRWISE, run.opposed),
            self._prefix(run),
            self._acyclic(run),
        ]
        if over:
            found += [PROPERTIES[name](run) for name in AT_THE_END]
        new = [verdict for verdict in found if verdict is not None]
        self.told.update({verdict.property: verdict.violations for verdict in new})
        return new

    def tell(self, verdict: Verdict) -> Verdict:
        """Note what was told by others."""
        self.told[verdict.property] = verdict.violations
        return verdict

    def delivered_again(self, rows: Deliveries, names: Names) -> Verdict:
        """Return the verdict on deliveries of messages that all their destinations had
        delivered."""
        self.wrong[DUPLICATE] += len(rows.message)
        first = int(np.argmin(rows.time))
        step = Step(
            int(rows.process[first]), int(rows.step[first]), "deliver", int(rows.message[first])
        )
        counts = ", ".join(f"{self.wrong[kind]} {kind}" for kind in KINDS if self.wrong[kind])
        explanation = (
            f"wrong deliveries: {counts}\nlet a = message {step.to_json()['message']}\n"
            f"{names.process(step.process)} delivered a (step {step.step}) again, or is no"
            " destination of it: all its destinations had delivered it before"
        )
        total = self.told[integrity.NAME] = sum(self.wrong.values())
        return Verdict(integrity.NAME, Outcome.VIOLATED, total, (step,), explanation)

    def _integrity(self, run: PendingHistory, over: bool) -> Verdict | None:
        flags = wrong_deliveries(run)
        kinds = KINDS if over else [kind for kind in KINDS if kind != NEVER_MULTICAST]
        new, self.wrong_here = _uncounted(
            run, np.any([flags[kind] for kind in kinds], axis=0), self.wrong_here
        )
        if not new.any():
            is_unclear = over and flags[UNRECORDED].any() and not sum(self.wrong.values())
            return integrity.check(run) if is_unclear else None
        for kind in kinds:
            self.wrong[kind] += int(np.count_nonzero(flags[kind] & new))
        concerned = np.zeros(run.message_count, dtype=np.bool_)
        concerned[run.delivered[new]] = True
        return integrity.check(run.only(concerned), self.wrong)

    def _fifo(self, run: PendingHistory) -> Verdict | None:
        copies = fifo_order.premature(run, fifo_order.latest_of_same_sender(run))
        is_early = np.zeros(len(run.delivered), dtype=np.bool_)
        is_early[run.copies.row[copies]] = True
        new, self.too_early_here = _uncounted(run, is_early, self.too_early_here)
        self.too_early += int(np.count_nonzero(new))
        if not new.any():
            return None
        return replace(fifo_order.check(run), violations=self.too_early)

    def _causal(self, run: PendingHistory) -> Verdict | None:
        copies, order = causal_order.too_early(run)
        self.contradicts_itself |= len(order) < run.message_count
        is_early = np.zeros(len(run.delivered), dtype=np.bool_)
        is_early[run.copies.row[copies]] = True
        new, self.too_early_causally_here = _uncounted(run, is_early, self.too_early_causally_here)
        self.too_early_causally += int(np.count_nonzero(new))
        if not new.any():
            return None
        shown = copies[new[run.copies.row[copies]]]
        return replace(causal_order.violation(run, shown), violations=self.too_early_causally)

    def _opposed(self, run: PendingHistory, name: str, found: Disagreements) -> Verdict | None:
        process = run.history.deliveries.process
        pairs = _pairs(process[found.first], process[found.other_first])
        new = np.flatnonzero(~np.isin(pairs, self.pairs[name]))
        if len(new) == 0:
            return None
        self.pairs[name] = np.union1d(self.pairs[name], pairs)
        lines = Disagreements(
            found.first[new], found.then[new], found.other_first[new], found.other_then[new]
        )
        return replace(judge(run, name, lines), violations=len(self.pairs[name]))

    def _prefix(self, run: PendingHistory) -> Verdict | None:
        known = self.pairs[PREFIX]
        self.pairs[PREFIX] = np.union1d(known, _pairs(*prefix_order.disagreeing(run)))
        if len(self.pairs[PREFIX]) == len(known):
            return None
        return replace(prefix_order.check(run), violations=len(self.pairs[PREFIX]))

    def _acyclic(self, run: PendingHistory) -> Verdict | None:
        total = self.components + len(run.merge.components)
        if total == self.told.get(ACYCLIC, 0):
            return None
        return replace(PROPERTIES[ACYCLIC](run), violations=total)


def _uncounted(run: PendingHistory, wrong: Flags, counted: Ints) -> tuple[Flags, Ints]:
    """Tell which of the wrong deliveries were not counted before, and the names of all of them."""
    rows = run.history.deliveries
    names = (rows.process << STEP_BITS) | rows.step
    return wrong & ~np.isin(names, counted), names[wrong]


def _pairs(one: Ints, other: Ints) -> Ints:
    pairs: Ints = (np.minimum(one, other) << ORIGIN_BITS) | np.maximum(one, other)
    return pairs
