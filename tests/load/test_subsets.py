"""Clients in closed loops that multicast to subsets, as the workloads say."""

from __future__ import annotations

import time
from random import Random

import pytest

from flexgroup.load.subsets import ALL, LAST, Multicast, SubsetClients
from flexgroup.workloads.catalogue import parse_workload

FAR_AWAY = 1e9


def clients_of(workload: str, clients: int, answers: str, seed: int = 7) -> SubsetClients:
    return SubsetClients(parse_workload(workload, 4), clients, answers, seed)


@pytest.mark.parametrize("workload", ["random:2", "random:N", "tpcc", "partitioned:2x2@0.5"])
def test_messages_go_where_the_workload_sends_them(workload: str) -> None:
    clients = clients_of(workload, 3, ALL)
    random = Random(7)
    planned = [parse_workload(workload, 4).next(client, random) for client in range(3)]
    assert [destinations for destinations, _ in clients.begin(0, FAR_AWAY)] == planned


def test_messages_are_as_large_as_the_workload_says() -> None:
    assert {len(body) for _, body in clients_of("broadcast", 2, ALL).begin(0, FAR_AWAY)} == {64}


def deliveries_until_the_next(clients: SubsetClients, first: Multicast) -> list[int]:
    """Deliver a message at its destinations, and name those after which another follows."""
    destinations, body = first
    return [process for process in destinations if clients.delivered(process, [body])]


@pytest.mark.parametrize(("answers", "order"), [(ALL, (3, 2, 1, 0)), (LAST, (0, 3, 1, 2))])
def test_a_client_waits_for_the_answers_that_it_needs(answers: str, order: tuple[int, ...]) -> None:
    clients = clients_of("broadcast", 1, answers)
    ((_, body),) = clients.begin(0, FAR_AWAY)
    assert deliveries_until_the_next(clients, (order, body)) == [0 if answers == ALL else 3]
    assert clients.undelivered == 4, "the next one is under way, the first one is not"
    assert (clients.load.completed, clients.load.delivered, clients.sent) == (1, 4, 2)


def test_after_the_end_nothing_is_multicast() -> None:
    clients = clients_of("broadcast", 2, LAST)
    first = clients.begin(0, time.monotonic())
    assert [deliveries_until_the_next(clients, each) for each in first] == [[], []]
    assert (clients.undelivered, clients.load.completed) == (0, 0)


def test_frames_are_counted_once_for_each_server_that_they_come_from_or_go_to() -> None:
    clients = clients_of("broadcast", 3, LAST)
    bodies = [body for _, body in clients.begin(0, FAR_AWAY)]
    assert len(clients.delivered(3, bodies)) == 3
    assert clients.frames == 2, "one frame came, and three messages leave in another"
