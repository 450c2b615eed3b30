"""Servers that were cut off are back soon after the cut is mended, however long it was."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from flexgroup.virtual.execution import Execution
from flexgroup.virtual.network import Latency
from flexgroup.virtual.schedule import Action, ClientPlan, Schedule

PATIENCE = 2.0
A_FEW_BEATS = 6 * PATIENCE / 10


class UntilTheLastAction(Execution):
    """What has not come to pass by then is not waited for."""

    all_are_in_one_configuration = False

    def _end(self) -> None:
        servers = [server.server for server in self.servers if server.server is not None]
        self.all_are_in_one_configuration = (
            all(self.size_of(server) == len(self.servers) for server in self.servers)
            and len({server.deployment.number for server in servers}) == 1
            and not any(server.deployment.is_changing for server in servers)
        )


def parted(side: set[int], servers: int) -> list[tuple[int, int]]:
    others = set(range(servers)) - side
    return [*product(side, others), *product(others, side)]


@pytest.mark.parametrize("length", [1.0, 1.4, 1.6, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0])
@pytest.mark.parametrize(
    ("servers", "ways"),
    [
        (3, parted({2}, 3)),
        (3, parted({0}, 3)),
        (5, parted({3, 4}, 5)),
        (3, [*permutations(range(3), 2)]),
    ],
    ids=["youngest", "oldest", "two of five", "all links"],
)
def test_a_few_beats_after_a_cut_all_are_in_one_configuration(
    servers: int, ways: list[tuple[int, int]], length: float
) -> None:
    heals(servers, ways, length, Latency(0.0002, 0.001), seed=1)


@pytest.mark.parametrize("seed", range(1, 7))
def test_servers_that_come_back_at_once_do_not_wait_for_each_other(seed: int) -> None:
    """One of two that are excluded may ask the other one first, which is no member any more."""
    heals(5, parted({0, 1}, 5), 5.0, Latency(0.0002, 0.0001), seed)


def heals(
    servers: int, ways: list[tuple[int, int]], length: float, latency: Latency, seed: int
) -> None:
    actions = (
        *(Action(0.0, "cut", (str(one), str(other))) for one, other in ways),
        Action(length, "heal", ()),
        Action(length + A_FEW_BEATS, "heal", ()),
    )
    clients = tuple(ClientPlan(f"c{number}", number, ("A",)) for number in range(servers))
    execution = UntilTheLastAction(
        Schedule(seed, "RELIABLE ATOMIC", servers, clients, actions, latency, PATIENCE)
    )
    execution.run()
    assert execution.problems == []
    assert execution.all_are_in_one_configuration
