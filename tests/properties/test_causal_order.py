"""Causal order: nothing arrives before what it may have been caused by."""

from __future__ import annotations

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import History

from .histories import identity, told


def causal_order(history: History) -> Verdict:
    [verdict] = check(history, ["causal order"])
    return verdict


QUESTION_AND_ANSWER = """
    0 multicast 0.0 to 1,2
    1 deliver 0.0
    1 multicast 1.0 to 0,2
    0 deliver 1.0
"""


def test_holds_when_the_answer_follows_the_question() -> None:
    history = told(QUESTION_AND_ANSWER + "2 deliver 0.0\n2 deliver 1.0")
    assert causal_order(history).outcome is Outcome.HOLDS


def test_an_answer_before_its_question() -> None:
    verdict = causal_order(told(QUESTION_AND_ANSWER + "2 deliver 1.0\n2 deliver 0.0"))
    question, answer = identity("0.0"), identity("1.0")
    assert verdict.violations == 1
    assert verdict.witness == (
        Step(1, 0, "deliver", question),
        Step(1, 1, "multicast", answer),
        Step(2, 0, "deliver", answer),
        Step(2, 1, "deliver", question),
    )
    assert str(verdict) == (
        "causal order: violated\n"
        "  let a = message 0.0 to {1,2}, b = message 1.0 to {0,2}\n"
        "  a -> b, because process 1 delivered a (step 0) and then multicast b (step 1)\n"
        "  process 2 delivered b (step 0) and only then a (step 1)"
    )


def test_an_answer_without_its_question_even_in_a_run_cut_short() -> None:
    verdict = causal_order(told(QUESTION_AND_ANSWER + "2 deliver 1.0", complete=False))
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.explanation.splitlines()[-1] == (
        "process 2 delivered b (step 0) and did not deliver a"
    )


def test_a_question_that_nobody_answered_in_time_causes_nothing() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        1 multicast 1.0 to 2
        1 deliver 0.0
        2 deliver 1.0
        2 deliver 0.0
    """)
    assert causal_order(history).outcome is Outcome.HOLDS


def test_causes_pass_through_messages_that_the_process_never_sees() -> None:
    verdict = causal_order(
        told("""
            0 multicast 0.0 to 3
            0 multicast 0.1 to 1
            1 deliver 0.1
            1 multicast 1.0 to 2
            2 deliver 1.0
            2 multicast 2.0 to 3
            3 deliver 2.0
            3 deliver 0.0
        """)
    )
    assert str(verdict) == (
        "causal order: violated\n"
        "  let a = message 0.0 to {3}, b = message 0.1 to {1},"
        " c = message 1.0 to {2}, d = message 2.0 to {3}\n"
        "  a -> b, because process 0 multicast a (step 0) and then b (step 1)\n"
        "  b -> c, because process 1 delivered b (step 0) and then multicast c (step 1)\n"
        "  c -> d, because process 2 delivered c (step 0) and then multicast d (step 1)\n"
        "  process 3 delivered d (step 0) and only then a (step 1)"
    )


def test_a_client_only_multicasts_and_still_causes() -> None:
    history = told(
        """
        7 multicast 7.0 to 1
        7 multicast 7.1 to 0
        0 deliver 7.1
        0 multicast 0.0 to 1
        1 deliver 0.0
        1 deliver 7.0
        """,
        processes=2,
    )
    assert causal_order(history).violations == 1


def test_among_clients_alone_it_is_fifo_order() -> None:
    history = told("""
        7 multicast 7.0 to 1
        7 multicast 7.1 to 1
        1 deliver 7.1
        1 deliver 7.0
    """)
    assert causal_order(history).explanation.splitlines()[1:] == [
        "a -> b, because process 7 multicast a (step 0) and then b (step 1)",
        "process 1 delivered b (step 0) and only then a (step 1)",
    ]


def test_violations_are_deliveries_that_came_too_early() -> None:
    verdict = causal_order(
        told("""
            0 multicast 0.0 to 1,2,3
            1 deliver 0.0
            1 multicast 1.0 to 2,3
            1 multicast 1.1 to 2,3
            2 deliver 1.0
            2 deliver 1.1
            3 deliver 1.0
        """)
    )
    assert verdict.violations == 3


CONTRADICTION = """
    0 deliver 0.0
    0 multicast 0.0 to 0
    0 multicast 0.1 to 0
"""


def test_a_trace_that_contradicts_itself_decides_nothing() -> None:
    verdict = causal_order(told(CONTRADICTION))
    assert (verdict.outcome, verdict.violations) == (Outcome.UNKNOWN, 0)
    assert verdict.explanation == (
        "the trace contradicts itself: following causes back from 2 messages, message 0.0 among"
        " them, leads to a message that was delivered before it was multicast"
    )


def test_beside_a_contradiction_certain_violations_count() -> None:
    elsewhere = """
        1 multicast 1.0 to 2,3
        2 deliver 1.0
        2 multicast 2.0 to 3
        3 deliver 2.0
    """
    assert causal_order(told(CONTRADICTION + elsewhere)).violations == 1
    out_of_fifo_order = """
        0 multicast 0.2 to 0
        0 deliver 0.2
    """
    assert causal_order(told(CONTRADICTION + out_of_fifo_order)).violations == 1
