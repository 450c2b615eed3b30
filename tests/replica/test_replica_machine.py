"""What replicas promise, for every order in which things may come to them."""

from __future__ import annotations

import pytest

from .group_model import GroupModel

SEEDS = range(400)


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_replicas_agree_and_apply_each_call_once(processes: int) -> None:
    for seed in SEEDS:
        group = GroupModel(seed, processes)
        group.run(steps=60 * processes, losses=3, calls=4 * processes)
        check(group, seed)


def check(group: GroupModel, seed: int) -> None:
    first, *others = group.processes
    assert all(process.machine.is_ready for process in group.processes), seed
    for other in others:
        assert other.state.lines == first.state.lines, seed
        assert other.machine.members == first.machine.members, seed
    assert sorted(first.machine.members) == sorted(group.members), seed
    applied = [line.split()[1] for line in first.state.lines if "." in line]
    assert len(applied) == len(set(applied)), f"seed {seed}: a call is applied twice"
    for process in group.processes:
        assert len(process.answers) == process.calls, f"seed {seed}: a call has no outcome"
        if group.times_begun() == 1:
            own = [line for line in applied if line.startswith(f"{process.name}.")]
            assert len(own) == process.calls, f"seed {seed}: a call is not applied"
            assert None not in process.answers.values(), seed
