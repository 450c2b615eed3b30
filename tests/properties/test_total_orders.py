"""Local, pairwise, prefix and acyclic order: four ways to agree on the order of messages."""

from __future__ import annotations

from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Step, Verdict
from flexgroup.trace.history import History

from .histories import identity, told

NAMES = ("local order", "pairwise order", "prefix order", "acyclic order")


def outcomes(history: History) -> tuple[str, ...]:
    return tuple(verdict.outcome.value for verdict in check(history, NAMES))


def verdict_on(name: str, story: str) -> Verdict:
    [verdict] = check(told(story), [name])
    return verdict


def test_all_hold_when_everyone_delivers_in_one_order() -> None:
    history = told("""
        0 multicast 0.0 to 0,1,2
        1 multicast 1.0 to 1,2
        0 deliver 0.0
        1 deliver 0.0
        1 deliver 1.0
        2 deliver 0.0
        2 deliver 1.0
    """)
    assert outcomes(history) == ("holds",) * 4


SAME_SET_IN_OPPOSITE_ORDERS = """
    0 multicast 0.0 to 1,2
    0 multicast 0.1 to 1,2
    1 deliver 0.0
    1 deliver 0.1
    2 deliver 0.1
    2 deliver 0.0
"""


def test_messages_to_one_set_in_opposite_orders_violate_all_four() -> None:
    assert outcomes(told(SAME_SET_IN_OPPOSITE_ORDERS)) == ("violated",) * 4


def test_two_processes_and_two_messages_are_the_witness() -> None:
    first, second = identity("0.0"), identity("0.1")
    for name in ("local order", "pairwise order", "prefix order"):
        verdict = verdict_on(name, SAME_SET_IN_OPPOSITE_ORDERS)
        assert verdict.violations == 1
        assert verdict.witness == (
            Step(1, 0, "deliver", first),
            Step(1, 1, "deliver", second),
            Step(2, 0, "deliver", second),
            Step(2, 1, "deliver", first),
        )
        assert str(verdict) == (
            f"{name}: violated\n"
            "  let a = message 0.0 to {1,2}, b = message 0.1 to {1,2}\n"
            "  process 1 delivered a (step 0) and then b (step 1)\n"
            "  process 2 delivered b (step 0) and then a (step 1)"
        )


def test_messages_to_different_sets_do_not_matter_to_local_order() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        0 multicast 0.1 to 1,2,3
        1 deliver 0.0
        1 deliver 0.1
        2 deliver 0.1
        2 deliver 0.0
        3 deliver 0.1
    """)
    assert outcomes(history) == ("holds", "violated", "violated", "violated")


THREE_PROCESSES_IN_A_CIRCLE = """
    0 multicast 0.0 to 0,2
    0 multicast 0.1 to 0,3
    1 multicast 1.0 to 1,2,3
    0 deliver 0.0
    0 deliver 0.1
    1 deliver 1.0
    3 deliver 0.1
    3 deliver 1.0
    2 deliver 1.0
    2 deliver 0.0
"""


def test_a_cycle_in_which_no_two_processes_share_two_messages() -> None:
    assert outcomes(told(THREE_PROCESSES_IN_A_CIRCLE)) == ("holds", "holds", "holds", "violated")
    verdict = verdict_on("acyclic order", THREE_PROCESSES_IN_A_CIRCLE)
    assert verdict.violations == 1
    assert str(verdict) == (
        "acyclic order: violated\n"
        "  let a = message 0.0 to {0,2}, b = message 0.1 to {0,3}, c = message 1.0 to {1,2,3}\n"
        "  a < b, because process 0 delivered a (step 2) and then b (step 3)\n"
        "  b < c, because process 3 delivered b (step 0) and then c (step 1)\n"
        "  c < a, because process 2 delivered c (step 0) and then a (step 1)"
    )


def test_of_several_cycles_the_witness_is_a_shortest_one() -> None:
    later = SAME_SET_IN_OPPOSITE_ORDERS.replace("0.", "7.")
    verdict = verdict_on("acyclic order", THREE_PROCESSES_IN_A_CIRCLE + later)
    assert verdict.violations == 2
    assert verdict.explanation.splitlines() == [
        "let a = message 7.0 to {1,2}, b = message 7.1 to {1,2}",
        "a < b, because process 1 delivered a (step 2) and then b (step 3)",
        "b < a, because process 2 delivered b (step 2) and then a (step 3)",
    ]


def test_violations_of_acyclic_order_are_separate_components() -> None:
    later = THREE_PROCESSES_IN_A_CIRCLE.replace("0.", "0.9").replace("1.0", "1.9")
    assert verdict_on("acyclic order", THREE_PROCESSES_IN_A_CIRCLE + later).violations == 2


def test_violations_of_pairwise_order_are_pairs_of_processes() -> None:
    verdict = verdict_on(
        "pairwise order",
        """
        0 multicast 0.0 to 0,1,2
        0 multicast 0.1 to 0,1,2
        0 multicast 0.2 to 0,1,2
        0 deliver 0.0
        0 deliver 0.1
        0 deliver 0.2
        1 deliver 0.2
        1 deliver 0.1
        1 deliver 0.0
        2 deliver 0.0
        2 deliver 0.1
        2 deliver 0.2
        """,
    )
    assert verdict.violations == 2


def test_a_duplicate_delivery_is_no_disorder() -> None:
    history = told("""
        0 multicast 0.0 to 1,2
        0 multicast 0.1 to 1,2
        1 deliver 0.0
        1 deliver 0.1
        1 deliver 0.0
        2 deliver 0.0
        2 deliver 0.1
    """)
    assert outcomes(history) == ("holds",) * 4


TWO_MESSAGES = """
    0 multicast 0.0 to 1,2
    0 multicast 0.1 to 1,2
"""


def test_prefix_order_lets_a_process_fall_behind() -> None:
    assert outcomes(told(TWO_MESSAGES + "1 deliver 0.0\n1 deliver 0.1\n2 deliver 0.0")) == (
        ("holds",) * 4
    )


def test_prefix_order_forbids_to_skip() -> None:
    story = TWO_MESSAGES + "1 deliver 0.0\n1 deliver 0.1\n2 deliver 0.1"
    for complete in (True, False):
        history = told(story, complete=complete)
        assert outcomes(history) == ("holds", "holds", "violated", "holds")
    verdict = verdict_on("prefix order", story)
    assert verdict.violations == 1
    assert str(verdict) == (
        "prefix order: violated\n"
        "  let a = message 0.0 to {1,2}, b = message 0.1 to {1,2}\n"
        "  process 1 delivered a (step 0) and then b (step 1)\n"
        "  process 2 delivered b (step 0), but not a"
    )


def test_prefix_order_forbids_two_processes_to_part() -> None:
    verdict = verdict_on("prefix order", TWO_MESSAGES + "1 deliver 0.0\n2 deliver 0.1")
    assert verdict.explanation.splitlines()[1:] == [
        "process 1 delivered a (step 0), but not b",
        "process 2 delivered b (step 0), but not a",
    ]


def test_prefix_order_binds_processes_that_crash() -> None:
    history = told(TWO_MESSAGES + "1 deliver 0.0\n2 deliver 0.1\n2 crash")
    assert outcomes(history) == ("holds", "holds", "violated", "holds")


def test_prefix_order_is_about_destinations_not_about_who_delivered() -> None:
    history = told("""
        0 multicast 0.0 to 1
        0 multicast 0.1 to 1,2
        1 deliver 0.0
        1 deliver 0.1
        2 deliver 0.1
    """)
    assert outcomes(history) == ("holds",) * 4
