"""Each protocol, with one of its ideas taken out, is caught by exploring a small system."""

from __future__ import annotations

from collections import Counter

import pytest

from flexgroup.protocols.catalogue import PROTOCOLS
from flexgroup.worlds.explorer.explorer import explore

from .variant_parts import Case
from .variants import CASES, left_alone, named


@pytest.mark.usefixtures("attackers_of_groups")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_broken_variant_is_caught_and_the_protocol_left_alone_is_not(case: Case) -> None:
    outcome = explore(case.variant(), case.scope, keep_going=True)
    assert case.broken in outcome.broken
    alone = explore(left_alone(case.module), case.scope)
    assert alone.exhausted
    assert not alone.violations
    assert alone.complete == alone.terminals > 0


def test_every_protocol_has_three() -> None:
    """A name that stands for another protocol's layer with an option has the variants of that."""
    variants = Counter(case.module.replace("_", "-") for case in CASES)
    own = [name for name, row in PROTOCOLS.items() if not row.always]
    without = [name for name in own if variants[name] < 3]
    assert not without, "add variants to tests/explorer/variants.py"
