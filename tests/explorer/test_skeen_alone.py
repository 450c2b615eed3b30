"""No process of Skeen's protocol can be told anything by others that breaks what all rely on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flexgroup.protocols.catalogue import StackPlan

from . import variants
from .skeen_alone import Others


@pytest.mark.parametrize(
    ("messages", "together", "states"),
    [(2, False, [1_108, 1_095, 1_055, 1_015]), (3, True, [1_298, 1_170, 1_020, 876])],
)
def test_at_each_process(messages: int, together: bool, states: list[int]) -> None:
    assert [Others(p, messages, 2, together).explore() for p in range(4)] == states


def test_a_message_to_three_processes() -> None:
    assert Others(1, 2, 3).explore() == 3_920


@pytest.mark.large
def test_with_four_messages() -> None:
    """At the others there are more states."""
    assert Others(3, 4, together=True).explore() == 36_644


def test_timestamps_told_together_lead_to_the_same_ends() -> None:
    """That they come one right after the other leaves nothing out."""
    apart, together = (Others(1, 2, together=told).ends() for told in (False, True))
    assert apart == together
    assert len(apart) == 19


@pytest.mark.parametrize(
    "variant",
    [
        variants.skeen_without_line_14,
        variants.skeen_that_does_not_wait_for_lower_proposals,
        variants.skeen_that_takes_the_lowest_proposal,
        variants.skeen_that_breaks_ties_by_itself,
        variants.skeen_with_line_18_as_printed,
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_a_variant_is_noticed(variant: Callable[[], StackPlan], together: bool) -> None:
    (layer,) = variant().layers
    with pytest.raises(AssertionError):
        Others(1, 2, together=together, layer=layer).explore()
