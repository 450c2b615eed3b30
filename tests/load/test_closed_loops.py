"""Closed loops: what they send, what they count."""

from __future__ import annotations

import json
import os
import time

import pytest

from flexgroup.client.errors import BadStack, ConnectionLost
from flexgroup.load import closed_loops
from flexgroup.load.closed_loops import TAG, ClosedLoops, share_of
from flexgroup.load.measurement import Load, Summary, cpu_seconds
from flexgroup.load.member import LoopSender
from flexgroup.wire import requests as r

from ..client.chat import in_chat, sent_to
from ..client.loops import on_a_loop

LONG_AGO, FAR_AWAY = 0.0, 1e9


def test_each_loop_has_one_message_under_way() -> None:
    loops = ClosedLoops(member=1, loops=3, payload=64)
    first = loops.begin(LONG_AGO, FAR_AWAY)
    assert [TAG.unpack_from(body)[:2] for body in first] == [(1, 0), (1, 1), (1, 2)]
    assert {len(body) for body in first} == {64}
    following = loops.delivered([first[2], first[0]])
    assert [TAG.unpack_from(body)[:2] for body in following] == [(1, 2), (1, 0)]
    assert {len(body) for body in following} == {64}


def test_messages_of_others_are_counted_and_not_answered() -> None:
    loops = ClosedLoops(member=1, loops=1, payload=64)
    (other,) = ClosedLoops(member=0, loops=1, payload=64).begin(LONG_AGO, FAR_AWAY)
    (own,) = loops.begin(LONG_AGO, FAR_AWAY)
    assert len(loops.delivered([other, own, other])) == 1
    assert (loops.load.completed, loops.load.delivered) == (1, 3)


def test_latencies_are_counted_in_microseconds_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(0, 1_000_000_000, 5_000))
    monkeypatch.setattr(closed_loops, "monotonic_ns", lambda: next(clock))
    monkeypatch.setattr(closed_loops, "MOST_LATENCIES", 4)
    loops = ClosedLoops(member=300, loops=1, payload=64)
    (body,) = loops.begin(LONG_AGO, FAR_AWAY)
    for _ in range(10):
        (body,) = loops.delivered([body])
    assert (loops.load.completed, loops.load.delivered) == (10, 10)
    assert loops.load.latencies == {5: 10}


def test_members_are_told_apart_by_both_bytes_of_their_numbers() -> None:
    loops = ClosedLoops(member=1, loops=1, payload=64)
    loops.begin(LONG_AGO, FAR_AWAY)
    (other,) = ClosedLoops(member=257, loops=1, payload=64).begin(LONG_AGO, FAR_AWAY)
    assert loops.delivered([other]) == []


def test_what_comes_back_before_the_beginning_does_not_count() -> None:
    loops = ClosedLoops(member=0, loops=1, payload=64)
    (own,) = loops.begin(FAR_AWAY, FAR_AWAY + 1)
    assert len(loops.delivered([own])) == 1
    assert loops.load.completed == loops.load.delivered == 0


def test_after_the_end_nothing_is_sent() -> None:
    loops = ClosedLoops(member=0, loops=1, payload=64)
    (own,) = loops.begin(LONG_AGO, time.monotonic())
    assert loops.delivered([own]) == []
    assert loops.load.completed == 0


def test_percentiles() -> None:
    load = Load(seconds=2.0, completed=100)
    load.latencies.update({1_000: 50, 2_000: 49, 9_000: 1})
    assert [load.percentile(share) for share in (0.5, 0.51, 0.99, 1.0)] == [1.0, 2.0, 2.0, 9.0]
    assert Load().percentile(0.5) == 0


def test_a_summary_has_a_few_figures_however_many_messages_there_were() -> None:
    load = Load(seconds=2.0, completed=100, delivered=300, server_cpu=0.001, member_cpu=0.002)
    load.latencies.update({1_000: 50, 2_000: 49, 9_000: 1})
    summary = load.summary()
    assert summary == Summary(
        seconds=2.0,
        messages_a_second=50.0,
        deliveries_a_second=150.0,
        mean_ms=1.57,
        p50_ms=1.0,
        p90_ms=2.0,
        p99_ms=2.0,
        p999_ms=9.0,
        max_ms=9.0,
        server_cpu_us=10.0,
        member_cpu_us=20.0,
    )
    assert Summary.from_json({**vars(summary), "stack": "fifo"}) == summary
    assert set(vars(Load().summary()).values()) == {0.0}


def test_loads_of_several_processes_add_up_also_as_json() -> None:
    one = Load(seconds=2.0, completed=1, delivered=2, member_cpu=0.5)
    one.latencies[700] = 1
    total = Load()
    for _ in range(2):
        total.add(Load.from_json(json.loads(json.dumps(vars(one)))))
    assert (total.seconds, total.completed, total.delivered, total.member_cpu) == (2.0, 2, 4, 1.0)
    assert total.latencies == {700: 2}


def test_loops_are_spread_evenly() -> None:
    assert [share_of(64, 3, member) for member in range(3)] == [22, 21, 21]
    assert [share_of(1, 3, member) for member in range(3)] == [1, 0, 0]


def test_processes_that_have_ended_take_no_time() -> None:
    assert cpu_seconds([os.getpid()]) >= 0
    assert cpu_seconds([1 << 22]) == 0


# The load of `flexgroup bench`.


@on_a_loop
async def test_no_loop_is_lost_where_there_is_no_room() -> None:
    async with in_chat(sends=10) as (server, link, group):
        loops = ClosedLoops(member=0, loops=100, payload=2_000)
        sender = LoopSender(link, group, [], loops)
        sender.begin(loops.begin(0.0, 1e9))
        await server.client.until_told(r.Send, 2_000)
        sender.stop()
        tags = [body[:4] for body in sent_to(server)[:2_000]]
        for start in range(0, 2_000, 100):
            assert tags[start : start + 100] == tags[:100]
        assert len(set(tags)) == 100
        assert not sender.failed.done()


@on_a_loop
async def test_the_sender_fails_if_the_server_refuses_a_message() -> None:
    async with in_chat() as (server, link, group):
        sender = LoopSender(link, group, [], ClosedLoops(0, 1, 64))
        sender.begin([])
        server.client.say(r.Refused(None, "bad-stack", "not this", 1))
        with pytest.raises(BadStack):
            await sender.failed


@on_a_loop
async def test_the_sender_fails_with_the_connection() -> None:
    async with in_chat() as (server, link, group):
        sender = LoopSender(link, group, [], ClosedLoops(0, 1, 64))
        sender.begin([])
        server.client.transport.close()
        with pytest.raises(ConnectionLost):
            await sender.failed
