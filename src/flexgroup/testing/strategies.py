"""Strategies of hypothesis: small systems, and schedules of them."""

from __future__ import annotations

from hypothesis import strategies as st

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.schedules import Schedule, System

MOST_SEEDS = 1000
"""Schedules of one system; hypothesis looks for small seeds, which are no simpler than others."""


@st.composite
def systems(draw: st.DrawFn, processes: int = 5, messages: int = 8) -> System:
    """Up to so many processes and messages, the smallest first."""
    size = draw(st.integers(2, processes))
    members = st.sets(st.integers(0, size - 1), min_size=1)
    chosen = draw(st.lists(members.map(sorted).map(tuple), min_size=1, max_size=messages))
    return System(size, tuple(chosen))


def schedules(
    protocol: str, processes: int = 5, messages: int = 8, *, fifo: bool = True
) -> st.SearchStrategy[Schedule]:
    """Any order of arrivals in any system of up to so many processes and messages.

    A test calls `keeps_its_promises()` of each; what fails prints a script that replays it.
    """
    parse_stack(protocol)
    return st.builds(
        Schedule,
        st.just(protocol),
        systems(processes, messages),
        st.integers(0, MOST_SEEDS),
        st.just(fifo),
    )
