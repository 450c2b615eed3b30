"""Traces of schema version 1, recorded by the code as it was when that version was the newest.

`data/version1` holds three trace sets, one from each world, and what the commands said about them
then. The runs of the simulator are those of `SCENARIOS`: they can be simulated again and compared
column by column.
"""

from __future__ import annotations

from pathlib import Path

from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario

VERSION_1 = Path(__file__).parent / "data" / "version1"
SIMULATED, EXPLORED, LIVE = (VERSION_1 / name for name in ("simulator", "explorer", "network"))

SCENARIOS = {
    "clients in a closed loop": Scenario("skeen", 4, 3, "random:2", "lan", duration=0.002),
    "edge clocks": Scenario("dcc/rv", 4, 6, "random:3", "lan", duration=0.0015, seed=2),
    "two layers, reordering": Scenario(
        "fifo dcc", 3, 6, "random:2", "lan:jitter=1ms,fifo=no", duration=0.01, seed=3
    ),
    "losses and duplicates": Scenario(
        "best-effort", 4, 2, "random:2", "lan:loss=0.2,duplication=0.2", 0.004, 4, 1500.0
    ),
    "timers that mend losses": Scenario(
        "reliable fifo", 3, 2, "random:2", "unit:loss=0.2,fifo=no", 0.03, 5, 300.0, 0.5
    ),
    "crash, recovery, suspicion, partition": Scenario(
        "best-effort",
        4,
        2,
        "random:3",
        "neko",
        0.02,
        6,
        500.0,
        faults=Faults(
            crashes=("0@5ms", "1@7.05ms"),
            recoveries=("1@10ms",),
            partitions=("0,1|2,3@1ms-3ms",),
            suspicions=("2:3@4ms-5ms",),
            detection="1ms",
        ),
    ),
    "a partition that drops": Scenario(
        "best-effort",
        4,
        2,
        "broadcast",
        "unit",
        0.01,
        7,
        400.0,
        faults=Faults(partitions=("0,1|2,3@2ms-6ms!drop",)),
    ),
    "wide area": Scenario("df", 5, 3, "random:2", "wan", duration=0.4, seed=8),
    "a crash that is detected": Scenario(
        "vcube-atomic",
        4,
        0,
        "broadcast",
        "neko:contention=no",
        0.05,
        9,
        0.0,
        1.0,
        Faults(crashes=("3@4.2ms",), detection="3ms"),
        "0@0s 2@1ms 3@4ms 1@20ms",
    ),
    "cut short": Scenario("causal-rst", 3, 4, "random:2", "lan", 0.001, 10, 0.0, 0.0),
}
