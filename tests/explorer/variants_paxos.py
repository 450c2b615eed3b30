"""Variants of Paxos, and of the leader oracle below it, with one of their ideas taken out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flexgroup.core.layer import Leader
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan, parse_stack
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from .variant_parts import Case, loaded_anew

NOBODY = -1


def replicated(*origins: int, fifo: bool = True, **bounds: int) -> Scope:
    """Three replicas, and messages by these processes to all of them."""
    casts = tuple(PlannedCast(origin, (0, 1, 2)) for origin in origins)
    return Scope(3, casts, fifo, bounds=Bounds(**bounds), replicas=replicas_of_sizes([3]))


def on_an_oracle(paxos: Any) -> StackPlan:
    return StackPlan.of(PROTOCOLS["leader"], Protocol("variant", paxos.Paxos, "", ""))


def below_paxos(leader: Any) -> StackPlan:
    return StackPlan.of(Protocol("variant", leader.LeaderOracle, "", ""), PROTOCOLS["paxos"])


# Quorums.


def paxos_that_prepares_with_one_promise_too_few() -> StackPlan:
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.check_promises

    def check_promises(self: Any, leading: Any) -> None:
        leading.promises.add(NOBODY)
        careful(self, leading)

    paxos.Paxos.check_promises = check_promises
    return on_an_oracle(paxos)


def paxos_that_chooses_with_one_vote_too_few() -> StackPlan:
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.check_accepts

    def check_accepts(self: Any, leading: Any, slot: int) -> None:
        leading.accepts[slot].add(NOBODY)
        careful(self, leading, slot)

    paxos.Paxos.check_accepts = check_accepts
    return on_an_oracle(paxos)


# Ballots.


def paxos_that_accepts_whatever_it_promised() -> StackPlan:
    """A leader that was deposed has batches chosen beside those of its successor."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.on_accept

    def on_accept(self: Any, sender: int, packet: Any) -> None:
        promised = self.promised
        self.promised = min(promised, packet.ballot)
        careful(self, sender, packet)
        self.promised = max(promised, self.promised)

    paxos.Paxos.on_accept = on_accept
    return on_an_oracle(paxos)


def paxos_without_phase_1() -> StackPlan:
    paxos = loaded_anew("paxos")

    def prepare(self: Any) -> None:
        self.promised = paxos.next_ballot(self.promised, self.process)
        self.leading = paxos.Leading(self.ledger.next, is_prepared=True)
        self.propose()

    paxos.Paxos.prepare = prepare
    return on_an_oracle(paxos)


# Phase 1.


def paxos_that_takes_the_first_report() -> StackPlan:
    """Not that of the highest ballot: it may be one that was never chosen."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.on_promise

    def on_promise(self: Any, sender: int, packet: Any) -> None:
        before = dict(self.leading.reported) if self.leading is not None else {}
        votes, messages, start = [], [], 0
        for place in range(0, len(packet.votes), 3):
            slot, _, count = packet.votes[place : place + 3]
            if slot not in before:
                votes += packet.votes[place : place + 3]
                messages += packet.messages[start : start + count]
            start += count
        careful(self, sender, paxos.Promise(packet.ballot, tuple(votes), tuple(messages)))

    paxos.Paxos.on_promise = on_promise
    return on_an_oracle(paxos)


def paxos_that_merges_promised_and_accepted() -> StackPlan:
    """A vote is reported under the highest ballot that its voter has promised since."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.follow

    def follow(self: Any, ballot: int) -> None:
        if ballot > self.promised:
            for vote in self.ledger.votes.values():
                vote.ballot = ballot
        careful(self, ballot)

    paxos.Paxos.follow = follow
    return on_an_oracle(paxos)


def paxos_without_no_ops() -> StackPlan:
    """What is chosen beyond a hole is never delivered."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.begin_ballot

    def begin_ballot(self: Any, leading: Any, slot: int, messages: Any) -> None:
        if messages:
            careful(self, leading, slot, messages)
        else:
            self.vote(self.promised, slot, messages)

    paxos.Paxos.begin_ballot = begin_ballot
    return on_an_oracle(paxos)


def paxos_that_proposes_again_only_what_it_lacks() -> StackPlan:
    """What the new leader learnt during phase 1, others may lack for ever."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.check_promises

    def check_promises(self: Any, leading: Any) -> None:
        leading.free = max(leading.free, self.ledger.next)
        careful(self, leading)

    paxos.Paxos.check_promises = check_promises
    return on_an_oracle(paxos)


def paxos_that_does_not_ask() -> StackPlan:
    paxos = loaded_anew("paxos")
    paxos.Paxos.on_ask = lambda self, sender, packet: None
    return on_an_oracle(paxos)


# Learning, and requests.


def paxos_that_delivers_any_vote_for_a_chosen_slot() -> StackPlan:
    """Though the vote is for what was proposed in an earlier ballot."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.on_chosen
    paxos.Paxos.on_chosen = lambda self, ballot, slot: careful(self, 0, slot)
    return on_an_oracle(paxos)


def paxos_that_delivers_whatever_is_chosen() -> StackPlan:
    """A message that two leaders had chosen for two slots is delivered twice."""
    paxos = loaded_anew("paxos", "ledger", "leading")

    def take_next(self: Any) -> Any:
        self.next += 1
        return self.votes[self.next - 1].messages

    paxos.Ledger.take_next = take_next
    return on_an_oracle(paxos)


def paxos_that_does_not_submit_again() -> StackPlan:
    paxos = loaded_anew("paxos")
    paxos.Paxos.submit_again = lambda self: None
    return on_an_oracle(paxos)


# The oracle.


def leader_for_ever() -> StackPlan:
    leader = loaded_anew("leader")
    leader.LeaderOracle.trust_only = lambda self, members: None
    return below_paxos(leader)


def leader_that_never_names_itself() -> StackPlan:
    """Each of two that are left waits for the other."""
    leader = loaded_anew("leader")

    def trust_only(self: Any, members: list[int]) -> None:
        others = tuple([j for j in members if j != self.process])
        self.pass_on(Leader(others[0], others))

    leader.LeaderOracle.trust_only = trust_only
    return below_paxos(leader)


def leader_that_tells_only_of_another_one() -> StackPlan:
    """Who is led by a process that was wrongly preferred never learns that it crashed."""
    leader = loaded_anew("leader")
    careful = leader.LeaderOracle.trust_only

    def trust_only(self: Any, members: list[int]) -> None:
        if min([*members, self.process]) != self.trusted[0]:
            careful(self, members)

    leader.LeaderOracle.trust_only = trust_only
    return below_paxos(leader)


# Stable storage.


def paxos_that_answers_before_it_writes() -> StackPlan:
    """A vote that counts is lost if its voter crashes before something else happens to it."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.on_packet
    write = paxos.Paxos.write

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        for slot, vote in sorted(self.ledger.votes.items()):
            write(self, slot, paxos.Accepting(vote.ballot, vote.messages))
        careful(self, sender, packet)

    paxos.Paxos.on_packet = on_packet
    paxos.Paxos.write = lambda self, number, packet: None
    return on_an_oracle(paxos)


def paxos_that_does_not_save_promises() -> StackPlan:
    """Who starts again votes in a ballot that it promised not to take part in."""
    paxos = loaded_anew("paxos")
    paxos.Paxos.save = lambda self, packet: None
    return on_an_oracle(paxos)


def paxos_that_does_not_write_votes() -> StackPlan:
    """Who starts again does not report what may be chosen."""
    paxos = loaded_anew("paxos")
    paxos.Paxos.write = lambda self, number, packet: None
    return on_an_oracle(paxos)


def paxos_that_leads_on_in_its_old_ballot() -> StackPlan:
    """A leader that starts again proposes a second batch for a slot in the same ballot."""
    paxos = loaded_anew("paxos")

    def prepare(self: Any) -> None:
        self.leading = paxos.Leading(self.ledger.next, is_prepared=True)

    careful = paxos.Paxos.on_restart

    def on_restart(self: Any, stored: Any) -> None:
        new_ballot = paxos.Paxos.prepare
        paxos.Paxos.prepare = prepare
        careful(self, stored)
        paxos.Paxos.prepare = new_ballot

    paxos.Paxos.on_restart = on_restart
    return on_an_oracle(paxos)


def paxos_that_delivers_again() -> StackPlan:
    """Though the application remembers what it was given."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.on_restart

    def on_restart(self: Any, stored: Any) -> None:
        stored.delivered = 0
        careful(self, stored)

    paxos.Paxos.on_restart = on_restart
    return on_an_oracle(paxos)


def paxos_that_cuts_the_log_without_what_was_delivered() -> StackPlan:
    """A message that two leaders had chosen for two slots is delivered twice if the first of them
    is cut off."""
    paxos = loaded_anew("paxos", "ledger", "leading")
    paxos.CUT = 1
    careful = paxos.Ledger.promised

    def promised(self: Any, ballot: int) -> Any:
        whole = careful(self, ballot)
        return paxos.Promised(whole.ballot, whole.recent, 0, (), ())

    paxos.Ledger.promised = promised
    return on_an_oracle(paxos)


def paxos_that_does_not_tell_of_requests() -> StackPlan:
    """Who starts again, and leads, does not know what clients have asked for."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.on_restarted

    def on_restarted(self: Any, sender: int) -> None:
        pending, self.pending = self.pending, {}
        careful(self, sender)
        self.pending = pending

    paxos.Paxos.on_restarted = on_restarted
    return on_an_oracle(paxos)


def paxos_that_sends_again_only_what_it_has_not_learnt() -> StackPlan:
    """Others wait for a majority in this ballot for a slot that was chosen in an earlier one."""
    paxos = loaded_anew("paxos")
    careful = paxos.Paxos.on_restarted

    def on_restarted(self: Any, sender: int) -> None:
        accepts = {} if self.leading is None else self.leading.accepts
        learnt = {slot: accepts.pop(slot) for slot in sorted(accepts) if slot < self.ledger.next}
        careful(self, sender)
        accepts.update(learnt)

    paxos.Paxos.on_restarted = on_restarted
    return on_an_oracle(paxos)


def paxos_that_starts_again_silently() -> StackPlan:
    """What was sent to it while it was down, it never gets."""
    paxos = loaded_anew("paxos")
    paxos.Paxos.on_restarted = lambda self, sender: None
    return on_an_oracle(paxos)


LEADER_CRASHES = replace(replicated(2, crashes=1), crashing=(0,))
TWO_RACE = replace(replicated(0, 1, crashes=1), crashing=(0,))
WRONGLY_DEPOSED = replace(
    replicated(2, crashes=1, suspicions=1), crashing=(1,), suspecting=((1, 0),)
)
"""Process 1 suspects 0 wrongly, leads, and crashes."""

CASES = [
    Case(paxos_that_prepares_with_one_promise_too_few, "paxos", TWO_RACE, "prefix order"),
    Case(paxos_that_chooses_with_one_vote_too_few, "paxos", TWO_RACE, "prefix order"),
    Case(paxos_without_phase_1, "paxos", TWO_RACE, "prefix order"),
    Case(paxos_that_accepts_whatever_it_promised, "paxos", LEADER_CRASHES, "uniform agreement"),
    Case(paxos_that_proposes_again_only_what_it_lacks, "paxos", LEADER_CRASHES,
         "uniform agreement"),
    Case(paxos_that_does_not_ask, "paxos", LEADER_CRASHES, "uniform agreement"),
    Case(paxos_that_does_not_submit_again, "paxos", LEADER_CRASHES, "validity"),
    Case(leader_for_ever, "leader", LEADER_CRASHES, "validity"),
    Case(leader_that_never_names_itself, "leader", LEADER_CRASHES, "validity"),
    Case(leader_that_tells_only_of_another_one, "leader", WRONGLY_DEPOSED, "validity"),
]  # fmt: skip

TWO_LEADERS = replace(replicated(0, 1, suspicions=1), suspecting=((1, 0),))
THREE_BALLOTS = replace(
    replicated(0, 1, crashes=1, suspicions=1), crashing=(1,), suspecting=((1, 0),)
)
HOLES = replace(replicated(0, 1, fifo=False, crashes=1), crashing=(0,))

DEEP_CASES = [
    Case(paxos_that_delivers_whatever_is_chosen, "paxos", TWO_LEADERS, "integrity"),
    Case(paxos_that_delivers_any_vote_for_a_chosen_slot, "paxos", THREE_BALLOTS, "prefix order"),
    Case(paxos_that_merges_promised_and_accepted, "paxos", THREE_BALLOTS, "prefix order"),
    Case(paxos_that_takes_the_first_report, "paxos", THREE_BALLOTS, "prefix order"),
    Case(paxos_without_no_ops, "paxos", HOLES, "validity"),
]
"""Variants that show only in scopes that take a minute to exhaust."""

FOLLOWER_RESTARTS = replace(replicated(1, crashes=1, restarts=1), crashing=(2,))
LEADER_RESTARTS = replace(replicated(0, 0, crashes=1, restarts=1), crashing=(0,))
VOTER_RESTARTS = replace(
    replicated(0, 1, crashes=1, suspicions=1, restarts=1), crashing=(2,), suspecting=((1, 0),)
)
"""Process 1 deposes 0, and 2, whom both need, starts again."""

RESTART_CASES = [
    Case(paxos_that_answers_before_it_writes, "paxos", VOTER_RESTARTS, "prefix order"),
    Case(paxos_that_does_not_save_promises, "paxos", VOTER_RESTARTS, "prefix order"),
    Case(paxos_that_does_not_write_votes, "paxos", VOTER_RESTARTS, "integrity"),
    Case(paxos_that_leads_on_in_its_old_ballot, "paxos", LEADER_RESTARTS, "prefix order"),
    Case(paxos_that_delivers_again, "paxos", FOLLOWER_RESTARTS, "integrity"),
    Case(paxos_that_starts_again_silently, "paxos", FOLLOWER_RESTARTS, "uniform agreement"),
]
"""Variants that show only where processes start again."""

RESTART_VARIANTS = [
    *[case.variant for case in RESTART_CASES],
    paxos_that_cuts_the_log_without_what_was_delivered,
    paxos_that_does_not_tell_of_requests,
]

LEFT_ALONE = {"paxos": parse_stack("leader paxos"), "leader": parse_stack("leader paxos")}
"""The stacks of which variants replace a layer."""
