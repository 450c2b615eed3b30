"""What a process that is faulty by design does is no violation, of whatever property."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexgroup.properties.catalogue import PROPERTIES, check

from .faulty_stories import FAULTY, STORIES
from .histories import told


def test_there_is_a_story_for_each_property() -> None:
    assert list(STORIES) == list(PROPERTIES)


@pytest.mark.parametrize("name", PROPERTIES)
def test_nothing_that_the_faulty_do_counts(name: str) -> None:
    history = told(STORIES[name])
    (verdict,) = check(history, [name])
    assert verdict.outcome.value == "violated"
    (verdict,) = check(replace(history, faulty=FAULTY), [name])
    assert verdict.outcome.value == "holds"


AMONG_OTHERS = {
    "integrity": "3 multicast 3.0 to 1\n1 deliver 3.0\n1 deliver 3.0",
    "agreement": "3 multicast 3.0 to 1,2\n1 deliver 3.0",
    "causal order": "3 deliver 0.0\n0 multicast 0.0 to 2\n0 multicast 0.1 to 2\n2 deliver 0.1",
    "acyclic order": "3 multicast 3.0 to 1,2\n0 multicast 0.0 to 1,2\n1 deliver 3.0\n"
    "1 deliver 0.0\n2 deliver 0.0\n2 deliver 3.0",
}


@pytest.mark.parametrize("name", AMONG_OTHERS)
def test_what_the_others_do_counts_as_before(name: str) -> None:
    """Also with messages of a faulty process, which the others have to treat alike."""
    (verdict,) = check(replace(told(AMONG_OTHERS[name]), faulty=FAULTY), [name])
    assert verdict.outcome.value == "violated"
