"""Who goes on when servers do not hear each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.membership.messages import NO_BALLOT, Beat
from flexgroup.membership.suspicion import FailureDetector, may_continue, without_cuts
from flexgroup.membership.timings import Timings

TIMINGS = Timings(beat=0.2, patience=2.0)


@pytest.mark.parametrize(
    ("party", "servers", "gone", "expected"),
    [
        ({1, 2}, {1, 2, 3}, set(), True),
        ({3}, {1, 2, 3}, set(), False),
        ({1, 4}, {1, 2, 3, 4}, set(), True),  # half, with the oldest
        ({2, 3}, {1, 2, 3, 4}, set(), False),
        ({2}, {1, 2}, {1}, True),  # the other one is dead
        ({3}, {1, 2, 3}, {1, 2}, True),
        # 3 to 5 may have agreed to go on, and 3 be alive.
        ({1, 2}, {1, 2, 3, 4, 5}, {4, 5}, False),
    ],
)
def test_who_may_continue(
    party: set[int], servers: set[int], gone: set[int], expected: bool
) -> None:
    assert may_continue(party, servers, gone) is expected


@given(st.integers(1, 7), st.data())
def test_no_two_parties_continue_while_both_live(size: int, data: st.DataObject) -> None:
    servers = set(range(1, size + 1))
    one = data.draw(st.sets(st.sampled_from(sorted(servers)), min_size=1))
    other = data.draw(st.sets(st.sampled_from(sorted(servers)), min_size=1)) - one
    # Nobody is taken for dead who lives, and both parties have somebody who does.
    dead = data.draw(st.sets(st.sampled_from(sorted(servers))))
    if one - dead and other - dead:
        gone_of_one = dead - one
        gone_of_other = dead - other
        assert not (
            may_continue(one, servers, gone_of_one) and may_continue(other, servers, gone_of_other)
        )


def cut(one: int, other: int) -> frozenset[int]:
    return frozenset((one, other))


@pytest.mark.parametrize(
    ("servers", "cuts", "expected"),
    [
        ((1, 2, 3), set(), (1, 2, 3)),
        ((1, 2, 3), {cut(2, 3)}, (1, 2)),  # the younger one goes
        ((1, 2, 3), {cut(1, 2)}, (1, 3)),
        ((1, 2, 3, 4), {cut(1, 2), cut(1, 3)}, (2, 3, 4)),  # not two for one
        ((1, 2, 3), {cut(1, 2), cut(1, 3)}, (2, 3)),  # heard by nobody
        ((1, 2, 3, 4), {cut(1, 2), cut(1, 3), cut(4, 2), cut(4, 3)}, (1, 4)),  # halves
    ],
)
def test_who_remains(
    servers: tuple[int, ...], cuts: set[frozenset[int]], expected: tuple[int, ...]
) -> None:
    assert without_cuts(servers, cuts) == expected


@given(st.integers(1, 7), st.data())
def test_those_who_remain_hear_each_other(size: int, data: st.DataObject) -> None:
    servers = range(1, size + 1)
    pairs = [cut(one, other) for one in servers for other in servers if one < other]
    cuts = set(data.draw(st.lists(st.sampled_from(pairs), unique=True))) if pairs else set()
    remaining = without_cuts(servers, cuts)
    assert remaining
    assert not any(each <= set(remaining) for each in cuts)


@given(st.integers(2, 8), st.data())
def test_at_a_partition_the_side_that_may_continue_remains(size: int, data: st.DataObject) -> None:
    servers = set(range(1, size + 1))
    side = data.draw(st.sets(st.sampled_from(sorted(servers)), min_size=1, max_size=size - 1))
    cuts = {cut(one, other) for one in side for other in servers - side}
    remaining = without_cuts(servers, cuts)
    assert may_continue(remaining, servers, set())
    assert set(remaining) in (side, servers - side)


def beat(
    server: int,
    sent: float,
    echo: float,
    silent: tuple[int, ...] = (),
    patience: float = TIMINGS.patience,
    echoed_patience: float = TIMINGS.patience,
) -> Beat:
    return Beat(server, 1, sent, echo, silent, NO_BALLOT, patience, echoed_patience)


def hearing(*servers: int) -> FailureDetector:
    """At server 2, where all of these have just been heard, and have heard it."""
    result = FailureDetector(2, TIMINGS, 0.0)
    result.enter(servers, 0.0)
    for server in servers:
        if server != 2:
            result.beaten(beat(server, 0.0, 0.0), 0.0)
    return result


def test_who_says_nothing_for_too_long_is_silent() -> None:
    h = hearing(1, 2, 3)
    for tenths in range(1, 20):
        h.passes(tenths / 10)
        h.heard(3, tenths / 10)
    assert h.silent(1.9) == ()
    h.passes(2.0)
    assert h.silent(2.0) == (1,)


def test_a_server_that_was_stopped_suspects_nobody_for_it() -> None:
    h = hearing(1, 2, 3)
    h.passes(10.0)
    assert h.silent(10.0) == ()


def test_a_server_that_was_stopped_stands_still_until_others_confirm_that_they_hear_it() -> None:
    """They may have gone on without it meanwhile."""
    h = hearing(1, 2, 3)
    h.passes(10.0)
    assert h.is_isolated(10.0)
    h.passes(10.1)
    h.heard(1, 10.1)
    h.beaten(beat(1, 10.1, 10.0), 10.1)
    assert not h.is_isolated(10.1)


def test_a_dead_server_that_has_just_heard_this_one_is_gone() -> None:
    h = hearing(1, 2)
    h.refused(1, 1.0)
    assert h.gone == {1}
    assert not h.is_isolated(1.0)


def test_a_dead_server_may_have_gone_on_alone_before() -> None:
    """It is heard, but what it says answers nothing that was said lately."""
    h = hearing(1, 2)
    h.passes(10.0)
    h.heard(1, 10.0)
    h.refused(1, 10.0)
    assert h.gone == set()
    assert h.is_isolated(10.0)


def test_a_suspicion_of_one_only_is_a_cut_between_two() -> None:
    """Of which the younger one goes; that is this server itself."""
    h = hearing(1, 2, 3)
    h.refused(1, 5.0)
    assert h.survivors((), 5.0) == (1, 3)
    assert not h.is_settled((1, 3), (), 5.0)


def test_a_suspicion_that_all_confirm_is_settled() -> None:
    h = hearing(1, 2, 3)
    h.heard(3, 5.0)
    h.refused(1, 5.0)
    h.beaten(beat(3, 5.0, 5.0, (1,)), 5.0)
    assert h.survivors((), 5.0) == (2, 3)
    assert h.is_settled((2, 3), (), 5.0)


def test_opinions_that_differ_are_given_time() -> None:
    h = hearing(1, 2, 3)
    h.beaten(beat(1, 0.1, 0.1, (3,)), 0.1)
    assert h.survivors((), 0.1) == (1, 2)
    assert not h.is_settled((1, 2), (), 0.1)
    assert h.is_settled((1, 2), (), 0.1 + TIMINGS.patience / 2)


def heard_by_one_again() -> FailureDetector:
    """Server 2 of three has heard nobody for a while, and then server 3, which confirms that 1 is
    silent."""
    h = hearing(1, 2, 3)
    for tenths in range(1, 51):
        h.passes(tenths / 10)
    assert h.is_isolated(5.0)
    h.passes(5.1)
    h.heard(3, 5.1)
    h.beaten(beat(3, 5.1, 5.1, (1,)), 5.1)
    assert not h.is_isolated(5.1)
    assert h.survivors((), 5.1) == (2, 3)
    return h


def test_after_an_outage_the_last_ones_get_the_time_to_come_back() -> None:
    h = heard_by_one_again()
    assert not h.is_settled((2, 3), (), 5.1)
    assert h.is_settled((2, 3), (), 5.0 + TIMINGS.patience)


def test_if_all_have_come_back_after_an_outage_nobody_waits() -> None:
    h = heard_by_one_again()
    h.heard(1, 5.2)
    h.beaten(beat(1, 5.2, 5.2), 5.2)
    h.beaten(beat(3, 5.2, 5.2), 5.2)
    assert h.survivors((), 5.2) == (1, 2, 3)
    assert h.is_settled((1, 2, 3), (), 5.2)


@pytest.mark.parametrize(("dead", "expected"), [((), False), ((1,), False), ((1, 3), True)])
def test_a_server_is_abandoned_when_too_many_are_dead(
    dead: tuple[int, ...], expected: bool
) -> None:
    """Not when they are only silent."""
    h = hearing(1, 2, 3)
    for tenths in range(1, 51):
        h.passes(tenths / 10)
    for server in dead:
        h.refused(server, 5.0)
    assert h.is_isolated(5.0)
    assert h.is_abandoned() is expected
