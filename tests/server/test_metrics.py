"""The page that a collector of metrics reads from a running server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flexgroup.client.connecting import connect
from flexgroup.server.log import set_up_logging
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Settings

STACK = "reliable atomic"
LETTERS = 10


class Samples:
    """A page, read as Prometheus reads it."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self._values = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __getitem__(self, key: tuple[str, ...]) -> float:
        return self._values[f"flexgroup_{key[0]}", *key[1:]]


@dataclass
class Moments:
    """What the page said in the life of a server."""

    at_first: Samples
    with_a_member: Samples
    after_letters: Samples
    without_it: Samples = field(init=False)
    after_nonsense: Samples = field(init=False)


@asynccontextmanager
async def running_server() -> AsyncIterator[GroupServer]:
    server = GroupServer(Settings("here", port=0))
    ready = asyncio.Event()
    running = asyncio.create_task(server.run(ready.set))
    await ready.wait()
    yield server
    server.stop()
    await running


async def ask(server: GroupServer, request: bytes) -> bytes:
    """What it says until it closes the connection."""
    reader, writer = await asyncio.open_connection(*server.address.split(":"))
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


async def scrape(server: GroupServer) -> Samples:
    answer = await ask(server, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    head, _, text = answer.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert "text/plain; version=0.0.4" in head
    return Samples(text)


async def talk_nonsense(server: GroupServer) -> None:
    number_is_not_0 = b"\x00\x00\x00\x01\x00\x00\x00\x07x"
    assert await ask(server, number_is_not_0) == b""


async def life_of_a_server() -> Moments:
    async with running_server() as server:
        return await moments_of(server)


async def moments_of(server: GroupServer) -> Moments:
    at_first = await scrape(server)
    async with connect(server.address, name="alice") as link:
        group = await link.join("letters", STACK)
        with_a_member = await scrape(server)
        for _ in range(LETTERS):
            await group.send(b"a letter")
        for _ in range(LETTERS):
            await group.receive(timeout=10)
        moments = Moments(at_first, with_a_member, await scrape(server))
    while (await scrape(server))["clients",]:
        pass
    moments.without_it = await scrape(server)
    await talk_nonsense(server)
    moments.after_nonsense = await scrape(server)
    return moments


@pytest.fixture(scope="module")
def moments() -> Moments:
    set_up_logging("none")
    return asyncio.run(life_of_a_server())


def test_counters_say_what_they_count(moments: Moments) -> None:
    for family in moments.at_first.families:
        assert family.documentation, family.name


def test_messages_are_counted_by_stack(moments: Moments) -> None:
    assert moments.after_letters["multicasts_total", STACK] == LETTERS
    assert moments.after_letters["deliveries_total", STACK] == LETTERS


def test_layers_are_counted_apart(moments: Moments) -> None:
    for layer in ("Reliable", "Atomic"):
        assert moments.after_letters["layer_packets_sent_total", layer, STACK] >= 0


def test_counters_survive_the_configuration_they_were_counted_in(moments: Moments) -> None:
    before, after = moments.after_letters, moments.without_it
    assert after["configuration",] > before["configuration",]
    assert after["multicasts_total", STACK] == LETTERS


def test_counters_survive_the_connection_they_were_counted_at(moments: Moments) -> None:
    before, after = moments.after_letters, moments.without_it
    assert before["frames_received_total", "client"] >= 2
    for name in ("frames_received_total", "frames_sent_total", "bytes_sent_total"):
        assert after[name, "client"] >= before[name, "client"] > 0


def test_what_is_there_now(moments: Moments) -> None:
    seen = [moments.at_first, moments.with_a_member, moments.without_it]
    assert [samples["clients",] for samples in seen] == [0, 1, 0]
    assert [samples["groups",] for samples in seen] == [0, 1, 1]
    assert moments.at_first["servers",] == 1
    assert moments.after_letters["queued_messages",] == 0


def test_refusals_are_counted_by_reason(moments: Moments) -> None:
    (refused,) = (
        family for family in moments.after_nonsense.families if family.name == "flexgroup_refused"
    )
    (sample,) = refused.samples
    assert sample.labels["reason"].startswith("frame number")
    assert sample.value == 1


def test_each_change_is_timed(moments: Moments) -> None:
    before, after = moments.with_a_member, moments.without_it
    assert after["change_seconds_count",] == before["change_seconds_count",] + 1
    assert after["change_seconds_sum",] > before["change_seconds_sum",]


@pytest.mark.parametrize(
    ("request_line", "status", "has_content"),
    [
        (b"GET /metrics HTTP/1.1", b"200 OK", True),
        (b"GET /metrics?name=x HTTP/1.1", b"200 OK", True),
        (b"HEAD /metrics HTTP/1.1", b"200 OK", False),
        (b"GET /elsewhere HTTP/1.1", b"404 Not Found", True),
        (b"POST /metrics HTTP/1.1", b"405 Method Not Allowed", True),
        (b"PUT /metrics HTTP/1.1", b"405 Method Not Allowed", True),
        (b"DELETE /metrics HTTP/1.1", b"405 Method Not Allowed", True),
        (b"OPTIONS * HTTP/1.1", b"405 Method Not Allowed", True),
        (b"POST", b"405 Method Not Allowed", True),
    ],
)
def test_web_requests_are_answered(request_line: bytes, status: bytes, has_content: bool) -> None:
    async def answer() -> bytes:
        async with running_server() as server:
            return await ask(server, request_line + b"\r\n\r\n")

    head, _, content = asyncio.run(answer()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert bool(content) is has_content
