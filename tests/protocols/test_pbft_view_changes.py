"""What goes wrong around view changes of PBFT if they are taken lightly, a schedule each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Send, SetTimer
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.core.stack import Stack
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.parts.patience import RELAY, VIEW
from flexgroup.protocols.parts.pbft_packets import (
    Checkpoint,
    Commit,
    Fetched,
    NewView,
    Prepare,
    PrePrepare,
    Request,
    ViewChange,
)
from flexgroup.protocols.pbft import INTERVAL
from flexgroup.worlds.bench import Bench

from .test_pbft_paper import GROUP, bench_of, end_timers, layer, request, settle, tell


def deliver(
    bench: Bench, source: int, target: int, kind: type[Packet], number: int | None = None
) -> None:
    """Let the first packet of this kind, about this sequence number, overtake all others."""
    waiting = [one.packet for one in bench.channels.get((source, target), [])]
    for place, packet in enumerate(waiting):
        if isinstance(packet, kind) and number in (None, getattr(packet, "number", None)):
            bench.deliver(source, target, place)
            return
    raise AssertionError(f"no {kind.__name__} {number} from {source} to {target}: {waiting}")


def settle_among(bench: Bench, includes: Callable[[int, int], bool]) -> None:
    """Deliver all that these channels have."""
    while open_ones := [channel for channel in bench.channels if includes(*channel)]:
        bench.deliver(*open_ones[0])


def test_who_suspects_the_primary_of_the_view_that_begins_takes_no_part_in_the_next_one_yet() -> (
    None
):
    """Replica 3 delivers a while view 1 begins there, and leaves it again, since b waits and it
    suspects the primary. If it went on to take in what that primary proposes, it would vote in
    view 2, which has not begun, and could vote there a second time for something else."""
    bench = bench_of(4)
    for client in (4, 5):
        bench.cast(client, GROUP)
        settle_among(bench, lambda source, target: source >= len(GROUP))
    for target in (1, 2, 3):
        for number in (1, 2):
            deliver(bench, 0, target, PrePrepare, number)
    for target in GROUP:
        for source in (1, 2, 3):
            for number in (1, 2):
                if source != target:
                    deliver(bench, source, target, Prepare, number)
    for process in (1, 2, 3):
        bench.end_timer(process, 0, VIEW)
    bench.channels = {
        channel: [one for one in packets if not isinstance(one.packet, Commit)]
        for channel, packets in bench.channels.items()
    }  # those of view 0 are late
    for source in (2, 3):
        deliver(bench, source, 1, ViewChange)
    for target in (0, 2):
        deliver(bench, 1, target, NewView)
    for source, target in ((0, 1), (0, 2), (2, 0), (2, 1), (0, 3), (2, 3)):
        deliver(bench, source, target, Prepare, 1)
    for source in (0, 1, 2):
        deliver(bench, source, 3, Commit, 1)
    bench.suspect(3, 1)
    deliver(bench, 1, 3, NewView)
    replica = layer(bench, 3)
    assert (len(bench.delivered[3]), replica.view, replica.views.changing) == (1, 2, True)
    said = [one.packet for one in bench.channels[3, 0]]
    assert any(isinstance(packet, ViewChange) and packet.view == 2 for packet in said)
    assert not any(isinstance(packet, Prepare) and packet.view == 2 for packet in said)


def test_water_marks_may_move_while_a_view_begins() -> None:
    """Replica 3 hears of all that happens in view 1 before it hears that this has begun; what it
    had put off is then delivered at once, up to a checkpoint that is stable."""
    bench = bench_of(4)
    for _ in range(INTERVAL - 2):
        bench.cast(4, GROUP)
        settle(bench)
    bench.cast(4, GROUP)
    for target in (1, 2, 3):
        deliver(bench, 4, target, Request)
    for process in (1, 2, 3):
        bench.end_timer(process, 0, VIEW)
    for source, target in ((3, 0), (3, 2), (2, 1), (3, 1)):
        deliver(bench, source, target, ViewChange)
    for target in (0, 2):
        deliver(bench, 1, target, NewView)
    settle_among(bench, lambda source, target: target != 3)
    bench.cast(4, GROUP)
    settle_among(bench, lambda source, target: target != 3)
    deliver(bench, 1, 3, PrePrepare, INTERVAL - 1)
    for source in (0, 2):
        deliver(bench, source, 3, Prepare, INTERVAL - 1)
        deliver(bench, source, 3, Fetched, INTERVAL)
    for source in (0, 1, 2):
        deliver(bench, source, 3, Commit, INTERVAL - 1)
        deliver(bench, source, 3, Checkpoint)
    deliver(bench, 0, 3, Commit, INTERVAL)
    deliver(bench, 1, 3, NewView)
    assert len(bench.delivered[3]) == layer(bench, 3).checkpoints.stable == INTERVAL
    settle(bench)
    assert bench.delivered[3] == bench.delivered[0]


def view_change(stack: Stack) -> ViewChange:
    """What a replica says to the others whose timer runs out."""
    stack.timer(0, VIEW)
    (sent,) = [
        effect.packet
        for effect in stack.take_effects()
        if isinstance(effect, Send) and isinstance(effect.packet, ViewChange)
    ]
    return sent


def timers_set(stack: Stack, sender: int, packet: Packet) -> int:
    """How often a replica sets its timer because of this."""
    stack.receive(sender, packet)
    return sum(isinstance(effect, SetTimer) for effect in stack.take_effects())


def test_nobody_makes_a_replica_wait_longer_for_a_view_by_wanting_ever_higher_ones() -> None:
    """Replica 1 is to begin view 1, says nothing, and tells the others that it wants view 5, 9, ...
    The timer that ends that is set when enough replicas want view 1 or a later one, and once."""
    build = parse_stack("pbft").builder(4, replicas=replicas_of_sizes([4]))
    first, liar, mine, last = (build(process) for process in GROUP)
    for replica in (first, liar, mine, last):
        replica.cast(Message(message_id(replica.process, 0), GROUP, b""))
        replica.take_effects()
    view_change(mine)
    assert timers_set(mine, 0, view_change(first)) == 0
    assert timers_set(mine, 3, view_change(last)) == 1
    for _ in range(20):
        for _ in range(4):
            wanted = view_change(liar)
        assert timers_set(mine, 1, wanted) == 0


def test_no_primary_is_to_blame_for_a_request_that_it_cannot_show_to_others() -> None:
    """Who has waited for requests that are badly sealed forgets them, and stays in its view."""
    bench = bench_of(4)
    for target in GROUP:
        for seq in range(3):
            tell(bench, 4, target, Request(Message(message_id(4, seq), GROUP, b"x"), b"no seal"))
    end_timers(bench, 1, 2, 3)
    assert not any(bench.timers.values())
    assert not any(layer(bench, process).requests.pending for process in GROUP)
    assert not bench.channels


def test_who_forgets_a_badly_sealed_request_waits_for_the_next_one() -> None:
    bench = bench_of(4)
    bench.crash(0)
    bench.cast(5, GROUP)
    for target in GROUP[1:]:
        tell(bench, 4, target, Request(Message(message_id(4, 0), GROUP, b"x"), b"no seal"))
    settle(bench)
    for views in (0, 1):
        end_timers(bench, 1, 2, 3)
        settle(bench)
        assert {layer(bench, process).view for process in GROUP[1:]} == {views}
    assert [len(order) for order in bench.delivered] == [0, 1, 1, 1]


def test_a_request_that_is_shown_to_one_backup_alone_is_passed_on() -> None:
    """When half of its patience is gone; otherwise it would leave its view, and nobody else."""
    bench = bench_of(4)
    shown = request(bench, 4, 0, b"only here")
    bench.channels.clear()
    tell(bench, 4, 3, shown)
    bench.end_timer(3, 0, RELAY)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [1, 1, 1, 1]
    assert layer(bench, 3).view == 0


def test_nobody_passes_on_what_is_badly_sealed_nor_believes_who_does() -> None:
    bench = bench_of(4)
    shown = Request(Message(message_id(4, 0), GROUP, b"x"), b"no seal")
    tell(bench, 4, 3, shown)
    bench.end_timer(3, 0, RELAY)
    assert not bench.channels
    with pytest.raises(PeerError):
        tell(bench, 2, 3, shown)


def test_no_origin_with_low_numbers_keeps_others_waiting() -> None:
    """The primary proposes what client 4 asks for, and not what client 5 does, though 4 always has
    something under way."""
    bench = bench_of(4)
    for seq in range(3):
        asked = request(bench, 5, 100, b"ignored"), request(bench, 4, seq, b"")
        bench.channels.clear()
        for target in GROUP[1:]:
            for one in asked:
                tell(bench, 5 if one is asked[0] else 4, target, one)
            tell(bench, 0, target, PrePrepare(0, seq + 1, (asked[1],)))
        settle_among(bench, lambda source, target: source != 0 != target)
    assert len(bench.delivered[1]) == 3
    assert layer(bench, 1).patience.waits_for == message_id(5, 100)


def test_nobody_heeds_suspicions_on_behalf_of_a_badly_sealed_request() -> None:
    bench = bench_of(4)
    bench.suspect(1, 0)
    tell(bench, 4, 1, Request(Message(message_id(4, 0), GROUP, b"x"), b"no seal"))
    assert layer(bench, 1).view == 0
    assert not layer(bench, 1).requests.pending


def test_what_an_origin_says_itself_counts_more_than_what_is_quoted() -> None:
    """A primary that quotes a request with a bad seal, where it is not looked at, does not keep
    others from proposing it later."""
    bench = bench_of(4)
    bench.cast(4, GROUP)
    (true,) = [one.packet for one in bench.channels[4, 1]]
    assert isinstance(true, Request)
    replica = layer(bench, 1)
    replica.requests.add(Request(true.m, b"no seal"))
    deliver(bench, 4, 1, Request)
    assert replica.requests.pending == {true.m.id: true}
