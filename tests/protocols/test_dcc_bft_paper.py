"""DCC between groups of replicas among liars: section 5.2 of the dissertation, and our page."""

from __future__ import annotations

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.keyed_notary import KeyedNotary
from flexgroup.core.layer import Context, Offer
from flexgroup.core.message import Message, message_id
from flexgroup.core.replicas import Replicas, replicas_of_sizes
from flexgroup.core.stack import Stack
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.dcc import Hop
from flexgroup.protocols.parts.certificates import Certificate, Sealed, SealedCopies
from flexgroup.protocols.parts.daisy_chain import SLOW, Enter
from flexgroup.protocols.parts.group_channels import Transfer
from flexgroup.protocols.parts.vouched_channels import WINDOW
from flexgroup.protocols.replicated_bft import ReplicatedBft, Submit, unanswerable
from flexgroup.trace.history import History
from flexgroup.worlds.bench import Bench

from .planned_casts import Planned, deliveries, packets, simulate


def alone(stack: str, n: int, k: int) -> History:
    """One message of a client to k groups of n replicas each."""
    replicas = replicas_of_sizes([n] * k)
    return simulate(stack, n * k, [Planned(tuple(range(n * k)))], replicas=replicas)


def last_deliveries(history: History, n: int, k: int) -> list[float]:
    """Delays until all members of each group have delivered the message."""
    times = deliveries(history, 0)
    return [max(times[p] for p in range(n * g, n * g + n)) for g in range(k)]


def among_replicas(history: History) -> int:
    return sum(1 for packet in packets(history) if packet.source < history.processes)


# Delays and packets.


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("stack", ["pbft dcc-bft", "best-effort pbft dcc-bft/sealed"])
def test_four_delays_for_each_group_on_the_way(stack: str, k: int) -> None:
    """Section 5.2: a message is ordered in each group by Byzantine atomic broadcast."""
    assert last_deliveries(alone(stack, 4, k), 4, k) == [4.0 * (g + 1) for g in range(k)]


def test_seven_replicas_wait_for_a_third_copy() -> None:
    """f + 1 = 3 copies are in three batches, of which PBFT has two under way; a certificate is in
    one."""
    assert last_deliveries(alone("pbft dcc-bft", 7, 2), 7, 2) == [4.0, 11.0]
    sealed = alone("best-effort pbft dcc-bft/sealed", 7, 2)
    assert last_deliveries(sealed, 7, 2) == [4.0, 8.0]


@pytest.mark.parametrize("n", [1, 4, 7])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_packets_over_the_abstract_log(n: int, k: int) -> None:
    """An entry is n - 1 packets. All members send a copy, and each is an entry; or they send it to
    each receiver, and one certificate is an entry."""
    copies, sealed = "log dcc-bft", "best-effort log dcc-bft/sealed"
    assert among_replicas(alone(copies, n, k)) == n - 1 + (k - 1) * n * n
    assert among_replicas(alone(sealed, n, k)) == n - 1 + (k - 1) * (n * n + n - 1)


@pytest.mark.parametrize("n", [4, 7])
def test_packets_over_pbft(n: int) -> None:
    """Copies of n members make three batches; a certificate that a member asks for makes one."""
    entry = (n - 1) + (n - 1) * (n - 1) + n * (n - 1)
    copies, sealed = "pbft dcc-bft", "best-effort pbft dcc-bft/sealed"
    assert among_replicas(alone(copies, n, 2)) == entry + n * n + 3 * entry
    assert among_replicas(alone(sealed, n, 2)) == entry + n * n + (n - 1) + entry


def test_headers() -> None:
    """What the adapter adds to an inner packet."""
    codec, inner = Codec([ReplicatedBft]), Codec([type_of_inner()])
    m = Message(message_id(9, 0), (0, 1), b"")
    enter, hop = Enter(m), Hop(m, 0, 0, SLOW, (1,))
    submitted, sent = Message(m.id, (0,), enter), Message(message_id(0, 0), (1,), hop)
    assert len(codec.encode(Submit(submitted))) == len(inner.encode(enter)) + 5
    transfer = Transfer(0, (sent,))
    assert len(codec.encode(transfer)) == len(inner.encode(hop)) + 7
    assert len(codec.encode(Sealed(transfer, bytes(16)))) == len(codec.encode(transfer)) + 1 + 17


def type_of_inner() -> type:
    layer = layer_at(0, replicas_of_sizes([1, 1]))
    assert layer.inner is not None
    return type(layer.inner)


# What a group takes from outside.


def layer_at(process: int, replicas: Replicas, *options: str) -> ReplicatedBft:
    notary = KeyedNotary(process, Codec([ReplicatedBft]))
    size = sum(map(len, replicas))
    context = Context(process, size, frozenset({"dcc", *options}), replicas=replicas, notary=notary)
    layer = ReplicatedBft(context)
    Stack([layer])
    return layer


def entering(seq: int, *to: int) -> Message:
    """What client 9 submits of a message to these groups."""
    identity = message_id(9, seq)
    return Message(identity, to[:1], Enter(Message(identity, to, b"")))


def test_what_is_submitted_is_what_an_honest_client_sends() -> None:
    replicas = replicas_of_sizes([1, 4, 1])
    good = entering(0, 1, 2)
    other = Message(message_id(9, 1), (1, 2), b"")
    lies = [
        (8, good),  # in the name of another
        (9, entering(0, 0, 1)),  # another group is first
        (9, entering(0, 1, 3)),  # there is no such group
        (9, Message(good.id, (1, 2), good.payload)),
        (9, Message(good.id, (1,), Enter(other))),
        (9, Message(good.id, (1,), Hop(other, 0, 0, SLOW, (0, 0, 0)))),
        (9, Message(good.id, (1,), b"")),
    ]
    for sender, lie in lies:
        layer = layer_at(1, replicas)
        with pytest.raises(PeerError):
            layer.on_packet(sender, Submit(lie))
        assert not layer.effects
    layer = layer_at(1, replicas)
    layer.on_packet(9, Submit(good))
    assert len(layer.effects) == 2
    layer.on_packet(9, Submit(good))
    assert len(layer.effects) == 2


def test_an_identity_that_a_client_uses_twice_is_delivered_once() -> None:
    """It submits one message to group 0, and another one to group 1."""
    bench = Bench(parse_stack("log dcc-bft"), 3, replicas=replicas_of_sizes([1, 1, 1]))
    bench.cast(3, (0, 1))
    bench.hosts[1].stack.layers[-1].on_packet(3, Submit(doubled()))
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))
    layer = bench.hosts[1].stack.layers[-1]
    assert isinstance(layer, ReplicatedBft)
    assert layer.delivered.count == 1


def doubled() -> Message:
    identity = message_id(3, 0)
    return Message(identity, (1,), Enter(Message(identity, (1, 2), b"")))


# Certificates.

GROUPS = replicas_of_sizes([4, 4])


def sealed_by(member: int, transfer: Transfer) -> bytes:
    return layer_at(member, GROUPS, "sealed").seal(transfer)


def hop(number: int, target: int = 1) -> Transfer:
    m = Message(message_id(9, number), (0, 1), b"")
    return Transfer(number, (Message(message_id(0, number), (target,), Hop(m, 0, 0, SLOW, (1,))),))


def certified(transfer: Transfer, *members: int) -> Certificate:
    return Certificate(
        transfer, members, tuple([sealed_by(member, transfer) for member in members])
    )


def test_f_plus_1_seals_are_a_certificate() -> None:
    layer = layer_at(4, GROUPS, "sealed")
    layer.on_packet(5, certified(hop(0), 0, 3))
    assert [type(effect).__name__ for effect in layer.effects] == ["CancelTimer", "Deliver"]
    layer.on_packet(6, certified(hop(0), 1, 2))
    assert len(layer.effects) == 2


def test_no_other_certificate_counts() -> None:
    genuine = certified(hop(0), 0, 3)
    lies = [
        (5, certified(hop(0), 3)),  # one may lie
        (5, Certificate(genuine.transfer, (3, 3), (genuine.seals[1],) * 2)),
        (5, Certificate(hop(1), genuine.members, genuine.seals)),
        (5, Certificate(genuine.transfer, (1, 2), genuine.seals)),
        (5, Certificate(genuine.transfer, (0, 3), genuine.seals[:1])),
        (5, certified(hop(0), 0, 7)),  # of two groups
        (5, certified(hop(0), 6, 7)),  # of this one
        (5, certified(hop(0, target=2), 0, 3)),  # for another one
        (5, Certificate(genuine.transfer, (), ())),
        (3, genuine),  # not shown by a member of this group
    ]
    for sender, lie in lies:
        layer = layer_at(4, GROUPS, "sealed")
        with pytest.raises(PeerError):
            layer.on_packet(sender, lie)
        assert not layer.effects


def test_a_seal_for_another_group_is_refused() -> None:
    for sender, transfer in ((0, hop(0, target=2)), (1, hop(0))):
        layer = layer_at(4, GROUPS, "sealed")
        with pytest.raises(PeerError):
            layer.on_packet(sender, Sealed(transfer, sealed_by(0, transfer)))


def test_others_stand_in_for_a_member_that_does_not_show_its_certificate() -> None:
    """It is the turn of process 5, which is silent, at transfer 1 to group 1."""
    bench = Bench(
        parse_stack("best-effort log dcc-bft/sealed"), 8, replicas=GROUPS, liars=((5, "silent"),)
    )
    for _ in range(2):
        bench.cast(8, tuple(range(8)))
    settle(bench)
    honest = [p for p in range(8) if p != 5]
    assert [len(bench.delivered[p]) for p in honest] == [2] * 4 + [1] * 3
    bench.end_timer(6, 2, "0.1")
    settle(bench)
    assert [len(bench.delivered[p]) for p in honest] == [2] * 7
    assert not any(bench.timers.get(p) for p in honest)


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def test_of_each_member_no_more_than_its_last_transfers_are_kept() -> None:
    copies = SealedCopies()
    for number in range(3 * WINDOW):
        copies.add(3, hop(number), b"", 2)
    assert sorted(copies.copies[3]) == list(range(2 * WINDOW, 3 * WINDOW))
    assert not copies.certificates


def test_a_layer_that_lets_the_world_choose_cannot_run_in_a_group() -> None:
    layer = layer_at(0, GROUPS)
    assert layer.inner is not None
    error = unanswerable(layer.inner, Offer(0, "next", 2))
    assert isinstance(error, UsageError)
    assert "Dcc cannot run in a group of replicas among liars: it asks the world for Offer" in str(
        error
    )
