"""Every protocol of the table keeps the rules of `flexgroup.testing.conformance`.

And every rule bites: a layer that breaks it is caught, with a text that says what is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from flexgroup.core.layer import Context, Layer, Notice
from flexgroup.core.message import Message, Packet
from flexgroup.core.state import fingerprint
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.catalogue import PROTOCOLS, StackPlan, parse_stack
from flexgroup.testing import conformance
from flexgroup.testing.conformance import (
    RULES,
    Rule,
    check_conformance,
    name_of_rule,
    under_way,
    whole_stack,
)

STACKS = [
    *map(whole_stack, PROTOCOLS),
    "dcc/rv",
    "dcc/any",
    "dcc-wide/rv",
    "dcc-published/rv",
    "dcc-published/any",
    "fifo dcc",
    "fifo skeen",
    "reliable causal",
    "reliable atomic safe",
    "reliable virtual-synchrony",
    "leader paxos",
    "leader paxos skeen-cft",
    "leader paxos ft-abcast",
]

WITHOUT_STATE = ("best-effort", "protected-memory")  # which has what the layer above protects


@pytest.mark.parametrize("rule", RULES, ids=name_of_rule)
@pytest.mark.parametrize("stack", STACKS)
def test_conformance(stack: str, rule: Rule) -> None:
    rule(parse_stack(stack))


@pytest.mark.parametrize("stack", STACKS)
def test_the_schedules_of_the_rules_change_the_state(stack: str) -> None:
    trial = under_way(parse_stack(stack), 1)
    before = [fingerprint(one) for one in trial.stacks]
    trial.rest()
    after = [fingerprint(one) for one in trial.stacks]
    assert (before != after) is (stack not in WITHOUT_STATE)


class BestEffort(Layer):
    """The simplest protocol. In the package it may be compiled; then nothing derives from it."""

    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data,)

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Data) or not self.is_for_me(packet.m):
            raise self.refuse(sender, packet)
        self.deliver(packet.m)


class Aliasing(BestEffort):
    """Keeps lists in a dict, which a copy of the state shares."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.seen: dict[int, list[int]] = {}

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        self.seen.setdefault(sender, []).append(1)


class Remembering(BestEffort):
    """Keeps a count where no copy of its state can see it, and tells it to others."""

    told = 0

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        Remembering.told += 1
        self.set_timer("again", Remembering.told)


class Arbitrary(BestEffort):
    """Asks for things in the order in which a dict was filled."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.senders: dict[int, int] = {}

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        self.senders[sender] = 1
        for known in self.senders:
            self.set_timer(f"sender {known}", 1)


class AtTheSequencer(BestEffort):
    """Process 0, and nobody else, asks for things in the order in which a dict was filled."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.senders: dict[int, int] = {}

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        self.senders[sender] = 1
        for known in self.senders if self.process == 0 else ():
            self.set_timer(f"sender {known}", 1)


class Fickle(BestEffort):
    """Draws numbers when it multicasts, and when it is told of a suspicion."""

    drawn = 0

    def on_cast(self, m: Message) -> None:
        super().on_cast(m)
        Fickle.drawn += 1
        self.set_timer("drawn", Fickle.drawn)

    def on_notice(self, notice: Notice) -> None:
        Fickle.drawn += 1
        self.set_timer("drawn", Fickle.drawn)


class Undeclared(BestEffort):
    """Sends a packet that PACKETS does not name."""

    PACKETS = ()


class Gullible(BestEffort):
    """Delivers whatever comes, to whomever it was sent."""

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Data):
            raise self.refuse(sender, packet)
        self.deliver(packet.m)


class Hasty(BestEffort):
    """Takes any packet for one of its own."""

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data):
            super().on_packet(sender, packet)


class Trusting(BestEffort):
    """Looks up what a peer says in a list that is not so long."""

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        assert isinstance(packet, Data)
        [0][packet.m.id >> 30]


class Relaying(BestEffort):
    """Sends a message on to all its destinations, whether they exist or not."""

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Data) or self.process not in packet.m.destinations:
            raise self.refuse(sender, packet)
        if sender >= self.size:
            self.send(packet.m.destinations, packet)
        else:
            self.deliver(packet.m)


BROKEN: dict[type[Layer], Rule] = {
    Aliasing: conformance.a_fork_shares_nothing_with_the_original,
    Remembering: conformance.a_fork_goes_on_as_the_original_does,
    Arbitrary: conformance.equal_states_give_equal_effects_however_they_were_filled,
    AtTheSequencer: conformance.equal_states_give_equal_effects_however_they_were_filled,
    Fickle: conformance.a_fork_goes_on_as_the_original_does,
    Undeclared: conformance.packets_survive_the_codec,
    Gullible: conformance.a_message_for_others_is_refused,
    Hasty: conformance.packets_of_another_protocol_are_refused,
    Trusting: conformance.hostile_packets_are_the_fault_of_the_peer,
    Relaying: conformance.nothing_is_sent_to_processes_that_do_not_exist,
}


@pytest.mark.parametrize("layer", BROKEN, ids=lambda layer: layer.__name__)
def test_the_rules_bite(layer: type[Layer]) -> None:
    plan = StackPlan.of(replace(PROTOCOLS["best-effort"], name="broken", layer=layer))
    with pytest.raises(AssertionError):
        BROKEN[layer](plan)
    with pytest.raises(AssertionError, match="broken: "):
        check_conformance(plan)


def test_a_whole_protocol_is_tried_in_one_call() -> None:
    check_conformance(parse_stack("skeen"))
