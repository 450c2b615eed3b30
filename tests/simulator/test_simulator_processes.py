"""A process is a server with a queue: timers, choices, costs, and how its time is spent."""

from __future__ import annotations

import pytest

from flexgroup.core.message import Message, Packet

from .hosted import MS, Heard, Telling, World


class Timed(Telling):
    """The text of a multicast says what to do with a timer: `set NAME TICKS`, `cancel NAME`."""

    def on_cast(self, m: Message) -> None:
        assert isinstance(m.payload, bytes)
        match m.payload.decode().split():
            case ["set", name, ticks]:
                self.set_timer(name, int(ticks))
            case ["cancel", name]:
                self.cancel_timer(name)


def timers(*commands: tuple[int, str]) -> list[tuple[int, str]]:
    world = World(1, layer=Timed)
    for time, command in commands:
        world.cast(time * MS, 0, (0,), command)
    return [(heard.time // MS, heard.text) for heard in world.run()]


def test_a_timer_runs_out_after_its_ticks_of_a_millisecond() -> None:
    assert timers((3, "set a 7")) == [(10, "timer a")]


def test_a_timer_that_is_set_again_starts_anew() -> None:
    assert timers((0, "set a 7"), (5, "set a 7")) == [(12, "timer a")]
    assert timers((0, "set a 7"), (5, "set a 1")) == [(6, "timer a")]


def test_a_timer_that_is_cancelled_does_not_run_out() -> None:
    assert timers((0, "set a 7"), (5, "cancel a")) == []
    assert timers((0, "set a 7"), (5, "cancel a"), (6, "set a 2")) == [(8, "timer a")]
    assert timers((5, "cancel a")) == []


def test_timers_have_names() -> None:
    assert timers((0, "set a 7"), (0, "set b 3")) == [(3, "timer b"), (7, "timer a")]


class Tossing(Telling):
    def on_cast(self, m: Message) -> None:
        self.offer("die", 6)


def tossed(seed: int) -> list[str]:
    world = World(1, layer=Tossing, seed=seed)
    for time in range(300):
        world.cast(time, 0, (0,))
    return [heard.text for heard in world.run()]


def test_the_world_chooses_among_all_options_by_its_seed() -> None:
    assert set(tossed(1)) == {f"die {side}" for side in range(6)}
    assert tossed(1) == tossed(1) != tossed(2)


def test_the_throughput_of_a_saturated_process_is_one_over_its_cost() -> None:
    """A hundred packets at once, 0.25 ms each: one every 0.25 ms, and a queue meanwhile."""
    world = World(101, "unit:receive=0.25ms")
    for origin in range(1, 101):
        world.cast(0, origin, (0,), "x")
    times = [heard.time for heard in world.run()]
    assert times == [MS + 250_000 * number for number in range(1, 101)]


@pytest.mark.parametrize("load", [0.5, 0.9, 2.0])
def test_a_queue_grows_only_if_there_is_too_much_to_do(load: float) -> None:
    """Packets come every 1 ms; handling one takes 0.5, 0.9 or 2 ms."""
    world = World(2, f"unit:receive={load}ms")
    for number in range(200):
        world.cast(number * MS, 0, (1,), str(number))
    heard = world.run()
    waited = [round(delivery.time - int(delivery.text) * MS - MS) for delivery in heard]
    cost = round(load * MS)
    if load < 1:
        assert set(waited) == {cost}
    else:
        assert waited == [cost + number * MS for number in range(200)]


class Relaying(Telling):
    """Process 1 sends on to 2 whatever it gets."""

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        if self.process == 1:
            self.send((2,), packet)


def test_sending_keeps_a_process_from_receiving() -> None:
    """Each of two packets costs process 1 1 ms to receive and 2 ms to send on."""
    world = World(3, "unit:receive=1ms,send=2ms", layer=Relaying, clients=1)
    world.cast(0, 3, (1,), "a")
    world.cast(0, 3, (1,), "b")
    assert world.run() == [
        Heard(2 * MS, 1, "a"),  # 1 travelling, 1 receiving
        Heard(5 * MS, 1, "b"),  # after 2 sending a
        Heard(6 * MS, 2, "a"),
        Heard(9 * MS, 2, "b"),
    ]


class Greeting(Telling):
    """Says so when it starts; process 0 also sets a timer that runs out at once."""

    def on_start(self) -> None:
        if self.process == 0:
            self.set_timer("wake", 0)
        self.say("started")


def test_every_process_starts_at_time_zero() -> None:
    assert World(3, layer=Greeting).run() == [
        Heard(0, 0, "started"),
        Heard(0, 0, "timer wake"),
        Heard(0, 1, "started"),
        Heard(0, 2, "started"),
    ]


def test_a_run_can_be_stopped_and_continued() -> None:
    world = World(2)
    for number in range(10):
        world.cast(number * MS, 0, (1,), str(number))
    assert [heard.text for heard in world.run(until=5 * MS)] == ["0", "1", "2", "3"]
    assert [heard.text for heard in world.run()] == [str(number) for number in range(10)]
