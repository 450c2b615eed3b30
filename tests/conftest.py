"""Two Spark sessions for all tests: starting one is most of what they cost, and with only one the
other tests would be over sooner. Tests that replace what is compiled are left to
`tests/project/test_replacing.py`, which runs them in the pure form. And what hypothesis generates
is the same in every run, so that a test which passed here passes elsewhere;
`pytest --hypothesis-profile=new` looks for what nobody has seen yet."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from flexgroup._pure import compiled
from flexgroup.pipeline.spark import session
from flexgroup.pipeline.spark.java import FAST_START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", deadline=None)
settings.load_profile("same")

collect_ignore_glob = ["*/test_pure_*.py"] if compiled() else []

SESSIONS = 2
"""So many workers start Spark, each for files of its own."""

SMALL = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": FAST_START}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session.start(name="tests", settings=SMALL)
    yield started.spark
    started.spark.stop()


@pytest.hookimpl(optionalhook=True)  # there may be no xdist
def pytest_xdist_auto_num_workers() -> int | None:
    """Two for each processor: half of what tests with servers and browsers do is to wait."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    if sys.platform == "linux":
        return 2 * len(os.sched_getaffinity(0))
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in this hook, too
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever uses a session runs in the workers that have one, which are given that first. Tests
    that start Spark in processes of their own share these within a file. What is large is left out
    unless it is asked for. Workers begin with what is slow, so that none is left with it when the
    others are done."""
    if "large" not in config.getoption("markexpr"):
        large = [item for item in items if item.get_closest_marker("large")]
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if item not in set(large)]
    session_of: dict[Path, int] = {}
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            number = session_of.setdefault(item.path, len(session_of) % SESSIONS)
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group(f"spark {number}"))
        elif item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)
