"""Every property agrees with its definition on small histories, good and bad."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.message import message_id
from flexgroup.core.precedence import find_cycle, is_acyclic
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import Deliveries, History, Multicasts, Packets, lost_since
from flexgroup.trace.schema import CRASH, DELIVER, MULTICAST, RECEIVE, RECOVER, SEND, VIEW

from .histories import Event, history_of
from .oracle import ORACLES, Facts, shortest_cycle_length


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A correct run of a few messages, with any number of events moved, lost, copied, ..."""
    processes = draw(st.integers(2, 4))
    clients = draw(st.integers(0, 1))
    sent: Counter[int] = Counter()
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 6))):
        origin = draw(st.integers(0, processes + clients - 1))
        to = tuple(draw(st.sets(st.integers(0, processes - 1), min_size=1)))
        message = message_id(origin, sent[origin])
        sent[origin] += 1
        events.append(Event(origin, MULTICAST, message, to))
        if draw(st.booleans()):
            events.append(Event(origin, SEND, message, (to[0],)))
            events.append(Event(to[0], RECEIVE, message, (origin,)))
        events += [Event(process, DELIVER, message) for process in to]
    everyone = tuple(range(processes))
    for number in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(events)))
        events[place:place] = [Event(process, VIEW, number, everyone) for process in everyone]
    for _ in range(draw(st.integers(0, 10))):
        if not events:
            break
        place = draw(st.integers(0, len(events) - 1))
        target = draw(st.integers(0, len(events) - 1))
        change = draw(st.sampled_from(("move", "move", "lose", "copy", "elsewhere", "crash")))
        process = draw(st.integers(0, processes - 1))
        if change == "move":
            events.insert(target, events.pop(place))
        elif change == "lose":
            events.pop(place)
        elif change == "copy":
            events.insert(target, events[place])
        elif change == "elsewhere":
            events[place] = replace(events[place], process=process)
        else:
            events[place:place] = [Event(process, CRASH), Event(process, RECOVER)]
    history = history_of(events, processes, complete=draw(st.booleans()))
    lost = sorted(draw(st.sets(st.integers(0, processes - 1), max_size=2)))
    return replace(history, lost=lost_since(lost, history.multicasts.message))


thorough = settings(max_examples=300, deadline=None)


@thorough
@given(history=histories())
def test_all_properties_agree_with_their_definitions(history: History) -> None:
    facts = Facts(history)
    found = {verdict.property: (verdict.outcome, verdict.violations) for verdict in check(history)}
    assert found == {name: judge(facts) for name, judge in ORACLES.items()}


@thorough
@given(history=histories())
def test_witnesses_are_events_of_the_run_and_explanations_name_them(history: History) -> None:
    recorded = steps_of(history)
    for verdict in check(history):
        if verdict.outcome is Outcome.VIOLATED:
            assert verdict.witness
            for step in verdict.witness:
                assert step in recorded
                assert f"process {step.process}" in verdict.explanation
                assert f"(step {step.step})" in verdict.explanation
        else:
            assert verdict.witness is None


@thorough
@given(history=histories())
def test_the_witness_of_a_cycle_is_a_shortest_cycle(history: History) -> None:
    [verdict] = check(history, ["acyclic order"])
    if verdict.outcome is Outcome.VIOLATED:
        relation = Facts(history).delivery_order()
        links = links_of(verdict)
        assert len(links) == shortest_cycle_length(relation)
        for place, (before, after) in enumerate(links):
            assert before.process == after.process
            assert before.step < after.step
            assert after.message == links[(place + 1) % len(links)][0].message


@thorough
@given(history=histories())
def test_acyclic_order_is_the_same_in_traces_and_where_a_handful_of_orders_is_checked(
    history: History,
) -> None:
    """The explorer, the bench and random schedules ask `flexgroup.core.precedence`."""
    orders = list(Facts(history).order.values())
    [verdict] = check(history, ["acyclic order"])
    assert is_acyclic(orders) is (verdict.outcome is not Outcome.VIOLATED)
    cycle = find_cycle(orders)
    assert len(cycle or ()) == len(links_of(verdict) if verdict.witness else ())


@thorough
@given(history=histories())
def test_the_witness_of_a_causal_violation_is_a_chain(history: History) -> None:
    [verdict] = check(history, ["causal order"])
    if verdict.outcome is Outcome.VIOLATED:
        assert verdict.witness is not None
        facts = Facts(history)
        early = next(place for place, step in enumerate(verdict.witness) if is_end(verdict, place))
        chain = links_of(replace(verdict, witness=verdict.witness[:early]))
        for cause, effect in chain:
            assert (cause.process, effect.event) == (effect.process, MULTICAST)
            assert cause.step < effect.step
        for (_, effect), (cause, _) in pairwise(chain):
            assert effect.message == cause.message
        first, last = chain[0][0].message, chain[-1][1].message
        process = verdict.witness[early].process
        assert process in facts.destinations[first] & facts.destinations[last]
        assert facts.before(process, last, first)


def is_end(verdict: Verdict, place: int) -> bool:
    """Links come in pairs that end with a multicast; the rest are deliveries."""
    assert verdict.witness is not None
    rest = verdict.witness[place:]
    return place % 2 == 0 and all(step.event == DELIVER for step in rest)


def links_of(verdict: Verdict) -> list[tuple[Step, Step]]:
    assert verdict.witness is not None
    return list(zip(verdict.witness[::2], verdict.witness[1::2], strict=True))


def steps_of(history: History) -> set[Step]:
    kinds: dict[str, Multicasts | Deliveries | Packets] = {
        MULTICAST: history.multicasts,
        DELIVER: history.deliveries,
        SEND: history.sends,
        RECEIVE: history.receives,
    }
    return {
        Step(process, step, kind, message)
        for kind, rows in kinds.items()
        for process, step, message in zip(
            rows.process.tolist(), rows.step.tolist(), rows.message.tolist(), strict=True
        )
    }
