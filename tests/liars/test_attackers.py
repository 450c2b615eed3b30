"""Each attacker does one thing wrong, of which the world chooses whether and how.

Process 2 is a destination of Skeen's algorithm. Its proposal for a message, `LocalTs`, goes to the
other destinations; what it does with that is seen in what is on the way from it.
"""

from __future__ import annotations

import pytest

from flexgroup.core.message import Packet, clock_of, message_id, name_of
from flexgroup.liars.named import ATTACKERS
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.skeen import LocalTs, Start
from flexgroup.worlds.bench import Bench

CLIENT = 3
OPTIONS = {
    "silent": 0,
    "slow": 0,
    "skip": 4,
    "reorder": 2,
    "forge": 3,
    "equivocate": 3,
    "replay": 2,
    "impersonate": 3,
}
"""How many options the world has for the first packet; none if there is nothing to choose."""


def attacked(kind: str) -> Bench:
    """Process 2 has heard of a first message to all three."""
    world = Bench(parse_stack("skeen"), 3, liars=((2, kind),))
    world.cast(CLIENT, (0, 1, 2))
    world.deliver(CLIENT, 2)
    return world


def sent(world: Bench, target: int) -> list[str]:
    return [
        described(one.packet)
        for (source, to), packets in sorted(world.channels.items())
        if source == 2 and to == target
        for one in packets
    ]


def described(packet: Packet) -> str:
    if isinstance(packet, LocalTs):
        return f"{name_of(packet.m)} at {clock_of(packet.ts)}"
    assert isinstance(packet, Start)
    return f"Start {name_of(packet.m.id)} {packet.m.payload!r}"


TRUTH = "3.0 at 1"


def test_every_attacker_is_tried() -> None:
    assert list(OPTIONS) == list(ATTACKERS)


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_world_is_asked_where_there_is_a_choice(kind: str) -> None:
    offers = attacked(kind).hosts[2].offers
    assert [(offer.name, offer.options) for offer in offers] == (
        [(kind, OPTIONS[kind])] if OPTIONS[kind] else []
    )


@pytest.mark.parametrize("kind", [kind for kind in OPTIONS if OPTIONS[kind]])
def test_the_first_option_is_to_do_as_one_should(kind: str) -> None:
    world = attacked(kind)
    world.choose(2, 0)
    assert sent(world, 0) == sent(world, 1) == [TRUTH]
    assert not world.hosts[2].offers


def test_silent_says_nothing() -> None:
    world = attacked("silent")
    assert (sent(world, 0), sent(world, 1)) == ([], [])


def test_slow_says_it_when_a_timer_runs_out() -> None:
    world = attacked("slow")
    assert (sent(world, 0), sent(world, 1)) == ([], [])
    world.end_timer(2, 0, "slow")
    assert sent(world, 0) == sent(world, 1) == [TRUTH]


@pytest.mark.parametrize(
    ("chosen", "told"), [(1, ([], [])), (2, ([], [TRUTH])), (3, ([TRUTH], []))]
)
def test_skip_leaves_a_packet_out(chosen: int, told: tuple[list[str], list[str]]) -> None:
    world = attacked("skip")
    world.choose(2, chosen)
    assert (sent(world, 0), sent(world, 1)) == told


def test_reorder_sends_a_packet_after_the_next_one() -> None:
    world = attacked("reorder")
    world.choose(2, 1)
    assert sent(world, 0) == []
    world.cast(CLIENT, (0, 1, 2))
    world.deliver(CLIENT, 2)
    assert sent(world, 0) == sent(world, 1) == ["3.1 at 2", TRUTH]


@pytest.mark.parametrize(("chosen", "lie"), [(1, "3.100 at 1"), (2, "3.0 at 2")])
def test_forge_changes_a_field(chosen: int, lie: str) -> None:
    world = attacked("forge")
    world.choose(2, chosen)
    assert sent(world, 0) == sent(world, 1) == [lie]


@pytest.mark.parametrize(("chosen", "lie"), [(1, "3.100 at 1"), (2, "3.0 at 2")])
def test_equivocate_tells_different_things(chosen: int, lie: str) -> None:
    world = attacked("equivocate")
    world.choose(2, chosen)
    assert (sent(world, 0), sent(world, 1)) == ([TRUTH], [lie])


def test_replay_says_it_again_at_once_or_later() -> None:
    world = attacked("replay")
    world.choose(2, 1)
    assert sent(world, 0) == [TRUTH, TRUTH]
    world.cast(CLIENT, (0, 1, 2))
    world.deliver(CLIENT, 2)
    world.choose(2, 1)
    assert sent(world, 0) == [TRUTH, TRUTH, "3.1 at 2", TRUTH]


@pytest.mark.parametrize(
    ("chosen", "forged"), [(1, "Start 3.100 b'forged'"), (2, "Start 3.0 b'forged'")]
)
def test_impersonate_multicasts_in_the_name_of_a_client(chosen: int, forged: str) -> None:
    world = attacked("impersonate")
    world.choose(2, chosen)
    assert sent(world, 0)[:2] == [TRUTH, forged]
    world.cast(CLIENT, (0, 1, 2))
    world.deliver(CLIENT, 2)
    assert not world.hosts[2].offers, "it does so once"


def test_an_attacker_whose_message_nobody_could_multicast_gives_up() -> None:
    """Over groups of replicas, the destinations of a message are those of whole groups."""
    plan = parse_stack("leader paxos")
    world = Bench(plan, 3, replicas=((0, 1, 2),), liars=((0, "impersonate"),))
    world.cast(CLIENT, (0, 1, 2))
    world.deliver(CLIENT, 0)
    world.choose(0, 1)
    told = world.channels[0, 1]
    assert len(told) >= 1
    assert message_id(CLIENT, 0) in world.messages
