"""FIFO order: what one process multicasts arrives in the order of multicast."""

from __future__ import annotations

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import History

from .histories import identity, told


def fifo_order(history: History) -> Verdict:
    [verdict] = check(history, ["fifo order"])
    return verdict


def test_holds_when_a_sender_s_messages_arrive_in_order() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        1 multicast 1.0 to 1,2
        0 multicast 0.1 to 1,2
        1 deliver 0.0
        1 deliver 0.1
        1 deliver 1.0
        2 deliver 1.0
        2 deliver 0.0
        2 deliver 0.1
    """)
    assert fifo_order(history).outcome is Outcome.HOLDS


def test_two_messages_in_the_wrong_order() -> None:
    verdict = fifo_order(
        told("""
            0 multicast 0.0 to 0,2
            0 multicast 0.1 to 2,3
            2 deliver 0.1
            2 deliver 0.0
        """)
    )
    first, second = identity("0.0"), identity("0.1")
    assert verdict.violations == 1
    assert verdict.witness == (
        Step(0, 0, "multicast", first),
        Step(0, 1, "multicast", second),
        Step(2, 0, "deliver", second),
        Step(2, 1, "deliver", first),
    )
    assert str(verdict) == (
        "fifo order: violated\n"
        "  let a = message 0.0 to {0,2}, b = message 0.1 to {2,3}\n"
        "  process 0 multicast a (step 0) and then b (step 1)\n"
        "  process 2 delivered b (step 0) and only then a (step 1)"
    )


def test_a_message_without_the_one_before_it() -> None:
    story = """
        0 multicast 0.0 to 1
        0 multicast 0.1 to 1
        1 deliver 0.1
    """
    for complete in (True, False):
        verdict = fifo_order(told(story, complete=complete))
        assert verdict.outcome is Outcome.VIOLATED
        assert verdict.explanation.splitlines()[-1] == (
            "process 1 delivered b (step 0) and did not deliver a"
        )


def test_the_end_of_a_sequence_may_be_missing() -> None:
    history = told("""
        0 multicast 0.0 to 1
        0 multicast 0.1 to 1
        1 deliver 0.0
    """)
    assert fifo_order(history).outcome is Outcome.HOLDS


def test_messages_to_others_do_not_count() -> None:
    history = told("""
        0 multicast 0.0 to 2
        0 multicast 0.1 to 1
        1 deliver 0.1
    """)
    assert fifo_order(history).outcome is Outcome.HOLDS


def test_the_order_is_that_of_multicast_not_of_numbers() -> None:
    history = told("""
        0 multicast 0.9 to 1
        0 multicast 0.3 to 1
        1 deliver 0.9
        1 deliver 0.3
    """)
    assert fifo_order(history).outcome is Outcome.HOLDS


def test_violations_are_deliveries_that_came_too_early() -> None:
    verdict = fifo_order(
        told("""
            0 multicast 0.0 to 1,2
            0 multicast 0.1 to 1,2
            0 multicast 0.2 to 1,2
            1 deliver 0.1
            1 deliver 0.2
            1 deliver 0.0
            2 deliver 0.0
            2 deliver 0.2
        """)
    )
    assert verdict.violations == 3
