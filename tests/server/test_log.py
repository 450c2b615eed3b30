"""Logs of a server: for people, and for programs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from io import StringIO

import pytest

from flexgroup.server.log import set_up_logging

log = logging.getLogger("flexgroup.server")


@pytest.fixture(autouse=True)
def _silent_afterwards() -> Iterator[None]:
    yield
    set_up_logging("none")


def logged(kind: str) -> str:
    stream = StringIO()
    set_up_logging(kind, stream)
    log.debug("a detail")
    log.warning("refused", extra={"data": {"from": "10.0.0.9:5151", "reason": 'a\n"frame"'}})
    try:
        raise ValueError("wrong")
    except ValueError:
        log.exception("failed", extra={"data": {"servers": ["a", "b"], "count": 2}})
    return stream.getvalue()


def test_json_is_an_object_a_line() -> None:
    refused, failed = map(json.loads, logged("json").splitlines())
    assert (refused["event"], refused["level"]) == ("refused", "warning")
    assert (refused["from"], refused["reason"]) == ("10.0.0.9:5151", 'a\n"frame"')
    assert refused["time"].endswith("Z")
    assert failed["servers"] == ["a", "b"]
    assert failed["exception"].endswith("ValueError: wrong")


def test_text_is_a_line_for_people() -> None:
    refused, failed, *trace = logged("text").splitlines()
    assert refused.endswith(' warning refused from=10.0.0.9:5151 reason="a\\n\\"frame\\""')
    assert failed.endswith(' error   failed servers=["a", "b"] count=2')
    assert trace[-1] == "ValueError: wrong"


def test_none_is_silent() -> None:
    assert logged("none") == ""
