"""Seals: a process can prove to others what a third one has said, and nobody else can."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.keyed_notary import SEAL_BYTES, KeyedNotary
from flexgroup.core.layer import Context
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.stack import Stack
from flexgroup.core.state import fingerprint, fork
from flexgroup.protocols.catalogue import Protocol, StackPlan
from flexgroup.worlds.bench import Bench

from .small_layers import Mark, Note, Plain, message


class Ack(Packet):
    """The same field as a mark has."""

    number: int


class Sealed(Plain):
    """Sends what it is told to with its seal, and writes down whose seals are genuine."""

    __slots__ = ()
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Note, Mark, Ack)
    NEEDS_SEALS: ClassVar[bool] = True


PLAN = StackPlan.of(Protocol("sealed", Sealed, "", ""), Protocol("sealed", Sealed, "", ""))
CODEC = Codec(PLAN.layers)


def layer_at(process: int, level: int = 0) -> Sealed:
    layer = PLAN.builder(3)(process).layers[level]
    assert isinstance(layer, Sealed)
    return layer


MARK = Mark(5)
SEAL = layer_at(1).seal(MARK)


def test_everybody_can_check_what_a_process_has_sealed() -> None:
    assert len(SEAL) == SEAL_BYTES
    assert all(layer_at(process).is_sealed(1, MARK, SEAL) for process in range(3))
    assert layer_at(7).is_sealed(1, MARK, SEAL), "so can clients"


@pytest.mark.parametrize(
    ("process", "packet", "level"),
    [
        (0, MARK, 0),  # another process
        (3, MARK, 0),  # one that does not exist
        (1 << 90, MARK, 0),
        (1, Mark(6), 0),  # another value
        (1, Ack(5), 0),  # another type with the same fields
        (1, MARK, 1),  # another layer
    ],
)
def test_a_seal_is_about_one_packet_of_one_layer_at_one_process(
    process: int, packet: Packet, level: int
) -> None:
    assert not layer_at(2, level).is_sealed(process, packet, SEAL)


@given(seal=st.binary(max_size=40))
def test_any_bytes_may_be_checked(seal: bytes) -> None:
    assert layer_at(0).is_sealed(1, MARK, seal) == (seal == SEAL)


def test_statements_of_different_packets_differ() -> None:
    """Also where one is a part of the other: a message, and the packet that it carries above."""
    note = Note(message(0, 0, 1), 5)
    carrying = Note(Message(message_id(0, 0), (1,), note), 5)
    statements = [
        CODEC.statement(0, MARK),
        CODEC.statement(1, MARK),
        CODEC.statement(0, Ack(5)),
        CODEC.statement(1, note),
        CODEC.statement(0, carrying),
    ]
    assert len(set(statements)) == len(statements)
    assert all(
        not one.startswith(other) for one in statements for other in statements if one is not other
    )


def test_a_seal_changes_no_state_and_survives_a_fork() -> None:
    stack = PLAN.builder(3)(1)
    before = fingerprint(stack)
    stack.layers[0].seal(MARK)
    twin = fork(stack)
    assert stack.layers[0].is_sealed(1, MARK, SEAL)
    assert twin.layers[0].seal(MARK) == SEAL
    assert fingerprint(stack) == fingerprint(twin) == before
    assert stack.take_effects() == []


def test_a_packet_that_peers_could_not_name_is_not_sealed() -> None:
    class Unknown(Packet):
        number: int

    with pytest.raises(UsageError, match="Unknown, which the PACKETS of layer 0 does not name"):
        layer_at(1).seal(Unknown(1))


def test_a_stack_that_needs_seals_is_refused_where_there_is_no_notary() -> None:
    with pytest.raises(UsageError, match=r"'sealed sealed' rests on seals .* no notary here"):
        PLAN.build(0, 3)
    assert Bench(PLAN, 3).hosts[2].stack.layers[0].seal(MARK) != SEAL


def test_a_layer_that_does_not_say_that_it_needs_seals_gets_an_error_that_names_it() -> None:
    with pytest.raises(UsageError, match="Plain asks for a seal, and there is no notary"):
        Stack([Plain(Context(0, 3))]).layers[0].seal(MARK)


def test_the_notary_of_a_process_makes_no_seal_of_another() -> None:
    """The interface has no way to ask for one, and nobody holds two identities' notaries."""
    notary = KeyedNotary(2, CODEC)
    assert notary.is_sealed(2, 0, MARK, notary.seal(0, MARK))
    assert not notary.is_sealed(1, 0, MARK, notary.seal(0, MARK))
