"""Crashes, recoveries, partitions and failure detectors, each as the plan says."""

from __future__ import annotations

from typing import ClassVar

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Context, Stored
from flexgroup.core.message import Message, Packet
from flexgroup.worlds.simulator.fault_plans import Faults, parse_faults

from .hosted import MS, Heard, Telling, Word, World

# Crashes.


def test_a_crash_in_the_middle_of_a_broadcast() -> None:
    """Copies leave every 0.1 ms; those that would leave after the crash never do."""
    world = World(6, "neko", faults=Faults(crashes=("0@0.25ms",)))
    world.cast(0, 0, (1, 2, 3, 4, 5), "a")
    assert world.run() == [Heard(1_000_000, 1, "a"), Heard(1_100_000, 2, "a")]
    history = world.collector.history("test", 6, complete=True)
    assert (history.crashes.process.tolist(), history.crashes.time.tolist()) == ([0], [250_000])
    assert history.sends.peer.tolist() == [1, 2]


def test_a_crashed_process_handles_nothing() -> None:
    world = World(2, faults=Faults(crashes=("1@5ms",)))
    world.cast(3 * MS, 0, (1,), "before")
    world.cast(4 * MS + 500_000, 0, (1,), "after")
    world.cast(6 * MS, 1, (0,), "never")
    assert world.run() == [Heard(4 * MS, 1, "before")]


def test_what_would_be_handled_only_after_the_crash_is_not() -> None:
    """It arrives 0.05 ms before the crash, but receiving it takes 0.1 ms."""
    world = World(2, "neko", faults=Faults(crashes=("1@1.05ms",)))
    world.cast(100_000, 0, (1,), "a")
    assert world.run() == []


# Recovery.


class Count(Packet):
    number: int


class Saving(Telling):
    """Counts multicasts in memory, and what has been delivered on stable storage."""

    STORED: ClassVar[tuple[type[Packet], ...]] = (Count,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.casts = 0
        self.delivered = 0

    def on_cast(self, m: Message) -> None:
        self.casts += 1
        super().on_cast(m)

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        self.delivered += 1
        self.save(Count(self.delivered))

    def on_restart(self, stored: Stored) -> None:
        self.delivered = stored.saved.number if isinstance(stored.saved, Count) else 0
        self.say(f"{self.casts} in memory, {self.delivered} saved")


def test_recovery_restores_what_was_saved_and_nothing_else() -> None:
    faults = Faults(crashes=("1@5ms",), recoveries=("1@10ms",))
    world = World(2, layer=Saving, faults=faults)
    for time in (0, 1, 2):
        world.cast(time * MS, 0, (1,), "to 1")
        world.cast(time * MS, 1, (0,), "to 0")
    world.cast(4 * MS + 500_000, 0, (1,), "lost, for 1 is down when it comes")
    world.cast(11 * MS, 0, (1,), "after")
    told = [heard for heard in world.run() if heard.process == 1]
    assert told == [
        Heard(1 * MS, 1, "to 1"),
        Heard(2 * MS, 1, "to 1"),
        Heard(3 * MS, 1, "to 1"),
        Heard(10 * MS, 1, "0 in memory, 3 saved"),
        Heard(12 * MS, 1, "after"),
    ]
    history = world.collector.history("test", 2, complete=True)
    assert (history.recoveries.process.tolist(), history.recoveries.time.tolist()) == (
        [1],
        [10 * MS],
    )


def test_a_process_that_saved_nothing_starts_again_with_nothing() -> None:
    world = World(1, layer=Saving, faults=Faults(crashes=("0@1ms",), recoveries=("0@2ms",)))
    assert world.run() == [Heard(2 * MS, 0, "0 in memory, 0 saved")]


def test_a_process_may_crash_again() -> None:
    """Packets come every millisecond from 1.5 ms on; it is down from 2 to 4 and from 6 to 8."""
    faults = Faults(crashes=("1@2ms", "1@6ms"), recoveries=("1@4ms", "1@8ms"))
    world = World(2, layer=Saving, faults=faults)
    for time in range(9):
        world.cast(time * MS + 500_000, 0, (1,), "x")
    told = [(heard.time / MS, heard.text) for heard in world.run()]
    assert told == [
        (1.5, "x"),
        (4.0, "0 in memory, 1 saved"),
        (4.5, "x"),
        (5.5, "x"),
        (8.0, "0 in memory, 3 saved"),
        (8.5, "x"),
        (9.5, "x"),
    ]


class Ticking(Telling):
    """Sets a timer of 5 ticks when it starts and when it starts again."""

    def on_start(self) -> None:
        self.set_timer("tick", 5)

    def on_restart(self, stored: Stored) -> None:
        self.set_timer("tick", 5)


def test_a_crash_stops_timers() -> None:
    world = World(1, layer=Ticking, faults=Faults(crashes=("0@4ms",), recoveries=("0@4.5ms",)))
    assert world.run() == [Heard(9_500_000, 0, "timer tick")]


# Partitions.


@pytest.mark.parametrize(
    ("partition", "arrivals"),
    [
        ("0|1@10ms-20ms", [6, 21, 26]),
        ("0|1@10ms-20ms!drop", [6, 26]),
        # A process that no side names reaches all sides.
        ("0|2@10ms-20ms", [6, 16, 26]),
        ("0,1@10ms-20ms", [6, 16, 26]),
        ("0,1|2@10ms-20ms!drop", [6, 16, 26]),
    ],
)
def test_a_partition_holds_or_drops_what_is_sent_across(
    partition: str, arrivals: list[int]
) -> None:
    """Three packets: before, while and after there is a partition."""
    world = World(3, faults=Faults(partitions=(partition,)))
    for time in (5, 15, 25):
        world.cast(time * MS, 0, (1,), "a")
    assert [heard.time for heard in world.run()] == [time * MS for time in arrivals]


def test_a_partition_works_in_both_directions_and_lets_through_what_left_before() -> None:
    world = World(2, faults=Faults(partitions=("0|1@10ms-20ms",)))
    world.cast(9_900_000, 0, (1,), "left before")
    world.cast(10 * MS, 1, (0,), "back")
    world.cast(20 * MS, 0, (1,), "after")
    assert world.run() == [
        Heard(10_900_000, 1, "left before"),
        Heard(21 * MS, 0, "back"),
        Heard(21 * MS, 1, "after"),
    ]


def test_fifo_order_survives_a_partition_that_holds() -> None:
    world = World(2, "unit:jitter=1ms", faults=Faults(partitions=("0|1@10ms-20ms",)))
    for number in range(100):
        world.cast(number * MS // 4, 0, (1,), f"{number:02}")
    texts = [heard.text for heard in world.run()]
    assert texts == sorted(texts)
    assert len(texts) == 100


@pytest.mark.parametrize(
    "partitions",
    [("0|1@10ms-20ms", "0|1@20ms-30ms"), ("0|1@10ms-20ms", "0|1@12ms-30ms")],
    ids=["one after the other", "overlapping"],
)
def test_what_one_partition_held_does_not_pass_another(partitions: tuple[str, ...]) -> None:
    world = World(2, faults=Faults(partitions=partitions))
    world.cast(11 * MS, 0, (1,), "a")
    assert world.run() == [Heard(31 * MS, 1, "a")]


def test_a_partition_cuts_off_clients_that_it_names() -> None:
    world = World(2, faults=Faults(partitions=("0,1|2@0s-20ms",)), clients=1)
    world.cast(5 * MS, 2, (0,), "a")
    assert world.run() == [Heard(21 * MS, 0, "a")]


# Failure detectors.


def test_a_crash_is_noticed_by_all_others_after_the_detection_time() -> None:
    faults = Faults(crashes=("2@5ms",), detection="3ms")
    assert World(4, layer=Telling, faults=faults).run() == [
        Heard(8 * MS, process, "suspects 2") for process in (0, 1, 3)
    ]


def test_a_recovery_is_noticed_too() -> None:
    faults = Faults(crashes=("1@5ms",), recoveries=("1@10ms",), detection="3ms")
    told = World(2, layer=Telling, faults=faults).run()
    assert told == [
        Heard(8 * MS, 0, "suspects 1"),
        Heard(10 * MS, 1, "restarted with None"),
        Heard(13 * MS, 0, "trusts 1"),
    ]


def test_without_a_detection_time_nobody_notices() -> None:
    assert World(2, layer=Telling, faults=Faults(crashes=("1@5ms",))).run() == []


def test_a_false_suspicion_comes_and_goes() -> None:
    faults = Faults(suspicions=("0:1@5ms-7ms",))
    world = World(3, layer=Telling, faults=faults)
    world.cast(6 * MS, 1, (0,), "I am well")
    assert world.run() == [
        Heard(5 * MS, 0, "suspects 1"),
        Heard(7 * MS, 0, "I am well"),
        Heard(7 * MS, 0, "trusts 1"),
    ]


# Plans that cannot be.


@pytest.mark.parametrize(
    ("faults", "complaint"),
    [
        (Faults(crashes=("3",)), "--crash '3': write PROCESS@TIME, for example 3@1.5s"),
        (Faults(crashes=("3@1s",)), "'3' is not a process; they are 0 to 2"),
        (Faults(crashes=("x@1s",)), "'x' is not a process; they are 0 to 2"),
        (Faults(crashes=("1@soon",)), "'soon' is not a time"),
        (Faults(recoveries=("1@1s",)), "has not crashed before; add --crash 1@TIME"),
        (Faults(crashes=("1@2s",), recoveries=("1@1s",)), "has not crashed before"),
        (Faults(partitions=("0|1",)), "write for example 0,1|2,3@1s-2s"),
        (Faults(partitions=("0|1@2s-1s",)), "it ends before it starts"),
        (Faults(partitions=("0|0@1s-2s",)), "process 0 is on two sides"),
        (Faults(partitions=("0|9@1s-2s",)), "'9' is not a process; they are 0 to 3"),
        (Faults(suspicions=("0@1s-2s",)), "write WHO:WHOM@START-END"),
        (Faults(suspicions=("0:7@1s-2s",)), "'7' is not a process"),
        (Faults(detection="later"), "'later' is not a time"),
    ],
)
def test_a_plan_that_cannot_be(faults: Faults, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_faults(faults, processes=3, total=4)
    assert complaint in str(caught.value)


def test_the_word_of_a_layer_is_a_packet() -> None:
    """What the tests above rest on: a multicast of Telling is one packet for each target."""
    world = World(3, layer=Telling)
    world.cast(0, 0, (1, 2), "a")
    assert [heard.process for heard in world.run()] == [1, 2]
    sends = world.collector.history("test", 3, complete=True).sends
    assert [sends.packet[code] for code in sends.packet_code] == [Word.__name__] * 2
