"""The properties once more, straight from their definitions: slow, short and obviously right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, pairwise, permutations

from flexgroup.core.message import origin_of, seq_of
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.history import History, View

Judgement = tuple[Outcome, int]
Relation = set[tuple[int, int]]


class Facts:
    """A history as plain lists and dictionaries."""

    def __init__(self, history: History) -> None:
        rows = history.multicasts
        self.complete = history.complete
        self.lost = dict(history.lost)
        self.sender: dict[int, int] = {}
        self.destinations: dict[int, set[int]] = {}
        self.multicast_step: dict[int, int] = {}
        self.multicast_time: dict[int, int] = {}
        for row, message in enumerate(rows.message.tolist()):
            if message not in self.sender:
                start, end = rows.offsets[row : row + 2].tolist()
                self.sender[message] = int(rows.process[row])
                self.destinations[message] = set(rows.targets[start:end].tolist())
                self.multicast_step[message] = int(rows.step[row])
                self.multicast_time[message] = int(rows.time[row])
        deliveries = history.deliveries
        self.deliveries: list[tuple[int, int, int, int]] = list(
            zip(
                deliveries.process.tolist(),
                deliveries.step.tolist(),
                deliveries.message.tolist(),
                deliveries.time.tolist(),
                strict=True,
            )
        )
        self.order: dict[int, list[int]] = {}
        self.delivery_step: dict[tuple[int, int], int] = {}
        self.first_time: dict[int, int] = {}
        for process, step, message, time in self.deliveries:
            if (process, message) not in self.delivery_step:
                self.delivery_step[process, message] = step
                self.order.setdefault(process, []).append(message)
                self.first_time[message] = min(time, self.first_time.get(message, time))
        self.faulty = set(history.crashes.process.tolist())
        views, crashes = history.views, history.crashes
        self.boundaries: list[tuple[int, int, View | None]] = sorted(
            [
                *zip(
                    views.process.tolist(),
                    views.step.tolist(),
                    [views.distinct[number] for number in views.view.tolist()],
                    strict=True,
                ),
                *((p, s, None) for p, s in zip(crashes.process, crashes.step, strict=True)),
            ]
        )
        self.packets = [
            (process, message)
            for part in (history.sends, history.receives)
            for process, message in zip(part.process.tolist(), part.message.tolist(), strict=True)
        ]

    def delivers(self, process: int, message: int) -> bool:
        return (process, message) in self.delivery_step

    def before(self, process: int, one: int, other: int) -> bool:
        """Whether the process delivers the one, and the other later or never."""
        steps = self.delivery_step
        if not self.delivers(process, one):
            return False
        if not self.delivers(process, other):
            return True
        return steps[process, one] < steps[process, other]

    def is_destination(self, process: int, message: int) -> bool:
        return process in self.destinations.get(message, set())

    def is_unrecorded(self, message: int) -> bool:
        """Whether the multicast is not there and may be lost."""
        first = self.lost.get(origin_of(message))
        return first is not None and seq_of(message) >= first and message not in self.sender

    def delivery_order(self) -> Relation:
        return {pair for queue in self.order.values() for pair in combinations(queue, 2)}


def closure(relation: Relation) -> Relation:
    nodes = {node for pair in relation for node in pair}
    reach = set(relation)
    for middle in nodes:
        into = [one for one in nodes if (one, middle) in reach]
        out = [other for other in nodes if (middle, other) in reach]
        reach |= {(one, other) for one in into for other in out}
    return reach


def shortest_cycle_length(relation: Relation) -> int:
    """The least number of pairs that lead from a message back to itself."""
    nodes = {node for pair in relation for node in pair}
    lengths = []
    for start in nodes:
        reached, length = {start}, 0
        while reached and length <= len(nodes):
            reached = {other for one, other in relation if one in reached}
            length += 1
            if start in reached:
                lengths.append(length)
                break
    return min(lengths)


def _judge(violations: Iterable[object]) -> Judgement:
    count = len(list(violations))
    return (Outcome.VIOLATED if count else Outcome.HOLDS), count


def _missing(facts: Facts, due: Iterable[int]) -> Judgement:
    judgement = _judge(
        (message, process)
        for message in due
        for process in facts.destinations.get(message, set()) - facts.faulty
        if not facts.delivers(process, message)
    )
    cut_short = judgement[0] is Outcome.VIOLATED and not facts.complete
    return (Outcome.UNKNOWN, 0) if cut_short else judgement


def _unless_unclear(judgement: Judgement, unclear: bool) -> Judgement:
    return (Outcome.UNKNOWN, 0) if unclear and judgement[0] is Outcome.HOLDS else judgement


def integrity(facts: Facts) -> Judgement:
    judgement = _judge(
        delivery
        for delivery in facts.deliveries
        if not (facts.is_destination(delivery[0], delivery[2]) or facts.is_unrecorded(delivery[2]))
        or facts.delivery_step[delivery[0], delivery[2]] != delivery[1]
    )
    unclear = any(facts.is_unrecorded(message) for _, _, message, _ in facts.deliveries)
    return _unless_unclear(judgement, unclear)


def validity(facts: Facts) -> Judgement:
    return _missing(facts, [m for m, sender in facts.sender.items() if sender not in facts.faulty])


def agreement(facts: Facts) -> Judgement:
    return _missing(facts, {m for p, _, m, _ in facts.deliveries if p not in facts.faulty})


def uniform_agreement(facts: Facts) -> Judgement:
    return _missing(facts, {message for _, _, message, _ in facts.deliveries})


def _too_early(facts: Facts, precedence: Relation) -> Judgement:
    return _judge(
        {
            (process, second)
            for first, second in precedence
            for process in facts.destinations[first] & facts.destinations[second]
            if facts.before(process, second, first)
        }
    )


def _multicast_order(facts: Facts) -> Relation:
    return {
        (one, other)
        for one, other in permutations(facts.sender, 2)
        if facts.sender[one] == facts.sender[other]
        and facts.multicast_step[one] < facts.multicast_step[other]
    }


def fifo_order(facts: Facts) -> Judgement:
    return _too_early(facts, _multicast_order(facts))


def causal_order(facts: Facts) -> Judgement:
    delivered_before_multicast = {
        (one, other)
        for one in facts.sender
        for other, sender in facts.sender.items()
        if facts.delivers(sender, one)
        and facts.delivery_step[sender, one] < facts.multicast_step[other]
    }
    precedence = closure(_multicast_order(facts) | delivered_before_multicast)
    own_cause = {one for one, other in precedence if one == other}
    contradictory = own_cause | {other for one, other in precedence if one in own_cause}
    certain = {(one, other) for one, other in precedence if other not in contradictory}
    judgement = _too_early(facts, certain | _multicast_order(facts))
    if judgement[0] is Outcome.HOLDS and contradictory:
        return Outcome.UNKNOWN, 0
    return judgement


def _disagreeing(facts: Facts, comparable: Callable[[int, int], bool]) -> Judgement:
    return _judge(
        {
            (p, q)
            for p, q in combinations(facts.order, 2)
            for m, n in combinations(facts.order[p], 2)
            if comparable(m, n) and facts.delivers(q, m) and facts.before(q, n, m)
        }
    )


def pairwise_order(facts: Facts) -> Judgement:
    return _disagreeing(facts, lambda m, n: True)


def local_order(facts: Facts) -> Judgement:
    sets = facts.destinations
    return _disagreeing(facts, lambda m, n: m in sets and n in sets and sets[m] == sets[n])


def prefix_order(facts: Facts) -> Judgement:
    return _judge(
        {
            frozenset((p, q))
            for p, q in permutations(facts.order, 2)
            for m in facts.order[p]
            for n in facts.order[q]
            if m != n
            and all(facts.is_destination(process, x) for process in (p, q) for x in (m, n))
            and facts.before(p, m, n)
            and facts.before(q, n, m)
        }
    )


def acyclic_order(facts: Facts) -> Judgement:
    reach = closure(facts.delivery_order())
    return _judge(
        {
            frozenset(other for other in facts.first_time if {(m, other), (other, m)} <= reach)
            for m in facts.first_time
            if (m, m) in reach
        }
    )


def real_time_order(facts: Facts) -> Judgement:
    reach = closure(facts.delivery_order())
    return _judge(
        m
        for m, delivered_at in facts.first_time.items()
        if any(
            multicast_at > delivered_at and (n == m or (n, m) in reach)
            for n, multicast_at in facts.multicast_time.items()
        )
    )


def minimality(facts: Facts) -> Judgement:
    packets = {(process, message) for process, message in facts.packets if message >= 0}
    if not packets:
        return Outcome.UNKNOWN, 0
    judgement = _judge(
        (process, message)
        for process, message in packets
        if process != origin_of(message)
        and not facts.is_destination(process, message)
        and not facts.is_unrecorded(message)
    )
    unclear = any(
        process != origin_of(message) and facts.is_unrecorded(message)
        for process, message in packets
    )
    return _unless_unclear(judgement, unclear)


def virtual_synchrony(facts: Facts) -> Judgement:
    if not any(view for _, _, view in facts.boundaries):
        return Outcome.UNKNOWN, 0
    delivered_in: dict[tuple[View, View], dict[int, set[int]]] = {}
    for (p, entered, v), (q, left, w) in pairwise(facts.boundaries):
        if p == q and v and w:
            delivered_in.setdefault((v, w), {}).setdefault(p, set()).update(
                message
                for (process, message), step in facts.delivery_step.items()
                if process == p and entered < step < left
            )
    return _judge(
        {
            (change, q, message)
            for change, by_process in delivered_in.items()
            for p, q in permutations(by_process, 2)
            for message in by_process[p] - by_process[q]
            if facts.is_destination(q, message)
        }
    )


ORACLES: dict[str, Callable[[Facts], Judgement]] = {
    "integrity": integrity,
    "validity": validity,
    "agreement": agreement,
    "uniform agreement": uniform_agreement,
    "fifo order": fifo_order,
    "causal order": causal_order,
    "local order": local_order,
    "pairwise order": pairwise_order,
    "prefix order": prefix_order,
    "acyclic order": acyclic_order,
    "real-time order": real_time_order,
    "virtual synchrony": virtual_synchrony,
    "minimality": minimality,
}
