"""What is claimed of xAMP: section 2.3.1.1 of the dissertation, sentence by sentence."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.tr_w_resp import Data, Transmission
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .member_schedules import Casts, Faults, run

EVERYBODY = (0, 1, 2)


def transmission(nr: int, ord: bool = False) -> Transmission:
    m = Message(message_id(0, 0), EVERYBODY, b"")
    return Transmission(m, Data(m, (0, 0, 0)), EVERYBODY, nr, ord)


def layer_of(bench: Bench, process: int) -> Any:
    return bench.hosts[process].stack.layers[0]


def everything_arrives(bench: Bench) -> Counter[str]:
    arrived: Counter[str] = Counter()
    while bench.channels:
        packet: Packet = bench.deliver(*min(bench.channels))
        arrived[type(packet).__name__] += 1
    return arrived


def delivered(bench: Bench) -> list[list[int]]:
    return [[m.id >> 20 for m in order] for order in bench.delivered]


# tr-w-resp.


def test_it_ends_when_the_wanted_number_of_responses_is_in_the_bag() -> None:
    waiting = transmission(nr=2)
    waiting.respond(1)
    assert not waiting.has_enough()
    waiting.respond(1)
    assert not waiting.has_enough()
    waiting.respond(2)
    assert waiting.has_enough()


def test_without_ord_the_bag_is_kept_from_one_try_to_the_next() -> None:
    waiting = transmission(nr=3)
    waiting.respond(1)
    assert waiting.try_again() == (0, 2)
    assert waiting.Mr == (1,)


def test_with_ord_all_must_respond_to_the_same_try() -> None:
    waiting = transmission(nr=3, ord=True)
    waiting.respond(1)
    assert waiting.try_again() == EVERYBODY
    assert waiting.Mr == ()


def test_what_came_is_remembered_by_number_without_gaps() -> None:
    received = KnownMessages()
    for number in (0, 2, 1, 4):
        received.add(message_id(7, number))
    known = [number for number in range(6) if received.has(message_id(7, number))]
    assert known == [0, 1, 2, 4]
    assert (received.last, received.ahead) == ({7: 3}, {message_id(7, 4)})


# bestEffort.


def test_nr_0_ends_at_once() -> None:
    bench = Bench(parse_stack("xamp-best-effort/0"), 3)
    bench.cast(0, EVERYBODY)
    assert layer_of(bench, 0).transmissions.open == {}
    assert not any(bench.timers.values())


def test_nr_1_ends_with_the_first_response() -> None:
    bench = Bench(parse_stack("xamp-best-effort/1"), 3)
    bench.cast(0, (1, 2))
    bench.deliver(0, 1)
    bench.deliver(1, 0)
    assert layer_of(bench, 0).transmissions.open == {}


def test_there_is_no_option_that_is_not_a_number_of_responses() -> None:
    with pytest.raises(UsageError, match="'xamp-best-effort' has no option 'many'"):
        parse_stack("xamp-best-effort/many")


def test_best_effort_cannot_guarantee_delivery_if_the_sender_fails() -> None:
    broken = {
        promise
        for seed in range(100)
        for promise in run(
            "xamp-best-effort",
            Casts(3, ((0, EVERYBODY),)),
            Random(seed),
            fifo=True,
            faults=Faults(losses=1, crashes=1),
        ).broken()
    }
    assert broken == {"agreement"}


# atLeast and reliable.


def test_receivers_do_not_send_the_first_time() -> None:
    bench = Bench(parse_stack("xamp-at-least"), 3)
    bench.cast(0, EVERYBODY)
    assert everything_arrives(bench) == {"Data": 2, "Response": 4}
    assert not any(bench.timers.values())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_at_least_n_deliver_if_one_that_lives_does(n: int) -> None:
    """Or all that live, if there are fewer; some of the n may crash later."""
    fewest = 4
    for seed in range(200):
        casts = Casts(4, ((0, (0, 1, 2, 3)),))
        faults = Faults(losses=4, crashes=1)
        bench = run(f"xamp-at-least/{n}", casts, Random(seed), fifo=False, faults=faults).bench
        living = [process for process in range(4) if process not in bench.crashed]
        having = sum(bool(order) for order in bench.delivered)
        if any(bench.delivered[process] for process in living):
            assert having >= min(n, len(living))
            fewest = min(fewest, having)
    assert fewest <= max(n, 2), "the losses should show that not all get it"


def test_a_process_that_is_suspected_is_not_waited_for() -> None:
    bench = Bench(parse_stack("xamp-reliable"), 3)
    bench.cast(0, EVERYBODY)
    bench.crash(2)
    everything_arrives(bench)
    assert layer_of(bench, 0).at_least.transmissions.open
    for process in (0, 1):
        bench.suspect(process, 2)
        assert layer_of(bench, process).at_least.transmissions.open == {}


# Causal multicast.


def test_a_history_is_empty_when_everybody_has_responded() -> None:
    bench = Bench(parse_stack("xamp-causal"), 3)
    for origin in EVERYBODY:
        bench.cast(origin, EVERYBODY)
    everything_arrives(bench)
    # Responses that came before the message were not noted: a repetition brings them again.
    for process in EVERYBODY:
        for level, name in list(bench.timers.get(process, [])):
            bench.end_timer(process, level, name)
    everything_arrives(bench)
    assert [layer_of(bench, process).history for process in EVERYBODY] == [{}, {}, {}]


def test_a_history_has_at_most_one_message_for_each_origin_and_destination() -> None:
    """However many are under way, and though no response comes at all."""
    bench = Bench(parse_stack("xamp-causal"), 3)
    random = Random(1)
    for _ in range(60):
        bench.cast(random.randrange(3), tuple(sorted(random.sample(EVERYBODY, 2))))
        for channel in [c for c, packets in bench.channels.items() if packets]:
            packet = bench.channels[channel][0].packet
            if type(packet).__name__ == "Response":
                bench.remove(*channel)
            else:
                bench.deliver(*channel)
        for process in EVERYBODY:
            history = layer_of(bench, process).history
            assert sum(len(destinations) for destinations in history.values()) <= 9


# Atomic multicast.


def test_a_repetition_goes_to_the_end_of_the_queue() -> None:
    bench = Bench(parse_stack("xamp-atomic"), 2)
    bench.cast(0, (1,))
    bench.deliver(0, 1)
    bench.cast(0, (1,))
    bench.deliver(0, 1)
    queue = layer_of(bench, 1)
    assert [queue.at[place] >> 20 for place in queue.queue] == [0, 1]
    bench.end_timer(0, 0, "try 0.0")
    bench.deliver(0, 1)
    assert [queue.at[place] >> 20 for place in queue.queue] == [1, 0]


def test_what_is_accepted_waits_for_what_is_before_it_in_the_queue() -> None:
    bench = Bench(parse_stack("xamp-atomic"), 3)
    bench.cast(0, (2,))
    bench.cast(1, (2,))
    bench.deliver(0, 2)
    bench.deliver(1, 2)
    bench.deliver(2, 1)
    bench.deliver(1, 2)
    assert bench.delivered[2] == []
    everything_arrives(bench)
    assert [m.id & 3 for m in bench.delivered[2]] == [0, 1]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_two_phases_and_no_second_round_of_responses(size: int) -> None:
    bench = Bench(parse_stack("xamp-atomic"), size)
    bench.cast(0, tuple(range(size)))
    assert everything_arrives(bench) == {"Data": size, "Response": size, "Accept": size}
    assert delivered(bench) == [[0]] * size


def test_the_monitor_exists_only_when_it_is_needed() -> None:
    bench = Bench(parse_stack("xamp-atomic"), 3)
    bench.cast(0, (1, 2))
    everything_arrives(bench)
    bench.crash(0)
    for process in (1, 2):
        bench.suspect(process, 0)
    assert not bench.channels
    assert not any(bench.timers.values())


PROMISES = ("integrity", "conduct", "acyclic order")


def test_timers_that_run_out_too_early_do_no_harm() -> None:
    """Every schedule of two messages, with a repetition or a request that nobody needed."""
    casts = (PlannedCast(0, (0, 1)), PlannedCast(1, (0, 1)))
    scope = Scope(2, casts, bounds=Bounds(timers=1))
    outcome = explore(parse_stack("xamp-atomic"), scope, SearchOptions(properties=PROMISES))
    assert outcome.exhausted
    assert not outcome.violations
