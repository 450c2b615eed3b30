"""Any workload, drawn for groups of replicas."""

from __future__ import annotations

from random import Random

import pytest

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.workloads import parse_workload
from flexgroup.workloads.replicated import Replicated


@pytest.mark.parametrize("spec", ["random:2", "random:N", "tpcc", "partitioned:2x2", "broadcast"])
def test_a_message_goes_to_whole_groups_as_the_workload_draws_them(spec: str) -> None:
    replicas = replicas_of_sizes([3, 1, 2, 3])
    usual = parse_workload(spec, 4)
    replicated = Replicated(usual, replicas)
    assert (replicated.processes, replicated.name) == (9, usual.name)
    assert replicated.payload_bytes == usual.payload_bytes
    one, other = Random(5), Random(5)
    for client in range(50):
        groups = usual.next(client, one)
        members = [member for group in groups for member in replicas[group]]
        assert replicated.next(client, other) == tuple(sorted(members))
