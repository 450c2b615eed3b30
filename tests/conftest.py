"""One Spark session for all tests: starting it is most of what they cost. Tests that replace what
is compiled are left to `tests/project/test_replacing.py`, which runs them in the pure form. And
what hypothesis generates is the same in every run, so that a test which passed here passes
elsewhere; `pytest --hypothesis-profile=new` looks for what nobody has seen yet."""

from __future__ import annotations

from collections.abc import Iterator
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

SMALL = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": FAST_START}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session.start(name="tests", settings=SMALL)
    yield started.spark
    started.spark.stop()


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in this hook, too
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever uses the session runs in the one worker that has it, which is given that first.
    Tests that start Spark in processes of their own share these within a file. What is large is
    left out unless it is asked for."""
    if "large" not in config.getoption("markexpr"):
        large = [item for item in items if item.get_closest_marker("large")]
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if item not in set(large)]
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group(item.path.name))
