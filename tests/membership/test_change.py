"""One change: what a leader asks, what followers promise, and what a later leader takes over."""

from __future__ import annotations

from flexgroup.membership.change import Attempt, Change
from flexgroup.membership.decision import Casts, Decision, Requested
from flexgroup.membership.effects import Drain, Freeze, SendTo
from flexgroup.membership.flush import DomainReport, Report
from flexgroup.membership.messages import (
    NO_BALLOT,
    Accept,
    Accepted,
    Ballot,
    Commit,
    ControlMessage,
    Overtaken,
    Prepare,
    Prepared,
)
from flexgroup.membership.operations import JoinGroup
from flexgroup.membership.outbox import Outbox


def decision(name: str, casts: Casts = (), ballot: Ballot = NO_BALLOT) -> Decision:
    """One that is told apart by what it does."""
    request = Requested(1, 1, JoinGroup("g", name, 1), None)
    return Decision(8, (request,), casts=casts, ballot=ballot)


def change_at(server: int) -> tuple[Change, Outbox]:
    """The change that follows configuration 7; what is sent to itself is sent like the rest."""
    outbox = Outbox("")
    return Change(server, 7, outbox), outbox


def follower() -> tuple[Change, Outbox]:
    return change_at(3)


def leader() -> tuple[Change, Outbox]:
    return change_at(1)


def sent(outbox: Outbox) -> list[tuple[int, ControlMessage]]:
    """What was sent since this was last asked."""
    return [
        (effect.server, effect.message) for effect in outbox.take() if isinstance(effect, SendTo)
    ]


def prepared(
    sender: int, ballot: Ballot, accepted: tuple[Ballot, Decision] | None = None
) -> Prepared:
    return Prepared(sender, 7, ballot, Report(), accepted)


def all_prepared(change: Change, *answers: Prepared) -> Attempt:
    """The attempt, when all have answered."""
    attempts = [change.on_prepared(answer) for answer in answers]
    assert attempts[:-1] == [None] * (len(answers) - 1)
    assert attempts[-1] is not None
    return attempts[-1]


def test_a_follower_answers_when_what_is_concerned_has_stopped() -> None:
    change, outbox = follower()
    change.on_prepare(Prepare(1, 7, (1, 1), (4,), (5,), (9,)))
    assert outbox.take() == [Freeze(8, (1, 1), (4,), (5,), (9,))]
    change.frozen((1, 1), Report())
    assert sent(outbox) == [(1, prepared(3, (1, 1)))]


def test_a_report_for_an_earlier_attempt_is_no_answer_to_a_later_one() -> None:
    change, outbox = follower()
    change.on_prepare(Prepare(1, 7, (1, 1)))
    change.on_prepare(Prepare(2, 7, (2, 2), (4,)))
    outbox.take()
    change.frozen((1, 1), Report())
    assert sent(outbox) == []


def test_a_follower_keeps_its_promise() -> None:
    change, outbox = follower()
    change.on_prepare(Prepare(2, 7, (2, 2)))
    sent(outbox)
    change.on_prepare(Prepare(1, 7, (1, 1)))
    assert not change.on_accept(Accept(1, 7, (1, 1), decision("late")))
    assert sent(outbox) == [(1, Overtaken(3, 7, (2, 2)))] * 2
    assert change.on_commit(Commit(1, 7, (1, 1))) is None


def test_a_follower_tells_a_new_leader_what_it_has_accepted() -> None:
    change, outbox = follower()
    assert change.on_accept(Accept(1, 7, (1, 1), decision("first")))
    change.on_prepare(Prepare(2, 7, (2, 2)))
    change.frozen((2, 2), Report())
    assert sent(outbox)[-1] == (2, prepared(3, (2, 2), ((1, 1), decision("first"))))


def test_a_decision_is_accepted_when_the_messages_are_delivered_that_it_waits_for() -> None:
    change, outbox = follower()
    waits = decision("joins", casts=((5, 1, 3),))
    change.on_accept(Accept(1, 7, (1, 1), waits))
    assert outbox.take() == [Drain(8, (1, 1), ((5, 1, 3),))]
    assert change.on_commit(Commit(1, 7, (1, 1))) is None
    change.drained((1, 1))
    assert sent(outbox) == [(1, Accepted(3, 7, (1, 1)))]
    assert change.on_commit(Commit(1, 7, (1, 1))) == waits


def test_what_was_accepted_once_waits_for_nothing_when_it_is_proposed_again() -> None:
    """Since then a domain may have been frozen, which delivers nothing more."""
    change, outbox = follower()
    waits = decision("joins", casts=((5, 1, 3),))
    change.on_accept(Accept(1, 7, (1, 1), waits))
    change.drained((1, 1))
    outbox.take()
    change.on_accept(Accept(2, 7, (2, 2), waits))
    assert outbox.take() == [SendTo(2, Accepted(3, 7, (2, 2)))]


def test_messages_that_arrive_when_another_attempt_has_begun_accept_nothing() -> None:
    change, outbox = follower()
    change.on_accept(Accept(1, 7, (1, 1), decision("joins", casts=((5, 1, 3),))))
    change.on_prepare(Prepare(2, 7, (2, 2)))
    outbox.take()
    change.drained((1, 1))
    assert outbox.take() == []


def test_a_server_that_lacks_messages_has_not_accepted_what_waits_for_them() -> None:
    change, _ = follower()
    waits = decision("joins", casts=((5, 1, 3),))
    change.on_accept(Accept(1, 7, (1, 1), waits))
    assert not change.has_accepted(waits)
    change.drained((1, 1))
    assert change.has_accepted(waits)


def test_a_commit_is_carried_out_by_whoever_has_accepted() -> None:
    change, _ = follower()
    assert change.on_commit(Commit(1, 7, (1, 1))) is None
    change.on_accept(Accept(1, 7, (1, 1), decision("first")))
    assert change.on_commit(Commit(1, 7, (1, 1))) == decision("first")


def test_a_leader_completes_what_was_accepted_last() -> None:
    change, outbox = leader()
    change.saw((4, 2), 0.0)
    change.begin((1, 2, 3), 0.0)
    ballot = (5, 1)
    attempt = all_prepared(
        change,
        prepared(1, ballot),
        prepared(2, ballot, ((4, 2), decision("last"))),
        prepared(3, ballot, ((1, 3), decision("first"))),
    )
    assert attempt.ballot == ballot
    assert attempt.accepted_before() == decision("last")
    sent(outbox)
    change.offer(attempt, decision("last"))
    assert sent(outbox) == [(to, Accept(1, 7, ballot, decision("last"))) for to in (1, 2, 3)]


def test_what_waits_for_messages_is_completed_only_if_all_had_accepted_it() -> None:
    """Those that had not may lack the messages for ever, and so nobody has committed it."""
    waits = decision("joins", casts=((5, 1, 3),), ballot=(1, 3))
    for all_had in (True, False):
        change, _ = leader()
        change.begin((1, 2), 0.0)
        accepted = ((1, 3), waits)
        attempt = all_prepared(
            change,
            prepared(1, (1, 1), accepted),
            prepared(2, (1, 1), accepted if all_had else None),
        )
        assert attempt.accepted_before() == (waits if all_had else None)


def test_what_was_proposed_again_to_those_who_had_accepted_it_may_be_completed_by_them() -> None:
    change, _ = leader()
    change.begin((1, 2, 3), 0.0)
    waits = decision("joins", casts=((5, 1, 3),), ballot=(3, 2))
    attempt = all_prepared(
        change,
        prepared(1, (1, 1), ((4, 2), waits)),
        prepared(2, (1, 1), ((3, 2), waits)),
        prepared(3, (1, 1)),
    )
    assert attempt.accepted_before() == waits
    assert attempt.lacking(waits) == (3,)


def test_a_leader_commits_when_the_whole_party_has_accepted() -> None:
    change, outbox = leader()
    change.begin((1, 2), 0.0)
    attempt = all_prepared(change, prepared(1, (1, 1)), prepared(2, (1, 1)))
    assert attempt.accepted_before() is None
    change.offer(attempt, decision("new"))
    assert change.on_accepted(Accepted(1, 7, (1, 1))) is None
    assert change.on_accepted(Accepted(2, 7, (1, 1))) == decision("new")
    assert sent(outbox)[-1] == (2, Commit(1, 7, (1, 1)))


def test_a_leader_hears_of_domains_that_were_frozen_for_another_attempt() -> None:
    change, _ = leader()
    change.begin((1, 2), 0.0)
    report = Report([DomainReport(4, [], ())])
    attempt = all_prepared(change, prepared(1, (1, 1)), Prepared(2, 7, (1, 1), report, None))
    assert attempt.frozen_somewhere() == {4}


def test_answers_to_an_earlier_attempt_do_not_count() -> None:
    change, _ = leader()
    change.begin((1, 2), 0.0)
    change.begin((1, 2), 1.0)
    change.on_prepared(prepared(1, (1, 1)))
    change.on_prepared(prepared(2, (1, 1)))
    assert change.attempt is not None
    assert change.attempt.missing() == (1, 2)


def test_what_is_not_answered_is_asked_again() -> None:
    change, outbox = leader()
    change.begin((1, 2), 0.0, hold_groups=(5,))
    change.on_prepared(prepared(1, (1, 1)))
    sent(outbox)
    change.repeat(0.2)
    assert sent(outbox) == [(2, Prepare(1, 7, (1, 1), hold_groups=(5,)))]


def test_a_server_that_stands_still_follows_no_one_of_a_lower_ballot() -> None:
    change, outbox = follower()
    change.suspend((4, 6))
    assert outbox.take() == [Freeze(8, (1, 3), (4, 6))]
    assert change.is_under_way
    change.on_prepare(Prepare(1, 7, (1, 1)))
    assert sent(outbox) == [(1, Overtaken(3, 7, (1, 3)))]


def test_a_server_that_stands_still_answers_a_higher_ballot_with_its_report() -> None:
    change, outbox = follower()
    change.suspend((4,))
    change.on_prepare(Prepare(1, 7, (2, 1)))
    assert outbox.take()[-1] == Freeze(8, (2, 1), ())
    change.frozen((2, 1), Report([DomainReport(4, [], ())]))
    assert sent(outbox) == [(1, Prepared(3, 7, (2, 1), Report([DomainReport(4, [], ())]), None))]


def test_a_server_that_follows_a_change_keeps_its_promise_when_it_stands_still() -> None:
    change, outbox = follower()
    change.on_prepare(Prepare(1, 7, (1, 1)))
    outbox.take()
    change.suspend((4,))
    assert outbox.take() == [Freeze(8, (1, 1), (4,))]
    assert change.promised == (1, 1)
