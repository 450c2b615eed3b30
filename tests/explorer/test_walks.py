"""Walks through scopes that are too large to search whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexgroup.core.layer import Layer
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.script import rewrite
from flexgroup.worlds.explorer import random_walks
from flexgroup.worlds.explorer.explorer import SearchLimits
from flexgroup.worlds.explorer.random_walks import (
    TIMES_LONGER,
    RandomWalks,
    Walker,
    WalkOptions,
)
from flexgroup.worlds.explorer.schedule import script
from flexgroup.worlds.explorer.scope import Bounds, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variant_parts import plan_of

CYCLIC = from_clients(4, (0, 2), (0, 2), (1, 2, 3), (1, 2, 3), (0, 3))
PUBLISHED = parse_stack("dcc-published")


def test_random_walks_find_it_in_the_end() -> None:
    outcome = RandomWalks(PUBLISHED, CYCLIC, 5000).take()
    assert outcome.broken == {"acyclic order"}
    assert "acyclic order: violated" in rewrite(
        script("dcc-published", CYCLIC, outcome.violations[0].run)
    )


def test_priorities_find_it_sooner() -> None:
    """A fast message stays behind while others pass: few changes of priority show it."""
    evenly = sum(RandomWalks(PUBLISHED, CYCLIC, 5000, seed).take().terminals for seed in range(3))
    by_priority = sum(
        RandomWalks(PUBLISHED, CYCLIC, 5000, seed, depth=3).take().terminals for seed in range(3)
    )
    assert by_priority < evenly / 3


def test_the_guarantee_is_stated() -> None:
    outcome = RandomWalks(parse_stack("dcc"), CYCLIC, 20, depth=2).take()
    assert not outcome.violations
    assert not outcome.exhausted
    assert outcome.last_line().startswith("stopped at --walks 20: ")
    (taken, odds) = outcome.notes
    assert taken.startswith("20 PCT walks of depth 2 from seed 1")
    assert odds.startswith("a bug of depth 2 shows in one walk with a chance of at least 1 in ")


def test_the_odds_are_kept() -> None:
    """Two messages race to one process: which is first has depth 1, and two channels."""
    plan = parse_stack("best-effort")
    scope = from_clients(1, (0,), (0,))
    seen: set[tuple[int, int]] = set()
    for seed in range(20):
        options = SearchOptions(properties=("integrity",))
        outcome = RandomWalks(plan, scope, 1, seed, depth=1, options=options).take()
        assert "at least 1 in 2 (2 channels, 2 steps)" in outcome.notes[1]
        seen |= outcome.seen_orders
    assert len(seen) == 2


def test_equal_seeds_walk_alike() -> None:
    walks = RandomWalks(PUBLISHED, CYCLIC, 5000, 7, depth=3)
    assert walks.take().violations[0].run == walks.take().violations[0].run


def test_a_scope_that_cannot_be_searched_whole_here() -> None:
    scope = from_clients(6, *[(0, 3, 5), (1, 2, 4), (0, 5), (2, 3), (1, 4)] * 4)
    outcome = RandomWalks(parse_stack("dcc"), scope, 20, depth=3).take()
    assert not outcome.violations
    assert outcome.complete == 20


@pytest.mark.parametrize("depth", [0, 3])
def test_several_workers_take_the_walks_that_one_takes(depth: int) -> None:
    """The run that is found is that of the first walk, by number, that finds one."""
    alone = RandomWalks(PUBLISHED, CYCLIC, 5000, 7, depth).take()
    together = RandomWalks(PUBLISHED, CYCLIC, 5000, 7, depth, workers=2).take()
    assert alone.violations
    assert together.violations == alone.violations
    assert together.notes == alone.notes
    assert (together.states, together.depth) == (alone.states, alone.depth)


class Answering(Layer):
    """Lets the origin know that a message has arrived."""

    __slots__ = ()
    PACKETS = (Data,)

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Data)
        if self.process < self.size:
            self.send((sender,), packet)
            self.deliver(packet.m)


def test_a_client_that_is_addressed_is_followed_by_every_worker() -> None:
    outcome = RandomWalks(plan_of(Answering), from_clients(2, (0, 1)), 200, workers=2).take()
    assert outcome.terminals == 200
    assert outcome.depth == 5  # the multicast, two arrivals and two answers


def test_limits_stop_walks() -> None:
    outcome = RandomWalks(parse_stack("dcc"), CYCLIC, 5000, limits=SearchLimits(states=50)).take()
    assert outcome.stopped_at == "--max-states 50"
    assert outcome.terminals < 5000


def test_faults_come_early_and_late() -> None:
    """A crash that always came among the first steps would leave most runs untried."""
    scope = replace(from_clients(3, (0, 1, 2), (0, 1, 2)), bounds=Bounds(crashes=1), crashing=(0,))
    options = SearchOptions(reduce=False, symmetry=False, properties=("validity",))
    walker = Walker(parse_stack("skeen"), scope, WalkOptions(seed=1, depth=0, search=options))
    places = []
    for number in range(60):
        for violation in walker.take(range(number, number + 1)).violations:
            kinds = [step.kind for step in violation.run]
            places.append(kinds.index("crash") / len(kinds))
    assert min(places) < 0.3
    assert max(places) > 0.6


def test_what_a_walker_forgets_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = parse_stack("dcc")
    kept = RandomWalks(plan, CYCLIC, 300, depth=2).take()
    monkeypatch.setattr(random_walks, "MOST_LOCAL_STATES", 20)
    forgotten = RandomWalks(plan, CYCLIC, 300, depth=2).take()
    assert forgotten.local_states < kept.local_states
    assert replace(forgotten, local_states=0, seconds=0) == replace(kept, local_states=0, seconds=0)


class Arguing(Layer):
    """Two processes contradict each other until a message brings the first to reason."""

    __slots__ = ("reasonable",)
    PACKETS = (Data,)

    def on_start(self) -> None:
        self.reasonable = False
        if self.process == 1:
            self._contradict(Message(message_id(1, 1), (0, 1), b""))

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Data)
        if sender >= self.size:
            self.reasonable = True
            self.deliver(packet.m)
        elif not self.reasonable:
            self._contradict(packet.m)

    def _contradict(self, word: Message) -> None:
        self.send((1 - self.process,), Data(word))


class NeverReasonable(Arguing):
    """And here it does not."""

    __slots__ = ()

    def on_cast(self, m: Message) -> None:
        pass


def test_no_channel_waits_for_ever_for_others_that_never_fall_silent() -> None:
    outcome = RandomWalks(plan_of(Arguing), from_clients(2, (0,)), 200, depth=1).take()
    assert outcome.complete == outcome.terminals == 200
    assert outcome.depth < 1000


def test_two_leaders_who_depose_each_other_for_ever_are_given_up() -> None:
    """Each suspects the other wrongly, to the end, so the leader oracle breaks its promise and
    White-Box need not get on. A hundred thousand steps of that took gigabytes."""
    everybody, one, other = tuple(range(6)), (0, 1, 2), (3, 4, 5)
    scope = replace(
        from_clients(6, everybody, other, one, everybody),
        replicas=(one, other), bounds=Bounds(crashes=1, restarts=1, suspicions=2),
    )  # fmt: skip
    how = WalkOptions(seed=5, depth=3, search=SearchOptions(reduce=False, symmetry=False))
    walker = Walker(parse_stack("leader white-box"), scope, how)
    totals = walker.take(range(222, 223))
    assert (totals.endless, totals.complete) == (1, 0)
    assert totals.deepest == TIMES_LONGER * walker.steps < 5000


def test_walks_that_do_not_end_are_given_up_and_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_walks, "LONGEST", 300)
    options = SearchOptions(properties=("integrity",))
    scope = from_clients(2, (0,))
    outcome = RandomWalks(plan_of(NeverReasonable), scope, 10, depth=2, options=options).take()
    assert outcome.complete == 0
    assert outcome.depth == 300
    assert outcome.notes[-1] == (
        "10 walks were given up after so many steps that they may be endless, up to 300: nothing "
        "is said of how they end"
    )
