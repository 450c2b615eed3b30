"""What is claimed of Newtop's symmetric protocol: sections 2.2.3 and 4.3.3 of the dissertation.

And what is claimed here beyond it: silence is broken on demand, and suspicions.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.layer import Deliver, Effect, Send, SetTimer, Suspect
from flexgroup.core.message import Message, message_id
from flexgroup.core.stack import Stack
from flexgroup.protocols.atomic import FARTHEST, Data, Null
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from .member_schedules import Casts, run

EVERYBODY = (0, 1, 2)


def started(process: int = 0, size: int = 3, groups: tuple[tuple[int, ...], ...] = ()) -> Stack:
    return parse_stack("atomic").build(process, size, groups)


def layer_of(stack: Stack) -> Any:
    return stack.layers[0]


def cast(stack: Stack, to: tuple[int, ...], seq: int = 0) -> list[Effect]:
    stack.cast(Message(message_id(stack.process, seq), to, b""))
    return stack.take_effects()


def data(
    origin: int, c: int, after: int = 0, to: tuple[int, ...] = EVERYBODY, ldn: int = 0
) -> Data:
    return Data(Message(message_id(origin, c), to, b""), c, ldn, after)


def told(stack: Stack, sender: int, packet: Data | Null) -> list[Effect]:
    stack.receive(sender, packet)
    return stack.take_effects()


def end_of_silence(stack: Stack) -> list[tuple[tuple[int, ...], Null]]:
    stack.timer(0, "silence")
    effects = stack.take_effects()
    assert all(isinstance(effect, Send) for effect in effects)
    return [(e.to, e.packet) for e in effects if isinstance(e, Send) and isinstance(e.packet, Null)]


def delivered(effects: list[Effect]) -> list[int]:
    return [effect.message.id for effect in effects if isinstance(effect, Deliver)]


# Section 4.3.3: the clock, the vectors, and when a message may be delivered.


def test_rl_is_incremented_before_a_message_is_sent_and_numbers_it() -> None:
    stack = started()
    numbers = [
        effect.packet.c
        for seq in range(3)
        for effect in cast(stack, EVERYBODY, seq)
        if isinstance(effect, Send) and isinstance(effect.packet, Data)
    ]
    assert numbers == [1, 2, 3]


def number_of_the_next(stack: Stack) -> int:
    (send,) = [effect for effect in cast(stack, EVERYBODY) if isinstance(effect, Send)]
    assert isinstance(send.packet, Data)
    return send.packet.c


def test_a_message_shares_the_number_of_those_that_are_under_way() -> None:
    stack = started()
    told(stack, 1, data(1, c=5))
    told(stack, 2, data(2, c=3))
    assert number_of_the_next(stack) == 5


def test_a_message_has_a_number_above_all_that_were_delivered_before() -> None:
    """They go before it in causal order."""
    stack = started()
    told(stack, 1, data(1, c=5))
    assert delivered(told(stack, 2, Null(6, 0, 0, 0))) == [message_id(1, 5)]
    assert number_of_the_next(stack) == 6


def test_the_numbers_of_null_messages_do_not_matter() -> None:
    stack = started()
    told(stack, 1, Null(8, 0, 0, 0))
    told(stack, 2, Null(9, 0, 0, 0))
    assert number_of_the_next(stack) == 1


def test_d_is_the_lowest_of_the_last_numbers_received() -> None:
    stack = started()
    told(stack, 1, data(1, c=5))
    assert layer_of(stack).D == 0
    told(stack, 2, Null(3, 0, 0, 0))
    assert layer_of(stack).D == 3
    told(stack, 2, Null(7, 0, 3, 0))
    assert layer_of(stack).D == 5


def test_what_has_a_number_up_to_d_is_delivered_in_order_of_number_then_origin() -> None:
    stack = started()
    assert delivered(told(stack, 2, data(2, c=1))) == []
    assert delivered(told(stack, 2, data(2, c=2, after=1))) == []
    assert delivered(told(stack, 1, data(1, c=1))) == [message_id(1, 1), message_id(2, 1)]
    assert delivered(told(stack, 1, Null(9, 0, 1, 0))) == [message_id(2, 2)]


def test_null_messages_are_not_queued() -> None:
    stack = started()
    told(stack, 1, Null(4, 0, 0, 0))
    assert layer_of(stack).received.messages == []


def test_one_clock_numbers_what_goes_to_all_groups() -> None:
    stack = started(process=1, size=4, groups=((0, 1, 2), (1, 2, 3)))
    first, second = cast(stack, (0, 1), 0), cast(stack, (3,), 1)
    sends = [
        (effect.to, effect.packet.c)
        for effect in first + second
        if isinstance(effect, Send) and isinstance(effect.packet, Data)
    ]
    assert sends == [((0,), 1), ((3,), 2)]


def test_d_is_the_lowest_over_all_groups_of_the_process() -> None:
    """Process 1 is in both groups, and waits for process 3 with a message to the first."""
    groups = ((0, 1, 2), (1, 2, 3))
    stack = started(process=1, size=4, groups=groups)
    told(stack, 0, data(0, c=2))
    assert delivered(told(stack, 2, Null(2, 0, 0, 0))) == []
    assert delivered(told(stack, 3, Null(2, 0, 0, 0))) == [message_id(0, 2)]
    stack = started(process=0, size=4, groups=groups)
    told(stack, 1, data(1, c=2))
    assert delivered(told(stack, 2, Null(2, 0, 0, 0))) == [message_id(1, 2)]


def test_ldn_is_d() -> None:
    stack = started()
    told(stack, 1, Null(4, 0, 0, 0))
    told(stack, 2, Null(6, 0, 0, 0))
    (send,) = [effect for effect in cast(stack, EVERYBODY) if isinstance(effect, Send)]
    assert isinstance(send.packet, Data)
    assert send.packet.ldn == 4


def test_a_message_is_stable_when_all_have_a_d_of_at_least_its_number() -> None:
    stack = started()
    assert delivered(told(stack, 1, data(1, c=1))) == [message_id(1, 1)]
    told(stack, 2, Null(2, 0, 0, 0))
    told(stack, 1, Null(4, 1, 1, 0))
    assert len(layer_of(stack).received.messages) == 1
    told(stack, 2, Null(4, 1, 2, 0))
    assert len(layer_of(stack).received.messages) == 0


# Section 2.2.3: overlapping groups.

FIGURE_2_3 = Scope(
    4, (PlannedCast(0, (0, 1, 2)), PlannedCast(3, (1, 2, 3))), groups=((0, 1, 2), (1, 2, 3))
)  # fmt: skip


def test_figure_2_3_b_and_c_deliver_in_one_order_in_every_schedule() -> None:
    """A and D multicast at the same time, A to {A,B,C} and D to {B,C,D}."""
    outcome = explore(parse_stack("atomic"), FIGURE_2_3)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals == 76
    assert outcome.states == 13_197


# Silence is broken on demand.


def test_a_message_calls_for_one_null_message_at_the_end_of_what_is_at_hand() -> None:
    stack = started()
    first = told(stack, 1, data(1, c=1))
    (timer,) = [effect for effect in first if isinstance(effect, SetTimer)]
    assert (timer.name, timer.ticks) == ("silence", 0)
    assert told(stack, 1, data(1, c=2, after=1)) == []
    assert end_of_silence(stack) == [((1, 2), Null(2, 0, 0, 0))]


def test_a_null_message_is_not_answered() -> None:
    stack = started()
    assert told(stack, 1, Null(4, 0, 0, 0)) == []


def test_a_null_message_that_asks_is_answered_to_who_asked() -> None:
    stack = started()
    told(stack, 1, Null(5, 0, 0, 3))
    assert end_of_silence(stack) == [((1,), Null(3, 0, 0, 0))]


def test_who_has_sent_a_higher_number_since_owes_nothing() -> None:
    stack = started()
    told(stack, 1, data(1, c=1))
    cast(stack, EVERYBODY)
    assert end_of_silence(stack) == []


def test_who_stays_silent_runs_ahead_farther_each_time() -> None:
    stack = started()
    numbers: list[int] = []
    for c in range(1, 2 * FARTHEST):
        told(stack, 2, data(2, c=c, after=c - 1))
        numbers += [null.c for _, null in end_of_silence(stack)]
    assert numbers == [1, 3, 7, 15, 31, 63, 127, 255, 511, 767]


def test_who_has_a_message_of_its_own_starts_from_the_beginning() -> None:
    stack = started()
    for c in (1, 2, 3):
        told(stack, 1, data(1, c=c, after=c - 1))
        end_of_silence(stack)
    assert layer_of(stack).silence.lead == 8
    cast(stack, EVERYBODY)
    assert layer_of(stack).silence.lead == 1


def test_a_message_with_a_number_that_all_others_left_is_delivered_at_once() -> None:
    stack = started()
    told(stack, 1, Null(256, 0, 0, 0))
    told(stack, 2, Null(256, 0, 0, 0))
    assert len(delivered(cast(stack, EVERYBODY))) == 1


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_a_message_to_all_costs_at_most_n_minus_1_packets_from_each(n: int) -> None:
    """And none from those above its origin, if it is the first one."""
    everybody = tuple(range(n))
    for origin in everybody:
        sent: dict[str, int] = {"Data": 0, "Null": 0}
        bench = run("atomic", Casts(n, ((origin, everybody),)), Random(1), fifo=True)
        for line in bench.script:
            is_of_origin = line.startswith(f"deliver {origin}->")
            sent["Null"] += line.startswith("deliver") and not is_of_origin
            sent["Data"] += is_of_origin
        assert sent == {"Data": n - 1, "Null": origin * (n - 1)}


# Of equal numbers the lower origin goes first.


def test_a_message_is_not_held_up_by_who_may_still_send_its_number_and_goes_behind_it() -> None:
    stack = started(process=2)
    told(stack, 0, Null(2, 0, 0, 0))
    assert delivered(told(stack, 1, data(1, c=2))) == [message_id(1, 2)]


def test_a_message_is_held_up_by_who_may_still_send_its_number_and_goes_before_it() -> None:
    stack = started(process=2)
    told(stack, 0, Null(1, 0, 0, 0))
    assert delivered(told(stack, 1, data(1, c=2))) == []
    assert delivered(told(stack, 0, data(0, c=2, after=1))) == [message_id(0, 2), message_id(1, 2)]


def test_who_goes_behind_a_message_owes_the_number_before() -> None:
    stack = started(process=2)
    told(stack, 0, data(0, c=1))
    assert layer_of(stack).silence.owed == [0, 0, 0]
    told(stack, 0, data(0, c=2, after=1))
    assert layer_of(stack).silence.owed == [1, 1, 0]


def test_two_delays_from_the_multicast_to_the_last_delivery() -> None:
    scenario = Scenario(
        stack="ATOMIC", processes=5, workload="broadcast", clients=0, network="unit", casts="2@0s"
    )
    assert run_scenario(scenario).client_latency == pytest.approx(0.002)


# Only members multicast.


def test_a_client_cannot_multicast() -> None:
    with pytest.raises(UsageError, match="process 3 cannot multicast to process 0"):
        cast(started(process=3), (0, 1))


def test_nobody_multicasts_to_a_process_that_is_in_none_of_its_groups() -> None:
    stack = started(process=0, size=4, groups=((0, 1, 2), (1, 2, 3)))
    with pytest.raises(UsageError, match="process 0 cannot multicast to process 3"):
        cast(stack, (1, 3))
    with pytest.raises(PeerError):
        told(stack, 3, data(3, c=1, to=(0, 1)))


# Crashes.


def test_a_suspected_process_is_not_waited_for() -> None:
    stack = started()
    told(stack, 2, data(2, c=1))
    stack.notice(Suspect(1))
    assert delivered(stack.take_effects()) == [message_id(2, 1)]


def test_what_a_suspected_process_sends_is_ignored() -> None:
    """It might have a number below what has been delivered since."""
    stack = started()
    stack.notice(Suspect(2))
    stack.take_effects()
    assert told(stack, 2, data(2, c=1)) == []
    assert layer_of(stack).received.messages == []


def test_after_a_suspicion_the_others_are_asked() -> None:
    """They may never get what the crashed process sent last, so nothing tells them to speak."""
    stack = started(size=4)
    told(stack, 3, data(3, c=1, to=(0, 1, 2)))
    end_of_silence(stack)
    stack.notice(Suspect(3))
    stack.take_effects()
    assert end_of_silence(stack) == [((1, 2), Null(3, 0, 1, 1))]


def with_a_crash(*properties: str) -> ExplorationResult:
    """The messages are those of the higher origins, which wait for more than that of the lowest."""
    casts = (PlannedCast(1, EVERYBODY), PlannedCast(2, EVERYBODY))
    scope = Scope(3, casts, bounds=Bounds(crashes=1))
    return explore(parse_stack("atomic"), scope, SearchOptions(properties=properties))


@pytest.mark.slow
def test_a_crash_breaks_neither_the_order_nor_the_delivery_of_what_correct_processes_send() -> None:
    outcome = with_a_crash("integrity", "conduct", "acyclic order", "fifo order", "validity")
    assert outcome.exhausted
    assert not outcome.violations


@pytest.mark.parametrize("name", ["agreement", "prefix order", "causal order"])
def test_a_crash_breaks_what_needs_agreement_on_the_last_messages(name: str) -> None:
    """That is what a view change is for: all agree on them before they go on."""
    assert with_a_crash(name).broken == {name}


def test_after_a_suspicion_those_whom_a_message_is_not_for_are_asked_as_before() -> None:
    stack = started(process=2)
    stack.notice(Suspect(1))
    stack.take_effects()
    cast(stack, (1, 2))
    assert end_of_silence(stack) == [((0,), Null(2, 0, 0, 1))]
