"""How groups come, change and go (sections 3.5.5 to 3.5.8 of the FlexGroup text)."""

from __future__ import annotations

import pytest

from flexgroup.membership import next_configuration
from flexgroup.membership.configuration import Configuration, GroupEntry, Server
from flexgroup.membership.decision import Decision, carried_out
from flexgroup.membership.next_configuration import NextConfiguration
from flexgroup.membership.operations import (
    AnyOperation,
    CreateGroup,
    CreateReplicated,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    LeaveServers,
    OpenLog,
    RemoveClient,
    SendFrom,
)

TWO = Configuration(1, (Server(1, "a", "a:1"), Server(2, "b", "b:1")), (), 3, 1)


def create(
    owner: str | None = None,
    allow: tuple[str, ...] | None = None,
    client: int | None = None,
) -> CreateGroup:
    return CreateGroup("g", "fifo", owner, True, allow, client)


def after(before: Configuration, *asked: tuple[int, AnyOperation]) -> Configuration:
    """All in one change, and nothing may fail."""
    following = NextConfiguration(before)
    for origin, operation in asked:
        assert following.apply(origin, operation, None) is None
    return following.finish()


def code(before: Configuration, operation: AnyOperation, origin: int = 1) -> str | None:
    error = NextConfiguration(before).apply(origin, operation, None)
    return None if error is None else error[0]


def group(configuration: Configuration) -> GroupEntry:
    (entry,) = configuration.groups
    return entry


def processes(configuration: Configuration) -> list[str]:
    return [member.process for member in group(configuration).members]


def test_a_new_group_has_no_members() -> None:
    following = after(TWO, (1, create()))
    assert following.number == 2
    assert group(following).members == ()
    assert group(following).view == 0


def test_a_name_is_given_once() -> None:
    assert code(after(TWO, (1, create())), create(), origin=2) == "exists"


def test_no_replicas_begin_at_a_server_in_the_change_that_admits_it() -> None:
    """It starts with the next configuration, and would take them for replicas that it has lost."""
    asked = CreateReplicated("leader paxos", (("g", ("a", "b", "c")),))
    following = NextConfiguration(TWO)
    following.admit(Server(3, "c", "c:1"))
    error = following.apply(1, asked, None)
    assert error is not None
    assert error[0] == "not-here"
    assert "'c'" in error[1]
    assert code(following.finish(), asked) is None


def test_of_two_that_create_it_at_once_one_succeeds() -> None:
    following = NextConfiguration(TWO)
    assert following.apply(1, create(), None) is None
    error = following.apply(2, create(), None)
    assert error is not None
    assert error[0] == "exists"


def test_members_are_listed_in_the_order_they_joined() -> None:
    joined = after(TWO, (1, create()), (2, JoinGroup("g", "z", 1)), (1, JoinGroup("g", "a", 1)))
    assert processes(joined) == ["z", "a"]
    assert group(joined).servers == (1, 2)


def test_joining_needs_a_group_a_free_name_and_permission() -> None:
    joined = after(TWO, (1, create(allow=("p", "q"))), (1, JoinGroup("g", "p", 1)))
    assert code(TWO, JoinGroup("g", "p", 1)) == "missing"
    assert code(joined, JoinGroup("g", "p", 2), origin=2) == "already-member"
    assert code(joined, JoinGroup("g", "r", 1)) == "not-allowed"
    assert code(joined, JoinGroup("g", "q", 1)) is None


def test_only_a_member_leaves() -> None:
    joined = after(TWO, (1, create()), (1, JoinGroup("g", "p", 1)))
    assert code(joined, LeaveGroup("x", "p", 1)) == "missing"
    assert code(joined, LeaveGroup("g", "q", 1)) == "not-member"
    assert code(joined, LeaveGroup("g", "p", 1), origin=2) == "not-member"
    assert processes(after(joined, (1, LeaveGroup("g", "p", 1)))) == []


def test_a_view_counts_the_changes_that_its_members_saw() -> None:
    joined = after(TWO, (1, create()), (1, JoinGroup("g", "p", 1)), (2, JoinGroup("g", "q", 1)))
    assert group(joined).view == 1
    assert group(after(joined)).view == 1
    assert group(after(joined, (1, LeaveGroup("g", "p", 1)))).view == 2


def test_only_the_owner_destroys() -> None:
    joined = after(TWO, (1, create(owner="p")), (1, JoinGroup("g", "p", 1)))
    assert code(joined, DestroyGroup("g", "q")) == "not-owner"
    assert after(joined, (1, DestroyGroup("g", "p"))).groups == ()


def test_without_owner_any_member_destroys() -> None:
    joined = after(TWO, (1, create()), (1, JoinGroup("g", "p", 1)))
    assert code(joined, DestroyGroup("g", "q")) == "not-member"
    assert code(joined, DestroyGroup("g", "p")) is None


def test_when_the_owner_has_left_there_is_none() -> None:
    """Section 3.3."""
    joined = after(
        TWO, (1, create(owner="p")), (1, JoinGroup("g", "p", 1)), (2, JoinGroup("g", "q", 1))
    )
    left = after(joined, (1, LeaveGroup("g", "p", 1)))
    assert group(left).owner is None
    assert code(left, DestroyGroup("g", "q"), origin=2) is None


@pytest.mark.parametrize("end", [RemoveClient(7), LeaveServers()], ids=["client", "server"])
def test_an_owner_that_ended_before_it_had_joined_owns_the_group_no_more(
    end: AnyOperation,
) -> None:
    """Section 3.5.5: if the owner ends or leaves, the group has none any more."""
    created = after(TWO, (1, create(owner="p", client=7)), (2, JoinGroup("g", "q", 1)))
    assert code(created, DestroyGroup("g", "q"), origin=2) == "not-owner"
    assert code(after(created, (1, end)), DestroyGroup("g", "q"), origin=2) is None


def test_an_owner_that_joined_over_another_connection_stays_the_owner() -> None:
    created = after(TWO, (1, create(owner="p", client=7)), (1, JoinGroup("g", "p", 8)))
    assert group(after(created, (1, RemoveClient(7)))).owner == "p"
    assert group(after(created, (1, RemoveClient(8)))).owner is None


def test_a_process_that_ends_leaves_what_others_own_alone() -> None:
    created = after(TWO, (1, create(owner="p", client=7)))
    assert group(after(created, (1, RemoveClient(8)), (2, RemoveClient(7)))).owner == "p"


def test_groups_and_the_lists_of_who_may_join_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_configuration, "MOST_NAMES", 2)
    assert code(TWO, create(allow=("p", "q", "r"))) == "too-many"
    some = after(TWO, (1, create(allow=("p", "q"))))
    another = CreateGroup("h", "fifo", None, True, None)
    assert code(some, another) is None
    monkeypatch.setattr(next_configuration, "MOST_GROUPS", 1)
    assert code(some, another) == "too-many"


def test_a_group_that_nobody_is_in_or_owns_is_destroyed_by_anybody() -> None:
    assert code(after(TWO, (1, create())), DestroyGroup("g", "p")) is None


def test_who_wanted_to_destroy_what_another_just_destroyed_has_succeeded() -> None:
    """Section 3.5.6: both get success. The number tells it was there when it was asked for."""
    created = after(TWO, (1, create()))
    destroyed = after(created, (1, DestroyGroup("g", "p")))
    following = NextConfiguration(destroyed)
    assert following.apply(2, DestroyGroup("g", "q"), group(created).number) is None
    assert code(destroyed, DestroyGroup("g", "q")) == "missing"


def test_a_late_wish_to_destroy_does_not_hit_a_new_group_of_that_name() -> None:
    created = after(TWO, (1, create()))
    again = after(after(created, (1, DestroyGroup("g", "p"))), (1, create()))
    following = NextConfiguration(again)
    assert following.apply(2, DestroyGroup("g", "q"), group(created).number) is None
    assert following.finish().groups == again.groups


def test_a_client_that_vanishes_leaves_all_groups() -> None:
    other = CreateGroup("h", "fifo", None, True, None)
    joined = after(
        TWO,
        (1, create()),
        (1, other),
        (1, JoinGroup("g", "p", 7)),
        (1, JoinGroup("h", "p", 7)),
        (2, JoinGroup("h", "q", 7)),
    )
    left = after(joined, (1, RemoveClient(7)))
    assert [[m.process for m in entry.members] for entry in left.groups] == [[], ["q"]]


def test_the_processes_of_a_server_leave_with_it_and_the_groups_stay() -> None:
    joined = after(TWO, (1, create(owner="p")), (2, JoinGroup("g", "p", 1)))
    left = after(joined, (2, LeaveServers()))
    assert [server.number for server in left.servers] == [1]
    assert group(left).members == ()
    assert group(left).owner is None
    assert group(left).view == 2


def test_numbers_of_groups_and_servers_are_never_used_again() -> None:
    created = after(TWO, (1, create()))
    again = after(after(created, (1, DestroyGroup("g", "p"))), (1, create()))
    assert group(again).number > group(created).number
    following = NextConfiguration(TWO)
    following.admit(Server(3, "c", "c:1"))
    following.without({3})
    assert following.finish().next_server == 4


def test_decisions_that_differ_in_who_has_come_back_lead_to_different_configurations() -> None:
    """What was asked about the same requests before does not stand for it."""
    joined = after(TWO, (1, create()), (2, JoinGroup("g", "p", 1)))
    unchanged, _ = carried_out(joined, Decision(3))
    without_processes, _ = carried_out(joined, Decision(3, restarted=((2, 1),)))
    assert (processes(unchanged), processes(without_processes)) == (["p"], [])


# Groups that keep their messages.

KEEPING = Configuration(
    1, (Server(1, "a", "a:1", True), Server(2, "b", "b:1"), Server(3, "c", "c:1", True)), (), 4, 1
)
KEPT = CreateGroup("g", "abcast safe", None, True, None, keep=10)


def test_all_servers_that_keep_data_keep_the_messages_of_a_group_that_asks_for_it() -> None:
    following = after(KEEPING, (2, KEPT))
    assert group(following).keepers == (1, 3)
    (domain,) = following.domains
    assert domain.servers == (1, 3)


def test_a_group_is_kept_only_where_more_than_half_of_the_servers_keep_data() -> None:
    assert code(TWO, KEPT) == "not-kept"


def test_nobody_is_given_kept_messages_of_a_group_that_keeps_none() -> None:
    """The server that was asked may not have known: the group is created at the same time."""
    following = NextConfiguration(TWO)
    assert following.apply(1, create(), None) is None
    error = following.apply(2, JoinGroup("g", "p", 1, wants_kept=True), None)
    assert error is not None
    assert error[0] == "not-kept"
    assert "join without since=" in error[1]


def test_nobody_joins_a_kept_group_or_sends_to_it_over_a_server_without_data() -> None:
    """Even if that is asked for while the group is being created, so that nobody knew."""
    for operation in (JoinGroup("g", "p", 1), SendFrom("g", True)):
        following = NextConfiguration(KEEPING)
        assert following.apply(1, KEPT, None) is None
        error = following.apply(2, operation, None)
        assert error is not None
        assert error[0] == "not-kept"
        assert "connect to one that does (a, c)" in error[1]
        assert [domain.servers for domain in following.finish().domains] == [(1, 3)]


def test_a_kept_group_has_a_domain_for_itself() -> None:
    other = CreateGroup("h", "abcast safe", None, True, None, keep=10)
    following = after(KEEPING, (1, KEPT), (1, other))
    assert len(following.domains) == 2


def test_who_comes_becomes_a_keeper_and_who_goes_ceases_to_be_one() -> None:
    before = after(KEEPING, (1, KEPT))
    following = NextConfiguration(before)
    following.without({3})
    following.admit(Server(4, "d", "d:1", True))
    following.admit(Server(5, "e", "e:1"))
    changed = following.finish()
    assert group(changed).keepers == (1, 4)
    assert [domain.servers for domain in changed.domains] == [(1, 4)]


def test_a_configuration_notes_for_which_domain_all_had_all_messages() -> None:
    before = after(KEEPING, (1, KEPT))
    (domain,) = before.domains
    following = after(before, (1, OpenLog("g", domain.number)))
    assert group(following).epoch == domain.number
    assert following.domains == before.domains


def test_that_is_refused_for_a_domain_that_is_over_and_for_groups_that_keep_nothing() -> None:
    before = after(KEEPING, (1, KEPT))
    assert code(before, OpenLog("g", 7)) == "busy"
    assert code(KEEPING, OpenLog("g", 1)) == "missing"
    assert code(after(KEEPING, (1, create())), OpenLog("g", 1)) == "busy"
