"""PBFT: what Castro and Liskov 1999 and 2002 say of it, and what our page adds."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.journal import Transmission
from flexgroup.core.keyed_notary import KeyedNotary
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.core.seals import Notary
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.parts.patience import PATIENCE, VIEW
from flexgroup.protocols.parts.pbft_log import GATHER, MOST_BATCHES, Slot
from flexgroup.protocols.parts.pbft_packets import (
    Checkpoint,
    Commit,
    Fetched,
    NewView,
    Prepare,
    PrePrepare,
    Request,
    ViewChange,
    digest_of,
)
from flexgroup.protocols.parts.taken_messages import AHEAD
from flexgroup.protocols.parts.view_changes import NULL, Quorums, choices
from flexgroup.protocols.pbft import INTERVAL, WINDOW, Pbft
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from .broadcast_runs import Broadcasts, run

STACK = "pbft"
GROUP = (0, 1, 2, 3)


def bench_of(*sizes: int, stack: str = STACK) -> Bench:
    return Bench(parse_stack(stack), sum(sizes), replicas=replicas_of_sizes(sizes))


def layer(bench: Bench, process: int) -> Pbft:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, Pbft)
    return top


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def end_timers(bench: Bench, *processes: int) -> None:
    for process in processes:
        for level, name in bench.timers.get(process, []):
            bench.end_timer(process, level, name)


def orders(bench: Bench) -> list[list[int]]:
    return [[m.id for m in order] for order in bench.delivered]


def sent(outcome: Broadcasts) -> int:
    return sum(outcome.sent.values())


def tell(bench: Bench, sender: int, target: int, packet: Packet) -> None:
    """Let a packet arrive that a liar has made up."""
    bench.hosts[target].receive(bench.now, sender, Transmission(packet))


def view_change(
    bench: Bench, process: int, view: int, *said: Packet, batches: tuple[Packet, ...] = ()
) -> ViewChange:
    """A sealed view change with these prepares and commits, of a process that may be lying."""
    P = tuple([one for one in said if isinstance(one, Commit)])
    Q = tuple([one for one in said if isinstance(one, Prepare)])
    change = ViewChange(view, 0, (), P, Q, process, b"", batches, 0)
    return change.with_seal(layer(bench, process).seal(change.said()))


def request(bench: Bench, origin: int, seq: int, body: bytes) -> Request:
    """A request as its origin would send it."""
    if origin not in bench.hosts:
        bench.cast(origin, GROUP)
    m = Message(message_id(origin, seq), GROUP, body)
    return Request(m, layer(bench, origin).seal(Request(m, b"")))


# The normal case (1999, section 4.2).


@pytest.mark.parametrize("n", [1, 4, 7])
def test_three_delays_from_the_primary_and_four_from_anybody_else(n: int) -> None:
    assert run(STACK, n, [(0.0, 0)]).latency == (3 if n > 1 else 0)
    if n > 1:
        assert run(STACK, n, [(0.0, n - 1)]).latency == 4


@pytest.mark.parametrize("n", [1, 4, 5, 7])
def test_each_replica_but_the_primary_prepares_and_all_commit(n: int) -> None:
    """Besides requests: n - 1 pre-prepares, (n - 1)(n - 1) prepares, n(n - 1) commits."""
    for origin in (0, n - 1):
        outcome = run(STACK, n, [(0.0, origin)])
        assert sent(outcome) == (n - 1) + 2 * n * (n - 1)
        assert all(len(order) == 1 for order in outcome.delivered)


def test_a_client_sends_to_all_and_is_answered_after_five_delays() -> None:
    """Request, pre-prepare, prepare, commit, and the answer."""
    outcome = run_scenario(Scenario(STACK, 4, 1, "random:1", "unit", 0.1, groups="1x4"))
    assert outcome.answered == outcome.multicasts > 15
    assert outcome.client_latency == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("n", "faulty", "most"), [(1, 0, 1), (2, 0, 2), (3, 0, 2), (4, 1, 3), (6, 1, 4), (7, 2, 5)]
)
def test_any_two_quorums_have_a_correct_replica_in_common(n: int, faulty: int, most: int) -> None:
    quorums = Quorums(tuple(range(n)), INTERVAL)
    assert (quorums.faulty, quorums.most) == (faulty, most)
    assert 2 * most - n > faulty
    assert most <= n - faulty


def test_what_comes_while_batches_are_under_way_goes_together() -> None:
    """2002, section 5.1.4."""
    outcome = run(STACK, 4, [(0.0, 0)] * 20)
    assert sent(outcome) == 20 * 3 + (WINDOW + 1) * 24
    assert len(outcome.delivered[3]) == 20


def test_those_who_were_delivered_together_go_together_again() -> None:
    """Closed loops of several members: each sends the next message when it has its last one back.
    Were the first of them proposed at once, the others would go into a second batch, for ever."""
    bench = bench_of(4)
    bench.cast(0, GROUP)
    for member in (0, 1, 2):
        bench.cast(member, GROUP)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [4] * 4
    for member in (0, 2):
        bench.cast(member, GROUP)
        settle(bench)
    assert layer(bench, 0).proposed == 3
    bench.cast(1, GROUP)
    settle(bench)
    assert layer(bench, 0).proposed == 4
    assert [len(order) for order in bench.delivered] == [7] * 4


def test_the_primary_waits_a_moment_only_for_who_does_not_go_on() -> None:
    bench = bench_of(4)
    bench.cast(0, GROUP)
    for member in (0, 1, 2):
        bench.cast(member, GROUP)
    settle(bench)
    bench.cast(3, GROUP)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [4] * 4
    assert (0, GATHER) in bench.timers[0]
    bench.end_timer(0, 0, GATHER)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [5] * 4
    bench.cast(1, GROUP)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [6] * 4


def test_groups_order_their_messages_by_themselves() -> None:
    bench = bench_of(4, 1, 4)
    for group in (GROUP, (4,), (5, 6, 7, 8)):
        bench.cast(9, group)
        bench.cast(2, group)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [2] * 9


def test_a_message_to_several_groups_is_refused() -> None:
    with pytest.raises(UsageError, match="one group of replicas"):
        bench_of(4, 4).cast(8, tuple(range(8)))


# Lies in the normal case.


def test_the_first_proposal_for_a_number_counts_and_two_are_never_prepared() -> None:
    """The primary gives the first number of all to one request at replica 1, and to another one at
    the rest: that is prepared, with its own vote, and the next primary has to propose it again."""
    bench = bench_of(4)
    a, b = request(bench, 4, 0, b"a"), request(bench, 5, 0, b"b")
    bench.channels.clear()
    for target, chosen in ((1, a), (2, b), (3, b)):
        for one in (a, b):
            tell(bench, one.m.id & 7, target, one)
        tell(bench, 0, target, PrePrepare(0, 1, (chosen,)))
        tell(bench, 0, target, PrePrepare(0, 1, (a if chosen is b else b,)))
    bench.crash(0)
    settle(bench)
    assert bench.delivered == [[], [], [], []]
    assert [layer(bench, p).slots[1].digest for p in (1, 2, 3)] == [
        digest_of((a.m,)), digest_of((b.m,)), digest_of((b.m,))
    ]  # fmt: skip
    end_timers(bench, 1, 2, 3)
    settle(bench)
    assert orders(bench)[1:] == [[b.m.id, a.m.id]] * 3


def test_a_request_in_the_name_of_another_is_not_prepared() -> None:
    bench = bench_of(4)
    m = Message(message_id(4, 0), GROUP, b"forged")
    for seal in (b"", b"1" * 16, layer(bench, 0).seal(Request(m, b""))):
        tell(bench, 0, 1, PrePrepare(0, 1, (Request(m, seal),)))
    assert layer(bench, 1).slots[1].accepted is None
    with pytest.raises(PeerError):
        tell(bench, 0, 1, Request(m, layer(bench, 0).seal(Request(m, b""))))


def test_an_origin_that_convinces_nobody_but_the_primary_is_not_proposed() -> None:
    """Without a seal, the others would wait for a request that its origin never sends them."""
    bench = bench_of(4)
    m = Message(message_id(4, 0), GROUP, b"only here")
    tell(bench, 4, 0, Request(m, b"no seal"))
    assert not bench.channels
    assert not layer(bench, 0).requests.pending


def test_a_member_whose_bad_seals_cost_a_view_is_believed_unseen_no_more() -> None:
    """The primary alone is told a request of another replica. It proposes that, and nobody accepts
    it; when it has left the view for that, it looks at the seals of this replica first."""
    bench = bench_of(4)
    bad = Request(Message(message_id(3, 0), GROUP, b"only here"), b"no seal")
    tell(bench, 3, 0, bad)
    bench.cast(1, GROUP)
    settle(bench)
    assert layer(bench, 0).slots[1].accepted == PrePrepare(0, 1, (bad,))
    assert bench.delivered == [[], [], [], []]
    end_timers(bench, *GROUP)
    settle(bench)
    assert [layer(bench, process).view for process in GROUP] == [1] * 4
    assert [len(order) for order in bench.delivered] == [1] * 4
    assert layer(bench, 0).requests.trusted == {0, 1, 2}
    assert layer(bench, 1).requests.trusted == set(GROUP)


def test_what_one_correct_replica_has_been_asked_for_the_others_accept() -> None:
    """A replica shows a request with a bad seal to two of the others. The third accepts it when
    f + 1 take part in it, one of whom must have seen that it is asked for."""
    bench = bench_of(4)
    bad = Request(Message(message_id(3, 0), GROUP, b"not for all"), b"no seal")
    tell(bench, 3, 1, bad)
    tell(bench, 3, 0, bad)
    assert isinstance(bench.deliver(0, 2), PrePrepare)
    assert layer(bench, 2).slots[1].accepted is None
    tell(bench, 3, 2, Prepare(0, 1, digest_of(())))
    assert layer(bench, 2).slots[1].accepted is None
    settle(bench)
    assert orders(bench)[:3] == [[bad.m.id]] * 3
    assert not bench.crashed


def test_a_proposal_that_cannot_be_accepted_is_looked_at_again_once_for_each_replica() -> None:
    """Otherwise a liar could have others check the same bad seals as often as it likes."""
    bench = bench_of(4)
    checked: list[int] = []
    notary = layer(bench, 1).context.notary
    assert notary is not None
    layer(bench, 1).context.notary = Counting(notary, [], checked)
    forged = Request(Message(message_id(4, 0), GROUP, b"forged"), b"no seal")
    tell(bench, 0, 1, PrePrepare(0, 1, (forged,)))
    for view in (0, 0, 4, 8):
        tell(bench, 3, 1, Prepare(view, 1, digest_of(())))
    assert checked == [4, 4]


def test_prepares_and_commits_for_another_batch_do_not_count() -> None:
    bench = bench_of(4)
    bench.cast(0, GROUP)
    for packet in (Request, PrePrepare):
        assert isinstance(bench.deliver(0, 1), packet)
    bench.channels.clear()
    other = digest_of((Message(message_id(5, 0), GROUP, b""),))
    tell(bench, 2, 1, Prepare(0, 1, other))
    tell(bench, 3, 1, Prepare(0, 1, other))
    for sender in (0, 2, 3):
        tell(bench, sender, 1, Commit(0, 1, other))
    assert layer(bench, 1).slots[1].prepared is None
    assert not bench.delivered[1]


def test_a_replica_votes_once_in_a_view() -> None:
    """The second prepare of a liar does not take the place of its first."""
    bench = bench_of(4)
    first, second = digest_of(()), b"2" * 20
    for digest in (first, second):
        tell(bench, 2, 1, Prepare(0, 1, digest))
        tell(bench, 2, 1, Commit(0, 1, digest))
    slot = layer(bench, 1).slots[1]
    assert (slot.prepares[2].digest, slot.commits[2].digest) == (first, first)


def test_the_proposal_of_a_primary_is_its_only_vote() -> None:
    bench = bench_of(4)
    with pytest.raises(PeerError):
        tell(bench, 0, 1, Prepare(0, 1, digest_of(())))


# Checkpoints and water marks (1999, section 4.3).


def test_what_a_quorum_has_delivered_is_forgotten() -> None:
    bench = bench_of(4)
    for _ in range(2 * INTERVAL + 1):
        bench.cast(0, GROUP)
        settle(bench)
    for process in GROUP:
        replica = layer(bench, process)
        assert replica.checkpoints.stable == 2 * INTERVAL
        assert list(replica.slots) == [2 * INTERVAL + 1]
        assert list(replica.sequence.batches) == [2 * INTERVAL + 1]
        assert len(replica.checkpoints.proof) == 3


def test_no_liar_makes_the_log_grow() -> None:
    """Numbers beyond the high water mark, views far ahead, checkpoints of the future: each liar has
    room for one of each, and only between the water marks."""
    bench = bench_of(4)
    replica = layer(bench, 1)
    for number in range(1, 6 * INTERVAL):
        for view in (0, 3, 300):
            tell(bench, 3, 1, Prepare(view, number, digest_of(()))) if (view % 4 != 3) else tell(
                bench, 3, 1, PrePrepare(view, number, ())
            )
            tell(bench, 3, 1, Commit(view, number, digest_of(())))
        if number % INTERVAL == 0:
            said = Checkpoint(number, b"x" * 20, 3, b"")
            seal = layer(bench, 3).seal(said)
            tell(bench, 3, 1, Checkpoint(number, b"x" * 20, 3, seal))
        tell(bench, 3, 1, Fetched(number, ()))
    assert len(replica.slots) == 2 * INTERVAL
    assert all(
        len(slot.prepares) <= 1 and len(slot.commits) == 1 and len(slot.early) == 1
        for slot in replica.slots.values()
    )
    assert len(replica.checkpoints.told) == 2
    assert not replica.catching_up.copies


def test_an_origin_has_room_for_as_many_requests_as_a_correct_one_needs() -> None:
    bench = bench_of(4)
    for seq in range(AHEAD + 10):
        tell(bench, 4, 1, request(bench, 4, seq, b""))
    assert len(layer(bench, 1).requests.pending) == AHEAD


def test_who_lags_behind_is_told_what_it_lacks_by_f_and_one_more() -> None:
    """Nothing reaches replica 3 until the others are far beyond its high water mark."""
    bench = bench_of(4)
    held = []
    for _ in range(3 * INTERVAL + 5):
        bench.cast(0, GROUP)
        while channels := [channel for channel in bench.channels if channel[1] != 3]:
            bench.deliver(*channels[0])
        for source in (0, 1, 2):
            held += [(source, sent) for sent in bench.channels.pop((source, 3), [])]
    assert len(bench.delivered[0]) == 3 * INTERVAL + 5
    assert layer(bench, 0).checkpoints.stable == 3 * INTERVAL
    assert min(layer(bench, 0).sequence.batches) == 2 * INTERVAL + 1
    for source, packet in held:
        bench.channels.setdefault((source, 3), []).append(packet)
    settle(bench)
    while bench.timers.get(3):
        end_timers(bench, 3)
        settle(bench)
    assert orders(bench)[3] == orders(bench)[0]


def test_a_single_replica_is_not_believed_what_others_delivered() -> None:
    bench = bench_of(4)
    bench.cast(3, GROUP)
    end_timers(bench, 3)
    bench.channels.clear()
    m = Message(message_id(4, 0), GROUP, b"forged")
    for _ in range(3):
        tell(bench, 2, 3, Fetched(1, (m,)))
    assert not bench.delivered[3]
    tell(bench, 1, 3, Fetched(1, (m,)))
    assert bench.delivered[3] == [m]


# View changes (1999, section 4.4).


def test_after_a_crash_of_the_primary_the_next_one_proposes_what_is_prepared() -> None:
    outcome = run(STACK, 4, [(0.0, 0), (0.5, 3)], crashes=[(2.5, 0)])
    assert outcome.delivered[1] == outcome.delivered[2] == outcome.delivered[3]
    assert len(outcome.delivered[1]) == 2


def test_five_delays_from_the_timers_until_all_deliver() -> None:
    """View change, new view with the pre-prepares, prepare, commit: after the timer, four."""
    outcome = run(STACK, 4, [(0.0, 3)], crashes=[(0.5, 0)])
    assert outcome.latency == pytest.approx(PATIENCE + 5)


def test_timers_double_while_no_view_begins() -> None:
    bench = bench_of(7)
    for process in (0, 1):
        bench.crash(process)
    bench.cast(6, tuple(range(7)))
    settle(bench)
    for expected in (PATIENCE, 2 * PATIENCE):
        assert layer(bench, 6).patience.ticks == expected // (1 if expected == PATIENCE else 2)
        end_timers(bench, 2, 3, 4, 5, 6)
        settle(bench)
    assert layer(bench, 6).view == 2
    assert [len(order) for order in bench.delivered] == [0, 0, 1, 1, 1, 1, 1]


def test_who_hears_of_f_and_one_more_that_leave_leaves_as_well() -> None:
    bench = bench_of(4)
    bench.cast(3, GROUP)
    bench.crash(0)
    settle(bench)
    end_timers(bench, 2)
    settle(bench)
    assert layer(bench, 3).view == 0
    end_timers(bench, 1)
    settle(bench)
    assert [layer(bench, process).view for process in (1, 2, 3)] == [1, 1, 1]
    assert len(bench.delivered[3]) == 1


def test_a_hole_is_filled_with_a_null_request() -> None:
    """The primary gives number 2 to a request, and number 1 to nothing."""
    bench = bench_of(4)
    a = request(bench, 4, 0, b"a")
    bench.channels.clear()
    for target in (1, 2, 3):
        tell(bench, 4, target, a)
        tell(bench, 0, target, PrePrepare(0, 2, (a,)))
    bench.crash(0)
    settle(bench)
    assert layer(bench, 1).slots[2].is_prepared_in(0)
    assert not bench.delivered[1]
    end_timers(bench, 1, 2, 3)
    settle(bench)
    assert layer(bench, 2).slots[1].digest == NULL
    assert orders(bench)[1:] == [[a.m.id]] * 3


OLD, NEW = digest_of(()), b"\xff" * 20


def test_of_two_batches_that_of_the_higher_view_counts() -> None:
    """Stale commits: what was prepared in view 0 does not undo what was prepared later."""
    bench = bench_of(4)
    changes = [
        view_change(bench, 0, 2, Commit(0, 1, OLD), Prepare(0, 1, OLD), Prepare(1, 1, NEW)),
        view_change(bench, 1, 2, Commit(0, 1, OLD), Prepare(0, 1, OLD)),
        view_change(bench, 3, 2, Commit(1, 1, NEW), Prepare(1, 1, NEW), Prepare(0, 1, OLD)),
    ]
    quorums = layer(bench, 0).quorums
    assert all(quorums.is_valid(change, layer(bench, 0).is_sealed) for change in changes)
    assert choices(changes, quorums) == [(1, NEW)]
    with pytest.raises(PeerError):
        tell(bench, 2, 1, NewView(2, tuple(changes), (PrePrepare(2, 1, ()),)))
    assert layer(bench, 1).view == 0


def test_a_liar_alone_has_nothing_proposed_again() -> None:
    """It says that a batch of its own was prepared in the last view. Then f and one more have
    taken part in that, and say so; a primary that has not heard them yet waits."""
    bench = bench_of(4)
    lie = view_change(bench, 3, 2, Commit(1, 1, NEW), Prepare(1, 1, NEW))
    true = Commit(0, 1, OLD), Prepare(0, 1, OLD)
    quorums = layer(bench, 0).quorums
    first = [view_change(bench, 0, 2, *true), view_change(bench, 1, 2, Prepare(0, 1, OLD)), lie]
    assert choices(first, quorums) is None
    assert choices([*first, view_change(bench, 2, 2)], quorums) == [(1, OLD)]
    nothing = [view_change(bench, process, 2) for process in (0, 1)]
    assert choices([*nothing, lie], quorums) is None
    assert choices([*nothing, lie, view_change(bench, 2, 2)], quorums) == []


def test_what_f_and_one_more_have_prepared_is_not_contradicted() -> None:
    """The primary of view 1 has given the number to a batch before 0 and 1, and to another one
    before 2; a liar says that this one was prepared. Only the first may have been committed."""
    bench = bench_of(4)
    first, second = (Commit(1, 1, OLD), Prepare(1, 1, OLD)), Prepare(1, 1, NEW)
    quorums = layer(bench, 0).quorums
    changes = [
        view_change(bench, 0, 2, *first),
        view_change(bench, 1, 2, *first),
        view_change(bench, 2, 2, second),
        view_change(bench, 3, 2, Commit(1, 1, NEW), second),
    ]
    assert choices(changes, quorums) == [(1, OLD)]
    assert choices(changes[1:], quorums) is None


def test_the_primary_of_a_view_waits_until_it_knows_what_to_propose() -> None:
    """Thesis of Castro, section 3.2.4: a quorum of view changes may not be enough."""
    bench = bench_of(4)
    lie = view_change(bench, 3, 1, Commit(0, 1, OLD), batches=(PrePrepare(0, 1, ()),))
    tell(bench, 3, 1, lie)
    tell(bench, 0, 1, view_change(bench, 0, 1))
    replica = layer(bench, 1)
    assert (replica.view, replica.views.changing) == (1, True)
    assert bench.timers[1]
    tell(bench, 2, 1, view_change(bench, 2, 1))
    assert not replica.views.changing
    settle(bench)
    assert layer(bench, 0).view == layer(bench, 2).view == 1


@pytest.mark.parametrize("lie", ["seal", "twice", "again", "view", "number", "digest", "kind"])
def test_a_view_change_that_no_correct_replica_says_is_refused(lie: str) -> None:
    bench = bench_of(4)
    said: list[Packet] = [Commit(0, 1, OLD), Prepare(0, 1, OLD)]
    if lie == "twice":
        said.append(Commit(0, 1, OLD))
    elif lie == "again":
        said.append(Prepare(0, 1, OLD))
    elif lie == "view":
        said[0] = Commit(1, 1, OLD)
    elif lie == "number":
        said[1] = Prepare(0, 2 * INTERVAL + 1, OLD)
    elif lie == "digest":
        said[1] = Prepare(0, 1, b"short")
    batches = tuple([PrePrepare(0, 1, ()) for one in said if isinstance(one, Commit)])
    change = view_change(bench, 3, 1, *said, batches=batches)
    if lie == "kind":
        change = ViewChange(1, 0, (), change.Q, change.P, 3, b"", batches, 0)
        change = change.with_seal(layer(bench, 3).seal(change.said()))
    elif lie == "seal":
        change = change.with_seal(b"forged")
    with pytest.raises(PeerError):
        tell(bench, 3, 1, change)


def test_batches_come_with_what_is_said_to_be_prepared() -> None:
    bench = bench_of(4)
    said = Commit(0, 1, OLD), Prepare(0, 1, OLD)
    true, other = PrePrepare(0, 1, ()), PrePrepare(0, 1, (request(bench, 4, 0, b"other"),))
    for batches in ((), (other,), (true, true)):
        with pytest.raises(PeerError):
            tell(bench, 3, 1, view_change(bench, 3, 1, *said, batches=batches))
    tell(bench, 3, 1, view_change(bench, 3, 1, *said, batches=(true,)))


def test_of_many_batches_with_one_number_the_last_are_told() -> None:
    """A primary of the past cannot make view changes large."""
    slot = Slot()
    for view in range(3 * MOST_BATCHES):
        digest = view.to_bytes(20, "big")
        slot.accept(PrePrepare(view, 1, ()), digest)
    assert sorted(slot.views.values()) == list(range(2 * MOST_BATCHES, 3 * MOST_BATCHES))


def test_who_has_left_a_view_commits_to_nothing_in_it() -> None:
    """Otherwise it would have said in its view change less than it did."""
    bench = bench_of(4)
    bench.cast(0, GROUP)
    for _ in range(2):
        bench.deliver(0, 1)
    end_timers(bench, 1)
    digest = layer(bench, 1).slots[1].digest
    for process in (2, 3):
        tell(bench, process, 1, Prepare(0, 1, digest))
    assert layer(bench, 1).views.changes[1].P == ()
    assert (Prepare(0, 1, digest),) == layer(bench, 1).views.changes[1].Q
    assert layer(bench, 1).slots[1].prepared is None


def test_a_new_view_takes_a_quorum_of_view_changes() -> None:
    bench = bench_of(4)
    one = view_change(bench, 1, 1)
    for quoted in ((), (one,), (one, one, one)):
        with pytest.raises(PeerError):
            tell(bench, 1, 2, NewView(1, quoted, ()))


def test_a_primary_that_is_taken_for_crashed_gets_no_patience() -> None:
    """Not in the papers: the world's suspicions are heeded, where there are any."""
    bench = bench_of(4)
    bench.crash(0)
    for process in (1, 2, 3):
        bench.suspect(process, 0)
    bench.cast(3, GROUP)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [0, 1, 1, 1]
    assert not any(VIEW in dict(timers).values() for timers in bench.timers.values())


def test_seals_are_made_and_checked_as_often_as_the_page_says() -> None:
    bench = bench_of(4)
    made: list[int] = []
    checked: list[int] = []
    for process in GROUP:
        notary = layer(bench, process).context.notary
        assert isinstance(notary, KeyedNotary)
        layer(bench, process).context.notary = Counting(notary, made, checked)
    bench.cast(0, GROUP)
    settle(bench)
    assert (len(made), len(checked)) == (1, 0)
    bench.cast(1, GROUP)
    settle(bench)
    assert (len(made), len(checked)) == (2, 0)
    bench.cast(4, GROUP)
    settle(bench)
    assert (len(made), checked) == (2, [4])


class Counting(Notary):
    """A notary that counts what it is asked."""

    def __init__(self, notary: Notary, made: list[int], checked: list[int]) -> None:
        self.notary = notary
        self.made = made
        self.checked = checked

    def seal(self, layer: int, packet: Packet) -> bytes:
        self.made.append(layer)
        return self.notary.seal(layer, packet)

    def is_sealed(self, process: int, layer: int, packet: Packet, seal: bytes) -> bool:
        self.checked.append(process)
        return self.notary.is_sealed(process, layer, packet, seal)


def test_a_replica_that_has_crashed_does_not_start_again() -> None:
    """It does not remember what it said, and would contradict it."""
    for stack in ("pbft", "pbft skeen-cft"):
        bench = bench_of(4, stack=stack)
        bench.crash(1)
        with pytest.raises(UsageError, match="cannot start again"):
            bench.recover(1)
