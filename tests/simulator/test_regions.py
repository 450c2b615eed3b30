"""The wide-area network of the simulator uses latencies that somebody measured."""

from __future__ import annotations

import pytest

from flexgroup.worlds.simulator.regions import (
    MEASURED_ROUND_TRIP_MS,
    REGIONS,
    one_way_ns,
    round_trip_ms,
)

EVERY_REGION = range(len(REGIONS))
EVERY_PAIR = [(a, b) for a in EVERY_REGION for b in EVERY_REGION if a != b]


def between(a: str, b: str) -> float:
    return round_trip_ms(REGIONS.index(a), REGIONS.index(b))


def test_every_region_measured_every_region() -> None:
    assert len(set(REGIONS)) == len(REGIONS) == 8
    assert [len(row) for row in MEASURED_ROUND_TRIP_MS] == [len(REGIONS)] * len(REGIONS)


def test_both_ends_measured_nearly_the_same_round_trip() -> None:
    for a, b in EVERY_PAIR:
        assert MEASURED_ROUND_TRIP_MS[a][b] == pytest.approx(MEASURED_ROUND_TRIP_MS[b][a], abs=0.02)


def test_a_round_trip_is_the_same_from_either_end() -> None:
    for a, b in EVERY_PAIR:
        assert round_trip_ms(a, b) == round_trip_ms(b, a)
        assert one_way_ns(a, b) == one_way_ns(b, a)


def test_one_way_is_half_the_round_trip_in_whole_nanoseconds() -> None:
    ireland, california = REGIONS.index("eu-west-1"), REGIONS.index("us-west-1")
    assert round_trip_ms(ireland, california) == pytest.approx((141.142 + 141.152) / 2)
    assert one_way_ns(ireland, california) == 70_573_500


def test_leaving_a_region_costs_more_than_staying() -> None:
    for region in EVERY_REGION:
        assert one_way_ns(region, region) == 415_000
    assert min(one_way_ns(a, b) for a, b in EVERY_PAIR) > 10 * one_way_ns(0, 0)


def test_the_nearest_and_the_farthest_regions_are_where_the_map_has_them() -> None:
    by_distance = sorted(EVERY_PAIR, key=lambda pair: round_trip_ms(*pair))
    nearest, farthest = by_distance[0], by_distance[-1]
    assert {REGIONS[region] for region in nearest} == {"ca-central-1", "us-east-1"}
    assert {REGIONS[region] for region in farthest} == {"sa-east-1", "ap-southeast-1"}


def test_no_packet_outruns_light_in_glass() -> None:
    # Great-circle kilometres between Dublin and Montreal and between Dublin and Sydney,
    # rounded down; light in fibre covers about 200 km in a millisecond.
    assert between("eu-west-1", "ca-central-1") > 2 * 4_700 / 200
    assert between("eu-west-1", "ap-southeast-2") > 2 * 17_000 / 200


def test_the_first_regions_are_those_of_the_experiments() -> None:
    assert list(REGIONS[:5]) == [
        "eu-west-1",
        "us-west-1",
        "ap-southeast-1",
        "ca-central-1",
        "sa-east-1",
    ]
