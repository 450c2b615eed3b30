"""The library without async, used by plain functions and threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from flexgroup import Message, View, blocking, values
from flexgroup.client.background import MOST_WAITING, Background
from flexgroup.client.errors import (
    AlreadyMember,
    CannotConnect,
    GroupDestroyed,
    LinkClosed,
    NoMessage,
    NotMember,
    TooLarge,
)
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.wire import requests as r

from .loops import LAST_RESORT
from .stand_in import StandIn, stand_in


class Elsewhere:
    """A stand-in on a loop in another thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self.loop.run_until_complete, args=[self._serve()])
        self._thread.start()
        assert self._ready.wait(LAST_RESORT)

    async def _serve(self) -> None:
        async with stand_in(window=8) as self.server:
            self._ready.set()
            await self._end.wait()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self.loop.close()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    running = Elsewhere()
    yield running
    running.stop()


@pytest.fixture
def server(elsewhere: Elsewhere) -> StandIn:
    return elsewhere.server


def send_often(group: blocking.Group[bytes], body: bytes, times: int) -> int:
    for _ in range(times):
        group.send(body)
    return times


def test_messages_arrive_in_order_at_all(server: StandIn) -> None:
    with blocking.connect(server.address, name="a") as a, blocking.connect(server.address) as b:
        sender, receiver = a.join("chat", "FIFO"), b.join("chat")
        for number in range(100):
            sender.send(b"%d" % number)
        for group in (sender, receiver):
            for number in range(100):
                assert group.receive(timeout=LAST_RESORT) == Message("a", b"%d" % number, "chat")


def test_it_works_where_a_loop_is_running(server: StandIn) -> None:
    """As in a notebook, whose cells run in a loop, so that `asyncio.run` refuses to."""

    async def cell() -> list[Message[bytes]]:
        assert asyncio.get_running_loop().is_running()
        with blocking.connect(server.address, name="a") as link:
            group = link.join("chat", "FIFO")
            group.send(b"one")
            group.send(b"two")
            return [group.receive(timeout=LAST_RESORT) for _ in range(2)]

    async def notebook() -> None:
        for _ in range(2):  # a cell after the other
            assert await cell() == [Message("a", b"one", "chat"), Message("a", b"two", "chat")]

    asyncio.run(notebook())


def test_iterating_ends_with_the_group(server: StandIn) -> None:
    with blocking.connect(server.address) as link:
        group = link.join("chat", "FIFO")
        for number in range(20):
            group.send(b"%d" % number)
        with blocking.connect(server.address) as other:
            blocking.Group(other, "chat").destroy()
        received = [message.body for message in group]
        assert received == [b"%d" % number for number in range(len(received))]
        with pytest.raises(GroupDestroyed):
            group.receive()
        with pytest.raises(GroupDestroyed):
            group.send(b"")


def test_a_group_by_its_name(server: StandIn) -> None:
    with blocking.connect(server.address, name="a") as link:
        group = blocking.Group(link, "chat")
        assert not group.exists()
        group.create("FIFO", open=True)
        with group:
            assert group.members == ("a",)
            assert group.info().members == ("a",)
            with pytest.raises(AlreadyMember):
                group.join()
            group.send(b"")
            group.confirm()
            assert [type(said).__name__ for said in server.client.told[-2:]] == ["Send", "Confirm"]
        with pytest.raises(NotMember):
            group.send(b"")
        assert list(group) == []
        group.attach()
        with pytest.raises(NotMember, match="only attached"):
            group.receive()
        group.destroy()
        with pytest.raises(NotMember, match="first"):
            next(blocking.Group(link, "other"))


def test_values_and_several_groups(server: StandIn) -> None:
    with blocking.connect(server.address) as link:
        groups = [link.join(name, "FIFO", codec=values) for name in ("one", "two")]
        link.multicast(groups, {"to": "both"})
        assert [group.receive().body for group in groups] == [{"to": "both"}] * 2
        with pytest.raises(UsageError, match="twice"):
            link.multicast([groups[0], groups[0]], None)
        with pytest.raises(UsageError, match="cannot hold"):
            groups[0].send(object())
        assert link.inspect() == {"name": "stand-in"}


def test_events_are_messages_and_views_each_in_its_place(server: StandIn) -> None:
    with blocking.connect(server.address, name="a") as link:
        group = link.join("chat", "FIFO")
        events = group.events()
        assert next(events) == View(1, ("a",), "chat")
        with blocking.connect(server.address, name="b") as other:
            other.join("chat").send(b"hello")
        assert next(events) == View(2, ("a", "b"), "chat")
        assert next(events) == Message("b", b"hello", "chat")
        assert next(events) == View(3, ("a",), "chat")
        group.destroy()
        assert list(events) == []


def test_events_go_on_after_a_message_that_cannot_be_read(server: StandIn) -> None:
    with blocking.connect(server.address, name="a") as a, blocking.connect(server.address) as b:
        events = a.join("chat", "FIFO", codec=values.of(int)).events()
        sender = b.join("chat", codec=values)
        sender.send("no number")
        sender.send(7)
        assert isinstance(next(events), View)
        seen: list[object] = []
        while not seen or seen[-1] != 7:
            try:
                event = next(events)
                seen.append(event.body if isinstance(event, Message) else event.number)
            except PeerError:
                seen.append("refused")
        assert seen[-2:] == ["refused", 7]


def test_the_view_follows_what_was_received(server: StandIn) -> None:
    with blocking.connect(server.address, name="a") as link:
        group = link.join("chat", "FIFO")
        group.send(b"alone")
        link.flush()
        assert group.exists()
        with blocking.connect(server.address, name="b") as other:
            other.join("chat").send(b"together")
        assert group.receive().body == b"alone"
        assert len(group.members) == 1
        assert group.receive().body == b"together"
        assert len(group.members) == 2


def test_receiving_with_a_time_limit(server: StandIn) -> None:
    with blocking.connect(server.address) as link:
        group = link.join("chat", "FIFO")
        with pytest.raises(NoMessage):
            group.receive(timeout=0)


def test_many_messages_at_a_time(server: StandIn) -> None:
    with blocking.connect(server.address, name="a") as link:
        group = link.join("chat", "FIFO")
        group.send_all(b"%d" % number for number in range(100))
        received: list[Message[bytes]] = []
        while len(received) < 100:
            received += group.receive_all(timeout=LAST_RESORT)
        assert received == [Message("a", b"%d" % number, "chat") for number in range(100)]
        with pytest.raises(NoMessage):
            group.receive_all(timeout=0)


def test_if_one_of_many_cannot_be_sent_none_is(server: StandIn) -> None:
    with blocking.connect(server.address) as link:
        group = link.join("chat", "FIFO")
        with pytest.raises(TooLarge):
            group.send_all([b"fits", bytes((1 << 20) + 1)])
        group.send_all([])
        link.flush()
        assert group.exists()
        assert not any(isinstance(said, r.Send) for said in server.client.told)
        group.leave()
        with pytest.raises(NotMember):
            group.send_all([])


def test_receiving_all_passes_over_views_and_the_groups_view_follows(
    elsewhere: Elsewhere, server: StandIn
) -> None:
    with blocking.connect(server.address, name="a") as link:
        group = link.join("chat", "FIFO")
        events = group.events()
        assert next(events) == View(1, ("a",), "chat")
        elsewhere.loop.call_soon_threadsafe(
            server.client.say,
            r.ViewChange(1, 0, 2, ["a", "b"]),
            r.Delivered([1], 1, 0, [r.Sent("b", [b"together"])]),
            r.ViewChange(1, 0, 3, ["a"]),
        )
        assert [message.body for message in group.receive_all()] == [b"together"]
        assert group.view == View(2, ("a", "b"), "chat")
        assert next(events) == View(3, ("a",), "chat")


def test_receiving_all_goes_on_after_a_message_that_cannot_be_read(
    elsewhere: Elsewhere, server: StandIn
) -> None:
    with blocking.connect(server.address) as link:
        group = link.join("chat", "FIFO", codec=values.of(int))
        bodies = [values.encode(1), values.encode(2), b"\xc1", values.encode(3)]
        elsewhere.loop.call_soon_threadsafe(
            server.client.say, r.Delivered([1], 1, 0, [r.Sent("z", [body]) for body in bodies])
        )
        assert [message.body for message in group.receive_all()] == [1, 2]
        with pytest.raises(PeerError, match="from 'z'"):
            group.receive_all()
        assert [message.body for message in group.receive_all()] == [3]


def test_what_has_come_is_received_together_after_the_end_of_the_group(server: StandIn) -> None:
    with blocking.connect(server.address) as link:
        group = link.join("chat", "FIFO")
        group.send_all([b"0", b"1"])
        group.destroy()
        assert [message.body for message in group.receive_all()] == [b"0", b"1"]
        with pytest.raises(GroupDestroyed):
            group.receive_all()


def test_threads_that_receive_all_share_a_group(server: StandIn) -> None:
    def receive() -> list[bytes]:
        received: list[bytes] = []
        try:
            while True:
                received += [message.body for message in group.receive_all()]
        except GroupDestroyed:
            return received

    with blocking.connect(server.address) as link, ThreadPoolExecutor(4) as threads:
        group = link.join("chat", "FIFO")
        receiving = [threads.submit(receive) for _ in range(4)]
        bodies = [b"%d" % number for number in range(400)]
        group.send_all(bodies)
        group.destroy()
        received = [body for future in receiving for body in future.result(LAST_RESORT)]
        assert sorted(received) == sorted(bodies)


def test_threads_share_a_group(server: StandIn) -> None:
    with blocking.connect(server.address) as link, ThreadPoolExecutor(8) as threads:
        group = link.join("chat", "FIFO")
        receiving = [
            threads.submit(lambda: [group.receive().body for _ in range(100)]) for _ in range(4)
        ]
        for thread in range(4):
            threads.submit(send_often, group, b"%d" % thread, 100)
        received = [body for future in receiving for body in future.result(LAST_RESORT)]
        assert sorted(received) == sorted(b"%d" % n for n in range(4) for _ in range(100))


def test_whatever_begins_when_the_thread_stops_ends_as_well() -> None:
    def wait_and_wait(background: Background) -> None:
        while True:
            background.wait_for(asyncio.sleep(0.0001))

    with ThreadPoolExecutor(4) as threads:
        for _ in range(50):
            background = Background()
            waiting = [threads.submit(wait_and_wait, background) for _ in range(4)]
            background.wait_for(asyncio.sleep(0.001))
            background.stop()
            for one in waiting:
                assert isinstance(one.exception(LAST_RESORT), LinkClosed)


def test_closing_wakes_who_waits(server: StandIn) -> None:
    link = blocking.connect(server.address)
    group = link.join("chat", "FIFO")
    with ThreadPoolExecutor(2) as threads:
        waiting, iterating = threads.submit(group.receive), threads.submit(list, group)
        group.send(b"one of them gets this")
        link.flush()
        link.close()
        with pytest.raises((LinkClosed, AssertionError)):
            raise waiting.exception(LAST_RESORT) or AssertionError
        assert len(iterating.result(LAST_RESORT)) <= 1
    for forbidden in (group.exists, group.receive, lambda: group.send(b""), lambda: link.join("x")):
        with pytest.raises(LinkClosed):
            forbidden()
    link.close()
    assert "flexgroup-link" not in {thread.name for thread in threading.enumerate()}


def test_a_server_that_is_not_there_leaves_no_thread_behind(server: StandIn) -> None:
    with pytest.raises(CannotConnect):
        blocking.connect("127.0.0.1:1")
    assert "flexgroup-link" not in {thread.name for thread in threading.enumerate()}


def test_what_has_come_when_ctrl_c_interrupts_is_received_next(
    server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blocking.connect(server.address) as link:
        group = link.join("chat", "FIFO")
        assert group.view.number == 1
        group.send(b"hello")
        result = Future.result

        def interrupted(future: Future[Any], timeout: float | None = None) -> Any:
            result(future, LAST_RESORT)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Future, "result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                group.receive()
        assert group.receive(LAST_RESORT).body == b"hello"


class Interrupted:
    """A codec in which Ctrl-C comes at the third message, once."""

    def __init__(self) -> None:
        self.left = 3

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return data


def received_one_by_one(group: blocking.Group[bytes]) -> list[bytes]:
    return [group.receive(LAST_RESORT).body]


def received_together(group: blocking.Group[bytes]) -> list[bytes]:
    return [message.body for message in group.receive_all(LAST_RESORT)]


@pytest.mark.parametrize("receive", [received_one_by_one, received_together])
def test_a_message_that_is_being_read_when_ctrl_c_comes_is_received_next(
    receive: Callable[[blocking.Group[bytes]], list[bytes]], server: StandIn
) -> None:
    with blocking.connect(server.address) as link:
        group: blocking.Group[bytes] = link.join("chat", "FIFO", codec=Interrupted())
        bodies = [b"%d" % number for number in range(5)]
        group.send_all(bodies)
        found: list[bytes] = []
        interrupted = 0
        while len(found) < len(bodies):
            try:
                found += receive(group)
            except KeyboardInterrupt:
                interrupted += 1
        assert (found, interrupted) == (bodies, 1)


def test_ctrl_c_while_nothing_has_come(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with blocking.connect(server.address) as link:
        group = link.join("chat", "FIFO")
        assert group.view.number == 1

        def interrupted(future: Future[Any], timeout: float | None = None) -> Any:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Future, "result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                group.receive()
        group.send(b"hello")
        assert group.receive(LAST_RESORT).body == b"hello"


def test_a_call_that_sends_many_counts_as_many(elsewhere: Elsewhere, server: StandIn) -> None:
    with blocking.connect(server.address) as link, ThreadPoolExecutor(1) as threads:
        group = link.join("chat", "FIFO", own=False)
        server.is_granting = False

        def send() -> None:
            for _ in range(4):
                group.send_all([b""] * (server.sends + MOST_WAITING))

        sending = threads.submit(send)
        assert group.exists()
        assert not sending.done()
        server.is_granting = True
        elsewhere.loop.call_soon_threadsafe(server.grant, server.client)
        sending.result(LAST_RESORT)


def test_sending_is_slowed_down_to_what_the_server_takes(
    elsewhere: Elsewhere, server: StandIn
) -> None:
    with blocking.connect(server.address) as link, ThreadPoolExecutor(1) as threads:
        group = link.join("chat", "FIFO", own=False)
        server.is_granting = False
        most = server.sends + MOST_WAITING
        sending = threads.submit(send_often, group, b"", 3 * most)
        assert group.exists()
        assert not sending.done()
        server.is_granting = True
        elsewhere.loop.call_soon_threadsafe(server.grant, server.client)
        assert sending.result(LAST_RESORT) == 3 * most


# Reading by link.


def test_a_link_is_read_in_the_order_of_delivery(server: StandIn) -> None:
    with blocking.connect(server.address) as link:
        groups = [link.join("one", "FIFO"), link.join("two", "FIFO")]
        for number in range(12):
            groups[number % 3 % 2].send(b"%d" % number)
        messages = [link.receive(LAST_RESORT) for _ in range(6)]
        for message in link:
            messages.append(message)
            if len(messages) == 12:
                break
        assert [message.body for message in messages] == [b"%d" % number for number in range(12)]
        with pytest.raises(NoMessage, match="in any group of the link"):
            link.receive(timeout=0)


def test_what_a_group_has_fetched_ahead_is_still_read_by_link(server: StandIn) -> None:
    with blocking.connect(server.address) as link:
        one, two = link.join("one", "FIFO"), link.join("two", "FIFO")
        for number in range(6):
            (one, two)[number % 2].send(b"%d" % number)
        link.flush()
        one.exists()
        assert one.receive(LAST_RESORT).body == b"0"
        assert [link.receive(LAST_RESORT).body for _ in range(2)] == [b"1", b"2"]
        assert two.receive(LAST_RESORT).body == b"3"
        assert [message.body for message in link.receive_all(LAST_RESORT)] == [b"4", b"5"]


def test_events_of_a_link_have_the_views_of_all_groups(
    elsewhere: Elsewhere, server: StandIn
) -> None:
    with blocking.connect(server.address, name="a") as link:
        one = link.join("one", "FIFO")
        events = link.events()
        assert next(events) == View(1, ("a",), "one")
        link.join("two", "FIFO")
        assert next(events) == View(1, ("a",), "two")
        elsewhere.loop.call_soon_threadsafe(
            server.client.say,
            r.Delivered([2], 1, 0, [r.Sent("b", [b"before"])]),
            r.ViewChange(1, 0, 2, ["a", "b"]),
        )
        assert next(events) == Message("b", b"before", "two")
        assert one.view == View(1, ("a",), "one")
        assert next(events) == View(2, ("a", "b"), "one")
        assert one.view == View(2, ("a", "b"), "one")
        link.close()
        assert list(events) == []


def test_who_leaves_a_group_receives_in_another_what_went_to_both(
    elsewhere: Elsewhere, server: StandIn
) -> None:
    with blocking.connect(server.address) as link:
        one, two = link.join("one", "FIFO"), link.join("two", "FIFO")
        messages = [r.Sent("z", [b"first"]), r.Sent("z", [b"second"])]
        elsewhere.loop.call_soon_threadsafe(server.client.say, r.Delivered([1, 2], 2, 0, messages))
        assert one.receive(LAST_RESORT).body == b"first"
        one.leave()
        message = two.receive(LAST_RESORT)
        assert (message.body, message.groups) == (b"second", ("one", "two"))
        with pytest.raises(NoMessage):
            two.receive(timeout=0)


def test_threads_that_read_by_link_and_by_group_share_the_messages(server: StandIn) -> None:
    with blocking.connect(server.address) as link, ThreadPoolExecutor(3) as pool:
        one, two = link.join("one", "FIFO"), link.join("two", "FIFO")
        received: list[int] = []

        def read(receive: Callable[[], Message[bytes]]) -> None:
            while (body := receive().body) != b"end":
                received.append(int(body))
            link.close()

        readers = [
            pool.submit(read, receive) for receive in (one.receive, two.receive, link.receive)
        ]
        for number in range(300):
            (one, two)[number % 2].send(b"%d" % number)
        one.send(b"end")
        with suppress(LinkClosed):
            link.flush()
        for reader in readers:
            with suppress(LinkClosed):
                reader.result()
        assert len(received) == len(set(received))
        assert set(received) <= set(range(300))
