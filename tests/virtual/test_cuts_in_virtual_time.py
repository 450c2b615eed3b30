"""What becomes of connections when the network between two machines is cut, slow, or mended."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from flexgroup.virtual.internet import Internet, Process
from flexgroup.virtual.network import Latency, Network
from flexgroup.virtual.world import World
from flexgroup.wire.keepalive import keep_alive


class End(asyncio.Protocol):
    def __init__(self) -> None:
        self.came: list[tuple[float, bytes]] = []
        self.ended: tuple[float, Exception | None] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.came.append((asyncio.get_running_loop().time(), data))

    def connection_lost(self, error: Exception | None) -> None:
        self.ended = asyncio.get_running_loop().time(), error


class TwoMachines:
    """A process on each of two machines, connected at time 1."""

    def __init__(self) -> None:
        self.world = World(0)
        self.network = Network(self.world, Latency(0.001, 0.0))
        internet = Internet(self.world, self.network)
        self.left = Process(self.world, internet, "left")
        self.right = Process(self.world, internet, "right")
        self.near, self.far = End(), End()
        self.right.create_task(self.right.create_server(lambda: self.far, "right", 7))
        self.world.run(0.5)
        self.left.create_task(self.left.create_connection(lambda: self.near, "right", 7))
        self.world.run(1.0)

    def part(self) -> None:
        self.network.cut("left", "right")
        self.network.cut("right", "left")

    def dial_again(self) -> asyncio.Task[Any]:
        work: Coroutine[Any, Any, Any] = self.left.create_connection(End, "right", 7)
        return self.left.create_task(work)


@pytest.fixture
def machines() -> TwoMachines:
    return TwoMachines()


def test_a_short_cut_delays_what_is_sent_and_loses_nothing(machines: TwoMachines) -> None:
    machines.part()
    machines.near.transport.write(b"a")
    machines.world.run(1.3)
    machines.near.transport.write(b"b")
    machines.network.heal()
    machines.world.run(5.0)
    assert b"".join(data for _, data in machines.far.came) == b"ab"
    assert all(1.4 < time < 2.0 for time, _ in machines.far.came)
    assert machines.near.ended is machines.far.ended is None


def test_the_longer_the_cut_the_later_it_is_tried_again(machines: TwoMachines) -> None:
    """Pauses double: after a cut of five seconds nothing comes for another one."""
    machines.part()
    machines.near.transport.write(b"a")
    machines.world.run(6.0)
    machines.network.heal()
    machines.world.run(20.0)
    ((time, _),) = machines.far.came
    assert 7.0 < time < 8.0


def test_nothing_overtakes_what_was_lost(machines: TwoMachines) -> None:
    machines.network.cut("left", "right")
    machines.near.transport.write(b"first ")
    machines.world.run(1.1)
    machines.network.heal()
    machines.near.transport.write(b"second")
    machines.world.run(3.0)
    assert b"".join(data for _, data in machines.far.came) == b"first second"


def test_a_cut_one_way_lets_the_other_way_pass(machines: TwoMachines) -> None:
    machines.network.cut("left", "right")
    machines.far.transport.write(b"to the left")
    machines.near.transport.write(b"to the right")
    machines.world.run(2.0)
    assert [data for _, data in machines.near.came] == [b"to the left"]
    assert machines.far.came == []


def test_who_is_not_confirmed_for_too_long_gives_up_if_it_asked_to(machines: TwoMachines) -> None:
    sock = machines.near.transport.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 3000)
    machines.part()
    machines.near.transport.write(b"a")
    machines.world.run(30.0)
    assert machines.near.ended is not None
    time, error = machines.near.ended
    assert isinstance(error, TimeoutError)
    assert time == pytest.approx(4.0)
    assert machines.far.ended is None  # it is told nothing


def given_up_behind_a_cut(machines: TwoMachines) -> None:
    """The near end has given up; the far one does not know."""
    keep_alive(machines.near.transport, 3.0)
    machines.part()
    machines.near.transport.write(b"a")
    machines.world.run(4.5)
    assert machines.near.ended is not None


def test_who_was_given_up_is_told_when_it_sends_something(machines: TwoMachines) -> None:
    given_up_behind_a_cut(machines)
    machines.network.heal()
    machines.far.transport.write(b"are you there?")
    machines.world.run(5.0)
    assert machines.far.ended is not None
    assert isinstance(machines.far.ended[1], ConnectionResetError)


@pytest.mark.parametrize(
    ("healed", "noticed", "error"),
    [(6.0, 9.0, ConnectionResetError), (10.0, 11.0, ConnectionResetError),
     (99.0, 14.0, TimeoutError)],
)  # fmt: skip
def test_who_was_given_up_finds_out_by_keep_alive(
    healed: float, noticed: float, error: type[Exception], machines: TwoMachines
) -> None:
    """Without a word from the other end it asks after 5 seconds, and then every second."""
    keep_alive(machines.far.transport, 10.0)
    given_up_behind_a_cut(machines)
    machines.world.run(healed)
    machines.network.heal()
    machines.world.run(100.0)
    assert machines.far.ended is not None
    assert machines.far.ended[0] == pytest.approx(noticed)
    assert isinstance(machines.far.ended[1], error)


def test_a_process_that_is_killed_has_its_connections_closed(machines: TwoMachines) -> None:
    machines.far.transport.write(b"last words")
    machines.right.kill()
    machines.world.run(2.0)
    assert [data for _, data in machines.near.came] == [b"last words"]
    assert machines.near.ended is not None
    assert machines.near.ended[1] is None
    dial = machines.dial_again()
    machines.world.run(3.0)
    assert isinstance(dial.exception(), ConnectionRefusedError)


def test_a_kill_behind_a_cut_is_noticed_when_something_is_sent(machines: TwoMachines) -> None:
    machines.part()
    machines.right.kill()
    machines.world.run(2.0)
    assert machines.near.ended is None
    machines.network.heal()
    machines.near.transport.write(b"are you there?")
    machines.world.run(4.0)
    assert machines.near.ended is not None


def test_a_reset_that_is_lost_is_noticed_by_keep_alive(machines: TwoMachines) -> None:
    """A machine resets the connections of a process that ends without having read everything."""
    keep_alive(machines.near.transport, 10.0)
    machines.right.stop()
    machines.near.transport.write(b"hello")
    machines.world.run(1.5)
    machines.network.cut("right", "left")
    machines.right.kill()
    machines.world.run(2.0)
    machines.network.heal()
    machines.world.run(6.0)
    assert machines.near.ended is None
    machines.world.run(7.0)
    assert machines.near.ended is not None
    assert isinstance(machines.near.ended[1], ConnectionResetError)


def test_a_process_that_stands_still_hears_everything_later(machines: TwoMachines) -> None:
    machines.right.stop()
    machines.near.transport.write(b"a")
    machines.world.run(3.0)
    assert machines.far.came == []
    assert machines.near.transport.get_write_buffer_size() == 0
    machines.right.resume()
    machines.world.run(3.1)
    assert [data for _, data in machines.far.came] == [b"a"]


def test_dialling_through_a_cut_succeeds_after_it(machines: TwoMachines) -> None:
    machines.part()
    dial = machines.dial_again()
    machines.world.run(2.5)
    assert not dial.done()
    machines.network.heal()
    machines.world.run(4.5)
    assert dial.done()
    assert dial.exception() is None


def test_what_is_slow_comes_late_and_in_order(machines: TwoMachines) -> None:
    machines.network.slow("left", "right", 0.5)
    machines.near.transport.write(b"a")
    machines.world.run(1.1)
    machines.network.heal()
    machines.near.transport.write(b"b")
    machines.world.run(3.0)
    assert b"".join(data for _, data in machines.far.came) == b"ab"
    assert machines.far.came[0][0] >= 1.5
