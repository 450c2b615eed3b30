"""Minimality: only the origin and the destinations of a message take part in multicasting it."""

from __future__ import annotations

from dataclasses import replace

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import History

from .histories import identity, told


def minimality(history: History) -> Verdict:
    [verdict] = check(history, ["minimality"])
    return verdict


def test_holds_when_packets_stay_between_origin_and_destinations() -> None:
    verdict = minimality(
        told("""
            0 multicast 0.0 to 1,2
            0 send 0.0 to 1
            1 receive 0.0 from 0
            1 send 0.0 to 2
            2 receive 0.0 from 1
        """)
    )
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.explanation == "checked 4 sends and receives of packets about messages"


def test_an_outsider_that_forwards() -> None:
    verdict = minimality(
        told("""
            0 multicast 0.0 to 1,2
            0 send 0.0 to 3
            3 receive 0.0 from 0
            3 send 0.0 to 1
            1 receive 0.0 from 3
        """)
    )
    assert verdict.violations == 1
    assert verdict.witness == (Step(3, 0, "receive", identity("0.0")),)
    assert str(verdict) == (
        "minimality: violated\n"
        "  let a = message 0.0 to {1,2}\n"
        "  process 3 received from process 0 the packet Data about a (step 0),"
        " and is neither its origin nor a destination"
    )


def test_an_outsider_may_betray_itself_by_sending() -> None:
    verdict = minimality(told("0 multicast 0.0 to 1\n3 send 0.0 to 1"))
    assert verdict.explanation.splitlines()[1].startswith("process 3 sent to process 1 the packet")


def test_violations_are_pairs_of_a_process_and_a_message() -> None:
    verdict = minimality(
        told("""
            0 multicast 0.0 to 1
            0 multicast 0.1 to 1
            3 receive 0.0 from 0
            3 send 0.0 to 1
            3 receive 0.1 from 0
            2 receive 0.1 from 0
        """)
    )
    assert verdict.violations == 3


def test_a_message_that_was_never_multicast_has_no_destinations() -> None:
    verdict = minimality(told("1 receive 0.7 from 0"))
    assert verdict.explanation.splitlines()[0] == "let a = message 0.7 (never multicast)"


def test_without_packets_nothing_is_known() -> None:
    verdict = minimality(told("0 multicast 0.0 to 1\n1 deliver 0.0"))
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.explanation == "the trace has no packets about messages"


def test_where_a_message_had_to_go_may_be_lost_with_the_last_events_of_its_origin() -> None:
    history = replace(told("1 receive 0.7 from 0", complete=False), lost=((0, 7),))
    verdict = minimality(history)
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.explanation == (
        "the last events of {0} are lost, and with them where 1 message had to go"
    )
