"""Servers among liars: what is refused is dropped, and what is sealed is checked by public keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.stack import Stack
from flexgroup.liars.attackers import Forging
from flexgroup.membership.configuration import ReplicaGroup, ReplicatedDomain
from flexgroup.protocols.catalogue import PROTOCOLS, Fault, Protocol, parse_stack, register
from flexgroup.server.hosting.replica import Replica
from flexgroup.server.settings import Settings
from flexgroup.wire.seals import make_seal_keys, read_seal_keys
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.faults import Faults

SERVERS = ("anna", "ben", "cleo")


class Vouched(Packet):
    """A message, as the one that multicasts it has sealed it, whoever passes it on."""

    m: Message
    origin: int
    seal: bytes


class Relaying(Layer):
    """Hands messages to the next member, which passes them on to all others; the seal of the
    origin tells them that it has not made anything up."""

    __slots__ = ()
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Vouched,)
    NEEDS_SEALS: ClassVar[bool] = True
    NEEDS_REPLICAS: ClassVar[bool] = True

    def on_cast(self, m: Message) -> None:
        seal = self.seal(Vouched(m, self.process, b""))
        self.send(((self.process + 1) % self.size,), Vouched(m, self.process, seal))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Vouched):
            raise self.refuse(sender, packet)
        said = Vouched(packet.m, packet.origin, b"")
        if not self.is_sealed(packet.origin, said, packet.seal):
            raise self.refuse(sender, packet)
        if sender == packet.origin:
            others = tuple([p for p in range(self.size) if p not in (sender, self.process)])
            self.send(others, packet)
        self.deliver(packet.m)


@pytest.fixture(scope="module", autouse=True)
def relaying() -> Iterator[None]:
    register(Protocol("relaying", Relaying, "", "", faults=(Fault.BYZANTINE,)))
    yield
    del PROTOCOLS["relaying"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("seals")
    make_seal_keys(directory, SERVERS)
    return directory


class Replicas:
    """Replicas at three servers, of which some may lie, and the bytes between them."""

    def __init__(self, folder: Path, number: int = 1, attacks: tuple[tuple[str, str], ...] = ()):
        entry = ReplicatedDomain(number, "relaying", (ReplicaGroup(7, "group", SERVERS),))
        self.all = [
            Replica(
                entry, "cluster", name, Faults(), None, int, None,
                read_seal_keys(folder, name), dict(attacks).get(name, ""),
            )
            for name in SERVERS
        ]  # fmt: skip
        for replica in self.all:
            replica.domain.start(0)

    def cast(self, process: int) -> None:
        m = Message(message_id(process, 0), (0, 1, 2), b"hi")
        self.all[process].domain.cast(0, m)

    def pass_on(self, source: int, target: int) -> None:
        outgoing = self.all[source].domain.outgoing
        data = bytes(outgoing[target])
        outgoing[target].clear()
        self.all[target].domain.receive(0, source, data, 0)

    def delivered(self, process: int) -> list[bytes | Packet]:
        return [m.payload for m in self.all[process].domain.delivered]


def test_what_one_server_seals_another_quotes_to_a_third(folder: Path) -> None:
    replicas = Replicas(folder)
    replicas.cast(0)
    replicas.pass_on(0, 1)
    replicas.pass_on(1, 2)
    assert replicas.delivered(1) == replicas.delivered(2) == [b"hi"]


def test_what_a_liar_makes_up_is_refused_and_dropped(folder: Path) -> None:
    """Its second way to forge is another content; it quotes the seal, which does not fit."""
    replicas = Replicas(folder, attacks=(("ben", "forge"),))
    assert isinstance(replicas.all[1].domain.host.stack.layers[0], Forging)
    for _ in range(2):
        replicas.cast(0)
        replicas.pass_on(0, 1)
    replicas.pass_on(1, 2)
    assert replicas.delivered(2) == [b"hi"], "the first choice of an attacker is the truth"
    assert replicas.all[2].domain.packets_refused == 1


def test_a_seal_of_one_group_is_worth_nothing_in_another(folder: Path) -> None:
    one, other = Replicas(folder, 1), Replicas(folder, 2)
    one.cast(0)
    data = bytes(one.all[0].domain.outgoing[1])
    other.all[1].domain.receive(0, 0, data, 0)
    assert other.delivered(1) == []
    assert other.all[1].domain.packets_refused == 1


def test_a_server_without_keys_has_no_such_group(folder: Path) -> None:
    plan = parse_stack("relaying")
    with pytest.raises(UsageError, match=r"this server has no key .* start all servers .* --seals"):
        Settings("anna").check_seals(plan, SERVERS)
    settings = Settings("anna", seals=read_seal_keys(folder, "anna"))
    settings.check_seals(plan, SERVERS)
    with pytest.raises(UsageError, match="server anna has no public key of dora"):
        settings.check_seals(plan, (*SERVERS, "dora"))
    Settings("anna").check_seals(parse_stack("leader paxos"), ("dora",))


# Domains.


class Note(Packet):
    number: int


class Choosy(Layer):
    """Takes even numbers only."""

    __slots__ = ("taken",)
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Note,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.taken: list[int] = []

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Note)
        self.send((1,), packet)
        if packet.number % 2:
            raise self.refuse(sender, packet)
        self.taken.append(packet.number)


def frame(packet: bytes) -> bytes:
    return bytes([len(packet), 0, 0]) + packet


FRAMES = b"".join(frame(bytes([0, number])) for number in (2, 3, 4)) + frame(b"\7") + frame(b"\0\6")


def test_a_domain_among_liars_drops_what_it_refuses_and_goes_on_with_the_next_packet() -> None:
    layer = Choosy(Context(0, 2))
    domain = Domain(Stack([layer]), Codec([Choosy]), 2, Faults(), None, forgiving=True)
    domain.receive(0, 1, FRAMES, 0)
    assert layer.taken == [2, 4, 6]
    assert domain.packets_refused == 2
    assert bytes(domain.outgoing[1]) == b"".join(frame(bytes([0, n])) for n in (2, 4, 6)), (
        "nothing comes of a packet that was refused"
    )


def test_a_domain_among_crash_faults_refuses_the_server_that_sends_such() -> None:
    layer = Choosy(Context(0, 2))
    domain = Domain(Stack([layer]), Codec([Choosy]), 2, Faults(), None)
    with pytest.raises(PeerError, match="process 1 sent Note"):
        domain.receive(0, 1, FRAMES, 0)
    assert layer.taken == [2]
