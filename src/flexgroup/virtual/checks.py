"""What clients saw, held against what the stack of their groups promises."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from flexgroup.client.message import View
from flexgroup.core.message import Message, MessageId, message_id
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.trace.recorder import Recorder
from flexgroup.virtual.execution import Execution, Life, Membership, Sent
from flexgroup.worlds.network.faults import Faults

ORDERS = ("fifo order", "causal order", "pairwise order", "acyclic order")


def problems(execution: Execution) -> list[str]:
    """Everything that is wrong with an execution, each in words."""
    found = list(execution.problems)
    lives = [life for client in execution.clients.values() for life in client.lives]
    names = dict.fromkeys(m.group for life in lives for m in life.memberships)
    for name in names:
        found += [f"group {name}: {problem}" for problem in GroupRecord(execution, name, lives)]
    return found


class GroupRecord:
    """What all clients saw of one group."""

    def __init__(self, execution: Execution, group: str, lives: list[Life]) -> None:
        self._stack = execution.schedule.stack
        self._memberships = [m for life in lives for m in life.memberships if m.group == group]
        self._sent = {s.name: (life, s) for life in lives for s in life.sent if group in s.groups}
        self._first_here = {n for n, (_, sent) in self._sent.items() if sent.groups[0] == group}
        """A message to several groups comes in the first of them that a client is in."""
        self._group = group
        self._lives = lives
        self._given = {life.process: life.given() for life in lives}
        """What each process was given, in whichever group: a message to several comes once."""

    def __iter__(self) -> Iterator[str]:
        yield from self._not_once()
        yield from self._not_delivered()
        yield from self._different_in_a_view()
        yield from self._out_of_order()

    def _messages(self, membership: Membership) -> list[str]:
        return [item for _, item in membership.items if isinstance(item, str)]

    def _not_once(self) -> Iterator[str]:
        for membership in self._memberships:
            messages = self._messages(membership)
            for name in dict.fromkeys(messages):
                if messages.count(name) > 1:
                    yield f"{membership.process} was given {name} {messages.count(name)} times"
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
                    and not self._may_have_left(membership.process, sent)
                ):
                    yield f"{membership.process} was never given {sent.name}, sent at {sent.at:.6f}"

    def _may_have_left(self, process: str, sent: Sent) -> bool:
        """Whether it may have come in another group, which the client left without looking: a
        message to several groups is given once, in the first of those that the server knows of."""
        return any(
            m.group in sent.groups and m.ended_at is not None
            for life in self._lives
            if life.process == process
            for m in life.memberships
        )

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
                given = {item for item in items[begin:end] if item in self._first_here}
                other, theirs = between.setdefault((first, last), (membership.process, given))
                for name in sorted(theirs ^ given):
                    who, whom = (other, membership.process)[:: 1 if name in theirs else -1]
                    yield (
                        f"{name} was given to {who} but not to {whom} in view {first.number}, from"
                        f" which both went on to view {last.number}"
                    )

    def _out_of_order(self) -> Iterator[str]:
        promised = parse_stack(self._stack).promises(Faults().channels())
        history = self._history()
        for verdict in check(history, [name for name in ORDERS if name in promised]):
            if verdict.outcome is Outcome.VIOLATED:
                yield f"{verdict.property} is violated: {verdict.explanation} ({self._legend()})"

    def _legend(self) -> str:
        return ", ".join(f"p{n} = {life.process}" for n, life in enumerate(self._lives))

    def _history(self) -> History:
        collector = Collector()
        recorder = Recorder(collector)
        places = {life.process: number for number, life in enumerate(self._lives)}
        messages: dict[str, Message] = {}
        for life, sent in self._sent.values():
            messages[sent.name] = Message(
                self._identity(places, life, sent), self._destinations(places, life, sent), b""
            )
        # Each client's own events in the order of time; what it sends follows what it was given.
        events = [
            (time, 0, places[membership.process], messages[item])
            for membership in self._memberships
            for time, item in membership.items
            if isinstance(item, str) and item in messages
        ]
        events += [
            (sent.at, 1, places[life.process], messages[sent.name])
            for life, sent in self._sent.values()
        ]
        for step, (_, is_sent, process, m) in enumerate(sorted(events, key=lambda e: e[:2])):
            if is_sent:
                recorder.multicast(process, step, 0, m)
            else:
                recorder.deliver(process, step, 0, m, 0)
        recorder.flush()
        return collector.history(self._group, len(self._lives), False)

    def _identity(self, places: dict[str, int], life: Life, sent: Sent) -> MessageId:
        return message_id(places[life.process], int(sent.name.partition(":")[2]))

    def _destinations(self, places: dict[str, int], life: Life, sent: Sent) -> tuple[int, ...]:
        """Who was given the message, and who had to be, since its sender's connection lasted.

        What a server sent that then failed may be lost although something sent later is not: only
        one of the others, which was no destination of the first, had the second.
        """
        return tuple(
            sorted(
                {
                    places[membership.process]
                    for membership in self._memberships
                    if (
                        sent.name in self._first_here
                        and life.ended_at is None
                        and membership.ended_at is None
                        and membership.joined_at < sent.at
                    )
                    or sent.name in self._messages(membership)
                }
            )
        )
