"""Clients that vanish while what they have asked for is on its way: nobody stays a member."""

from __future__ import annotations

import pytest

from flexgroup.client.connecting import connect
from flexgroup.client.group import Group
from flexgroup.membership.messages import ControlMessage, Propose
from flexgroup.membership.operations import CreateGroup, JoinGroup
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.network import Latency
from flexgroup.virtual.schedule import Schedule

STACK = "reliable atomic"


class Servers(Execution):
    """Servers that all run, without clients of a schedule."""

    def __init__(self) -> None:
        super().__init__(Schedule(1, STACK, 3, (), (), Latency(0.0002, 0.001), 2.0))
        self._begin()


@pytest.mark.parametrize("lost", [JoinGroup, CreateGroup])
def test_what_is_proposed_again_after_its_client_has_vanished(
    lost: type[JoinGroup] | type[CreateGroup],
) -> None:
    cluster = Servers()
    server = cluster.servers[2].server
    assert server is not None
    say = server.membership.say
    is_losing = True

    def lose_some(other: int, message: ControlMessage) -> None:
        is_lost = isinstance(message, Propose) and isinstance(message.operation, lost)
        if not (is_losing and is_lost):
            say(other, message)

    server.membership.say = lose_some

    async def ask() -> None:
        link = await connect(cluster.servers[2].address, name="ann")
        group = Group(link, "chat")
        await group.create(STACK, owner="ann")
        await group.join()

    person = cluster.process("m2", "ann")
    person.create_task(ask())
    cluster.world.run(cluster.world.now + 0.5)
    person.kill()
    cluster.world.run(cluster.world.now + 0.1)
    is_losing = False
    cluster.world.run(cluster.world.now + 2.0)
    (group,) = server.deployment.configuration.groups
    assert group.members == ()
    assert group.owner is None
    for process in cluster.processes:
        process.end()
