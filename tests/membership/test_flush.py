"""What is left over at a change: nobody lacks what another delivered, in a fitting order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from graphlib import TopologicalSorter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flexgroup.membership.configuration import Configuration, GroupEntry, Member, Server
from flexgroup.membership.flush import DomainReport, Unstable, identity_of, merge_reports


def message(seq: int, group: int = 1, origin: int = 1) -> Unstable:
    return Unstable(origin, seq, ((group, seq),), b"")


def configuration(
    *groups: Sequence[int], servers: int = 3, stacks: Sequence[str] = ("fifo", "fifo")
) -> Configuration:
    """Groups numbered from 1, with a member at each of the servers listed."""
    return Configuration(
        1,
        tuple(Server(number, f"s{number}", "") for number in range(1, servers + 1)),
        tuple(
            GroupEntry(
                f"g{number}",
                number,
                stacks[number - 1],
                None,
                True,
                None,
                1,
                tuple(Member(f"p{server}", server, 1) for server in at),
            )
            for number, at in enumerate(groups, 1)
        ),
        servers + 1,
        len(groups) + 1,
    )


def report(*delivered: Unstable, low: tuple[tuple[int, int, int], ...] = ()) -> list[DomainReport]:
    return [DomainReport("fifo", list(delivered), low)]


def sequence(kept: Unstable) -> int:
    return kept.seq


def sequences(kept: Sequence[Unstable]) -> list[int]:
    return [message.seq for message in kept]


def test_who_lacks_a_message_gets_it() -> None:
    a, b = message(1), message(2)
    (left,) = merge_reports(configuration([1, 2]), {1: report(a, b), 2: report(a)})
    assert left.messages == [b]


def test_what_all_destinations_have_is_left_out() -> None:
    a = message(1)
    (left,) = merge_reports(configuration([1, 2]), {1: report(a), 2: report(a), 3: report()})
    assert left.messages == []


def test_a_server_without_members_of_the_group_lacks_nothing() -> None:
    a = message(1, group=1)
    (left,) = merge_reports(configuration([1], [1, 2]), {1: report(a), 2: report()})
    assert left.messages == []


def test_who_has_delivered_everything_below_lacks_nothing_there() -> None:
    """It has forgotten the message, as it knows that all have it."""
    a, b = message(1), message(2)
    low = ((1, 1, 2),)
    (left,) = merge_reports(configuration([1, 2]), {1: report(a, b), 2: report(low=low)})
    assert left.messages == [b]


def reports_of(
    *senders: tuple[int, list[Unstable], list[Unstable]],
) -> dict[int, list[DomainReport]]:
    """Server, what it has delivered, what it has sent and not delivered."""
    return {number: [DomainReport("fifo", had, (), own)] for number, had, own in senders}


def test_what_was_sent_and_nobody_delivered_follows_the_rest_sender_by_sender() -> None:
    a, b = message(1, origin=1), message(2, origin=1)
    c, d = message(1, origin=2), message(2, origin=2)
    reports = reports_of((1, [c], [a, b]), (2, [], [d]))
    (left,) = merge_reports(configuration([1, 2]), reports)
    assert left.messages == [c, a, b, d]


def test_what_another_has_delivered_has_its_place_among_that() -> None:
    """The sender has not delivered it itself."""
    a, b = message(1, origin=1), message(2, origin=1)
    reports = reports_of((1, [], [a, b]), (2, [a], []))
    (left,) = merge_reports(configuration([1, 2]), reports)
    assert left.messages == [a, b]


def test_what_all_destinations_delivered_and_forgot_is_not_delivered_again() -> None:
    """Its sender is no member, and has not heard of it yet."""
    a, b = message(0, origin=3), message(1, origin=3)
    low = ((1, 3, 1),)
    reports = {1: report(low=low), 2: report(low=low), 3: [DomainReport("fifo", [], (), [a, b])]}
    (left,) = merge_reports(configuration([1, 2]), reports)
    assert left.messages == [b]


def test_a_server_without_the_domain_lacks_what_was_sent_to_it() -> None:
    a = message(1)
    (left,) = merge_reports(configuration([1, 2]), {1: report(a), 2: []})
    assert left.messages == [a]


def test_every_domain_is_merged_alone() -> None:
    reports = {1: [DomainReport("skeen", [message(1)], ()), DomainReport("fifo", [], ())], 2: []}
    before = configuration([1, 2], [1, 2], stacks=("fifo", "skeen"))
    left = merge_reports(before, reports)
    assert [each.stack for each in left] == ["fifo", "skeen"]
    assert [sequences(each.messages) for each in left] == [[], [1]]


def test_what_is_reported_of_a_stack_that_no_group_has_is_left_out() -> None:
    reports = {1: [*report(message(1)), DomainReport("nonsense", [message(2)], ())], 2: report()}
    (left,) = merge_reports(configuration([1, 2]), reports)
    assert (left.stack, sequences(left.messages)) == ("fifo", [1])


def test_the_merge_keeps_the_order_of_each_sequence() -> None:
    a, b, c, d = (message(seq) for seq in range(4))
    reports = {1: report(a), 2: report(a, b, d, c), 3: report()}
    (left,) = merge_reports(configuration([1, 2, 3]), reports)
    assert left.messages == [a, b, d, c]


def test_where_sequences_contradict_each_other_the_order_of_a_sender_counts() -> None:
    a, b, c = message(0, origin=1), message(1, origin=1), message(2, origin=2)
    reports = {
        1: [DomainReport("fifo", [c, a, b], (), promises=("fifo order",))],
        2: [DomainReport("fifo", [a, c], (), promises=("fifo order",))],
        3: [DomainReport("fifo", [], (), promises=("fifo order",))],
    }
    (left,) = merge_reports(configuration([1, 2, 3]), reports)
    assert sorted(left.messages, key=sequence) == [a, b, c]
    assert left.messages.index(a) < left.messages.index(b)


def test_what_precedes_a_message_at_a_server_outside_its_destinations_precedes_it_everywhere() -> (
    None
):
    """Servers 1 and 2 have delivered nothing; server 3, in the second group only, has delivered
    what server 1 sent last."""
    first, last = Unstable(1, 0, ((1, 0),), b"a"), Unstable(1, 1, ((1, 1), (2, 0)), b"b")
    reports = {
        1: [DomainReport("fifo", [], (), [first], [0], promises=("fifo order",))],
        2: [DomainReport("fifo", [], (), promises=("fifo order",))],
        3: [DomainReport("fifo", [last], (), promises=("fifo order",))],
    }
    (left,) = merge_reports(configuration([1, 2], [1, 2, 3]), reports)
    assert left.messages == [first, last]


OVERLAPPING = [(1, 2), (2, 3), (3, 4), (1, 3), (1, 2, 3), (1, 2, 3, 4), (2, 4), (1, 4)]
SERVERS = range(1, 5)


@st.composite
def ends_of_a_total_order(
    draw: st.DrawFn,
) -> tuple[dict[int, list[Unstable]], dict[int, list[DomainReport]]]:
    """What each server has delivered of one order, as far as it got, and what it reports."""
    messages: list[Unstable] = []
    for seq in range(draw(st.integers(1, 9))):
        group, origin = draw(st.integers(1, len(OVERLAPPING))), draw(st.sampled_from(SERVERS))
        line = sum((m.groups[0][0], m.origin) == (group, origin) for m in messages)
        messages.append(Unstable(origin, seq, ((group, line),), b"payload"))
    expected = {s: [m for m in messages if s in destinations(m)] for s in SERVERS}
    delivered = {s: expected[s][: draw(st.integers(0, len(expected[s])))] for s in SERVERS}
    reports = {
        s: [
            DomainReport(
                "fifo",
                delivered[s],
                lines_of(delivered[s]),
                [m for m in messages if m.origin == s and m not in delivered[s]],
            )
        ]
        for s in SERVERS
    }
    return delivered, reports


def destinations(m: Unstable) -> tuple[int, ...]:
    return OVERLAPPING[m.groups[0][0] - 1]


def lines_of(delivered: Sequence[Unstable]) -> tuple[tuple[int, int, int], ...]:
    """How many of each line were delivered; a total order leaves no gaps."""
    lines = Counter((m.groups[0][0], m.origin) for m in delivered)
    return tuple((group, origin, count) for (group, origin), count in lines.items())


@given(ends_of_a_total_order())
def test_the_ends_of_a_total_order_are_merged_into_one(
    end: tuple[dict[int, list[Unstable]], dict[int, list[DomainReport]]],
) -> None:
    """Whatever overlaps, afterwards the orders of all servers together have no cycle."""
    delivered, reports = end
    (left,) = merge_reports(configuration(*OVERLAPPING, servers=4, stacks=["fifo"] * 8), reports)
    precedes: TopologicalSorter[tuple[int, int]] = TopologicalSorter()
    for server, had in delivered.items():
        lacked = [m for m in left.messages if server in destinations(m) and m not in had]
        for first, second in pairwise([*had, *lacked]):
            precedes.add(identity_of(second), identity_of(first))
    precedes.prepare()


@given(st.lists(st.lists(st.integers(0, 8), unique=True), min_size=1, max_size=3))
def test_whatever_was_delivered_is_merged_once(parts: list[list[int]]) -> None:
    reports = {n: report(*map(message, part)) for n, part in enumerate(parts, 1)} | {4: report()}
    (left,) = merge_reports(configuration([1, 2, 3, 4], servers=4), reports)
    assert sorted(sequences(left.messages)) == sorted({seq for part in parts for seq in part})


@given(st.dictionaries(st.integers(1, 3), st.lists(st.integers(0, 8), unique=True), min_size=1))
def test_afterwards_all_destinations_have_the_same(delivered: dict[int, list[int]]) -> None:
    reports = {server: report(*map(message, seqs)) for server, seqs in delivered.items()}
    (left,) = merge_reports(configuration([1, 2, 3]), reports)
    ends = [{*seqs, *sequences(left.messages)} for seqs in delivered.values()]
    assert all(end == set().union(*delivered.values()) for end in ends)
