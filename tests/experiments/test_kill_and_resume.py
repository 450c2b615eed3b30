"""An experiment whose driver is killed in the middle ends as if it had not been."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from flexgroup.experiments.experiment import SMALL
from flexgroup.pipeline.spark.java import FAST_START

from .tiny import TINY, run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINISHED = 3
"""The runs that the driver finishes; the next one does not end before the driver is killed."""

DRIVER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import signal
from contextlib import contextmanager
from pathlib import Path
from tiny import TINY
from flexgroup.experiments import sweep
from flexgroup.experiments.directory import reserved_directory
from flexgroup.experiments.run import run_experiment
from flexgroup.pipeline.spark.session import start

@contextmanager
def told(doing):
    yield lambda share: print(share, flush=True)

class OnlySome(list):
    def __getitem__(self, number):
        return super().__getitem__(number) if number < {FINISHED} else signal.pause()

in_order = sweep.long_ones_first
sweep.long_ones_first = lambda pending: OnlySome(in_order(pending))
settings = {{"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": {FAST_START!r}}}
spark = start("local[1]", settings=settings).spark
with reserved_directory(TINY, "small", Path(sys.argv[1]), force=False) as directory:
    run_experiment(spark, TINY, "small", directory, told)
"""


def killed_in_the_middle(out: Path, runs: int) -> int:
    """How many of the runs a driver had finished when it was killed."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert driver.stdout is not None
    with driver, driver.stdout:
        for line in driver.stdout:
            if float(line) >= FINISHED / runs:
                os.kill(driver.pid, signal.SIGKILL)
                break
    assert driver.returncode == -signal.SIGKILL
    return len(list((out / "traces" / "runs").glob("[!_]*.parquet")))


def tables(out: Path) -> dict[str, list[dict[str, Any]]]:
    return {path.name: pq.read_table(path).to_pylist() for path in (out / "tables").iterdir()}


@pytest.mark.slow
def test_the_tables_are_those_of_an_uninterrupted_run(spark: SparkSession, tmp_path: Path) -> None:
    runs = len(TINY.scenarios(SMALL))
    finished = killed_in_the_middle(tmp_path / "killed", runs)
    assert finished == FINISHED < runs
    resumed = run_here(spark, TINY, tmp_path / "killed")
    assert (resumed.found, resumed.simulated) == (finished, runs - finished)
    whole = run_here(spark, TINY, tmp_path / "whole")
    assert (whole.found, whole.simulated) == (0, runs)
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")
    assert set(tables(tmp_path / "whole")) == {
        "verdicts", "evidence", "measures", "packets", "points", "claims"
    }  # fmt: skip
    for name in ("figures.md", "figures/t1.svg", "experiment.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
