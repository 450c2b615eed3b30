"""What a failure detector at work in a stack leaves in the trace of a server."""

from __future__ import annotations

import pytest

from flexgroup.core.codec import Codec
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace import schema
from flexgroup.trace.recorder import Recorder, Sink
from flexgroup.trace.writer import blocks_by_kind
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.faults import Faults


class Suspicions(Sink):
    """(who, what is said of it), in order."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str | None]] = []

    def take(
        self,
        columns: list[bytes],
        labels: list[tuple[str | None, str | None]],
        destination_sets: list[tuple[int, ...]],
    ) -> None:
        for kind, block in blocks_by_kind(columns):
            if kind == schema.SUSPECT:
                rows = zip(block["peer"].tolist(), block["label"].tolist(), strict=True)
                self.told += [(peer, labels[label][1]) for peer, label in rows]


@pytest.mark.parametrize("stack", ["heartbeat", "heartbeat skeen"])
def test_a_server_records_whom_the_detector_in_a_stack_suspects_and_trusts(stack: str) -> None:
    suspicions = Suspicions()
    recorder = Recorder(suspicions)
    plan = parse_stack(stack)

    def hosted(process: int, recorder: Recorder | None) -> Domain:
        domain = Domain(plan.build(process, 2), Codec(plan.layers), 2, Faults(), recorder)
        domain.start(0)
        return domain

    here, there = hosted(0, recorder), hosted(1, None)
    for now in range(100):
        here.end_timers(now)
    there.end_timers(99)
    here.receive(100, 1, bytes(there.outgoing[0]), 0)
    recorder.flush()
    assert suspicions.told == [(1, '{"suspected":true}'), (1, '{"suspected":false}')]
