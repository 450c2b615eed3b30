"""ByzCast: what the dissertation says of it, and what our page adds."""

from __future__ import annotations

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.layer import Context, Send
from flexgroup.core.message import Message, message_id
from flexgroup.core.replicas import members_of_groups, replicas_of_sizes
from flexgroup.protocols.byzcast import ByzCast, Submit
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.parts.group_channels import Confirm, Incoming, Transfer
from flexgroup.protocols.parts.group_tree import child_towards, lowest_common_ancestor, parent_of
from flexgroup.protocols.parts.vouched_channels import (
    CONFIRMED_AT_ONCE,
    WINDOW,
    Sending,
    Vouched,
)
from flexgroup.trace.history import History

from .planned_casts import Planned, deliveries, packets, simulate

FOUR = (0, 1, 2, 3)


def alone(stack: str, n: int, k: int, *groups: int) -> History:
    """One message of a client to some of k groups of n replicas each."""
    replicas = replicas_of_sizes([n] * k)
    return simulate(stack, n * k, [Planned(members_of_groups(replicas, groups))], replicas=replicas)


def among_replicas(history: History) -> int:
    return sum(1 for packet in packets(history) if packet.source < history.processes)


def last_deliveries(history: History, n: int, *groups: int) -> list[float]:
    """Delays until all members of each of these groups have delivered the message."""
    times = deliveries(history, 0)
    return [max(times[p] for p in range(n * g, n * g + n)) for g in groups]


# The tree.


def test_figure_3_4() -> None:
    """h1 to h3 are groups 0 to 2, g1 to g4 groups 3 to 6."""
    assert [parent_of("binary", group) for group in range(1, 7)] == [0, 0, 1, 1, 2, 2]
    assert lowest_common_ancestor("binary", (3, 4)) == 1  # m1, to g1 and g2: h2
    assert lowest_common_ancestor("binary", (4, 5)) == 0  # m2, to g2 and g3: h1
    assert lowest_common_ancestor("binary", (5,)) == 5  # m3, to g3 alone
    assert [child_towards("binary", 0, group) for group in (4, 5)] == [1, 2]
    assert child_towards("binary", 1, 5) == -1


def test_a_tree_has_one_shape() -> None:
    plan = parse_stack("log byzcast/binary/chain")
    with pytest.raises(UsageError, match="a tree is either binary or chain; name one of them"):
        plan.build(0, 3, replicas=replicas_of_sizes([1, 1, 1]))


def test_other_shapes() -> None:
    assert [parent_of("", group) for group in range(4)] == [0, 0, 0, 0]
    assert [parent_of("chain", group) for group in range(4)] == [0, 0, 1, 2]
    assert lowest_common_ancestor("", (1, 3)) == 0
    assert lowest_common_ancestor("chain", (1, 3)) == 1


# Delays and packets.


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_four_delays_for_each_level_of_the_tree(levels: int) -> None:
    """Over `pbft` with four replicas a group: a request and three phases."""
    path = tuple(range(levels))
    history = alone("pbft byzcast/chain", 4, 3, *path)
    assert last_deliveries(history, 4, *path) == [4.0 * (level + 1) for level in path]


def test_the_number_of_children_costs_no_delay() -> None:
    history = alone("pbft byzcast", 4, 3, 1, 2)
    assert last_deliveries(history, 4, 1, 2) == [8.0, 8.0]


@pytest.mark.parametrize("n", [1, 4, 7])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_packets_over_the_abstract_log(n: int, k: int) -> None:
    """n - 1 for the entry of the ancestor; then n relays, and n entries of n - 1 packets each."""
    groups = tuple(range(k))
    assert among_replicas(alone("log byzcast", n, k, *groups)) == n - 1 + (k - 1) * n * n


def test_packets_over_pbft() -> None:
    """An entry takes 24 packets with four replicas; the copies of the relays make three batches."""
    entry = 3 + 3 * 3 + 4 * 3
    assert among_replicas(alone("pbft byzcast", 4, 1, 0)) == entry
    assert among_replicas(alone("pbft byzcast", 4, 2, 0, 1)) == entry + 4 * 4 + 3 * entry


def test_groups_on_the_way_take_part() -> None:
    """Partially genuine: the root has to order what goes to two of its children."""
    history = alone("log byzcast", 1, 3, 1, 2)
    assert {packet.source for packet in packets(history)} == {3, 0}
    assert among_replicas(alone("log byzcast", 1, 3, 2)) == 0


def test_headers() -> None:
    """Those of a message to k processes."""
    codec = Codec([ByzCast])
    m = Message(message_id(9, 0), (0, 1, 2, 3), b"")
    assert len(codec.encode(Submit(m))) == 4 + 5
    assert len(codec.encode(Transfer(0, (m,)))) == 4 + 7
    assert len(codec.encode(Confirm(32))) == 2


# Channels: no liar makes the state grow, and what is correct always gets through.


def relay(number: int, word: bytes = b"") -> Transfer:
    return Transfer(number, (Message(message_id(9, number), (4,), word),))


def test_a_member_counts_once_however_often_it_says_so() -> None:
    vouched = Vouched(Incoming())
    assert vouched.add(3, relay(0), FOUR) == []
    assert vouched.add(3, relay(0), FOUR) == []
    assert vouched.add(0, relay(0), FOUR) == [relay(0)]
    assert vouched.add(1, relay(0), FOUR) == []


def test_copies_are_equal_in_all_that_they_say() -> None:
    vouched = Vouched(Incoming())
    assert vouched.add(3, relay(0, b"forged"), FOUR) == []
    assert vouched.add(0, relay(0), FOUR) == []
    assert vouched.add(1, relay(0), FOUR) == [relay(0)]


def test_of_each_member_no_more_than_a_window_is_kept() -> None:
    vouched = Vouched(Incoming())
    assert vouched.is_under_way(WINDOW - 1)
    assert not vouched.is_under_way(WINDOW)
    for word in (b"one", b"other"):
        for number in range(WINDOW):
            vouched.add(3, relay(number, word), FOUR)
    assert sum(map(len, vouched.copies.values())) == WINDOW


def test_what_is_beyond_the_window_is_refused() -> None:
    layer = ByzCast(Context(4, 5, replicas=replicas_of_sizes([4, 1])))
    with pytest.raises(PeerError, match="process 3 sent Transfer"):
        layer.on_packet(3, relay(WINDOW))


def test_a_member_waits_until_f_plus_1_have_confirmed() -> None:
    sending = Sending()
    sent = [sending.add(relay(0).messages) for _ in range(WINDOW + 3)]
    assert [len(now) for now in sent] == [1] * WINDOW + [0] * 3
    assert sending.confirm(3, 1 << 40, FOUR) == []  # one may lie
    released = sending.confirm(0, CONFIRMED_AT_ONCE, FOUR)
    assert [packet.number for packet in released] == [WINDOW, WINDOW + 1, WINDOW + 2]
    assert not sending.held


def test_a_long_run_through_the_window() -> None:
    casts = [Planned((0, 1, 2, 3, 4), float(at)) for at in range(3 * WINDOW)]
    history = simulate("log byzcast", 5, casts, replicas=replicas_of_sizes([4, 1]))
    assert len(history.deliveries.process) == 5 * 3 * WINDOW


# What a group takes from outside.


def test_a_group_orders_what_is_its_own_to_order() -> None:
    """Only the lowest common ancestor orders a message, and only for who multicasts it."""
    context = Context(4, 6, replicas=replicas_of_sizes([4, 1, 1]))
    m = Message(message_id(6, 0), (4,), b"")
    for sender, asked in ((7, m), (6, Message(m.id, (4, 5), b"")), (6, Message(m.id, (3, 4), b""))):
        layer = ByzCast(context)
        with pytest.raises(PeerError):
            layer.on_packet(sender, Submit(asked))
    layer = ByzCast(context)
    layer.on_packet(6, Submit(m))
    layer.on_packet(6, Submit(m))
    assert len(layer.effects) == 1


def test_what_a_client_says_twice_is_relayed_once() -> None:
    layer = ByzCast(Context(0, 6, replicas=replicas_of_sizes([4, 1, 1])))
    for word in (b"one", b"other"):
        layer.on_packet(6, Submit(Message(message_id(6, 0), (4, 5), word)))
    sent = [effect for effect in layer.effects if isinstance(effect, Send)]
    assert [effect.to for effect in sent] == [(4,), (5,)]


def test_only_the_parent_relays_and_only_children_confirm() -> None:
    replicas = replicas_of_sizes([1, 4, 1])
    for sender, packet in ((1, relay(0)), (5, relay(0)), (6, relay(0)), (0, Confirm(1))):
        layer = ByzCast(Context(5, 6, replicas=replicas))
        with pytest.raises(PeerError):
            layer.on_packet(sender, packet)
