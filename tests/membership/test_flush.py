"""What is left over at a change: nobody lacks what another delivered, in a fitting order."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from flexgroup.membership.configuration import Configuration, GroupEntry, Member, Server
from flexgroup.membership.flush import DomainReport, Unstable, head_merge, merge_reports


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
    assert head_merge([[a, c], [b, c, d], [a, b]]) == [a, b, c, d]


def test_where_sequences_contradict_each_other_the_first_one_counts() -> None:
    a, b, c = (message(seq) for seq in range(3))
    assert head_merge([[a, b, c], [b, a]]) == [a, b, c]
    assert head_merge([[b, a], [a, b, c]]) == [b, a, c]


@st.composite
def parts_of_one_order(draw: st.DrawFn) -> tuple[list[int], list[list[Unstable]]]:
    order = draw(st.permutations(range(draw(st.integers(0, 12)))))
    parts = draw(st.lists(st.sets(st.sampled_from(order)) if order else st.just(set()), max_size=5))
    return order, [[message(seq) for seq in order if seq in part] for part in parts]


@given(parts_of_one_order())
def test_parts_of_one_order_merge_into_an_order_that_fits_all(
    given_parts: tuple[list[int], list[list[Unstable]]],
) -> None:
    _order, parts = given_parts
    merged = sequences(head_merge(parts))
    assert sorted(merged) == sorted({m.seq for part in parts for m in part})
    for part in parts:
        assert [seq for seq in merged if seq in sequences(part)] == sequences(part)


@given(st.lists(st.lists(st.integers(0, 8), unique=True), max_size=5))
def test_whatever_was_delivered_is_merged_once(parts: list[list[int]]) -> None:
    merged = sequences(head_merge([[message(seq) for seq in part] for part in parts]))
    assert sorted(merged) == sorted({seq for part in parts for seq in part})


@given(st.dictionaries(st.integers(1, 3), st.lists(st.integers(0, 8), unique=True), min_size=1))
def test_afterwards_all_destinations_have_the_same(delivered: dict[int, list[int]]) -> None:
    reports = {server: report(*map(message, seqs)) for server, seqs in delivered.items()}
    (left,) = merge_reports(configuration([1, 2, 3]), reports)
    ends = [{*seqs, *sequences(left.messages)} for seqs in delivered.values()]
    assert all(end == set().union(*delivered.values()) for end in ends)
