"""An option for golden scripts: `pytest tests/protocols --rewrite-scripts`."""

from __future__ import annotations

import pytest

OPTION = "--rewrite-scripts"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION,
        action="store_true",
        help="write the answers that golden scripts get now into their files; review the diff",
    )


@pytest.fixture
def rewriting(request: pytest.FixtureRequest) -> bool:
    """Whether golden scripts are to be rewritten instead of checked.

    The default is for runs of the whole suite: they find this file after the command line
    has been read, so they do not know the option.
    """
    return bool(request.config.getoption(OPTION, default=False))
