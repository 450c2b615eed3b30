"""What is claimed of ABCAST: packets, delays, where the token goes, and what crashes leave."""

from __future__ import annotations

import pytest

from flexgroup.protocols.abcast import RUN, Abcast
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

SIZES = range(1, 17)


def come_to_rest(bench: Bench) -> list[tuple[int, int, str]]:
    """Let everything arrive; the packets, with source and target."""
    sent = []
    while bench.channels:
        source, target = min(bench.channels)
        sent.append((source, target, type(bench.deliver(source, target)).__name__))
    return sent


def layer_at(bench: Bench, process: int) -> Abcast:
    (layer,) = bench.hosts[process].stack.layers
    assert isinstance(layer, Abcast)
    return layer


def bench_of(size: int) -> Bench:
    return Bench(parse_stack("abcast"), size)


@pytest.mark.parametrize("n", SIZES[1:])
def test_a_message_to_all_takes_n_packets_of_which_n_minus_1_carry_it(n: int) -> None:
    bench = bench_of(n)
    bench.cast(1, tuple(range(n)))
    kinds = [kind for _, _, kind in come_to_rest(bench)]
    assert len(kinds) == n
    assert sorted(kinds) == sorted(["Request", "Accept"] + ["Data"] * (n - 2))


@pytest.mark.parametrize("n", SIZES)
def test_from_the_holder_it_takes_n_minus_1_and_is_delivered_there_at_once(n: int) -> None:
    bench = bench_of(n)
    m = bench.cast(0, tuple(range(n)))
    assert bench.delivered[0] == [m]
    assert come_to_rest(bench) == [(0, process, "Data") for process in range(1, n)]


@pytest.mark.parametrize("to", [(1, 2), (2, 3)], ids=["origin among them", "origin not"])
def test_to_k_others_than_the_holder_it_takes_k_plus_1(to: tuple[int, ...]) -> None:
    bench = bench_of(4)
    bench.cast(1, to)
    assert len(come_to_rest(bench)) == 3


def test_who_is_no_destination_hears_nothing_of_it() -> None:
    bench = bench_of(4)
    bench.cast(1, (1, 2))
    assert all(3 not in (source, target) for source, target, _ in come_to_rest(bench))


@pytest.mark.parametrize(("origin", "delays"), [(0, 1), (2, 2)], ids=["holder", "another"])
def test_delays_to_the_last_delivery(origin: int, delays: int) -> None:
    """In the network `unit` a packet takes a millisecond, and all else nothing."""
    scenario = Scenario(
        "abcast", processes=4, clients=0, casts=f"{origin}@0s",
        workload="broadcast", network="unit", duration=1.0,
    )  # fmt: skip
    outcome = run_scenario(scenario)
    assert outcome.complete
    assert outcome.client_latency == pytest.approx(delays / 1000)


def test_the_token_goes_to_who_asks_many_times_in_a_row() -> None:
    bench = bench_of(3)
    for _ in range(RUN):
        assert layer_at(bench, 0).order is not None
        bench.cast(2, (0, 1, 2))
        come_to_rest(bench)
    assert [layer_at(bench, process).order is not None for process in range(3)] == [
        False,
        False,
        True,
    ]
    bench.cast(2, (0, 1, 2))
    assert come_to_rest(bench) == [(2, 0, "Data"), (2, 1, "Data")]


def test_it_stays_where_it_is_while_others_ask_in_turns() -> None:
    bench = bench_of(3)
    for number in range(10 * RUN):
        bench.cast(1 + number % 2, (0, 1, 2))
        come_to_rest(bench)
    assert layer_at(bench, 0).order is not None


def test_it_stays_while_a_request_waits_for_one_before_it() -> None:
    """What waits would have to go with it, again and again where channels lose packets."""
    bench = bench_of(3)
    for _ in range(2):
        bench.cast(2, (0,))
    bench.deliver(2, 0, 1)
    for _ in range(RUN):
        bench.cast(1, (0,))
        bench.deliver(1, 0)
    assert layer_at(bench, 0).order is not None
    bench.deliver(2, 0)
    assert len(bench.delivered[0]) == RUN + 2


def test_nothing_of_what_is_delivered_is_kept() -> None:
    bench = bench_of(3)
    for number in range(20 * RUN):
        bench.cast(number // (2 * RUN) % 3, (0, 1, 2))
    come_to_rest(bench)
    for process in range(3):
        layer = layer_at(bench, process)
        assert (layer.early, layer.requests, layer.unaccepted) == ({}, {}, {})
        assert len(bench.delivered[process]) == 20 * RUN


# Crashes.

ONE_CRASH = Scope(
    3, (PlannedCast(1, (0, 1, 2)), PlannedCast(2, (0, 1, 2))), bounds=Bounds(crashes=1)
)


def test_only_validity_is_broken_whoever_crashes_and_whenever() -> None:
    """If what was sent still arrives, as it does here, agreement holds as well."""
    outcome = explore(parse_stack("abcast"), ONE_CRASH, keep_going=True)
    assert outcome.exhausted
    assert outcome.broken == {"validity"}


@pytest.mark.parametrize("arrived", [True, False], ids=["came", "lost"])
def test_what_a_process_without_the_token_asked_for_reaches_all_or_nobody(arrived: bool) -> None:
    bench = bench_of(3)
    bench.cast(2, (0, 1, 2))
    bench.crash(2)
    if not arrived:
        bench.remove(2, 0)
    bench.cast(1, (0, 1, 2))
    come_to_rest(bench)
    assert bench.delivered[0] == bench.delivered[1]
    assert len(bench.delivered[0]) == 1 + arrived
