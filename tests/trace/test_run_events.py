"""Events of a run that contradict each other are found, however far apart their steps lie."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.trace.run import Run
from flexgroup.trace.run_events import RunEvents

FAR = 1_700_000_000_000_000_000
"""A time in nanoseconds, which somebody takes for a step."""


def judge(told: dict[str, Any] | None = None, **events: list[dict[str, int]]) -> None:
    seen = RunEvents(Run(run="r", world="made up", stack="theirs", processes=3, **(told or {})))
    for kind, rows in events.items():
        seen.take(kind, pa.Table.from_pylist(rows))
    seen.refuse_contradictions()


def cast(step: int, seq: int) -> dict[str, int]:
    return {"process": 0, "step": step, "origin": 0, "seq": seq}


def sent(process: int, step: int) -> dict[str, int]:
    return {"process": process, "step": step}


def received(step: int, peer: int, at: int) -> dict[str, int]:
    return {"process": 2, "step": step, "peer": peer, "sent": at}


@pytest.mark.parametrize("since", [0, FAR])
def test_a_sound_run(since: int) -> None:
    judge(
        multicast=[cast(since, 0), cast(since + 1, 1)],
        send=[sent(0, since + 2), sent(1, since)],
        receive=[received(since, 0, since + 2), received(since + 1, 1, since)],
    )


@pytest.mark.parametrize("since", [0, FAR])
def test_a_step_twice(since: int) -> None:
    told = f"in run 'r' process 0 has 2 events at step {since + 1}: two runs with the same name"
    with pytest.raises(UsageError, match=re.escape(told)):
        judge(multicast=[cast(since + 1, 0)], send=[sent(0, since + 1), sent(1, since + 1)])


def test_a_message_twice() -> None:
    with pytest.raises(UsageError, match=re.escape("message 0.7 was multicast twice")):
        judge(multicast=[cast(0, 7), cast(1, 7)])


@pytest.mark.parametrize("since", [0, FAR])
@pytest.mark.parametrize(("peer", "later"), [(0, 3), (1, 2), (2, 2), (0, 10**9)])
def test_a_packet_from_nowhere(since: int, peer: int, later: int) -> None:
    told = f"1 row of packets that process {peer} did not send: it sent nothing at step"
    with pytest.raises(UsageError, match=told):
        judge(send=[sent(0, since + 2)], receive=[received(since, peer, since + later)])


def test_what_a_process_sent_may_be_lost() -> None:
    judge({"lost": "[1]"}, send=[sent(0, 2)], receive=[received(0, 1, 9)])


def test_runs_without_send_events_are_those_of_systems_that_do_not_tell() -> None:
    judge(receive=[received(0, 1, 9)])


def test_another_number_of_events_than_is_told() -> None:
    told = "run 'r' has 1 send events, and `runs` tells of 2: files are missing"
    with pytest.raises(UsageError, match=told):
        judge({"events": '{"send":2}'}, send=[sent(0, 2)])
