"""Who is at the address that a newcomer gives."""

from __future__ import annotations

import pytest

from flexgroup.membership.change import Change
from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.decision import Decision
from flexgroup.membership.effects import SendOn
from flexgroup.membership.leader import Leader
from flexgroup.membership.machine import Membership
from flexgroup.membership.messages import (
    Admitted,
    ControlMessage,
    Introduce,
    Introduced,
    NotAdmitted,
    Propose,
)
from flexgroup.membership.operations import Admit
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.suspicion import FailureDetector
from flexgroup.membership.timings import Timings

HERE = Server(1, "a", "a:1")
THERE = Server(2, "b", "b:1")


@pytest.mark.parametrize("is_heard", [False, True])
def test_who_is_at_the_address_of_a_newcomer_is_dead_unless_it_was_heard_since(
    is_heard: bool,
) -> None:
    """A server that asks twice is admitted once, and what it said to the other time is late."""
    timings = Timings()
    outbox = Outbox(HERE.address)
    outbox.number = HERE.number
    detector = FailureDetector(HERE.number, timings, 0.0)
    leader = Leader(HERE.number, timings, detector, outbox)
    configuration = Configuration(7, (HERE, THERE), (), next_server=3, next_group=1)
    detector.enter([1, 2], 0.0)
    leader.enter(configuration, Change(HERE.number, 7, outbox), Decision(7))
    leader.proposed(Propose(1, 7, 1, Admit(THERE.name, THERE.address, False), None))
    leader.lead(0.1)
    if is_heard:
        detector.heard(THERE.number, 0.2)
    leader.introduced(3, 0.3)
    assert detector.unheard_for(timings.patience, 0.3) == (() if is_heard else (THERE.number,))


def test_a_newcomer_is_reached_by_those_who_say_so_themselves() -> None:
    newcomer = Membership("c", "c:1", Timings())
    introduce = Introduce(HERE.number, 7, 3, (HERE.number,))
    for other in (None, THERE.number):
        newcomer.received(5, other, introduce, 0.0)
    assert newcomer.take_effects() == []
    newcomer.received(6, HERE.number, introduce, 0.1)
    assert newcomer.take_effects() == [SendOn(6, Introduced(3))]


ADMITTED = Configuration(8, (HERE, Server(2, "b", "b:1", attempt=77)), (), 3, 1)


@pytest.mark.parametrize("attempts", [(), (77,), (77, 78)])
@pytest.mark.parametrize(
    "answer",
    [NotAdmitted(77, "no"), Admitted(2, ADMITTED, Decision(8)), Admitted(3, ADMITTED, Decision(8))],
)
def test_only_an_answer_to_what_it_asked_last_lets_a_newcomer_in_or_turns_it_away(
    attempts: tuple[int, ...], answer: ControlMessage
) -> None:
    """Anybody can dial a server that is joining; what it asked with, only its contact knows."""
    newcomer = Membership("b", "b:1", Timings(), attempts=attempts)
    newcomer.received(5, None, answer, 0.1)
    is_answered = newcomer.ended or newcomer.configuration is not None
    is_to_it = not (isinstance(answer, Admitted) and answer.number == 3)
    assert is_answered == (attempts == (77,) and is_to_it)
