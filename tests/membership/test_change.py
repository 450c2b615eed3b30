"""One change: what a leader asks, what followers promise, and what a later leader takes over."""

from __future__ import annotations

from flexgroup.membership.change import Change
from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.effects import Freeze, Outbox, SendTo
from flexgroup.membership.flush import DomainReport
from flexgroup.membership.messages import (
    Accept,
    Accepted,
    Ballot,
    Commit,
    ControlMessage,
    Decision,
    Overtaken,
    Prepare,
    Prepared,
)


def decision(name: str) -> Decision:
    return Decision(Configuration(8, (Server(1, name, ""),), (), 4, 1), [], [])


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


def refuse_to_compose(reports: dict[int, list[DomainReport]]) -> Decision:
    raise AssertionError("a decision was accepted before")


def prepared(
    sender: int, ballot: Ballot, accepted: tuple[Ballot, Decision] | None = None
) -> Prepared:
    return Prepared(sender, 7, ballot, [], accepted)


def test_a_follower_answers_when_its_domains_are_frozen() -> None:
    change, outbox = follower()
    change.on_prepare(Prepare(1, 7, (1, 1)))
    assert sent(outbox) == []
    change.frozen([])
    assert sent(outbox) == [(1, prepared(3, (1, 1)))]


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
    change.on_prepare(Prepare(1, 7, (1, 1)))
    change.frozen([])
    assert change.on_accept(Accept(1, 7, (1, 1), decision("first")))
    change.on_prepare(Prepare(2, 7, (2, 2)))
    assert sent(outbox)[-1] == (2, prepared(3, (2, 2), ((1, 1), decision("first"))))


def test_a_commit_is_carried_out_by_whoever_has_accepted() -> None:
    change, _ = follower()
    assert change.on_commit(Commit(1, 7, (1, 1))) is None
    change.on_accept(Accept(1, 7, (1, 1), decision("first")))
    assert change.on_commit(Commit(1, 7, (1, 1))) == decision("first")


def test_a_leader_completes_what_was_accepted_last() -> None:
    change, outbox = leader()
    change.saw((4, 2), 0.0)
    change.begin((1, 2, 3), 0.0)
    assert change.attempt is not None
    ballot = change.attempt.ballot
    assert ballot == (5, 1)
    change.on_prepared(prepared(1, ballot), refuse_to_compose)
    change.on_prepared(prepared(2, ballot, ((4, 2), decision("last"))), refuse_to_compose)
    sent(outbox)
    change.on_prepared(prepared(3, ballot, ((1, 3), decision("first"))), refuse_to_compose)
    assert sent(outbox) == [(to, Accept(1, 7, ballot, decision("last"))) for to in (1, 2, 3)]


def test_a_leader_commits_when_the_whole_party_has_accepted() -> None:
    change, outbox = leader()
    change.begin((1, 2), 0.0)
    change.on_prepared(prepared(1, (1, 1)), lambda reports: decision("new"))
    change.on_prepared(prepared(2, (1, 1)), lambda reports: decision("new"))
    assert change.on_accepted(Accepted(1, 7, (1, 1))) is None
    assert change.on_accepted(Accepted(2, 7, (1, 1))) == decision("new")
    assert sent(outbox)[-1] == (2, Commit(1, 7, (1, 1)))


def test_answers_to_an_earlier_attempt_do_not_count() -> None:
    change, _ = leader()
    change.begin((1, 2), 0.0)
    change.begin((1, 2), 1.0)
    change.on_prepared(prepared(1, (1, 1)), refuse_to_compose)
    change.on_prepared(prepared(2, (1, 1)), refuse_to_compose)
    assert change.attempt is not None
    assert change.attempt.missing() == (1, 2)


def test_what_is_not_answered_is_asked_again() -> None:
    change, outbox = leader()
    change.begin((1, 2), 0.0)
    change.on_prepared(prepared(1, (1, 1)), refuse_to_compose)
    sent(outbox)
    change.repeat(0.2)
    assert sent(outbox) == [(2, Prepare(1, 7, (1, 1)))]


def test_a_server_that_stands_still_asks_once_to_be_frozen_and_follows_no_one() -> None:
    change, outbox = follower()
    change.suspend()
    change.suspend()
    assert outbox.take() == [Freeze(8)]
    assert change.is_under_way
    change.on_prepare(Prepare(1, 7, (1, 1)))
    assert sent(outbox) == [(1, Overtaken(3, 7, (1, 3)))]


def test_a_server_that_stands_still_answers_a_higher_ballot_with_its_report() -> None:
    change, outbox = follower()
    change.suspend()
    change.frozen([])
    outbox.take()
    change.on_prepare(Prepare(1, 7, (2, 1)))
    assert sent(outbox) == [(1, prepared(3, (2, 1)))]


def test_a_server_that_follows_a_change_stands_still_already() -> None:
    change, outbox = follower()
    change.on_prepare(Prepare(1, 7, (1, 1)))
    change.frozen([])
    outbox.take()
    change.suspend()
    assert outbox.take() == []
    assert change.promised == (1, 1)
