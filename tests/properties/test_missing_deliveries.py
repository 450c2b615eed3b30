"""Validity, agreement and uniform agreement: who must deliver a message in the end."""

from __future__ import annotations

import pytest

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Step
from flexgroup.trace.history import History

from .histories import identity, told

NAMES = ("validity", "agreement", "uniform agreement")


def outcomes(history: History) -> tuple[str, ...]:
    return tuple(verdict.outcome.value for verdict in check(history, NAMES))


def test_all_hold_when_all_destinations_deliver() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        1 deliver 0.0
        2 deliver 0.0
    """)
    assert outcomes(history) == ("holds", "holds", "holds")


def test_validity_is_about_what_correct_processes_multicast() -> None:
    [verdict] = check(told("3 multicast 3.0 to 0,1\n0 deliver 3.0"), ["validity"])
    assert verdict.violations == 1
    assert verdict.witness == (Step(3, 0, "multicast", identity("3.0")),)
    assert verdict.explanation.splitlines() == [
        "let a = message 3.0 to {0,1}",
        "process 3, which never crashed, multicast a (step 0)",
        "process 1, which never crashed, did not deliver a",
    ]


def test_clients_are_correct_processes_too() -> None:
    history = told("77 multicast 77.0 to 0,1", processes=2)
    assert outcomes(history) == ("violated", "holds", "holds")
    crashed = told("77 multicast 77.0 to 0,1\n77 crash", processes=2)
    assert outcomes(crashed) == ("holds", "holds", "holds")


def test_agreement_is_about_what_correct_processes_deliver() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        0 crash
        2 deliver 0.0
    """)
    assert outcomes(history) == ("holds", "violated", "violated")
    verdict = check(history, ["agreement"])[0]
    assert verdict.witness == (Step(2, 0, "deliver", identity("0.0")),)
    assert verdict.explanation.splitlines() == [
        "let a = message 0.0 to {1,2}",
        "process 2, which never crashed, delivered a (step 0)",
        "process 1, which never crashed, did not deliver a",
    ]


def test_uniform_agreement_is_also_about_what_faulty_processes_deliver() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        0 crash
        2 deliver 0.0
        2 crash
    """)
    assert outcomes(history) == ("holds", "holds", "violated")
    verdict = check(history, ["uniform agreement"])[0]
    assert verdict.explanation.splitlines()[1] == "process 2 delivered a (step 0)"


def test_nothing_is_asked_of_a_destination_that_crashed_even_if_it_recovers() -> None:
    history = told("""
        1 crash
        1 recover
        0 multicast 0.0 to 1,2
        2 deliver 0.0
    """)
    assert outcomes(history) == ("holds", "holds", "holds")


def test_violations_are_missing_deliveries() -> None:
    history = told("""
        0 multicast 0.0 to 1,2,3
        0 multicast 0.1 to 1,2
        3 deliver 0.0
    """)
    assert [verdict.violations for verdict in check(history, NAMES)] == [4, 2, 2]


@pytest.mark.parametrize("name", NAMES)
def test_in_a_run_cut_short_missing_deliveries_may_still_come(name: str) -> None:
    story = """
        0 multicast 0.0 to 0,1
        0 multicast 0.1 to 0,1
        0 deliver 0.0
        0 deliver 0.1
        1 deliver 0.0
    """
    [verdict] = check(told(story, complete=False), [name])
    assert (verdict.outcome, verdict.violations, verdict.witness) == (Outcome.UNKNOWN, 0, None)
    assert verdict.explanation == (
        "the run was cut short while 1 delivery was missing,"
        " the first of message 0.1 to {0,1} at process 1"
    )
    [verdict] = check(told(story + "1 deliver 0.1", complete=False), [name])
    assert verdict.outcome is Outcome.HOLDS


def test_a_message_that_was_never_multicast_is_the_business_of_integrity() -> None:
    assert outcomes(told("1 deliver 5.7")) == ("holds", "holds", "holds")
