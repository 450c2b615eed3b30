"""Equal scenarios give equal traces, to the byte, in every process on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

SCENARIOS = {
    "skeen": Scenario("skeen", 5, 4, "random:N", "lan", duration=0.01, seed=7),
    "dcc": Scenario("dcc/rv", 5, 4, "random:2", "lan", duration=0.01, seed=7),
    "layers": Scenario("fifo dcc", 5, 4, "tpcc", "wan:fifo=no", duration=2.0, seed=7),
    "open": Scenario("df", 5, 4, "random:2@0.5", "neko", duration=0.05, seed=7, rate=100.0),
    "faults": Scenario(
        "best-effort",
        5,
        4,
        "random:2",
        "lan:loss=0.1,duplication=0.1,fifo=no",
        duration=0.02,
        seed=7,
        rate=1000.0,
        faults=Faults(
            crashes=("1@5ms",),
            recoveries=("1@9ms",),
            partitions=("0,1|2,3@3ms-6ms",),
            suspicions=("0:2@1ms-2ms",),
            detection="1ms",
        ),
    ),
}


def history(scenario: Scenario) -> History:
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    return collector.history("run", scenario.processes, outcome.complete)


def columns(part: object) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The numeric columns of multicasts, deliveries, sends, ..."""
    values = {name.name: getattr(part, name.name) for name in fields(part)}  # type: ignore[arg-type]
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


PARTS = ("multicasts", "deliveries", "sends", "receives", "crashes", "recoveries")


def same(one: History, other: History) -> bool:
    return all(
        np.array_equal(column, columns(getattr(other, part))[name])
        for part in PARTS
        for name, column in columns(getattr(one, part)).items()
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    scenario = SCENARIOS[name]
    assert same(history(scenario), history(scenario))


@pytest.mark.parametrize("name", SCENARIOS)
def test_another_seed_gives_another_run(name: str) -> None:
    scenario = SCENARIOS[name]
    assert not same(history(scenario), history(replace(scenario, seed=8)))


@pytest.mark.parametrize("name", SCENARIOS)
def test_something_happens(name: str) -> None:
    run = history(SCENARIOS[name])
    assert len(run.deliveries.message) > 20
    if name == "faults":
        assert len(run.crashes.process) == len(run.recoveries.process) == 1
        assert len(run.receives.message) != len(run.sends.message)


SIMULATE = """
import sys
from pathlib import Path
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario
for scenario in eval(sys.argv[1]):
    record_scenario(scenario, Path(sys.argv[2]))
"""


def files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_traces_are_equal_to_the_byte_whatever_the_hash_seed(tmp_path: Path) -> None:
    """Also the files' names, the order of their rows and the texts in them."""
    for seed in ("1", "2"):
        subprocess.run(
            [
                sys.executable,
                "-c",
                SIMULATE,
                repr(list(SCENARIOS.values())),
                str(tmp_path / seed),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
    one, other = files(tmp_path / "1"), files(tmp_path / "2")
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
    assert len([name for name in one if name.startswith("runs/")]) == len(SCENARIOS)
    assert len(one) > 5 * len(SCENARIOS)


def test_numbers_that_are_equal_name_the_same_run() -> None:
    written = Scenario("skeen", 4, 3, duration=1.0, rate=500.0, drain=2.0, seed=5)
    assert Scenario("skeen", 4, 3, duration=1, rate=500, drain=2, seed=5).run == written.run
    as_floats: dict[str, Any] = {"processes": 4.0, "clients": 3.0, "seed": 5.0}
    assert replace(written, **as_floats).run == written.run
    with pytest.raises(UsageError, match=r"processes is a whole number, not 4\.5"):
        replace(written, **{**as_floats, "processes": 4.5})
