"""Real-time order: what was multicast after a delivery is not ordered before it."""

from __future__ import annotations

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.history import History

from .histories import told


def real_time_order(history: History) -> Verdict:
    [verdict] = check(history, ["real-time order"])
    return verdict


def test_holds_when_later_messages_are_ordered_later() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        1 deliver 0.0
        0 multicast 0.1 to 1,2
        1 deliver 0.1
        2 deliver 0.0
        2 deliver 0.1
    """)
    assert real_time_order(history).outcome is Outcome.HOLDS


def test_messages_that_overlap_in_time_may_be_ordered_either_way() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        3 multicast 3.0 to 1,2
        1 deliver 3.0
        1 deliver 0.0
        2 deliver 3.0
        2 deliver 0.0
    """)
    assert real_time_order(history).outcome is Outcome.HOLDS


def test_a_message_ordered_before_one_that_was_over_when_it_was_multicast() -> None:
    verdict = real_time_order(
        told("""
            0 multicast 0.0 to 1,2
            1 deliver 0.0
            3 multicast 3.0 to 2
            2 deliver 3.0
            2 deliver 0.0
        """)
    )
    assert verdict.violations == 1
    assert str(verdict) == (
        "real-time order: violated\n"
        "  let a = message 3.0 to {2}, b = message 0.0 to {1,2}\n"
        "  a < b, because process 2 delivered a (step 0) and then b (step 1)\n"
        "  but process 1 delivered b (step 0) at time 1,"
        " before process 3 multicast a (step 0) at time 2"
    )


def test_the_order_may_come_about_through_other_messages() -> None:
    verdict = real_time_order(
        told("""
            0 multicast 0.0 to 1,2
            0 multicast 0.1 to 2,3
            1 deliver 0.0
            1 multicast 1.0 to 3
            3 deliver 1.0
            3 deliver 0.1
            2 deliver 0.1
            2 deliver 0.0
        """)
    )
    assert verdict.explanation.splitlines() == [
        "let a = message 1.0 to {3}, b = message 0.1 to {2,3}, c = message 0.0 to {1,2}",
        "a < b, because process 3 delivered a (step 0) and then b (step 1)",
        "b < c, because process 2 delivered b (step 0) and then c (step 1)",
        "but process 1 delivered c (step 0) at time 2,"
        " before process 1 multicast a (step 1) at time 3",
    ]


def test_clocks_by_which_a_message_arrives_before_it_leaves_violate_it() -> None:
    verdict = real_time_order(told("1 deliver 0.0\n0 multicast 0.0 to 1"))
    assert verdict.explanation.splitlines()[1:] == [
        "but process 1 delivered a (step 0) at time 0,"
        " before process 0 multicast a (step 0) at time 1"
    ]
