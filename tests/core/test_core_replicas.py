"""Groups of replicas: which divisions of the processes are possible, and what goes to them."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.replicas import (
    check_destinations,
    check_replicas,
    group_number,
    group_of,
    members_of_groups,
    numbers_of_groups,
    replicas_of_sizes,
)


def test_groups_are_of_consecutive_processes() -> None:
    assert replicas_of_sizes([3, 1]) == ((0, 1, 2), (3,))
    assert group_of(replicas_of_sizes([3, 1]), 3) == (3,)
    assert group_of(replicas_of_sizes([3, 1]), 4) == ()


@pytest.mark.parametrize(
    "replicas", [((0, 1),), ((0, 1), (3,)), ((0, 2), (1,)), ((0, 1, 2), ()), ((0, 1), (1, 2))]
)
def test_what_does_not_divide_three_processes_is_refused(
    replicas: tuple[tuple[int, ...], ...],
) -> None:
    with pytest.raises(UsageError, match="replicas do not divide 3 processes"):
        check_replicas(replicas, 3)


def test_what_does_is_not_and_there_need_not_be_groups() -> None:
    for sizes in ([3], [1, 2], [1, 1, 1], []):
        check_replicas(replicas_of_sizes(sizes), 3)


def test_a_message_goes_to_whole_groups() -> None:
    replicas = replicas_of_sizes([2, 1, 2])
    for destinations in ((0, 1), (2,), (0, 1, 3, 4), (0, 1, 2, 3, 4)):
        check_destinations(replicas, destinations)
    with pytest.raises(UsageError, match="goes to a part of the group 3,4"):
        check_destinations(replicas, (0, 1, 3))


def test_groups_have_numbers() -> None:
    replicas = replicas_of_sizes([3, 1, 2])
    assert [group_number(replicas, process) for process in range(7)] == [0, 0, 0, 1, 2, 2, -1]
    assert numbers_of_groups(replicas, (0, 1, 2, 4, 5)) == (0, 2)
    assert members_of_groups(replicas, (0, 2)) == (0, 1, 2, 4, 5)
    assert members_of_groups(replicas, ()) == numbers_of_groups(replicas, ()) == ()
