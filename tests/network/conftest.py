"""Clusters of real server processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .servers import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[str]]:
    """The addresses of three servers."""
    with Cluster(tmp_path) as servers:
        yield servers.addresses
