"""What is left over at a change: nobody lacks what another delivered, in a fitting order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from flexgroup.membership.configuration import (
    Configuration,
    DomainEntry,
    GroupEntry,
    Member,
    Server,
)
from flexgroup.membership.flush import DomainFlush, DomainReport, Report, Unstable, identity_of
from flexgroup.membership.flush import merge_reports as merge


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
        tuple(
            DomainEntry(number, stack, "", tuple(range(1, servers + 1)))
            for number, stack in enumerate(sorted(set(stacks)), 1)
        ),
    )


def report(*delivered: Unstable, low: tuple[tuple[int, int, int], ...] = ()) -> Report:
    return Report([DomainReport(1, list(delivered), low)])


def merge_reports(before: Configuration, reports: Mapping[int, Report]) -> list[DomainFlush]:
    """In all domains."""
    return merge(before, reports, [domain.number for domain in before.domains])


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
) -> dict[int, Report]:
    """Server, what it has delivered, what it has sent and not delivered."""
    return {number: Report([DomainReport(1, had, (), own)]) for number, had, own in senders}


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
    reports = {1: report(low=low), 2: report(low=low), 3: Report([DomainReport(1, [], (), [a, b])])}
    (left,) = merge_reports(configuration([1, 2]), reports)
    assert left.messages == [b]


def test_a_server_without_the_domain_lacks_what_was_sent_to_it() -> None:
    a = message(1)
    (left,) = merge_reports(configuration([1, 2]), {1: report(a), 2: Report()})
    assert left.messages == [a]


def test_every_domain_is_merged_alone() -> None:
    reports = {
        1: Report([DomainReport(2, [message(1)], ()), DomainReport(1, [], ())]), 2: Report()
    }  # fmt: skip
    before = configuration([1, 2], [1, 2], stacks=("fifo", "skeen"))
    left = merge_reports(before, reports)
    assert [each.domain for each in left] == [1, 2]
    assert [sequences(each.messages) for each in left] == [[], [1]]


def test_domains_that_go_on_and_those_that_are_no_more_are_left_out() -> None:
    reports = {1: Report([*report(message(1)).domains, DomainReport(7, [message(2)], ())])}
    before = configuration([1, 2])
    assert [left.domain for left in merge(before, reports, [1, 7])] == [1]
    assert merge(before, reports, [7]) == []


def test_who_came_to_a_group_later_lacks_what_was_sent_to_that_and_to_another_before() -> None:
    """Server 3 counts the second group from where the others were when it came."""
    a = Unstable(1, 0, ((1, 0), (2, 0)), b"a")
    reports = {1: report(a), 3: report(low=((2, 1, 1),))}
    (left,) = merge_reports(configuration([1, 3], [1, 3]), reports)
    assert left.messages == [a]


def test_the_merge_keeps_the_order_of_each_sequence() -> None:
    a, b, c, d = (message(seq) for seq in range(4))
    reports = {1: report(a), 2: report(a, b, d, c), 3: report()}
    (left,) = merge_reports(configuration([1, 2, 3]), reports)
    assert left.messages == [a, b, d, c]


def test_where_sequences_contradict_each_other_the_order_of_a_sender_counts() -> None:
    a, b, c = message(0, origin=1), message(1, origin=1), message(2, origin=2)
    reports = {
        1: Report([DomainReport(1, [c, a, b], (), promises=("fifo order",))]),
        2: Report([DomainReport(1, [a, c], (), promises=("fifo order",))]),
        3: Report([DomainReport(1, [], (), promises=("fifo order",))]),
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
        1: Report([DomainReport(1, [], (), [first], promises=("fifo order",))]),
        2: Report([DomainReport(1, [], (), promises=("fifo order",))]),
        3: Report([DomainReport(1, [last], (), promises=("fifo order",))]),
    }
    (left,) = merge_reports(configuration([1, 2], [1, 2, 3]), reports)
    assert left.messages == [first, last]


OVERLAPPING = [(1, 2), (2, 3), (3, 4), (1, 3), (1, 2, 3), (1, 2, 3, 4), (2, 4), (1, 4)]
SERVERS = range(1, 5)


@st.composite
def ends_of_a_total_order(
    draw: st.DrawFn,
) -> tuple[dict[int, list[Unstable]], dict[int, Report]]:
    """What each server has delivered of one order, as far as it got, and what it reports."""
    messages: list[Unstable] = []
    for seq in range(draw(st.integers(1, 9))):
        group, origin = draw(st.integers(1, len(OVERLAPPING))), draw(st.sampled_from(SERVERS))
        line = sum((m.groups[0][0], m.origin) == (group, origin) for m in messages)
        messages.append(Unstable(origin, seq, ((group, line),), b"payload"))
    expected = {s: [m for m in messages if s in destinations(m)] for s in SERVERS}
    delivered = {s: expected[s][: draw(st.integers(0, len(expected[s])))] for s in SERVERS}
    reports = {
        s: Report(
            [
                DomainReport(
                    1,
                    delivered[s],
                    lines_of(delivered[s]),
                    [m for m in messages if m.origin == s and m not in delivered[s]],
                )
            ]
        )
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
    end: tuple[dict[int, list[Unstable]], dict[int, Report]],
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


CAUSAL = ("fifo order", "causal order")


def test_a_message_of_a_server_that_failed_follows_what_that_one_had_delivered() -> None:
    """Server 3 fails, which has delivered `a` and then sent `b`. Server 1 lacks both, server 2 has
    sent the one, which is not for itself, and delivered the other."""
    a = Unstable(2, 0, ((1, 0),), b"a", past=(0, 0, 0))
    b = Unstable(3, 0, ((2, 0),), b"b", past=(0, 1, 0))
    reports = {
        1: Report([DomainReport(1, [], (), promises=CAUSAL)]),
        2: Report([DomainReport(1, [b], (), [a], promises=CAUSAL)]),
    }
    (left,) = merge_reports(configuration([1, 3], [1, 2, 3]), reports)
    assert left.messages == [a, b]


def test_it_does_so_too_where_sequences_contradict_each_other() -> None:
    """Servers 1 and 2 have delivered `c` and `a` in different orders, as far as they got, and
    server 3, which failed, had delivered `a` when it sent `b`."""
    a = Unstable(2, 0, ((1, 0),), b"a", past=(0, 0, 1))
    b = Unstable(3, 1, ((1, 1),), b"b", past=(1, 1, 1))
    c = Unstable(1, 0, ((1, 0),), b"c", past=(0, 0, 0))
    d = Unstable(3, 0, ((1, 0),), b"d", past=(0, 0, 0))
    reports = {
        1: Report([DomainReport(1, [c], (), promises=CAUSAL)]),
        2: Report([DomainReport(1, [d, a, c, b], (), promises=CAUSAL)]),
    }
    (left,) = merge_reports(configuration([1, 2, 3]), reports)
    assert left.messages == [d, a, b]


@st.composite
def ends_of_a_causal_order(
    draw: st.DrawFn,
) -> tuple[dict[int, list[Unstable]], dict[int, Report]]:
    """What each server has delivered in causal order, and the reports of those that go on."""
    messages: list[Unstable] = []
    delivered: dict[int, list[Unstable]] = {s: [] for s in SERVERS}
    pasts = {s: [0] * len(SERVERS) for s in SERVERS}

    def deliver(server: int, m: Unstable) -> None:
        delivered[server].append(m)
        known = [max(counts) for counts in zip(pasts[server], m.past, strict=True)]
        known[m.origin - 1] = max(known[m.origin - 1], m.seq + 1)
        pasts[server] = known

    for _ in range(draw(st.integers(1, 25))):
        server = draw(st.sampled_from(SERVERS))
        next_ones = [
            m
            for m in messages
            if server in destinations(m)
            and m not in delivered[server]
            and not any(
                precedes(n, m) and server in destinations(n) and n not in delivered[server]
                for n in messages
            )
        ]
        if len(next_ones) > 0 and draw(st.booleans()):
            deliver(server, draw(st.sampled_from(next_ones)))
            continue
        group = draw(st.integers(1, len(OVERLAPPING)))
        line = sum((m.groups[0][0], m.origin) == (group, server) for m in messages)
        seq = pasts[server][server - 1]
        m = Unstable(server, seq, ((group, line),), b"payload", past=tuple(pasts[server]))
        pasts[server][server - 1] += 1
        messages.append(m)
        if server in destinations(m):
            deliver(server, m)
    going_on = draw(st.sets(st.sampled_from(SERVERS), min_size=2))
    reports = {
        s: Report(
            [
                DomainReport(
                    1,
                    delivered[s],
                    (),
                    [m for m in messages if m.origin == s and m not in delivered[s]],
                    promises=CAUSAL,
                )
            ]
        )
        for s in going_on
    }
    return {s: delivered[s] for s in going_on}, reports


def precedes(first: Unstable, second: Unstable) -> bool:
    return first.seq < second.past[first.origin - 1]


@given(ends_of_a_causal_order())
def test_the_ends_of_a_causal_order_are_merged_in_causal_order(
    end: tuple[dict[int, list[Unstable]], dict[int, Report]],
) -> None:
    """Whatever overlaps and whoever has failed."""
    delivered, reports = end
    (left,) = merge_reports(configuration(*OVERLAPPING, servers=4, stacks=["fifo"] * 8), reports)
    for server, had in delivered.items():
        lacked = [m for m in left.messages if server in destinations(m) and m not in had]
        for first, second in combinations([*had, *lacked], 2):
            assert not precedes(second, first)


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


def held_back(*messages: Unstable, promises: tuple[str, ...]) -> Report:
    delivered = list(messages)
    return Report([DomainReport(1, delivered, (), held_back=len(delivered), promises=promises)])


def dropped_with(promises: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Server 1 fails, which has sent `a` to both groups and then `b` to the first one; server 3
    lacks `a`, which the second group has at that server, too."""
    a = Unstable(1, 0, ((1, 0), (2, 0)), b"a")
    b = Unstable(1, 1, ((1, 1),), b"b")
    reports = {2: held_back(a, b, promises=promises), 3: held_back(promises=promises)}
    before = configuration((1, 2), (1, 3), stacks=("fifo safe", "fifo safe"))
    (flush,) = merge(before, reports, [1])
    assert flush.messages == []
    return flush.dropped


def test_what_is_held_back_behind_something_that_is_dropped_is_dropped_as_well() -> None:
    """Otherwise there would be a gap in what a server delivers of the one that failed."""
    assert dropped_with(("fifo order",)) == ((1, 0), (1, 1))


def test_without_an_order_of_senders_nothing_is_held_back_behind_anything() -> None:
    assert dropped_with(()) == ((1, 0),)
