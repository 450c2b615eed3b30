"""A cluster whose members go on in every component of a network that parts, in virtual time."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from flexgroup.membership.configuration import NOBODY, SideId
from flexgroup.membership.effects import Effect, Excluded
from flexgroup.membership.operations import CreateGroup, JoinGroup, LeaveGroup
from flexgroup.worlds.network.envelope import Envelope

from .virtual_cluster import STACK, Cluster, Host, Life

GROUP = "chat"


class View(NamedTuple):
    """A view of the group, told apart from all others that there ever are.

    Its number and its members do not suffice for that. Where a server is in a side, the others may
    go on to a configuration which still has the members of that server, as they were known, and
    whose view follows the same one as that of the side does. Both have the same number. If those
    who leave with the configuration are those who are not there in the side, both have the same
    members, too, although nobody is in the first one. And where processes leave while the network
    parts, each of them may leave an empty view of the same number, in a side of its own.
    """

    number: int
    members: tuple[str, ...]
    side: SideId | None
    """The view of a side that it is part of; None if it is one of a configuration, since these have
    one sequence of views, and one of each number."""


class PartingLife(Life):
    host: PartingHost

    def deliver(self, envelope: Envelope) -> None:
        text = envelope.contents
        domain, _ = self.host.cluster.destinations[text]
        self.delivered.setdefault(domain, []).append(text)
        self.host.seen.append(text)


class PartingHost(Host):
    """A machine with one process, which stays connected when its server is excluded."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster, name)
        self.seen: list[View | bytes] = []
        """What its process saw of the group: views, and what was delivered in them."""

    @property
    def process(self) -> str:
        return f"p{self.name}"

    @property
    def views(self) -> list[View]:
        return [item for item in self.seen if isinstance(item, View)]

    @property
    def is_running(self) -> bool:
        return self.life is not None and not self.life.dead

    def texts(self) -> list[bytes]:
        return [item for item in self.seen if isinstance(item, bytes)]

    def new_life(self, contact: Host | None) -> Life:
        before = self.life
        origin = before.membership.origin if before is not None else None
        life = PartingLife(self, contact, origin)
        if before is not None and origin is not None:
            life.deployment = before.deployment
        return life

    def do(self, life: Life, effect: Effect) -> None:
        alone = effect.alone if isinstance(effect, Excluded) else None
        if alone is not None and not (life.dead or life.deployment.is_alone):
            life.deployment.part(alone)
        super().do(life, effect)

    def look(self) -> None:
        """Write down a view that is new to the process, the first one without it included."""
        assert self.life is not None
        group = self.life.deployment.group(GROUP)
        if group is not None:
            members = tuple(member.process for member in group.members)
            view = View(group.view, members, self._side(self.life))
            last = self.views[-1] if self.views else View(0, (), None)
            if self.process in (*view.members, *last.members) and last != view:
                self.seen.append(view)

    @staticmethod
    def _side(life: Life) -> SideId | None:
        """The view of a side that the partitionable groups are in, as they are installed. A server
        that was excluded without having been in a side brings a view of a configuration."""
        origin = life.membership._sides.origin
        assert (origin is not None) == life.deployment.is_of_side
        return None if origin is None or origin.view.id[1] == NOBODY else origin.view.id

    def join(self) -> None:
        if self.life is not None and self.life.is_member:
            self.life.request(JoinGroup(GROUP, self.process, 1))

    def leave(self) -> None:
        if self.life is not None and self.life.is_member:
            self.life.request(LeaveGroup(GROUP, self.process, 1))

    def cast(self) -> None:
        if self.life is not None:
            self.life.cast(GROUP)


class PartingCluster(Cluster):
    def new_host(self, name: str) -> Host:
        return PartingHost(self, name)

    @property
    def machines(self) -> list[PartingHost]:
        return [host for host in self.hosts.values() if isinstance(host, PartingHost)]

    def begin(self, size: int) -> None:
        """So many servers, and a partitionable group with a member at each."""
        self.start(size)
        first = self.machines[0].life
        assert first is not None
        first.request(CreateGroup(GROUP, STACK, None, True, None, partitionable=True))
        self.run(1.0)
        for machine in self.machines:
            machine.join()
        assert self.run_until(self.is_whole, 10.0)

    def divide(self, *sides: Collection[str]) -> None:
        """Nothing passes between these hosts any more, except on each side."""
        self.heal()
        for side in sides:
            self.part(set(side))

    def is_whole(self) -> bool:
        """Whether all that run are in one view, with all their processes, and nobody waits."""
        running = [machine for machine in self.machines if machine.is_running]
        lives = [machine.life for machine in running if machine.life is not None]
        if not all(life.is_member and not life.deployment.is_of_side for life in lives):
            return False
        if any(life.membership.stands_still or life.deployment.is_changing for life in lives):
            return False
        views = {machine.views[-1] for machine in running if machine.views}
        return (
            len({life.deployment.number for life in lives}) == 1
            and len(views) == 1
            and sorted(*(view.members for view in views)) == [m.process for m in running]
        )

    def check(self) -> None:
        """What holds at any time: who goes from one view to the next together has seen the same,
        also those who leave with it; all who are in a view know the same members; views follow each
        other by their numbers, and nothing is seen twice."""
        between: dict[tuple[View, View], tuple[str, list[bytes]]] = {}
        members_of: dict[tuple[int, SideId | None], tuple[str, ...]] = {}
        for machine in self.machines:
            assert len(set(machine.texts())) == len(machine.texts()), machine.name
            last: View | None = None
            texts: list[bytes] = []
            for item in machine.seen:
                if isinstance(item, bytes):
                    texts.append(item)
                    continue
                if machine.process in item.members:
                    members = members_of.setdefault((item.number, item.side), item.members)
                    assert members == item.members, (machine.name, item, members)
                if last is not None and machine.process in last.members:
                    is_later = item.number > last.number or machine.process not in item.members
                    assert is_later, (machine.name, last, item)
                    other = between.setdefault((last, item), (machine.name, sorted(texts)))
                    assert other[1] == sorted(texts), (last, item, machine.name, *other, texts)
                last, texts = item, []
