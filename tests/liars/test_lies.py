"""What liars say instead of the truth: packets that differ in one field and survive the wire."""

from __future__ import annotations

from typing import ClassVar

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.keyed_notary import KeyedNotary
from flexgroup.core.layer import Layer
from flexgroup.core.message import Message, MessageId, Packet, Stamp, message_id, stamp
from flexgroup.liars.lies import Lies, message_in, unheard_of, with_field


class Everything(Packet):
    """A field of each kind that a lie can be about."""

    number: int
    about: MessageId
    ts: Stamp
    clock: tuple[int, ...]
    text: str
    m: Message
    batch: tuple[Message, ...]
    digest: bytes
    seals: tuple[bytes, ...]


class Vote(Packet):
    """A vote that is sealed as it is with no seal."""

    number: int
    seal: bytes


class Quote(Packet):
    """A vote, and the seal on it."""

    vote: Packet
    seal: bytes


class Voting(Layer):
    __slots__ = ()
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Everything, Vote, Quote)


class Carrying(Layer):
    __slots__ = ()
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Everything,)


CODEC = Codec([Voting, Voting])
NOTARIES = [KeyedNotary(process, CODEC) for process in range(3)]
ME = 2
M = Message(message_id(5, 1), (0, 1), b"hi")
TRUTH = Everything(3, M.id, stamp(4, 1), (1, 2), "text", M, (M, M), b"digest", (b"a", b"b"))


def test_a_lie_differs_in_one_field() -> None:
    lies = Lies(ME, None).about(TRUTH)
    told = [
        [name for name, _ in TRUTH.FIELDS if getattr(lie, name) != getattr(TRUTH, name)]
        for lie in lies
    ]
    fields = ["number", "about", "ts", "clock", "m", "batch", "digest", "seals"]
    assert told == [[name] for name in fields]


def test_lies_are_what_the_codec_allows() -> None:
    codec = Codec([Voting])
    for lie in Lies(ME, None).about(TRUTH):
        assert codec.decode(codec.encode(lie)) == lie


def test_the_content_of_a_message_is_changed_and_not_where_it_goes() -> None:
    (changed,) = [lie for lie in Lies(ME, None).about(TRUTH) if getattr(lie, "m", M) != M]
    assert isinstance(changed, Everything)
    assert (changed.m.id, changed.m.destinations, changed.m.payload) == (M.id, (0, 1), b"hi!")


def test_an_unheard_of_message_has_the_same_origin() -> None:
    assert unheard_of(message_id(5, 1)) == message_id(5, 101)


def sealed_vote(number: int) -> Vote:
    vote = Vote(number, b"")
    return Vote(number, NOTARIES[ME].seal(0, vote))


@pytest.mark.parametrize("form", ["with its seal empty", "within another packet"])
def test_what_the_liar_has_sealed_it_seals_again(form: str) -> None:
    lies = Lies(ME, NOTARIES[ME])
    if form == "with its seal empty":
        (lie,) = lies.about(sealed_vote(7))
        assert lie == sealed_vote(8)
    else:
        vote = Vote(7, b"")
        (lie,) = lies.about(Quote(vote, NOTARIES[ME].seal(0, vote)))
        assert lie == Quote(Vote(8, b""), NOTARIES[ME].seal(0, Vote(8, b"")))


def test_the_seal_of_another_process_cannot_be_made_to_fit() -> None:
    vote = Vote(7, b"")
    quote = Quote(vote, NOTARIES[0].seal(0, vote))
    for lie in Lies(ME, NOTARIES[ME]).about(quote):
        assert isinstance(lie, Quote)
        assert lie != quote
        assert not NOTARIES[1].is_sealed(0, 0, lie.vote, lie.seal)


def test_a_packet_of_the_layer_above_is_sealed_as_one_of_that_layer() -> None:
    inner = Vote(7, b"")
    inner = Vote(7, NOTARIES[ME].seal(1, inner))
    carrying = with_field(TRUTH, "m", Message(M.id, (0, 1), inner))
    carrying = with_field(carrying, "batch", ())
    (lie,) = [
        lie for lie in Lies(ME, NOTARIES[ME]).about(carrying) if message_payload(lie) != inner
    ]
    assert message_payload(lie) == Vote(8, NOTARIES[ME].seal(1, Vote(8, b"")))


def message_payload(packet: Packet) -> bytes | Packet:
    assert isinstance(packet, Everything)
    return packet.m.payload


def test_the_message_of_the_application_is_found_however_deep_it_is() -> None:
    deeper = Message(message_id(1, 9), (0,), with_field(TRUTH, "batch", ()))
    carrying = with_field(with_field(TRUTH, "m", deeper), "batch", ())
    assert message_in(carrying) == M
    assert message_in(Quote(carrying, b"")) == M
    assert message_in(Vote(1, b"")) is None
