"""What the world does within its bounds: lose, duplicate, crash, suspect, let timers run out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexgroup.core.layer import Context, Layer, Notice, Suspect
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.script import rewrite
from flexgroup.worlds.explorer.explorer import TIMERS_IGNORED, explore
from flexgroup.worlds.explorer.property_checks import StateProperty
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.schedule import ScheduleStep, script
from flexgroup.worlds.explorer.scope import Bounds, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variant_parts import plan_of

TWO = from_clients(2, (0, 1))


def within(scope: Scope, **bounds: int) -> Scope:
    return replace(scope, bounds=Bounds(**bounds))


def explored(scope: Scope, *properties: str) -> ExplorationResult:
    options = SearchOptions(properties=properties)
    return explore(parse_stack("best-effort"), scope, options, keep_going=True)


def test_a_lost_packet_is_missed() -> None:
    outcome = explored(within(TWO, losses=1), "validity", "agreement")
    assert outcome.broken == {"validity", "agreement"}
    assert [step.kind for step in outcome.violations[0].run].count("lost") == 1


def test_a_packet_that_is_there_twice_is_delivered_twice() -> None:
    outcome = explored(within(TWO, duplicates=1), "integrity")
    assert outcome.broken == {"integrity"}
    assert not explored(TWO, "integrity").violations


@pytest.mark.parametrize("bounds", [{"losses": 1}, {"duplicates": 1}])
def test_such_a_run_is_a_script_too(bounds: dict[str, int]) -> None:
    scope = within(TWO, **bounds)
    outcome = explored(scope, "validity", "integrity")
    golden = rewrite(script("best-effort", scope, outcome.violations[0].run))
    assert "violated" in golden


def test_a_crash_excuses_the_one_who_crashed() -> None:
    """Best-effort multicast by a client: every process that is up delivers."""
    scope = within(TWO, crashes=1)
    assert not explored(scope, "validity", "agreement", "uniform agreement").violations


class NothingAtFirst(StateProperty):
    """A property of the test's own."""

    def broken(self, delivered: list[list[int]]) -> bool:
        return bool(delivered[0])


def test_properties_of_the_callers_own() -> None:
    watch = NothingAtFirst("process 0 delivers nothing")
    options = SearchOptions(properties=("integrity",), extra_properties=(watch,))
    outcome = explore(parse_stack("best-effort"), TWO, options)
    assert outcome.broken == {"process 0 delivers nothing"}
    assert not explore(parse_stack("best-effort"), from_clients(2, (1,)), options).violations


def test_a_script_goes_on_after_a_crash() -> None:
    """What is on its way to a process that crashed is nobody's business any more."""
    run = (
        ScheduleStep("cast", 2, number=0),
        ScheduleStep("crash", 1),
        ScheduleStep("receive", 0, source=2),
    )
    golden = rewrite(script("best-effort", within(TWO, crashes=1), run)).splitlines()
    assert golden[-3:] == ["  0: a", "  1: -", "holds"]


class Call(Packet):
    number: int


class Persistent(Layer):
    """Sends again when its timer runs out, and delivers what it has not delivered before."""

    __slots__ = ("had", "sent")
    PACKETS = (Data,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: list[Message] = []
        self.had: set[int] = set()

    def on_cast(self, m: Message) -> None:
        self.sent.append(m)
        self.send(m.destinations, Data(m))
        self.set_timer("again", 1)

    def on_timer(self, name: str) -> None:
        for m in self.sent:
            self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Data)
        if packet.m.id not in self.had:
            self.had.add(packet.m.id)
            self.deliver(packet.m)


def test_a_timer_makes_up_for_a_loss_if_it_may_run_out() -> None:
    plan = plan_of(Persistent)
    options = SearchOptions(follow_clients=True, properties=("validity", "integrity"))
    lossy = within(TWO, losses=1)
    assert explore(plan, lossy, options).broken == {"validity"}
    assert TIMERS_IGNORED in explore(plan, lossy, options).notes
    patient = explore(plan, within(TWO, losses=1, timers=1), options)
    assert patient.exhausted
    assert not patient.violations
    assert explore(plan, within(TWO, losses=2, timers=1), options).broken == {"validity"}


class Successor(Layer):
    """Delivers its message once it suspects process 0."""

    __slots__ = ("kept",)
    PACKETS = (Data,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.kept: list[Message] = []

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Data)
        self.kept.append(packet.m)

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and notice.process == 0:
            for m in self.kept:
                self.deliver(m)


@pytest.mark.parametrize(
    ("bounds", "delivers"),
    [({}, False), ({"crashes": 1}, True), ({"suspicions": 1}, True)],
    ids=["nothing happens", "a crash is noticed", "a false suspicion"],
)
def test_suspicions_come_after_a_crash_or_within_their_bound(
    bounds: dict[str, int], delivers: bool
) -> None:
    scope = within(from_clients(2, (1,)), **bounds)
    outcome = explore(
        plan_of(Successor), scope, SearchOptions(properties=("integrity",)), keep_going=True
    )
    assert outcome.exhausted
    assert any(orders[1] for orders in outcome.terminal_orders) is delivers


class Coin(Layer):
    """Delivers in the order of arrival or the other way round, as the world decides."""

    __slots__ = ("kept",)
    PACKETS = (Data,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.kept: list[Message] = []

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Data)
        self.kept.append(packet.m)
        if len(self.kept) == 2:
            self.offer("coin", 2)

    def on_choice(self, name: str, chosen: int) -> None:
        for m in self.kept if chosen else reversed(self.kept):
            self.deliver(m)


def test_every_option_that_a_layer_offers_is_tried() -> None:
    scope = from_clients(1, (0,), (0,))
    for options in (SearchOptions(), SearchOptions(reduce=False, symmetry=False)):
        outcome = explore(plan_of(Coin), scope, options)
        assert len(outcome.terminal_orders) == 2
        assert outcome.complete == outcome.terminals


class Refusing(Layer):
    __slots__ = ()
    PACKETS = (Call,)

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Call(1))

    def on_packet(self, sender: int, packet: Packet) -> None:
        raise self.refuse(sender, packet)


def test_what_a_handler_raises_is_a_finding() -> None:
    outcome = explore(plan_of(Refusing), from_clients(1, (0,)))
    assert outcome.broken == {"conduct"}
