"""What clients saw, held against what the stack of their groups promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from math import inf
from operator import itemgetter

import numpy as np

from flexgroup.client.message import View
from flexgroup.core.message import message_id
from flexgroup.core.promises import UNIFORM
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts
from flexgroup.virtual.clients import Life, Membership, Problem, ScheduledClient, Sent
from flexgroup.virtual.execution import Execution, uncollected
from flexgroup.worlds.network.faults import Faults

ORDERS_OF_SENDERS = ("fifo order", "causal order")
ORDERS = (*ORDERS_OF_SENDERS, "pairwise order", "acyclic order")


def problems(execution: Execution) -> list[Problem]:
    """Everything that is wrong with an execution."""
    found = list(execution.problems)
    schedule = execution.schedule
    clients = execution.clients.values()
    with uncollected():
        found += problems_of_clients(
            schedule.stack, clients, schedule.partitionable, execution.is_lost
        )
        for run, verdict in execution.recordings.violations():
            kind = f"{verdict.property} is violated in a trace"
            text = f"run {run}: {verdict.property} is violated: {verdict.explanation}"
            found.append(Problem(kind, text))
    return found


def problems_of_clients(
    stack: str,
    clients: Iterable[ScheduledClient],
    partitionable: bool = False,
    is_lost: bool = False,
) -> list[Problem]:
    """Everything that is wrong with what clients saw.

    In partitionable groups, what is sent in one component of the network is not given in another,
    and on what was under way when they parted, each agrees by itself. Where the cluster is lost,
    what was not given yet never will be: only what was given is judged.
    """
    found: list[Problem] = []
    lives = [life for client in clients for life in client.lives]
    names = dict.fromkeys(m.group for life in lives for m in life.memberships)
    given = {life.process: life.given() for life in lives}
    for name in names:
        record = GroupRecord(stack, name, lives, given)
        found += record.given_wrongly()
        if not partitionable and not is_lost:
            found += record.not_given()
    found += OrderRecord(stack, lives, partitionable)
    return found


class GroupRecord:
    """What all clients saw of one group."""

    def __init__(
        self,
        stack: str,
        group: str,
        lives: list[Life],
        given: dict[str, set[str]],
    ) -> None:
        self._promised = parse_stack(stack).promises(Faults().channels())
        self._group = group
        self._memberships = [m for life in lives for m in life.memberships if m.group == group]
        self._sent = {s.name: (life, s) for life in lives for s in life.sent if group in s.groups}
        self._given = given
        """What each process was given, in whichever group: a message to several comes once."""

    def given_wrongly(self) -> Iterator[Problem]:
        """What is wrong with what was given, whatever may still come."""
        yield from self._problems("given twice, or never sent", self._not_once())
        yield from self._problems("different messages in a view", self._different_in_a_view())
        yield from self._problems("views that fall back", self._views_that_fall_back())
        yield from self._problems("a component that nobody was in", self._not_in_one_view())

    def not_given(self) -> Iterator[Problem]:
        """What should have come by the end, if all servers went on together."""
        yield from self._problems("never given", self._not_delivered())
        yield from self._problems("not given to all", self._not_uniform())

    def _problems(self, kind: str, found: Iterator[str]) -> Iterator[Problem]:
        for text in found:
            yield Problem(kind, f"group {self._group}: {text}")

    def _messages(self, membership: Membership) -> list[str]:
        return [item for _, item in membership.items if isinstance(item, str)]

    def _not_once(self) -> Iterator[str]:
        for membership in self._memberships:
            for name, times in Counter(self._messages(membership)).items():
                if times > 1:
                    yield f"{membership.process} was given {name} {times} times"
                elif name not in self._sent:
                    yield f"{membership.process} was given {name}, which nobody sent to the group"

    def _not_delivered(self) -> Iterator[str]:
        """What a client sent whose connection lasted, whoever was there before has to be given."""
        for membership in self._memberships:
            if membership.ended_at is not None:
                continue
            given = self._given[membership.process]
            for life, sent in self._sent.values():
                if (
                    life.ended_at is None
                    and not sent.has_failed
                    and membership.joined_at < sent.at
                    and sent.name not in given
                ):
                    yield f"{membership.process} was never given {sent.name}, sent at {sent.at:.6f}"

    def _not_uniform(self) -> Iterator[str]:
        """What anybody was given in a view, whoever of the view stays has to be given."""
        if UNIFORM not in self._promised:
            return
        began: dict[str, int] = {}
        """The first view of each that stays."""
        for membership in self._memberships:
            if membership.ended_at is None:
                views = (item.number for _, item in membership.items if isinstance(item, View))
                began.update((membership.process, number) for number in islice(views, 1))
        for membership in self._memberships:
            staying: list[str] = []
            for _, item in membership.items:
                if isinstance(item, View):
                    staying = [p for p in item.members if began.get(p, inf) <= item.number]
                    continue
                for process in staying:
                    if item not in self._given[process]:
                        yield f"{process} was never given {item}, as {membership.process} was"

    def _different_in_a_view(self) -> Iterator[str]:
        """Whoever goes from one view to the next together was given the same between them."""
        between: dict[tuple[View, View], tuple[str, set[str]]] = {}
        for membership in self._memberships:
            items = [item for _, item in membership.items]
            views = [place for place, item in enumerate(items) if isinstance(item, View)]
            for begin, end in pairwise(views):
                first, last = items[begin], items[end]
                assert isinstance(first, View)
                assert isinstance(last, View)
                given = {item for item in items[begin:end] if isinstance(item, str)}
                other, theirs = between.setdefault((first, last), (membership.process, given))
                for name in sorted(theirs ^ given):
                    who, whom = (other, membership.process)[:: 1 if name in theirs else -1]
                    yield (
                        f"{name} was given to {who} but not to {whom} in view {first.number}, from"
                        f" which both went on to view {last.number}"
                    )

    def _views_that_fall_back(self) -> Iterator[str]:
        """Nobody is given a view twice. Of views that come before a client reads, it is given the
        last."""
        for membership in self._memberships:
            numbers = [item.number for _, item in membership.items if isinstance(item, View)]
            for earlier, later in pairwise(numbers):
                if later <= earlier:
                    yield f"{membership.process} was given view {later} after view {earlier}"

    def _not_in_one_view(self) -> Iterator[str]:
        """Whoever a view names as one of the components that met was in one view before it.

        A server that is cut off after it has agreed to the view cannot know whether the others
        have it, and goes on from the view before in one of its own. So its members, which are not
        given the view that names them, were in the one before at some time only.
        """
        views = [
            (membership, [item for _, item in membership.items if isinstance(item, View)])
            for membership in self._memberships
        ]
        merging = {view for _, seen in views for view in seen if view.merged}
        for view in sorted(merging, key=lambda view: view.number):
            came_from: dict[str, set[View]] = {}
            for membership, seen in views:
                before = [other for other in seen if other.number < view.number]
                # Who was given none since may have missed some before, too; and of views that come
                # before a client reads, it is given the last.
                reads = (membership.joined_at, view) not in membership.items
                if reads and before and any(other.number >= view.number for other in seen):
                    came_from[membership.process] = {*(before[-1:] if view in seen else before)}
            for component in view.merged:
                found = [came_from[name] for name in component if name in came_from]
                if found and not set.intersection(*found):
                    yield (
                        f"{', '.join(component)} are one component in view {view.number}, but were"
                        " not in one view before"
                    )


class OrderRecord:
    """What all clients saw of all groups, each in the one order of its positions.

    All groups have the same stack, so one order spans them.
    """

    def __init__(self, stack: str, lives: list[Life], partitionable: bool) -> None:
        self._partitionable = partitionable
        self._promised = parse_stack(stack).promises(Faults().channels())
        self._lives = lives
        self._places = {life.process: number for number, life in enumerate(lives)}
        self._sent = {sent.name: (life, sent) for life in lives for sent in life.sent}
        self._identities = {
            name: message_id(self._places[life.process], int(name.partition(":")[2]))
            for name, (life, _) in self._sent.items()
        }
        self._staying = [m for life in lives for m in life.memberships if m.ended_at is None]
        self._given = {life.process: self._in_order(life) for life in lives}
        if UNIFORM not in self._promised:
            self._given |= {
                life.process: self._agreed(life) for life in lives if life.ended_at is not None
            }

    def _agreed(self, life: Life) -> dict[str, float]:
        """What a client was given before its server delivered something alone.

        A server that fails may have delivered what nobody else had. The others, which go on, need
        not deliver it then, or in the same order, unless the stack says so.
        """
        given = self._given[life.process]
        last = max(given.values(), default=0.0)
        elsewhere = [
            self._given[other.process] for other in self._lives if other.server != life.server
        ]
        agreed: dict[str, float] = {}
        for name, time in given.items():
            if not any(others.get(name, inf) <= last for others in elsewhere):
                break
            agreed[name] = time
        return agreed

    def __iter__(self) -> Iterator[Problem]:
        history = self._history()
        orders = ORDERS_OF_SENDERS if self._partitionable else ORDERS
        for verdict in check(history, [name for name in orders if name in self._promised]):
            if verdict.outcome is Outcome.VIOLATED:
                kind = f"{verdict.property} is violated"
                yield Problem(kind, f"{kind}: {verdict.explanation} ({self._legend()})")

    def _legend(self) -> str:
        return ", ".join(f"p{n} = {life.process}" for n, life in enumerate(self._lives))

    def _in_order(self, life: Life) -> dict[str, float]:
        """The messages that a client was given, in the order of their positions, with the time at
        which the client was given this one or one that comes later in the order.

        What it sends then follows this one, whichever group it reads first.
        """
        times: dict[int, tuple[str, float]] = {}
        for membership in life.memberships:
            for position, (time, item) in zip(membership.positions, membership.items, strict=True):
                if isinstance(item, str) and item in self._sent:
                    times[position] = (item, time)
        given: list[tuple[str, float]] = []
        earliest = inf
        for _, (name, time) in sorted(times.items(), reverse=True):
            earliest = min(earliest, time)
            given.append((name, earliest))
        return dict(reversed(given))

    def _history(self) -> History:
        # Each client's own events in the order of time; what it sends follows what it was given.
        events = [
            (time, 0, self._places[process], name)
            for process, given in self._given.items()
            for name, time in given.items()
        ]
        events += [
            (sent.at, 1, self._places[life.process], name)
            for name, (life, sent) in self._sent.items()
        ]
        events.sort(key=itemgetter(0, 1))
        rows: tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]] = ([], [])
        for step, (_, is_sent, process, name) in enumerate(events):
            rows[is_sent].append((process, step, name))
        given_rows, sent_rows = map(sorted, rows)
        targets = [self._destinations(*self._sent[name]) for _, _, name in sent_rows]
        return History(
            "all groups",
            len(self._lives),
            False,
            Multicasts(
                **self._columns(sent_rows),
                offsets=np.cumsum([0, *map(len, targets)]),
                targets=np.array([place for to in targets for place in to], dtype=np.int64),
            ),
            Deliveries(
                **self._columns(given_rows), depth=np.zeros(len(given_rows), dtype=np.int64)
            ),
        )

    def _columns(self, rows: list[tuple[int, int, str]]) -> dict[str, Ints]:
        """Processes, steps and messages; the steps tell the order, so that times are not needed."""
        return {
            "process": np.array([process for process, _, _ in rows], dtype=np.int64),
            "step": np.array([step for _, step, _ in rows], dtype=np.int64),
            "time": np.zeros(len(rows), dtype=np.int64),
            "message": np.array([self._identities[name] for _, _, name in rows], dtype=np.int64),
        }

    def _destinations(self, life: Life, sent: Sent) -> tuple[int, ...]:
        """Who was given the message, and who had to be, since its sender's connection lasted.

        What a server sent that then failed may be lost although something sent later is not: only
        one of the others, which was no destination of the first, had the second.
        """
        places = {self._places[p] for p, given in self._given.items() if sent.name in given}
        if life.ended_at is None and not self._partitionable:
            places.update(
                self._places[membership.process]
                for membership in self._staying
                if membership.group in sent.groups and membership.joined_at < sent.at
            )
        return tuple(sorted(places))
