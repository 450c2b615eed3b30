"""Layers that heed groups are told of them by every server that hosts their stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from flexgroup.core.layer import (
    Context,
    GroupCreate,
    GroupDestroy,
    GroupUpdate,
    Layer,
    Notice,
)
from flexgroup.core.message import Message, Packet
from flexgroup.membership.configuration import (
    Configuration,
    DomainEntry,
    GroupEntry,
    Member,
    Server,
)
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, register
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.worlds.network.faults import Faults

SERVERS = tuple(Server(number, f"s{number}", f"localhost:{7400 + number}") for number in (4, 6))


class Attentive(Layer):
    """Sends what is cast to its destinations, and remembers which groups there are."""

    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data,)
    HEEDS_GROUPS = True
    told: ClassVar[dict[int, list[Notice]]] = {}
    """What each process was told, at whichever server it is."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.told[context.process] = []

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Data) or not self.is_for_me(packet.m):
            raise self.refuse(sender, packet)
        self.deliver(packet.m)

    def on_notice(self, notice: Notice) -> None:
        self.told[self.process].append(notice)


class Indifferent(Attentive):
    HEEDS_GROUPS = False


@pytest.fixture(params=[Attentive, Indifferent])
def layer(request: pytest.FixtureRequest) -> Iterator[type[Attentive]]:
    told: type[Attentive] = request.param
    register(Protocol("listening", told, "remembers what it is told", "this test"))
    yield told
    del PROTOCOLS["listening"]


def group(number: int, name: str, view: int, *members: tuple[str, int]) -> GroupEntry:
    listed = tuple(Member(process, server, 1) for process, server in members)
    return GroupEntry(name, number, "listening", None, True, None, view, listed)


def in_configuration(number: int, *groups: GroupEntry, domain: int = 1) -> Configuration:
    entry = DomainEntry(domain, "listening", "", (4, 6))
    return Configuration(number, SERVERS, groups, 7, 20, (entry,), 9)


ALPHA = group(11, "alpha", 2, ("ann", 6), ("bob", 4))
BETA = group(12, "beta", 1, ("bob", 4))
JOINED = group(11, "alpha", 3, ("ann", 6), ("bob", 4), ("eve", 6))
SAME_VIEW = group(12, "beta", 1, ("bob", 4))

CONFIGURATIONS = [
    in_configuration(1, ALPHA),
    in_configuration(2, ALPHA, BETA),
    in_configuration(3, JOINED, SAME_VIEW),
    in_configuration(4, SAME_VIEW),
]

TOLD = [
    GroupCreate(11, "alpha", 2, (0, 1), ("ann", "bob")),
    GroupCreate(12, "beta", 1, (0,), ("bob",)),
    GroupUpdate(11, 3, (0, 1), ("ann", "bob", "eve")),
    GroupDestroy(11),
]


def install(me: int, configurations: list[Configuration]) -> None:
    deployment = Deployment(Faults(), lambda *_: None)
    for configuration in configurations:
        deployment.install(configuration, me, (), 0)


def fields(notices: list[Notice]) -> list[str]:
    return [f"{type(notice).__name__} {_values(notice)}" for notice in notices]


def _values(notice: Notice) -> list[object]:
    names = ("group", "name", "view", "processes", "members")
    return [getattr(notice, name) for name in names if hasattr(notice, name)]


def test_a_layer_that_heeds_groups_is_told_of_their_creation_changes_and_end(
    layer: type[Attentive],
) -> None:
    """And another one is not. What is the same as before is no news."""
    install(4, CONFIGURATIONS)
    assert fields(layer.told[0]) == (fields(TOLD) if layer is Attentive else [])


@pytest.mark.parametrize("layer", [Attentive], indirect=True)
def test_all_servers_tell_the_same_in_the_same_order(layer: type[Attentive]) -> None:
    for me in (4, 6):
        install(me, CONFIGURATIONS)
    assert fields(layer.told[0]) == fields(layer.told[1])


@pytest.mark.parametrize("layer", [Attentive], indirect=True)
def test_a_stack_that_begins_anew_is_told_of_the_groups_that_are_there(
    layer: type[Attentive],
) -> None:
    install(4, [*CONFIGURATIONS[:3], in_configuration(4, JOINED, SAME_VIEW, domain=2)])
    assert fields(layer.told[0]) == fields(
        [
            GroupCreate(11, "alpha", 3, (0, 1), ("ann", "bob", "eve")),
            GroupCreate(12, "beta", 1, (0,), ("bob",)),
        ]
    )
