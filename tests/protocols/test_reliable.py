"""Reliable multicast: whatever the channels did, in the end all have everything, and are silent.

A run has two parts. First anything may happen: packets are lost, doubled and reordered, timers
run out early or late, a process crashes. Then the world is fair: what is in flight arrives, and
timers run out, until nothing is left to happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.layer import Send
from flexgroup.core.message import Message, message_id, origin_of, seq_of
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.reliable import Data, Have, Null, Reliable
from flexgroup.testing.orders import undelivered, wrongly_delivered
from flexgroup.worlds.bench import Bench

from ..explorer.variant_parts import loaded_anew, plan_of

RELIABLE = parse_stack("reliable")

FAIR_ROUNDS = 60
"""More than enough: what is lost is asked for within two rounds."""


def layer(bench: Bench, process: int) -> Reliable:
    found = bench.hosts[process].stack.layers[0]
    assert isinstance(found, Reliable)
    return found


def held(one: Reliable) -> int:
    return len(one.received_list) + sum(len(o.after) + len(o.held) for o in one.origins.values())


def lose_and_reorder(bench: Bench, random: Random, loss: float = 0.3) -> None:
    """Let some packet arrive, once, twice or never."""
    source, target = random.choice(sorted(bench.channels))
    place = random.randrange(len(bench.channels[source, target]))
    if random.random() < loss:
        bench.remove(source, target, place)
        return
    if random.random() < loss:
        bench.duplicate(source, target, place)
    bench.deliver(source, target, place)


def end_timers(bench: Bench) -> None:
    for process in range(bench.size):
        for level, name in list(bench.timers.get(process, [])):
            bench.end_timer(process, level, name)


def be_fair(bench: Bench) -> int:
    """How many rounds it took until nothing was left to happen."""
    for rounds in range(FAIR_ROUNDS):
        while bench.channels:
            bench.deliver(*next(iter(bench.channels)))
        if not any(bench.timers.values()):
            return rounds
        end_timers(bench)
    raise AssertionError("not silent")


def suspect(bench: Bench, crashed: int) -> None:
    for process in range(bench.size):
        if process not in bench.crashed:
            bench.suspect(process, crashed)


def unfair_run(seed: int, crash: bool, casts: int = 8) -> Bench:
    random = Random(seed)
    size = random.randint(2, 5)
    bench = Bench(RELIABLE, size)
    for number in range(casts):
        origin = random.choice([p for p in range(size) if p not in bench.crashed])
        bench.cast(origin, tuple(sorted(random.sample(range(size), random.randint(1, size)))))
        for _ in range(random.randint(0, 6)):
            if bench.channels and random.random() < 0.8:
                lose_and_reorder(bench, random)
            elif any(bench.timers.values()):
                process = random.choice([p for p, timers in bench.timers.items() if timers])
                bench.end_timer(process, *random.choice(bench.timers[process]))
        if crash and number == casts // 2:
            bench.crash(random.randrange(size))
    return bench


def missing_at_correct(bench: Bench) -> list[tuple[int, int]]:
    """What validity and agreement demand, and is not there."""
    correct = [p for p in range(bench.size) if p not in bench.crashed]
    had = {m.id for process in correct for m in bench.delivered[process]}
    due = [
        m for m in bench.messages.values() if m.id in had or origin_of(m.id) not in bench.crashed
    ]
    return [pair for pair in undelivered(bench.delivered, due) if pair[1] in correct]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_all_is_delivered_once_and_forgotten(seed: int) -> None:
    bench = unfair_run(seed, crash=False)
    be_fair(bench)
    assert not undelivered(bench.delivered, list(bench.messages.values()))
    assert not wrongly_delivered(bench.delivered)
    for process in range(bench.size):
        assert held(layer(bench, process)) == 0


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_what_one_correct_process_has_of_a_crashed_one_all_get(seed: int) -> None:
    bench = unfair_run(seed, crash=True)
    (crashed,) = bench.crashed
    suspect(bench, crashed)
    be_fair(bench)
    assert not missing_at_correct(bench)
    assert not wrongly_delivered(bench.delivered)
    for process in set(range(bench.size)) - bench.crashed:
        assert not layer(bench, process).received_list


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_that_does_not_take_a_failure_detector(seed: int) -> None:
    """It only never ends: a process that may be slow is sent its messages for ever."""
    bench = unfair_run(seed, crash=True)
    for _ in range(20):
        while bench.channels:
            bench.deliver(*next(iter(bench.channels)))
        end_timers(bench)
    assert not missing_at_correct(bench)


@pytest.mark.parametrize("part", ["gaps", "send_again", "pass_round"])
def test_fair_runs_bite(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asking for gaps, sending again or passing round, something is missing somewhere."""
    fresh = loaded_anew("reliable").Reliable
    setattr(fresh, part, lambda self, *about: ())
    monkeypatch.setattr(f"{__name__}.RELIABLE", plan_of(fresh))
    caught = 0
    for seed in range(40):
        bench = unfair_run(seed, crash=True)
        suspect(bench, min(bench.crashed))
        for _ in range(6):
            while bench.channels:
                bench.deliver(*next(iter(bench.channels)))
            end_timers(bench)
        caught += bool(missing_at_correct(bench))
    assert caught


# What it costs.


def test_memory_is_bounded_over_a_long_lossy_run() -> None:
    random = Random(7)
    bench = Bench(RELIABLE, 4)
    most: list[int] = []
    for number in range(4000):
        origin = number % 4
        to = tuple(sorted(random.sample(range(4), random.randint(2, 4))))
        bench.cast(origin, to)
        while bench.channels:
            lose_and_reorder(bench, random, loss=0.05)
        for name, every in (("null", 10), ("again", 100)):
            for process in range(4) if number % every == 0 else ():
                if (0, name) in bench.timers.get(process, []):
                    bench.end_timer(process, 0, name)
        most.append(max(held(layer(bench, process)) for process in range(4)))
    assert max(most[2000:]) <= 1.5 * max(most[:2000])
    assert max(most) < 1000
    assert min(most[3000:]) < 100


def sent_during(bench: Bench, casts: int, origins: tuple[int, ...]) -> dict[str, int]:
    """Packets of each type while these processes multicast to all, and all arrives at once."""
    everyone = tuple(range(bench.size))
    counts: dict[str, int] = {}
    for number in range(casts):
        bench.cast(origins[number % len(origins)], everyone)
        while bench.channels:
            packet = bench.deliver(*next(iter(bench.channels)))
            counts[type(packet).__name__] = counts.get(type(packet).__name__, 0) + 1
    return counts


def test_without_loss_a_message_is_one_packet_to_each() -> None:
    """Acknowledgements ride on the messages of others."""
    assert sent_during(Bench(RELIABLE, 3), 30, (0, 1, 2)) == {"Data": 60}


def test_those_who_have_nothing_to_send_acknowledge_once_in_an_interval() -> None:
    bench = Bench(RELIABLE, 3)
    assert sent_during(bench, 30, (0,)) == {"Data": 60}
    assert bench.timers == {0: [(0, "again")], 1: [(0, "null"), (0, "again")],
                            2: [(0, "null"), (0, "again")]}  # fmt: skip
    for process in (1, 2):
        bench.end_timer(process, 0, "null")
    assert {channel: len(packets) for channel, packets in bench.channels.items()} == {
        (1, 0): 1,
        (2, 0): 1,
    }


def test_acknowledged_messages_become_stable_and_are_forgotten() -> None:
    """With the last acknowledgement at the origin, with its next message at the others."""
    bench = Bench(RELIABLE, 3)
    sent_during(bench, 1, (0, 1, 2))
    assert len(layer(bench, 0).received_list) == 1
    sent_during(bench, 2, (1, 2))
    assert layer(bench, 0).sent.stable == 1
    sent_during(bench, 1, (0,))
    for process in (1, 2):
        assert message_id(0, 1) not in layer(bench, process).received_list


def test_a_suspected_process_is_not_waited_for() -> None:
    bench = Bench(RELIABLE, 3)
    bench.crash(2)
    sent_during(bench, 3, (0,))
    bench.end_timer(1, 0, "null")
    be_fair_without_timers(bench)
    assert layer(bench, 0).sent.stable == 0
    suspect(bench, 2)
    assert layer(bench, 0).sent.stable == 3
    assert be_fair(bench) < FAIR_ROUNDS


def be_fair_without_timers(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def test_what_is_cast_after_a_suspicion_is_not_waited_for_either() -> None:
    bench = Bench(RELIABLE, 2)
    bench.crash(1)
    suspect(bench, 1)
    sent_during(bench, 3, (0,))
    be_fair(bench)
    assert not layer(bench, 0).received_list


# What no correct peer sends.

ONE = Message(message_id(0, 0), (1, 2), b"")


@pytest.mark.parametrize(
    ("sender", "packet"),
    [
        (0, Data(ONE, 1, (1,), 0, (), ())),
        (0, Data(ONE, 1, (2, 1), 0, (), ())),
        (0, Data(ONE, 1, (0, 1), 0, (), ())),
        (3, Data(ONE, 1, (1, 1), 0, (), ())),
        (0, Data(ONE, 1, (1, 1), 0, (1, 1), ())),
        (0, Null(0, (1, 5), ())),
        (0, Null(0, (1,), ())),
        (0, Null(0, (), (1, 2))),
        (0, Null(0, (), (1, 2, 2))),
        (0, Null(0, (), (1, 0, 9, 1, 5, 12))),
        (9, Null(0, (), ())),
        (0, Have(1, 1)),
    ],
    ids=["since for one", "before the first", "no since", "from elsewhere", "acks in data",
         "never sent", "half a pair", "part of a triple",
         "an empty gap", "gaps that overlap", "a stranger", "one's own"],
)  # fmt: skip
def test_nonsense_is_refused(sender: int, packet: Data | Null | Have) -> None:
    stack = RELIABLE.build(1, 4)
    with pytest.raises(PeerError):
        stack.receive(sender, packet)
    assert not stack.take_effects()


def test_a_nack_for_what_was_never_sent_asks_for_nothing() -> None:
    stack = RELIABLE.build(1, 4)
    stack.receive(0, Null(0, (), (1, 0, 1 << 40)))
    stack.timer(0, "null")
    assert not [effect for effect in stack.take_effects() if isinstance(effect, Send)]


class OnlyLookedUp(dict[int, Data]):
    """A received-list that nobody looks through from one end to the other."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("all that is under way was looked through")


def test_what_is_asked_for_is_found_however_much_is_under_way() -> None:
    """A nack may name thousands of gaps, and thousands of messages may be under way: whoever looks
    through these for each gap says nothing else for seconds, and is taken for dead."""
    bench = Bench(RELIABLE, 2)
    for _ in range(9):
        bench.cast(0, (0, 1))
    one = layer(bench, 0)
    one.received_list = OnlyLookedUp(one.received_list)
    bench.hosts[0].stack.receive(1, Null(0, (), (0, 1, 2, 0, 4, 6, 0, 8, 1 << 40)))
    assert [seq_of(identity) for _, identity in sorted(one.retransmission_list)] == [2, 5, 6, 9]


def test_clients_do_not_multicast_by_themselves() -> None:
    with pytest.raises(UsageError, match="only members multicast with 'reliable'"):
        Bench(RELIABLE, 2).cast(2, (0, 1))
