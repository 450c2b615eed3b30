"""Copying and fingerprinting the state of layers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.layer import Context, Layer, Record, Stored
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.stack import Stack
from flexgroup.core.state import fingerprint, fork, state_names, write_canonically

from .small_layers import Note, asked, message

unhurried = settings(deadline=None)


class Count(Record):
    """A number that changes in place."""

    n: int


class Keeper(Layer):
    """Keeps a bit of everything."""

    __slots__ = ("counts", "known", "latest", "names", "order", "packets")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.order: list[int] = []
        self.names: dict[int, tuple[str, ...]] = {}
        self.known: set[int] = set()
        self.latest: Message | None = None
        self.packets: list[Packet] = []
        self.counts: dict[str, Count] = {}

    def on_cast(self, m: Message) -> None:
        self.order.append(m.id)
        self.names[m.id] = (*self.names.get(m.id, ()), "cast")
        self.known.add(m.id)
        self.latest = m
        self.packets.append(Note(m, len(self.order)))
        self.counts.setdefault("casts", Count(0)).n += 1
        self.deliver(m)


class Open(Layer):
    """A layer without slots: what it keeps is in its dict, some of it only later."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.total = 0

    def on_cast(self, m: Message) -> None:
        self.total += 1
        self.latest = m.id


def keepers(*casts: int) -> Stack:
    stack = Stack([Keeper(Context(0, 3))])
    for seq in casts:
        stack.cast(message(0, seq, 1))
    return stack


def test_the_state_is_what_a_layer_adds_to_the_base() -> None:
    keeper = keepers(1).layers[0]
    assert state_names(keeper) == ("counts", "known", "latest", "names", "order", "packets")
    layer = Open(Context(0, 1))
    assert state_names(layer) == ("total",)
    layer.on_cast(message(0, 1, 1))
    assert state_names(layer) == ("latest", "total")


def test_a_fork_is_equal_and_independent() -> None:
    stack = keepers(1, 2)
    twin = fork(stack)
    assert fingerprint(twin) == fingerprint(stack)
    before = fingerprint(stack)
    twin.cast(message(0, 3, 1))
    assert fingerprint(stack) == before != fingerprint(twin)
    stack.cast(message(0, 3, 1))
    assert fingerprint(stack) == fingerprint(twin)


def test_a_fork_takes_along_what_was_asked_and_not_yet_taken() -> None:
    stack = keepers(1)
    twin = fork(stack)
    assert asked(twin) == ["deliver 0.1"]
    assert asked(stack) == ["deliver 0.1"]


def test_a_fork_shares_the_context_and_knows_its_place() -> None:
    layers = [Keeper(Context(1, 3, frozenset({"rv"}))) for _ in range(2)]
    twin = fork(Stack([*layers]))
    assert [layer.level for layer in twin.layers] == [0, 1]
    assert [layer.process for layer in twin.layers] == [1, 1]
    assert twin.layers[0].context.options == {"rv"}


class Hosting(Layer):
    """Holds another layer."""

    __slots__ = ("inner",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.inner = Keeper(context)

    def on_cast(self, m: Message) -> None:
        self.inner.on_cast(m)


def test_a_layer_in_a_layer_is_part_of_its_state() -> None:
    stack = Stack([Hosting(Context(0, 1))])
    twin = fork(stack)
    before = fingerprint(stack)
    twin.cast(message(0, 3, 1))
    assert fingerprint(stack) == before != fingerprint(twin)
    assert fingerprint(fork(twin)) == fingerprint(twin)


@pytest.mark.parametrize(
    "change",
    [
        lambda keeper: keeper.order.reverse(),
        lambda keeper: keeper.names.update({5: ()}),
        lambda keeper: keeper.known.clear(),
        lambda keeper: setattr(keeper, "latest", None),
        lambda keeper: keeper.packets.pop(),
        lambda keeper: keeper.counts.clear(),
        lambda keeper: setattr(keeper.counts["casts"], "n", 9),
    ],
    ids=["list", "dict", "set", "attribute", "packets", "records", "inside a record"],
)
def test_the_fingerprint_sees_every_change(change: Callable[[Keeper], object]) -> None:
    stack = keepers(1, 2)
    before = fingerprint(stack)
    keeper = stack.layers[0]
    assert isinstance(keeper, Keeper)
    change(keeper)
    assert fingerprint(stack) != before
    assert len(before) == 16


def test_the_fingerprint_does_not_see_the_order_of_dicts_and_sets() -> None:
    one, other = keepers(1, 2), keepers(1, 2)
    keeper = other.layers[0]
    assert isinstance(keeper, Keeper)
    keeper.names = dict(reversed(keeper.names.items()))
    keeper.known = {*sorted(keeper.known, reverse=True)}
    assert fingerprint(one) == fingerprint(other)


def test_the_fingerprint_counts_what_each_level_sent() -> None:
    """A level's numbers continue from there, so it is part of the state."""

    class Sender(Layer):
        __slots__ = ()

        def on_cast(self, m: Message) -> None:
            self.send((1,), Note(m, 0))

    class Quiet(Layer):
        __slots__ = ()

        def on_cast(self, m: Message) -> None:
            pass

    def sent(*seqs: int) -> bytes:
        stack = Stack([Quiet(Context(0, 2)), Sender(Context(0, 2))])
        for seq in seqs:
            stack.cast(message(0, seq, 1))
        return fingerprint(stack)

    assert sent(1) == sent(2) != sent(1, 2)


def canonical(value: object) -> bytes:
    out = bytearray()
    write_canonically(out, value)
    return bytes(out)


values: st.SearchStrategy[Stored] = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=4), st.binary(max_size=4), st.booleans()),
    lambda inner: st.one_of(st.just(()), st.tuples(inner), st.tuples(inner, inner)),
    max_leaves=6,
)


@unhurried
@given(one=values, other=values)
def test_equal_values_and_only_those_have_equal_representations(one: Stored, other: Stored) -> None:
    """Apart from Python's True == 1: a truth value is not a number here."""
    assert (canonical(one) == canonical(other)) == (repr(one) == repr(other))


def test_messages_and_packets_are_written_out() -> None:
    m = message(0, 1, 2, payload=b"x")
    assert canonical(m) == canonical(Message(message_id(0, 1), (2,), b"x"))
    assert canonical(m) != canonical(message(0, 1, 2, payload=b"y"))
    assert canonical(Note(m, 1)) != canonical(Note(m, 2))
    assert canonical({1: Count(2)}) != canonical({1: Count(3)})


@pytest.mark.parametrize(
    "value", [1.5, object(), lambda: None, iter([])], ids=lambda v: type(v).__name__
)
def test_what_cannot_be_state_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be part of a layer's state: use integers"):
        canonical([value])


class Empty(Record):
    v: int | None = None


class OtherEmpty(Record):
    v: int | None = None


def test_a_record_without_content_is_not_taken_for_nothing_or_for_another() -> None:
    """Otherwise a search would take two states for one, and miss what follows from the other."""

    def written(value: object) -> bytes:
        out = bytearray()
        write_canonically(out, value)
        return bytes(out)

    values = (None, Empty(), OtherEmpty(), (None, Empty()), (Empty(), None), (None, None))
    assert len({written(value) for value in values}) == len(values)
