"""Integrity: delivered at most once, only by destinations, only if multicast."""

from __future__ import annotations

from dataclasses import replace

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import History, lost_since

from .histories import identity, told


def integrity(history: History) -> Verdict:
    [verdict] = check(history, ["integrity"])
    return verdict


def test_holds_when_every_delivery_is_wanted_and_the_first() -> None:
    verdict = integrity(
        told("""
            0 multicast 0.0 to 0,1
            1 deliver 0.0
            0 deliver 0.0
        """)
    )
    assert verdict == Verdict(
        "integrity", Outcome.HOLDS, 0, None, "checked 2 deliveries and 1 multicast"
    )


def test_a_duplicate_delivery_is_shown_with_the_first_one() -> None:
    verdict = integrity(
        told("""
            0 multicast 0.0 to 0,1
            1 deliver 0.0
            1 deliver 0.0
        """)
    )
    message = identity("0.0")
    assert verdict.violations == 1
    assert verdict.witness == (Step(1, 0, "deliver", message), Step(1, 1, "deliver", message))
    assert str(verdict) == (
        "integrity: violated\n"
        "  wrong deliveries: 1 duplicate\n"
        "  let a = message 0.0 to {0,1}\n"
        "  process 1 delivered a (step 0) and again (step 1)"
    )


def test_a_message_that_nobody_multicast_must_not_be_delivered() -> None:
    verdict = integrity(told("2 deliver 5.7"))
    assert verdict.witness == (Step(2, 0, "deliver", identity("5.7")),)
    assert verdict.explanation.splitlines() == [
        "wrong deliveries: 1 never multicast",
        "let a = message 5.7 (never multicast)",
        "process 2 delivered a (step 0), which nobody multicast",
    ]


def test_a_process_that_is_no_destination_must_not_deliver() -> None:
    verdict = integrity(
        told("""
            0 multicast 0.0 to 0,1
            2 deliver 0.0
        """)
    )
    message = identity("0.0")
    assert verdict.witness == (Step(0, 0, "multicast", message), Step(2, 0, "deliver", message))
    assert verdict.explanation.splitlines() == [
        "wrong deliveries: 1 at no destination",
        "let a = message 0.0 to {0,1}",
        "process 2 delivered a (step 0) and is not a destination of it:"
        " process 0 multicast it (step 0)",
    ]


def test_every_wrong_delivery_counts_once_and_the_earliest_is_the_witness() -> None:
    verdict = integrity(
        told("""
            0 multicast 0.0 to 0,1
            1 deliver 0.0
            2 deliver 0.0
            0 deliver 3.3
            0 deliver 3.3
            1 deliver 0.0
        """)
    )
    assert verdict.violations == 4
    assert verdict.explanation.startswith(
        "wrong deliveries: 1 duplicate, 2 never multicast, 1 at no destination\n"
    )
    assert verdict.witness is not None
    assert verdict.witness[-1] == Step(2, 0, "deliver", identity("0.0"))


def test_a_long_list_of_destinations_is_shortened() -> None:
    everyone = ",".join(str(process) for process in range(20))
    verdict = integrity(told(f"0 multicast 0.0 to {everyone}\n20 deliver 0.0"))
    assert "to {0,1,2,3,4,5,6,7,8,9,10,11,... (20 processes)}" in verdict.explanation


KILLED = """
    2 multicast 2.0 to 0,1
    0 deliver 2.0
    0 deliver 2.1
    1 deliver 2.1
"""


def test_what_a_killed_process_multicast_last_may_be_lost_with_its_last_events() -> None:
    history = told(KILLED, complete=False)
    verdict = integrity(replace(history, lost=lost_since([2], history.multicasts.message)))
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.explanation == (
        "the last events of {2} are lost, and 2 deliveries may be of messages that were multicast"
        " then, the first of message 2.1 by process 0 (step 1)"
    )


def test_what_came_before_the_last_events_that_are_there_is_not_lost() -> None:
    history = told(KILLED + "0 deliver 2.1\n2 multicast 2.2 to 0", complete=False)
    verdict = integrity(replace(history, lost=lost_since([2], history.multicasts.message)))
    assert verdict.explanation.startswith("wrong deliveries: 3 never multicast")


def test_a_duplicate_is_one_whether_its_multicast_is_lost_or_not() -> None:
    history = told(KILLED + "0 deliver 2.1", complete=False)
    verdict = integrity(replace(history, lost=lost_since([2], history.multicasts.message)))
    assert verdict.explanation.startswith("wrong deliveries: 1 duplicate")


def test_nothing_is_excused_at_processes_whose_events_are_all_there() -> None:
    history = told(KILLED, complete=False)
    verdict = integrity(replace(history, lost=lost_since([1], history.multicasts.message)))
    assert (verdict.outcome, verdict.violations) == (Outcome.VIOLATED, 2)
