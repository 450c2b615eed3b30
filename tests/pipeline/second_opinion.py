"""A second opinion on runs: every property once more, from its definition, in another way.

Nothing here is from `flexgroup.properties`. Where a message stands in the deliveries of each
process is one matrix, with a row for each message and a column for each process; most definitions
are a line or two on it. The matrix is why this is for few processes; the number of messages may be
millions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK, message_id
from flexgroup.trace.history import History, Ints

Flags = NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max
"""The place of a message in the deliveries of a process that did not deliver it."""

HOLDS, VIOLATED, UNKNOWN = "holds", "violated", "unknown"

WitnessStep = Mapping[str, Any]


@dataclass(frozen=True)
class Opinion:
    """What the verdict on a property should be, and which witnesses show it."""

    outcome: str
    violations: int
    shows: Callable[[Sequence[WitnessStep]], bool] = lambda steps: False


def opinion(violations: int, shows: Callable[[Sequence[WitnessStep]], bool]) -> Opinion:
    return Opinion(VIOLATED if violations else HOLDS, violations, shows)


def message_of(step: WitnessStep) -> int:
    origin, seq = step["message"].split(".")
    return message_id(int(origin), int(seq))


class SecondOpinion:
    """One run, judged once more."""

    def __init__(self, history: History) -> None:
        self.history = history
        sent, got = history.multicasts, history.deliveries
        judged = ~np.isin(got.process, history.faulty)
        order = np.lexsort((got.step[judged], got.process[judged]))
        self.at, self.step, self.time, about = (
            column[judged][order] for column in (got.process, got.step, got.time, got.message)
        )
        self.ids = np.unique(np.concatenate([sent.message, about]))
        self.about = np.searchsorted(self.ids, about)
        self.sent = np.searchsorted(self.ids, sent.message)
        self.is_sent = np.zeros(len(self.ids), dtype=np.bool_)
        self.is_sent[self.sent] = True
        self.addressed = np.zeros((len(self.ids), self.width), dtype=np.bool_)
        owner = np.repeat(self.sent, np.diff(sent.offsets))
        self.addressed[owner, sent.targets] = True
        self.place = np.full((len(self.ids), self.width), NEVER)
        backwards = np.arange(len(self.at))[::-1]
        self.place[self.about[backwards], self.at[backwards]] = backwards
        self.is_first = self.place[self.about, self.at] == np.arange(len(self.at))

    @property
    def width(self) -> int:
        return self.history.processes

    @cached_property
    def is_correct(self) -> Flags:
        correct = np.ones(self.width, dtype=np.bool_)
        crashed = self.history.crashes.process
        correct[[p for p in {*crashed.tolist(), *self.history.faulty} if p < self.width]] = False
        return correct

    def opinions(self) -> dict[str, Opinion]:
        """Return the opinion on each property."""
        return {
            "integrity": self.integrity(),
            **self.missing(),
            "fifo order": self.too_early(self.placed_after_earlier_ones()),
            "causal order": self.too_early(self.placed_after_causes()),
            "local order": self.opposed(by_destinations=True),
            "pairwise order": self.opposed(by_destinations=False),
            "prefix order": self.prefix(),
            "acyclic order": self.acyclic(),
            "real-time order": self.real_time(),
            "virtual synchrony": self.virtual_synchrony(),
            "minimality": self.minimality(),
        }

    def took(self, step: WitnessStep) -> bool:
        """Tell whether a step of a witness is in the run."""
        kinds: dict[str, Any] = {
            "deliver": self.history.deliveries, "multicast": self.history.multicasts,
            "send": self.history.sends, "receive": self.history.receives,
        }  # fmt: skip
        rows = kinds[step["event"]]
        same = (rows.process == step["process"]) & (rows.step == step["step"])
        return bool((rows.message[same] == message_of(step)).any())

    def row(self, step: WitnessStep) -> int:
        """Return the number of the message of a step."""
        return int(np.searchsorted(self.ids, message_of(step)))

    # About one message at a time.

    def integrity(self) -> Opinion:
        unknown = ~self.is_sent[self.about]
        identity = self.ids[self.about]
        perhaps = np.zeros(len(unknown), dtype=np.bool_)
        for process, first in self.history.lost:
            of_process = identity & ORIGIN_MASK == process
            perhaps |= unknown & of_process & (identity >> ORIGIN_BITS >= first)
        stray = ~unknown & ~self.addressed[self.about, self.at]
        wrong = (unknown & ~perhaps) | ~self.is_first | stray
        keys = {
            (process, step)
            for process, step in zip(
                self.at[wrong].tolist(), self.step[wrong].tolist(), strict=True
            )
        }
        if perhaps.any() and not wrong.any():
            return Opinion(UNKNOWN, 0)
        return opinion(len(keys), lambda steps: (steps[-1]["process"], steps[-1]["step"]) in keys)

    def missing(self) -> dict[str, Opinion]:
        due = self.addressed & (self.place == NEVER) & self.is_correct
        crashed = [*self.history.crashes.process.tolist(), *self.history.faulty]
        by_correct = np.zeros(len(self.ids), dtype=np.bool_)
        by_correct[self.sent] = ~np.isin(self.history.multicasts.process, crashed)
        delivered = self.place != NEVER
        causes = {
            "validity": by_correct,
            "agreement": (delivered & self.is_correct).any(axis=1),
            "uniform agreement": delivered.any(axis=1),
        }
        return {name: self._due(due & cause[:, None]) for name, cause in causes.items()}

    def _due(self, due: Flags) -> Opinion:
        count = int(np.count_nonzero(due))
        if count and not self.history.complete:
            return Opinion(UNKNOWN, 0)
        return opinion(count, lambda steps: bool(due[self.row(steps[0])].any()))

    def minimality(self) -> Opinion:
        outsiders = set()
        seen = 0
        for packets in (self.history.sends, self.history.receives):
            concerned = packets.message >= 0
            seen += int(np.count_nonzero(concerned))
            process, message = packets.process[concerned], packets.message[concerned]
            row = np.minimum(np.searchsorted(self.ids, message), max(len(self.ids) - 1, 0))
            inside = message & ORIGIN_MASK == process
            servers = np.flatnonzero(~inside & (process < self.width))
            inside[servers] = self.addressed[row[servers], process[servers]]
            inside &= self.ids[row] == message
            outsiders |= set(zip(process[~inside].tolist(), message[~inside].tolist(), strict=True))
        if seen == 0:
            return Opinion(UNKNOWN, 0)
        return opinion(
            len(outsiders), lambda steps: (steps[0]["process"], message_of(steps[0])) in outsiders
        )

    # About what a sender did before.

    @cached_property
    def _by_sender(self) -> tuple[Ints, Ints, Ints]:
        """The messages by sender and step, the sender of each, and the step."""
        sent = self.history.multicasts
        order = np.lexsort((sent.step, sent.process))
        return self.sent[order], sent.process[order], sent.step[order]

    def placed_after_earlier_ones(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield, for each process, the messages to it, and the last place in its deliveries of any
        that the same sender multicast before."""
        message, sender, _ = self._by_sender
        bound = ~np.isin(sender, self.history.faulty)
        message, sender = message[bound], sender[bound]
        for process in range(self.width):
            to_it = self.addressed[message, process]
            mine, by = message[to_it], sender[to_it]
            place = np.minimum(self.place[mine, process], len(self.at))
            group = np.cumsum(np.concatenate([[0], by[1:] != by[:-1]])[: len(by)])
            shifted = group * (len(self.at) + 2) + place + 1
            before = np.maximum.accumulate(shifted)[:-1] - group[1:] * (len(self.at) + 2) - 1
            yield process, mine[1:], np.maximum(before, -1)

    def placed_after_causes(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield the same for all that precedes a message causally."""
        yield from self.placed_after_earlier_ones()
        for message, past in self._pasts().items():
            for process in np.flatnonzero(self.addressed[message]).tolist():
                causes = self.place[past & self.addressed[:, process], process]
                last = np.minimum(causes, len(self.at)).max(initial=-1)
                yield process, np.array([message]), np.array([last])

    def _pasts(self) -> dict[int, Flags]:
        """Return what precedes each message whose sender had delivered something before."""
        message, sender, step = self._by_sender
        rank = np.zeros(len(self.ids), dtype=np.int64)
        rank[message] = np.arange(len(message))
        origin = np.full(len(self.ids), -1)
        origin[message] = sender
        firsts = {
            process: int(self.step[self.at == process].min())
            for process in np.unique(self.at).tolist()
        }
        pasts = {}
        for number, by, when in zip(message.tolist(), sender.tolist(), step.tolist(), strict=True):
            if firsts.get(by, NEVER) < when:
                past = np.zeros(len(self.ids), dtype=np.bool_)
                past[self.about[(self.at == by) & (self.step < when) & self.is_first]] = True
                past[(origin == by) & (rank < rank[number])] = True
                pasts[number] = past & self.is_sent
        growing = bool(pasts)
        while growing:
            growing = False
            for past in pasts.values():
                size = np.count_nonzero(past)
                for cause in [number for number in pasts if past[number]]:
                    past |= pasts[cause]
                last = np.full(int(origin.max()) + 2, -1)
                np.maximum.at(last, origin[past], rank[past])
                past |= self.is_sent & (rank <= last[origin])
                growing |= bool(np.count_nonzero(past) > size)
        return pasts

    def too_early(self, placed: Iterator[tuple[int, Ints, Ints]]) -> Opinion:
        wrong: set[tuple[int, int]] = set()
        for process, message, last in placed:
            place = self.place[message, process]
            early = message[(place != NEVER) & (last > place)]
            wrong |= {(process, number) for number in early.tolist()}

        def shows(steps: Sequence[WitnessStep]) -> bool:
            early = [step for step in steps if step["event"] == "deliver"]
            return any((step["process"], self.row(step)) in wrong for step in early)

        return opinion(len(wrong), shows)

    # About the order of deliveries.

    def opposed(self, by_destinations: bool) -> Opinion:
        """Judge whether any two processes delivered two messages in opposite orders."""
        sets = self.addressed @ (1 << np.arange(self.width))
        pairs = set()
        for one, other in combinations(range(self.width), 2):
            both = (self.place[:, one] != NEVER) & (self.place[:, other] != NEVER)
            if by_destinations:
                both &= self.is_sent
            message = np.flatnonzero(both)
            label = sets[message] if by_destinations else np.zeros(len(message))
            order = np.lexsort((self.place[message, one], label))
            there, label = self.place[message[order], other], label[order]
            if ((there[1:] < there[:-1]) & (label[1:] == label[:-1])).any():
                pairs.add((one, other))

        def shows(steps: Sequence[WitnessStep]) -> bool:
            a, b, other_b, other_a = steps
            rows = self.row(a), self.row(b)
            same = rows == (self.row(other_a), self.row(other_b))
            orders = a["step"] < b["step"] and other_b["step"] < other_a["step"]
            alike = not by_destinations or bool(sets[rows[0]] == sets[rows[1]])
            return same and orders and alike and a["process"] != other_a["process"]

        return opinion(len(pairs), shows)

    def prefix(self) -> Opinion:
        pairs = set()
        for one, other in combinations(range(self.width), 2):
            both = self.addressed[:, one] & self.addressed[:, other]
            for first, second in ((one, other), (other, one)):
                here, there = self.place[both, first], self.place[both, second]
                order = np.argsort(here, kind="stable")
                here, there = here[order], there[order]
                least = np.minimum.accumulate(there[::-1])[::-1]
                # Some m' that `first` delivered later than m, or not at all, while `second`
                # delivered it before m, or without m.
                if ((here[:-1] != NEVER) & (least[1:] < there[:-1])).any():
                    pairs.add((one, other))

        def shows(steps: Sequence[WitnessStep]) -> bool:
            processes = sorted({step["process"] for step in steps})
            return tuple(processes) in pairs and len({step["message"] for step in steps}) == 2

        return opinion(len(pairs), shows)

    @cached_property
    def _queues(self) -> tuple[Ints, Ints]:
        """Process and message of the first deliveries, in order."""
        return self.at[self.is_first], self.about[self.is_first]

    def acyclic(self) -> Opinion:
        at, about = self._queues
        next_to = at[1:] == at[:-1]
        ones = np.ones(int(next_to.sum()), dtype=np.int8)
        count = len(self.ids)
        edges = (ones, (about[:-1][next_to], about[1:][next_to]))
        _, component = connected_components(
            coo_array(edges, shape=(count, count)), connection="strong"
        )
        sizes = np.bincount(component, minlength=1)

        def shows(steps: Sequence[WitnessStep]) -> bool:
            links = list(zip(steps[::2], steps[1::2], strict=True))
            ordered = all(a["process"] == b["process"] and a["step"] < b["step"] for a, b in links)
            nexts = [*links[1:], links[0]]
            closed = all(
                link[1]["message"] == after[0]["message"]
                for link, after in zip(links, nexts, strict=True)
            )
            return ordered and closed and len(links) > 1

        return opinion(int(np.count_nonzero(sizes > 1)), shows)

    def real_time(self) -> Opinion:
        sent = self.history.multicasts
        least = np.iinfo(np.int64).min
        latest = np.full(len(self.ids), least)
        known = ~np.isin(sent.process, self.history.faulty)
        latest[self.sent[known]] = sent.time[known]
        first = np.full(len(self.ids), NEVER)
        np.minimum.at(first, self.about, self.time)
        at, about = self._queues
        ends = np.searchsorted(at, np.arange(self.width + 1))
        growing = True
        while growing:
            before = latest.copy()
            for start, end in pairwise(ends.tolist()):
                queue = about[start:end]
                latest[queue] = np.maximum.accumulate(latest[queue])
            growing = not np.array_equal(before, latest)
        early = (first != NEVER) & (latest > first)
        flagged = {int(number) for number in np.flatnonzero(early)}

        def shows(steps: Sequence[WitnessStep]) -> bool:
            *_, delivery, multicast = steps
            when = first[self.row(delivery)]
            sent_at = sent.time[sent.message == message_of(multicast)][0]
            return self.row(delivery) in flagged and bool(sent_at > when)

        return opinion(len(flagged), shows)

    # About views.

    def virtual_synchrony(self) -> Opinion:
        views, crashes = self.history.views, self.history.crashes
        if len(views.process) == 0:
            return Opinion(UNKNOWN, 0)
        stays: dict[tuple[object, object], dict[int, set[int]]] = defaultdict(dict)
        for process in range(self.width):
            if process in self.history.faulty:
                continue
            installed = [
                (int(step), views.distinct[view])
                for step, view in zip(
                    views.step[views.process == process],
                    views.view[views.process == process],
                    strict=True,
                )
            ]
            crashed = crashes.step[crashes.process == process]
            for (begin, view), (end, following) in pairwise(installed):
                if not ((crashed > begin) & (crashed < end)).any():
                    mine = (self.at == process) & (self.step > begin) & (self.step < end)
                    seen = set(self.about[mine & self.is_first].tolist())
                    stays[view, following][process] = seen
        missed = set()
        for change, seen_by in stays.items():
            everything = set().union(*seen_by.values())
            for process, seen in seen_by.items():
                lacking = {
                    number for number in everything - seen if self.addressed[number, process]
                }
                missed |= {(change, process, number) for number in lacking}
        messages = {number for _, _, number in missed}
        return opinion(len(missed), lambda steps: self.row(steps[0]) in messages)
