"""Members of the group, and of that in which states are told, that are no replicas."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import PeerError
from flexgroup.replica.machine import GiveUp
from flexgroup.replica.packets import Call, Farewell, Ledger, Packet, Part, Ready, decode, encode

from .group_model import GroupModel, Process


def group_of_two() -> tuple[GroupModel, Process, Process]:
    model = GroupModel(seed=1, processes=2)
    model.come_to_rest()
    one, other = model.processes
    return model, one, other


def with_a_stranger(model: GroupModel, *packets: Packet) -> None:
    """Have a member that was told no state send something."""
    stranger = Process("stranger")
    model._change((*model.members, stranger.name))
    ready = Ready("session of nobody", "p0", 10**6)
    stranger.unsent.extend(encode(packet) for packet in (ready, *packets))
    while stranger.unsent:
        model.put(stranger)
    model.come_to_rest()


def test_a_call_with_numbers_beyond_all_calls_takes_no_time() -> None:
    model, one, other = group_of_two()
    with_a_stranger(model, Call(2**63, 2**63, "far", b""), Call(1, 1, "back", b""))
    assert one.state.lines == other.state.lines
    assert one.state.lines[-1] == "stranger far"


def test_nobody_calls_in_the_session_of_another() -> None:
    model, one, other = group_of_two()
    stolen = Ready("session of p1", "p0", 10**6)
    model._change((*model.members, "thief"))
    thief = Process("thief")
    packets = (stolen, Call(1, 1, "theft", b""), Farewell())
    thief.unsent.extend(encode(packet) for packet in packets)
    while thief.unsent:
        model.put(thief)
    model.call(other)
    model.come_to_rest()
    assert one.state.lines == other.state.lines
    assert one.state.lines[-1] == "p1 p1.1"
    assert other.answers[1] is not None


def test_a_newcomer_is_told_nothing_by_who_is_no_member_of_the_group() -> None:
    model, one, other = group_of_two()
    model.lose(other)
    model.enter(other)
    model.give(other)
    view = len(model.sequence)
    false = encode(Ledger("another", ["outsider"]))
    other.machine.told("outsider", encode(Part("p1", view, 0, false, True, True)))
    assert not other.machine.is_ready
    model.come_to_rest()
    assert one.state.lines == other.state.lines


def test_what_is_no_state_ends_the_newcomer_and_says_who_told_it() -> None:
    model, one, other = group_of_two()
    model.lose(other)
    model.enter(other)
    model.give(other)
    part = Part("p1", len(model.sequence), 0, b"nothing", True, True)
    other.machine.told(one.name, encode(part))
    (effect,) = other.machine.effects()
    assert isinstance(effect, GiveUp)
    assert effect.reason.startswith("p0 tells another kind of state: ")


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\x95\x00\x01\x01\xa1\xff\xc4\x00", b"\x91" * 5000]
)
def test_nothing_that_comes_raises_but_a_peer_error(data: bytes) -> None:
    with pytest.raises(PeerError):
        decode(data)
