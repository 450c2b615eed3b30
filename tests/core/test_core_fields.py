"""What follows from the fields that packets and records declare."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Optional, Tuple, Union  # noqa: UP035

import pytest

from flexgroup.core.fields import ID, INT, INTS, MESSAGE, STAMP, TEXT
from flexgroup.core.layer import Context, Layer, Record
from flexgroup.core.message import Message, MessageId, Packet, Stamp
from flexgroup.core.stack import Stack
from flexgroup.core.state import fingerprint, fork, state_names
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.skeen import LocalTs

from .small_layers import message

Numbers = tuple[int, ...]


class Everything(Packet):
    """A packet with a field of each kind."""

    LIMIT: ClassVar[int] = 7

    m: Message
    about: MessageId
    ts: Stamp
    numbers: Numbers
    text: str = "none"
    count: int = 0

    def is_long(self) -> bool:
        return self.count > self.LIMIT


class Entry(Record):
    """A record in another one."""

    n: int
    seen: set[int] = set()


class Log(Record):
    """A part of a layer that holds a bit of everything."""

    first: MessageId
    latest: Message | None = None
    entries: dict[MessageId, Entry] = {}
    order: list[Entry | None] = []
    head: Entry = Entry(0)
    marks: list[int] = [1, 2]
    tags: frozenset[str] = frozenset()

    def append(self, identity: MessageId) -> None:
        self.entries[identity] = Entry(identity)
        self.order.append(Entry(identity))
        self.head.n += 1
        self.head.seen.add(identity)


class Pair(NamedTuple):
    """A tuple with a record in it."""

    place: int
    entry: Entry


class Nested(Record):
    """Annotations of every spelling, whose values may be None, tuples or nested containers."""

    maybe: Optional[int] = None  # noqa: UP045
    either: Union[int, str] = 1  # noqa: UP007
    several: Tuple[int, ...] = (1, 2)  # noqa: UP006
    ordered: Sequence[int] = (3,)
    optional: list[int] | None = None
    inner: dict[int, list[int]] = {}
    entries: tuple[Entry, ...] = ()
    pairs: list[Pair] = []
    counted: defaultdict[int, list[int]] = defaultdict(list)


class Logged(Layer):
    """A layer that is composed of two parts."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.log = Log(0)
        self.parts = [Log(1), Log(2)]

    def on_cast(self, m: Message) -> None:
        self.log.append(m.id)
        self.parts[1].append(m.id)


def test_the_kinds_of_a_packets_fields_follow_from_their_annotations() -> None:
    kinds = {"m": MESSAGE, "about": ID, "ts": STAMP, "numbers": INTS, "text": TEXT, "count": INT}
    assert dict(Everything.FIELDS) == kinds


def test_a_packet_is_made_compared_and_shown_by_its_fields() -> None:
    m = message(0, 1, 2)
    packet = Everything(m, 3, 4, (5,), count=8)
    assert packet == Everything(m, 3, 4, (5,), "none", 8)
    assert packet != Everything(m, 3, 4, (5,))
    assert hash(packet) == hash(Everything(m, 3, 4, (5,), "none", 8))
    assert packet.is_long()
    assert repr(packet) == (
        "Everything(m=Message(0.1 to (2,)), about=3, ts=4, numbers=(5,), text='none', count=8)"
    )


def test_fields_are_inherited_and_come_first() -> None:
    class Base(Packet):
        epoch: int

    class Flush(Base):
        round: int = 1

    assert Flush.FIELDS == (("epoch", INT), ("round", INT))
    assert (Flush(3).epoch, Flush(3).round) == (3, 1)


def test_defaults_that_can_change_are_made_anew() -> None:
    one, other = Log(1), Log(2)
    one.append(5)
    one.marks.append(3)
    assert (other.entries, other.order, other.marks) == ({}, [], [1, 2])
    assert (other.head.n, other.head.seen) == (0, set())


def test_a_copy_shares_nothing_that_can_change() -> None:
    log = Log(1, message(0, 1, 2))
    log.append(5)
    log.order.append(None)
    twin = log.copy()
    assert type(twin) is Log
    assert twin.latest is log.latest
    assert twin.entries[5].n == 5
    log.append(6)
    log.entries[5].seen.add(9)
    entry = log.order[0]
    assert entry is not None
    entry.n = 0
    assert list(twin.entries) == [5]
    assert twin.entries[5].seen == set()
    assert [None if found is None else found.n for found in twin.order] == [5, None]
    assert (twin.head.n, twin.head.seen) == (1, {5})


def test_a_copy_goes_by_the_value_where_the_annotation_does_not_say_enough() -> None:
    plain = Nested()
    assert plain.copy() == plain
    assert plain.copy().several is plain.several
    nested = Nested(4, "x", (), [5], [6], {7: [8]}, (Entry(9),), [Pair(0, Entry(1))])
    nested.counted[1].append(2)
    twin = nested.copy()
    assert twin == nested
    assert type(twin.pairs[0]) is Pair
    twin.ordered.append(0)  # type: ignore[attr-defined]
    assert twin.optional is not None
    twin.optional.append(0)
    twin.inner[7].append(0)
    twin.entries[0].seen.add(0)
    twin.pairs[0].entry.n = 0
    twin.counted[1].append(0)
    twin.counted[2].append(0)
    again = Nested(4, "x", (), [5], [6], {7: [8]}, (Entry(9),), [Pair(0, Entry(1))])
    again.counted[1].append(2)
    assert nested == again


def test_an_attribute_that_is_not_declared_is_refused() -> None:
    entry, layer = Entry(1), Logged(Context(0, 3))
    entry.zzz = 1  # type: ignore[attr-defined]
    layer.log.head = entry
    expected = pytest.raises(TypeError, match=r"Entry\.zzz is not declared")
    with expected:
        entry.copy()
    with expected:
        assert entry == Entry(1)
    with expected:
        assert Entry(1) == entry
    with expected:
        state_names(entry)
    with expected:
        fork(Stack([layer]))
    with expected:
        fingerprint(Stack([layer]))


@pytest.mark.parametrize("name", ["self", "class"])
@pytest.mark.parametrize("base", [Packet, Record])
def test_a_field_that_no_parameter_can_be_named_after_is_refused(base: type, name: str) -> None:
    with pytest.raises(TypeError, match=rf"Wrong\.{name} cannot be a field"):
        type("Wrong", (base,), {"__annotations__": {name: "int"}})


def test_records_are_compared_and_shown_by_their_fields() -> None:
    assert Log(1) == Log(1)
    assert Log(1) != Log(2)
    assert Log(1, head=Entry(3)) == Log(1, head=Entry(3)) != Log(1)
    assert repr(Entry(3, {4})) == "Entry(n=3, seen={4})"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Entry(3))


@pytest.mark.parametrize(
    "value",
    [
        message(0, 1, 2),
        Everything(message(0, 1, 2), 3, 4, (5,)),
        Message(1, (0, 2), LocalTs(3, 4)),
        parse_stack("fifo dcc/rv"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_pickled_is_unpickled(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_every_field_of_a_record_is_part_of_the_state() -> None:
    """Also one that has the name of what every layer has and is no state there."""

    class Window(Record):
        size: int = 1

    assert state_names(Window()) == ("size",)


def test_a_layer_may_be_composed_of_records() -> None:
    stack = Stack([Logged(Context(0, 3))])
    stack.cast(message(0, 1, 2))
    assert state_names(stack.layers[0]) == ("log", "parts")
    twin, before = fork(stack), fingerprint(stack)
    assert fingerprint(twin) == before
    twin.cast(message(0, 2, 2))
    assert fingerprint(stack) == before != fingerprint(twin)


def test_a_wrong_annotation_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"Weighed\.weight is declared as float; a field of a pack"):

        class Weighed(Packet):
            weight: float

    with pytest.raises(TypeError, match=r"Weighed\.weights is declared as list\[int\]; .*tuple\["):

        class Weighed(Packet):  # type: ignore[no-redef]
            weights: list[int]


def test_no_constructor_is_derived_from_fields_in_a_wrong_order() -> None:
    with pytest.raises(TypeError, match=r"Late\.m has no default, but n before it has one"):

        class Late(Record):
            n: int = 0
            m: int  # type: ignore[misc]


def test_a_constructor_of_its_own_is_refused() -> None:
    with pytest.raises(TypeError, match="Own has an __init__ of its own"):

        class Own(Record):
            n: int

            def __init__(self) -> None:
                self.n = 1


def test_a_field_is_declared_once_and_none_is_no_default_that_is_made_anew() -> None:
    class Base(Record):
        n: int

    with pytest.raises(TypeError, match=r"Again\.n is declared twice"):

        class Again(Base):
            n: int

    with pytest.raises(TypeError, match=r"Both\.seen may be None"):

        class Both(Record):
            seen: list[int] | None = []

    with pytest.raises(TypeError, match=r"Both\.seen may be None"):

        class Both(Record):  # type: ignore[no-redef]
            seen: Optional[list[int]] = []  # noqa: UP045
