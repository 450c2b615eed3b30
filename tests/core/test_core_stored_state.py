"""The state of a layer as bytes, and what becomes of it: what was delivered below is covered."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.host import NUMBERS, Host, World
from flexgroup.core.journal import Transmission
from flexgroup.core.layer import Context, Layer, Record, Save, Stored
from flexgroup.core.message import Message, Packet, seq_of
from flexgroup.core.stack import Stack
from flexgroup.core.stored_state import decode_state, encode_state, set_state, state_of
from flexgroup.protocols.replicated import INNER, state_types
from flexgroup.worlds.network.layer_files import LayerFiles

from .small_layers import Mark, Note, Plain, message


class Pair(Record):
    left: dict[int, list[int]] = {}
    right: Message | None = None


TYPES = (Pair, Note)


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -1, 1 << 62, "ä", b"\xff\0", (), (1, (2,)), [3, [4]], {5, 6},
        {7: {8: "9"}}, message(1, 2, 3, payload=b"x"), Note(message(1, 2, 3), 4),
        Pair({1: [2, 3]}, message(4, 5, 6)), [Pair(), Pair({}, None)],
    ],
)  # fmt: skip
def test_what_was_written_is_read_again(value: Any) -> None:
    found = decode_state(encode_state(value, TYPES), TYPES)
    assert found == value
    assert type(found) is type(value)


def test_what_was_not_written_is_refused() -> None:
    whole = encode_state(Pair({1: [2, 3]}, message(4, 5, 6)), TYPES)
    for wrong in (whole[:-1], whole + b"\0", b"\x0c\x02", b"\x63\0"):
        with pytest.raises(PeerError):
            decode_state(wrong, TYPES)
    with pytest.raises(TypeError, match="Mark is not among the types"):
        encode_state(Mark(1), TYPES)


@pytest.mark.parametrize("name", INNER)
def test_every_layer_that_groups_can_run_is_restored(name: str) -> None:
    """After a message to two processes, with something under way."""
    layer = INNER[name](Context(0, 3))
    client = INNER[name](Context(4, 3))
    for seq in range(3):
        client.on_cast(message(4, seq, 0, 1, payload=b"x"))
    for effect in client.effects:
        layer.on_packet(4, effect.packet)  # type: ignore[attr-defined]
    types = state_types(layer)
    twin = INNER[name](Context(0, 3))
    set_state(twin, decode_state(encode_state(state_of(layer), types), types))
    assert state_of(twin) == state_of(layer) != state_of(INNER[name](Context(0, 3)))


class Covering(Plain):
    """Saves after each packet how many there were."""

    __slots__ = ()
    STORED: ClassVar[tuple[type[Packet], ...]] = (Mark,)

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        self.save(Mark(len(self.log)), len(self.log))

    def on_covered(self, count: int) -> None:
        self.log.append(f"covered {count}")

    def on_restart(self, stored: Stored) -> None:
        self.log.append(f"restart with {stored.saved!r} and {stored.delivered}")


class Numbers(World):
    def __init__(self) -> None:
        self.sent: list[int] = []

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        packet = transmission.packet
        assert isinstance(packet, Note)
        self.sent.append(seq_of(packet.m.id))


LAYERS: list[type[Layer]] = [Plain, Covering]


def two_levels() -> Stack:
    return Stack([Covering(Context(0, 3)), Covering(Context(0, 3))])


def test_a_state_covers_what_the_layer_below_delivered_and_that_is_told() -> None:
    host = Host(two_levels(), World(), Codec([Covering, Covering]))
    inside = Note(message(1, 0, 0), 1)
    host.receive(0, 1, Transmission(Note(Message(5, (0,), inside), 1)))
    below = host.stack.layers[0]
    assert isinstance(below, Covering)
    assert below.log[-1] == "covered 1"
    assert [stored.saved for stored in host.stored] == [Mark(1), Mark(1)]
    host.crash(1)
    host.recover(2, two_levels())
    logs = [layer.log for layer in host.stack.layers if isinstance(layer, Covering)]
    assert logs == [["restart with Mark(number=1) and 1"]] * 2


def test_who_starts_again_gives_no_number_twice() -> None:
    world = Numbers()
    host = Host(two_levels(), world, Codec([Covering, Covering]))
    host.cast(0, message(0, 0, 0))
    for time in (1, 2):
        host.crash(time)
        host.recover(time, two_levels())
        host.cast(time, message(0, time, 0))
    assert world.sent == [0, NUMBERS, 2 * NUMBERS]


def test_what_a_state_covers_is_on_the_disk_with_it(tmp_path: Path) -> None:
    files = LayerFiles(tmp_path, Codec(LAYERS), LAYERS, "process 0")
    files.store([Save(1, Mark(7), 3), Save(0, Mark(8))])
    files.deliver(2)
    files.number(5)
    files.commit()
    files.close()
    again = LayerFiles(tmp_path, Codec(LAYERS), LAYERS, "process 0")
    again.close()
    assert again.stored == [Stored(Mark(8), {}, 0, 3), Stored(Mark(7), {}, 0, 2)]
    assert again.numbered == 5
