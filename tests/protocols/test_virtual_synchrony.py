"""Virtual synchrony: what processes are told of members, and what they have delivered before."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from flexgroup.core.host import Host
from flexgroup.core.layer import GroupCreate, GroupDestroy, GroupUpdate, Notice, View
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.reader import load_history, read_run
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

CREATED = GroupCreate(7, "g", 1, (0, 1), ("ann", "bob"))
JOINED = GroupUpdate(7, 2, (0, 1, 2), ("ann", "bob", "eve"))
ENDED = GroupDestroy(7)


class NoticingBench(Bench):
    """Notes at which place among its deliveries each process has got which notice."""

    def __init__(self, stack: str, size: int) -> None:
        self.noticed: dict[int, list[tuple[int, Notice]]] = {process: [] for process in range(size)}
        super().__init__(parse_stack(stack), size)

    def on_notice(self, host: Host, notice: Notice) -> None:
        super().on_notice(host, notice)
        self.noticed[host.process].append((len(self.delivered[host.process]), notice))

    def let_all_arrive(self, random: Random) -> None:
        while self.channels:
            self.deliver(*random.choice(sorted(self.channels)))


def test_a_group_that_is_created_is_news_at_once() -> None:
    bench = NoticingBench("virtual-synchrony", 2)
    bench.tell(0, CREATED)
    assert [notice for _, notice in bench.noticed[0]][1:] == [CREATED]
    assert bench.quiet


@pytest.mark.parametrize("seed", range(20))
def test_all_pass_a_change_of_a_group_at_the_same_place_among_all_messages(seed: int) -> None:
    """Whenever each is told, and whatever is under way: also what is multicast to other groups."""
    random = Random(seed)
    bench = NoticingBench("virtual-synchrony", 3)
    told = [(process, change) for process in range(3) for change in (JOINED, ENDED)]
    for _ in range(30):
        if bench.channels and random.random() < 0.6:
            bench.deliver(*random.choice(sorted(bench.channels)))
        elif told and random.random() < 0.3:
            turn = random.choice([place for place, _ in enumerate(told) if _is_next(told, place)])
            bench.tell(*told.pop(turn))
        else:
            bench.cast(random.randrange(3), (0, 1, 2))
    for process, change in told:
        bench.tell(process, change)
    bench.let_all_arrive(random)
    places = []
    for process in range(3):
        (_, first), (joined_at, joined), (ended_at, ended) = bench.noticed[process]
        assert isinstance(first, View)
        assert isinstance(joined, GroupUpdate)
        assert joined.members == JOINED.members
        assert isinstance(ended, GroupDestroy)
        order = [m.id for m in bench.delivered[process]]
        between = order[:joined_at], order[joined_at:ended_at], order[ended_at:]
        places.append([sorted(stay) for stay in between])
    assert places[0] == places[1] == places[2]


def _is_next(told: list[tuple[int, GroupUpdate | GroupDestroy]], place: int) -> bool:
    """Whether a process has been told of all changes before this one."""
    process, _ = told[place]
    return process not in [other for other, _ in told[:place]]


@pytest.mark.parametrize("stack", ["reliable", "reliable causal", "reliable atomic"])
def test_who_installs_the_next_view_has_delivered_the_same(stack: str, tmp_path: Path) -> None:
    """Simulated, with messages under way all the time and a process that crashes."""
    scenario = Scenario(
        stack=f"{stack} virtual-synchrony",
        processes=4,
        clients=8,
        workload="broadcast",
        network="lan:fifo=no",
        duration=0.05,
        seed=1,
        rate=500.0,
        drain=0.2,
        faults=Faults(crashes=("3@20ms",), detection="1ms", views=("0,1,2@25ms", "0,1,2@40ms")),
    )
    run = read_run(tmp_path, record_scenario(scenario, tmp_path).run)
    assert "virtual synchrony" in (run.promises or ())
    (verdict,) = check(load_history(tmp_path, run), ["virtual synchrony"])
    assert verdict.outcome == Outcome.HOLDS, verdict.explanation
    assert "before 6 changes of view" in verdict.explanation
