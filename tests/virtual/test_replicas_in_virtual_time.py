"""Replicas whose servers are killed and cut off in the midst of calls."""

from __future__ import annotations

import pytest

from .replicated_objects import run


@pytest.mark.parametrize("seed", range(12))
def test_each_call_is_applied_once_in_an_order_that_explains_what_it_returned(seed: int) -> None:
    assert run(seed) == []
