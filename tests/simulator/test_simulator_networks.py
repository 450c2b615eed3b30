"""How long packets travel, in which order they arrive, and what gets lost."""

from __future__ import annotations

import json
from dataclasses import replace
from math import sqrt
from random import Random

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee
from flexgroup.worlds.simulator.network import JITTER_VALUES
from flexgroup.worlds.simulator.networks import (
    channel_guarantees,
    parse_links,
    parse_network,
    parse_time,
)
from flexgroup.worlds.simulator.regions import REGIONS, one_way_ns
from flexgroup.worlds.simulator.scenario import Scenario, description

from .hosted import MS, Heard, World

FREE_WAN = "wan:jitter=0s,send=0s,receive=0s,byte=0s"


def test_unit_every_packet_takes_one_delay() -> None:
    world = World(3)
    world.cast(5 * MS, 0, (1, 2), "a")
    assert world.run() == [Heard(6 * MS, 1, "a"), Heard(6 * MS, 2, "a")]


def test_a_packet_to_oneself_takes_and_costs_nothing() -> None:
    world = World(1, "neko")
    world.cast(5 * MS, 0, (0,), "a")
    assert world.run() == [Heard(5 * MS, 0, "a")]


def test_neko_sending_transmitting_and_receiving_add_up() -> None:
    """0.1 + 0.8 + 0.1 ms; the copies for several targets leave one after the other."""
    world = World(4, "neko")
    world.cast(0, 0, (1, 2, 3), "a")
    assert world.run() == [
        Heard(1_000_000, 1, "a"),
        Heard(1_100_000, 2, "a"),
        Heard(1_200_000, 3, "a"),
    ]


def test_neko_a_process_receives_one_packet_at_a_time() -> None:
    """Three processes send at once; what is sent on goes after what is received."""
    world = World(4, "neko")
    for origin in (1, 2, 3):
        world.cast(0, origin, (0,), f"from {origin}")
    assert [heard.time for heard in world.run()] == [1_000_000, 1_100_000, 1_200_000]


def test_clients_cost_nothing() -> None:
    """They are outside the system: neither their sending nor what they send takes their time."""
    world = World(2, "neko", clients=1)
    world.cast(0, 2, (0, 1), "a")
    assert world.run() == [Heard(900_000, 0, "a"), Heard(900_000, 1, "a")]


@pytest.mark.parametrize("source", range(len(REGIONS)))
def test_wan_takes_as_long_as_between_the_regions(source: int) -> None:
    targets = [process for process in range(2 * len(REGIONS)) if process != source]
    world = World(2 * len(REGIONS), FREE_WAN)
    world.cast(0, source, targets)
    regions = len(REGIONS)
    expected = {target: one_way_ns(source % regions, target % regions) for target in targets}
    assert {heard.process: heard.time for heard in world.run()} == expected
    assert len(set(expected.values())) >= len(REGIONS) - 1


def test_wan_with_processes_that_are_together() -> None:
    """Three in a row are in the first region, and three in the next."""
    world = World(9, f"{FREE_WAN},together=3")
    world.cast(0, 0, (1, 2, 3, 5, 6))
    near, next_region, third = (one_way_ns(0, region) for region in range(3))
    expected = {1: near, 2: near, 3: next_region, 5: next_region, 6: third}
    assert {heard.process: heard.time for heard in world.run()} == expected


def test_bytes_cost_time_on_both_sides() -> None:
    """A microsecond a byte: of header, here 6, and of payload."""
    empty, full = World(2, "unit:byte=1us"), World(2, "unit:byte=1us")
    empty.cast(0, 0, (1,))
    full.cast(0, 0, (1,), "x" * 100)
    header = 6
    assert empty.run()[0].time == MS + 2 * header * 1000
    assert full.run()[0].time == MS + 2 * (header + 100) * 1000


def overtaking(network: str) -> int:
    """How many of 500 packets arrive after one that was sent later in the same channel."""
    world = World(2, network)
    for number in range(500):
        world.cast(number * 10_000, 0, (1,), f"{number:03}")
    arrived = [heard.text for heard in world.run()]
    assert len(arrived) == 500
    return sum(text < max(arrived[: i + 1]) for i, text in enumerate(arrived))


def test_a_jittery_network_reorders_unless_it_is_fifo() -> None:
    assert overtaking("unit:jitter=1ms,fifo=no") > 100
    assert overtaking("unit:jitter=1ms,fifo=yes") == 0
    assert overtaking("unit:jitter=1ms") == 0
    assert overtaking("unit:fifo=no") == 0, "without jitter, all take the same time"


def test_jitter_is_exponential_and_added_to_the_delay() -> None:
    """All quantiles alike: the mean is the mean, and e^-1 of all take longer."""
    network = parse_network("unit:delay=2ms,jitter=1ms")
    random = Random(5)
    delays = [network.delay(0, 1, None, random) for _ in range(20_000)]
    assert min(delays) >= 2 * MS
    mean = sum(delays) / len(delays)
    assert mean == pytest.approx(3 * MS, abs=5 * MS / sqrt(len(delays)))
    assert sum(delay > 3 * MS for delay in delays) / len(delays) == pytest.approx(0.368, abs=0.02)
    assert len(set(delays)) > JITTER_VALUES * 0.9


def arrivals(network: str, sent: int) -> list[str]:
    world = World(2, network)
    for number in range(sent):
        world.cast(number * MS, 0, (1,), str(number))
    return [heard.text for heard in world.run()]


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_share_that_is_lost(share: float) -> None:
    arrived = len(arrivals(f"unit:loss={share}", 4000))
    spread = sqrt(4000 * share * (1 - share))
    assert abs(4000 - arrived - 4000 * share) < 5 * spread


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_share_that_is_duplicated(share: float) -> None:
    arrived = arrivals(f"unit:duplication={share}", 4000)
    assert len(set(arrived)) == 4000
    spread = sqrt(4000 * share * (1 - share))
    assert abs(len(arrived) - 4000 - 4000 * share) < 5 * spread


def test_all_and_nothing() -> None:
    assert arrivals("unit:loss=1", 50) == []
    assert len(arrivals("unit:loss=0", 50)) == 50
    assert len(arrivals("unit:duplication=1", 50)) == 100


def test_what_one_sends_oneself_is_not_lost() -> None:
    world = World(1, "unit:loss=1")
    world.cast(0, 0, (0,), "a")
    assert len(world.run()) == 1


@pytest.mark.parametrize(
    ("spec", "drops", "given"),
    [
        ("unit", False, {Guarantee.RELIABLE, Guarantee.FIFO}),
        ("unit:fifo=no", False, {Guarantee.RELIABLE}),
        ("unit:loss=0.1", False, {Guarantee.FIFO}),
        ("unit:duplication=0.1", False, {Guarantee.FIFO}),
        ("unit", True, {Guarantee.FIFO}),
        ("lan:loss=0.1,fifo=no", False, set()),
    ],
)
def test_what_channels_guarantee(spec: str, drops: bool, given: set[Guarantee]) -> None:
    assert channel_guarantees(parse_network(spec), drops) == given


@pytest.mark.parametrize(
    ("text", "time"),
    [("3ns", 3), ("50us", 50_000), ("1.5ms", 1_500_000), ("2s", 2_000_000_000), ("0.5", 500 * MS)],
)
def test_times_as_people_write_them(text: str, time: int) -> None:
    assert parse_time(text) == time


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("cable", "unknown network 'cable'; choose from: unit, lan, wan, neko"),
        ("lan:speed=3", "'speed=3' is not option=value; options: delay, jitter"),
        ("lan:fifo", "'fifo' is not option=value"),
        ("lan:fifo=maybe", "fifo is yes or no, not 'maybe'"),
        ("lan:loss=2", "loss is a share from 0 to 1, not '2'"),
        ("lan:loss=some", "loss is a share from 0 to 1, not 'some'"),
        ("lan:loss=nan", "loss is a share from 0 to 1, not 'nan'"),
        ("wan:together=0", "together is a number of processes, not '0'"),
        ("lan:together=3", "only wan has regions in which processes are together"),
        ("lan:delay=-1s", "'-1s' is not a time; write for example 50us"),
        ("lan:delay=5 parsecs", "'5 parsecs' is not a time"),
    ],
)
def test_a_network_that_cannot_be(spec: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_network(spec)
    assert complaint in str(caught.value)


LINKED = Scenario("skeen", 3, 2, "broadcast", "lan", 0.02, links="3:0=1us 0:2=9ms")


@pytest.mark.parametrize("network", ["unit", "lan", "wan", "neko", "lan:fifo=no"])
def test_a_link_has_a_delay_of_its_own_on_any_network(network: str) -> None:
    """To the nanosecond, without jitter, and in one direction."""
    linked = parse_network(network, parse_links("3:0=1us 0:2=9ms", 5))
    chance = Random(1)

    def delays(source: int, target: int) -> set[int]:
        return {linked.delay(source, target, None, chance) for _ in range(50)}

    assert delays(3, 0) == {1_000}
    assert delays(0, 2) == {9 * MS}
    for source, target in ((0, 3), (2, 0), (4, 0), (0, 1)):
        assert not {1_000, 9 * MS} & delays(source, target)


def test_links_are_told_in_the_row_and_the_name_of_a_run() -> None:
    other = replace(LINKED, links="")
    assert json.loads(description(LINKED).options)["links"] == "3:0=1us 0:2=9ms"
    assert "links" not in description(other).options
    assert LINKED.run != other.run


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("3:0", "--link 3:0: write FROM:TO=DELAY, for example 6:0=1us"),
        ("0-1=1us", "write FROM:TO=DELAY"),
        ("0:5=1us", "0 to 4"),
        ("1:1=1us", "to another"),
        ("0:1=soon", "'soon' is not a time"),
        ("0:1=0s", "above 0"),
    ],
)
def test_a_link_that_cannot_be(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse_links(text, 5)
