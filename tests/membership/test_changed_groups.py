"""What a change has touched is known without a look at all other groups, and known rightly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from flexgroup.membership.configuration import Configuration, Server, changed_groups
from flexgroup.membership.next_configuration import NextConfiguration
from flexgroup.membership.operations import (
    AnyOperation,
    CreateGroup,
    DestroyGroup,
    JoinGroup,
    LeaveGroup,
    RemoveClient,
)

SERVERS = (Server(1, "a", "a:1"), Server(2, "b", "b:1"))

names = st.sampled_from("ghijk")
processes = st.sampled_from("xyz")


def to_create(name: str, partitionable: bool) -> CreateGroup:
    return CreateGroup(name, "fifo", None, True, None, None, partitionable=partitionable)


operations: st.SearchStrategy[AnyOperation] = st.one_of(
    st.builds(to_create, names, st.booleans()),
    st.builds(DestroyGroup, names, processes),
    st.builds(JoinGroup, names, processes, st.just(1)),
    st.builds(LeaveGroup, names, processes, st.just(1)),
    st.builds(RemoveClient, st.just(1)),
)
changes = st.lists(st.lists(st.tuples(st.sampled_from((1, 2)), operations), max_size=4))


@given(changes)
def test_it_is_as_if_all_groups_had_been_looked_at(
    asked: list[list[tuple[int, AnyOperation]]],
) -> None:
    before = Configuration(1, SERVERS, (), 3, 1)
    for change in asked:
        following = NextConfiguration(before)
        for origin, operation in change:
            following.apply(origin, operation, None)
        after = following.finish()
        fresh = msgpack.decode(msgpack.encode(after), type=Configuration)
        assert fresh == after
        assert list(after.groups) == sorted(after.groups, key=lambda group: group.number)
        assert after.group_named == fresh.group_named
        assert after.group_numbered == fresh.group_numbered
        assert after.partitionable == fresh.partitionable
        assert after.groups_in == fresh.groups_in
        assert all(list(groups) == sorted(groups) for groups in after.groups_in.values())
        assert after.shares == fresh.shares
        old, new = before.group_numbered, after.group_numbered
        differ = {
            (old.get(number), new.get(number))
            for number in old.keys() | new.keys()
            if old.get(number) is not new.get(number)
        }
        assert set(changed_groups(before, after)) == differ
        before = after
