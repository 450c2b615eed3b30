"""One experiment's directory and one browser for all tests of the report that need no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flexgroup.report import write_report

from .browser import Browser, started, why_not
from .directories import experiment


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on the sample experiment, which no test changes."""
    return write_report(experiment(tmp_path_factory.mktemp("sample")))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with started(tmp_path_factory.mktemp("profile")) as ready:
        yield ready
