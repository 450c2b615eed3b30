"""The suite on several workers."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is one process only")
@pytest.mark.xdist_group("kept together")
def test_tests_of_a_group_are_kept_together(request: pytest.FixtureRequest) -> None:
    """Otherwise every worker starts a Spark of its own, and the suite takes twice as long."""
    assert request.node.nodeid.endswith("@kept together")
