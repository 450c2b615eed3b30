"""A cluster of memberships in virtual time: hosts, links that break, crashes, stops.

Everything random comes from one seed. Each host has a tiny domain: what is cast to a group is
sent to the servers of its members and delivered as it comes, so servers differ at a change.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

from flexgroup.membership.configuration import Configuration
from flexgroup.membership.effects import (
    Answer,
    Connect,
    Disconnect,
    Effect,
    Excluded,
    Freeze,
    Install,
    SendOn,
    SendTo,
)
from flexgroup.membership.flush import DomainReport, Unstable
from flexgroup.membership.machine import Membership
from flexgroup.membership.messages import ControlMessage
from flexgroup.membership.operations import AnyOperation
from flexgroup.membership.suspicion import Timings, may_continue

TICK = 0.1
REDIAL = 0.1
SHORTEST, LONGEST = 0.001, 0.03
STACK = "fifo"


class Life:
    """One membership of a host: from its start to its exclusion."""

    def __init__(self, host: Host, contact: Host | None) -> None:
        self.host = host
        self.link = len(host.cluster.lives)
        """The number under which all others know the link to it."""
        host.cluster.lives.append(self)
        self.membership = Membership(host.name, host.name, host.cluster.timings)
        self.contact = contact
        self.contact_life = contact.life if contact is not None else None
        self.contact_is_cut = False
        self.wanted: dict[int, str] = {}
        self.dead = False
        self.installed: list[Configuration] = []
        self.delivered: dict[int, list[Unstable]] = {}
        """By configuration; what is left over at its end included."""
        self.sent: dict[int, list[Unstable]] = {}
        self.is_frozen = False
        self.frozen_at = 0.0
        self.stood_still: list[float] = []
        """For how long it was frozen, each time before it went on."""
        self.heard_at: dict[int, float] = {}
        """When each server was last heard of."""
        self.awake_since = 0.0
        self.waiting: dict[int, AnyOperation] = {}
        self.answers: dict[int, tuple[str, str] | None] = {}
        self.excluded: str | None = None
        self.casts = 0
        self.leftovers = 0

    @property
    def is_member(self) -> bool:
        """As far as it knows."""
        return not self.dead and not self.membership.ended and bool(self.installed)

    @property
    def stands_still(self) -> bool:
        """It is a member, and has delivered nothing for longer than any change takes."""
        since = self.host.cluster.now - self.frozen_at
        return self.is_member and self.is_frozen and since > self.host.cluster.timings.patience

    def may_deliver(self) -> bool:
        """Whether it has heard of enough others since they could have gone on without it."""
        cluster = self.host.cluster
        servers = [server.number for server in self.installed[-1].servers]
        lately = cluster.now - cluster.timings.patience
        heard = [
            number
            for number in servers
            if number == self.membership.number
            or max(self.heard_at.get(number, lately), self.awake_since) > lately
        ]
        return may_continue(heard, servers, cluster.dead_servers())

    def request(self, operation: AnyOperation) -> int:
        ticket = self.membership.propose(operation, self.host.cluster.now)
        self.waiting[ticket] = operation
        self.host.do_effects(self)
        return ticket

    def cast(self, group: str) -> None:
        """To the servers of the group's members, this one too if it is among them."""
        if not self.is_member or self.is_frozen:
            return
        configuration = self.installed[-1]
        me = self.membership.number
        assert me is not None
        for entry in configuration.groups:
            if entry.name == group:
                self.casts += 1
                kept = Unstable(me, self.casts, ((entry.number, self.casts),), b"")
                self.sent[configuration.number].append(kept)
                for number in entry.servers():
                    self.host.carry(self, number, (configuration.number, kept))

    def take(self, configuration: int, kept: Unstable) -> None:
        if self.is_member and not self.is_frozen and self.installed[-1].number == configuration:
            assert self.may_deliver(), f"{self.host.name} delivers, and others may have gone on"
            self.delivered[configuration].append(kept)


class Host:
    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.life: Life | None = None
        self.lives: list[Life] = []
        self.is_stopped = False
        self.kept_for_later: list[Callable[[], None]] = []

    def start(self, contact: Host | None) -> None:
        self.life = Life(self, contact)
        self.life.contact_is_cut = contact is not None and self.cluster.is_cut(self, contact)
        self.lives.append(self.life)
        if contact is None:
            self.life.membership.found(self.cluster.now)
        else:
            self.life.membership.join(self.cluster.now)
        self.do_effects(self.life)

    def run(self, life: Life, action: Callable[[], None]) -> None:
        """Now, or when the host goes on; not at all if that life is over."""
        if self.is_stopped:
            self.kept_for_later.append(lambda: self.run(life, action))
        elif self.life is life:
            action()
            self.do_effects(life)

    def do_effects(self, life: Life) -> None:
        while effects := life.membership.take_effects():
            for effect in effects:
                self.do(life, effect)
        if life.membership.ended and life.excluded is None:
            life.dead = True  # it has left in good order, and the process ends

    def do(self, life: Life, effect: Effect) -> None:
        cluster = self.cluster
        cluster.effects_done += 1
        if cluster.fault_at == cluster.effects_done:
            cluster.fault(self)
        if life.dead:
            return
        match effect:
            case SendTo():
                self.carry(life, effect.server, effect.message)
            case SendOn(None, message):
                assert life.contact is not None
                cluster.send(life, life.contact, life.contact_life, message)
            case SendOn(int(link), message):
                asker = cluster.lives[link]
                cluster.send(life, asker.host, asker, message)
            case Connect():
                life.wanted[effect.server.number] = effect.server.address
            case Disconnect():
                life.wanted.pop(effect.number, None)
            case Freeze():
                life.is_frozen = True
                life.frozen_at = cluster.now
                delivered = life.delivered[effect.change - 1]
                own = [kept for kept in life.sent[effect.change - 1] if kept not in delivered]
                report = [DomainReport(STACK, list(delivered), (), own)]
                cluster.later(0.0, lambda: self.run(life, lambda: self.froze(life, effect, report)))
            case Install():
                self.install(life, effect)
            case Answer():
                life.answers[effect.ticket] = effect.error
            case Excluded():
                life.excluded = effect.reason
                cluster.later(0.5, lambda: self.start_again(life))

    def froze(self, life: Life, effect: Freeze, report: list[DomainReport]) -> None:
        life.membership.frozen(effect.change, report, self.cluster.now)

    def install(self, life: Life, effect: Install) -> None:
        if life.installed:
            before = life.installed[-1]
            servers_of = {group.number: group.servers() for group in before.groups}
            has = {(kept.origin, kept.seq) for kept in life.delivered[before.number]}
            for flush in effect.flush:
                for kept in flush.messages:
                    is_mine = any(effect.number in servers_of[group] for group, _ in kept.groups)
                    if is_mine and (kept.origin, kept.seq) not in has:
                        life.delivered[before.number].append(kept)
                        life.leftovers += 1
        life.installed.append(effect.configuration)
        life.delivered[effect.configuration.number] = []
        life.sent[effect.configuration.number] = []
        if life.is_frozen:
            life.stood_still.append(self.cluster.now - life.frozen_at)
        life.is_frozen = False
        for server in effect.configuration.servers:
            life.heard_at.setdefault(server.number, self.cluster.now)

    def start_again(self, life: Life) -> None:
        """Join as a new server through anybody who runs."""
        if self.is_stopped:
            self.kept_for_later.append(lambda: self.start_again(life))
        elif self.life is life and not life.dead:
            others = [h for h in self.cluster.hosts.values() if h.life and h.life.is_member]
            if others:
                self.start(self.cluster.random.choice(others))
            else:
                self.cluster.later(0.5, lambda: self.start_again(life))

    def carry(self, life: Life, number: int, what: ControlMessage | tuple[int, Unstable]) -> None:
        """To a server by its number, as its connection leads to it."""
        if number == life.membership.number:
            self.cluster.send(life, self, life, what)
        elif number in life.wanted:
            there = self.cluster.hosts[life.wanted[number]]
            self.cluster.send(life, there, there.life, what)


class Cluster:
    def __init__(self, seed: int, timings: Timings | None = None) -> None:
        self.random = Random(seed)
        self.timings = timings or Timings()
        self.now = 0.0
        self.hosts: dict[str, Host] = {}
        self.lives: list[Life] = []
        self.cuts: set[frozenset[str]] = set()
        self.effects_done = 0
        self.former_lives_are_gone = True
        """Whether one learns at the address of an excluded server that it is another now."""
        self.fault_at: int | None = None
        """At which effect, counted from the beginning, the host that is to do it has a fault."""
        self.fault: Callable[[Host], None] = self.crash
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._arrival: dict[tuple[str, str], float] = {}

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (self.now + seconds, self._sequence, action))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        self.now = end

    def run_until(self, condition: Callable[[], bool], at_most: float) -> bool:
        end = self.now + at_most
        while not condition():
            if not self._queue or self._queue[0][0] > end:
                return False
            self.now, _, action = heapq.heappop(self._queue)
            action()
        return True

    # Hosts

    def add(self, name: str, contact: str | None) -> Host:
        host = Host(self, name)
        self.hosts[name] = host
        host.start(None if contact is None else self.hosts[contact])
        self.later(self.random.random() * TICK, lambda: self._tick(host))
        self.later(self.random.random() * REDIAL, lambda: self._redial(host))
        return host

    def start(self, size: int) -> None:
        """So many servers, all in one configuration."""
        self.add("a", None)
        for name in "bcdefghij"[: size - 1]:
            self.add(name, "a")
        assert self.run_until(
            lambda: all(c and len(c.servers) == size for c in self.configurations()), 10
        )

    def configurations(self) -> list[Configuration | None]:
        """The one that each host has now."""
        return [
            life.installed[-1] if life.is_member else None
            for life in (host.life for host in self.hosts.values())
            if life is not None and not life.dead
        ]

    def _tick(self, host: Host) -> None:
        life = host.life
        if life is None or life.dead:
            return
        if not host.is_stopped:
            life.membership.tick(self.now)
            host.do_effects(life)
        self.later(TICK, lambda: self._tick(host))

    def _redial(self, host: Host) -> None:
        """Whoever has a connection to a process that is dead finds out, if the network lets it."""
        life = host.life
        if life is None or life.dead:
            return
        if not host.is_stopped:
            for number, address in list(life.wanted.items()):
                there = self.hosts[address]
                if not self.is_cut(host, there) and self._is_gone(there, number):
                    life.membership.link_lost(number, True, self.now)
                    host.do_effects(life)
            contact = life.contact_life
            if contact is not None and not life.installed:
                lost = contact.dead or contact.host.life is not contact
                if lost or life.contact_is_cut:
                    life.membership.contact_lost(self.now)
                    host.do_effects(life)
        self.later(REDIAL, lambda: self._redial(host))

    def _is_gone(self, host: Host, number: int) -> bool:
        life = host.life
        if life is None or life.dead:
            return True
        return self.former_lives_are_gone and life.membership.number not in (None, number)

    def dead_servers(self) -> set[int]:
        return {
            life.membership.number for life in self.lives if life.dead and life.membership.number
        }

    # Faults

    def is_cut(self, one: Host, other: Host) -> bool:
        return frozenset((one.name, other.name)) in self.cuts

    def cut(self, one: str, other: str) -> None:
        self.cuts.add(frozenset((one, other)))
        for here, there in ((one, other), (other, one)):
            life = self.hosts[here].life
            if life is not None and life.contact is self.hosts[there]:
                life.contact_is_cut = True

    def part(self, side: set[str]) -> None:
        """A partition between these hosts and all others."""
        for one in side:
            for other in set(self.hosts) - side:
                self.cut(one, other)

    def isolate(self, host: Host) -> None:
        self.part({host.name})

    def cut_all(self) -> None:
        """Nobody reaches anybody any more."""
        for host in list(self.hosts.values()):
            self.isolate(host)

    def heal(self) -> None:
        self.cuts.clear()

    def crash(self, host: Host) -> None:
        if host.life is not None:
            host.life.dead = True
        host.is_stopped = False
        host.kept_for_later.clear()

    def stop(self, host: Host) -> None:
        if host.life is not None and not host.life.dead:
            host.is_stopped = True

    def go_on(self, host: Host) -> None:
        host.is_stopped = False
        if host.life is not None:
            host.life.awake_since = self.now
        todo, host.kept_for_later = host.kept_for_later, []
        for action in todo:
            action()

    # Messages

    def send(
        self,
        sender: Life,
        there: Host,
        life: Life | None,
        what: ControlMessage | tuple[int, Unstable],
    ) -> None:
        """In order from host to host, unless the connection is cut when it is sent or arrives."""
        here = sender.host
        if self.is_cut(here, there) or life is None:
            return
        way = here.name, there.name
        arrival = max(
            self.now + self.random.uniform(SHORTEST, LONGEST), self._arrival.get(way, 0.0)
        )
        self._arrival[way] = arrival

        def arrive() -> None:
            if not self.is_cut(here, there) and not life.dead:
                there.run(life, lambda: self._hand_over(sender, life, what))

        self.later(arrival - self.now, arrive)

    def _hand_over(
        self, sender: Life, receiver: Life, what: ControlMessage | tuple[int, Unstable]
    ) -> None:
        if isinstance(what, ControlMessage):
            number = sender.membership.number
            if number is not None:
                receiver.heard_at[number] = self.now
            known = receiver.installed and any(
                server.number == number for server in receiver.installed[-1].servers
            )
            receiver.membership.received(sender.link, number if known else None, what, self.now)
        else:
            receiver.take(*what)


def members(cluster: Cluster) -> list[Life]:
    """All lives that are part of the group of servers now, as far as they know."""
    lives = (host.life for host in cluster.hosts.values())
    return [life for life in lives if life is not None and life.is_member]


def all_lives(cluster: Cluster) -> list[Life]:
    return [life for host in cluster.hosts.values() for life in host.lives]


def check_always(cluster: Cluster) -> None:
    """What holds at any time, in any schedule."""
    by_number: dict[int, Configuration] = {}
    for life in all_lives(cluster):
        for configuration in life.installed:
            assert by_number.setdefault(configuration.number, configuration) == configuration, (
                f"two configurations {configuration.number}: "
                f"{by_number[configuration.number]} and {configuration}"
            )
        numbers = [configuration.number for configuration in life.installed]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
    check_same_deliveries(cluster, by_number)


def check_same_deliveries(cluster: Cluster, by_number: dict[int, Configuration]) -> None:
    """What one that goes on has delivered or sent, all destinations that go on have delivered."""
    for number, configuration in by_number.items():
        took_both = [
            life
            for life in all_lives(cluster)
            if {number, number + 1} <= {installed.number for installed in life.installed}
        ]
        servers_of = {group.number: group.servers() for group in configuration.groups}
        delivered = {life: life.delivered[number] for life in took_both}
        sent = [life.sent[number] for life in took_both]
        for kept in {k for messages in (*delivered.values(), *sent) for k in messages}:
            for life in took_both:
                if any(life.membership.number in servers_of[group] for group, _ in kept.groups):
                    assert delivered[life].count(kept) == 1, (number, life.host.name, kept)


def is_quiet(cluster: Cluster) -> bool:
    """All hosts that live are in one configuration of just them, and nothing is asked for."""
    lives = [host.life for host in cluster.hosts.values() if host.life and not host.life.dead]
    if not all(life.is_member for life in lives):
        return False
    configurations = {life.installed[-1].number for life in lives}
    numbers = sorted(life.membership.number or 0 for life in lives)
    return (
        len(configurations) == 1
        and [server.number for server in lives[0].installed[-1].servers] == numbers
        and all(set(life.waiting) <= set(life.answers) for life in lives)
    )


def is_lost(cluster: Cluster) -> bool:
    """Too many servers of the last configuration are dead for the others to go on."""
    running = members(cluster)
    if not running:
        return True
    newest = max((life.installed[-1] for life in running), key=lambda c: c.number)
    servers = [server.number for server in newest.servers]
    alive = [life.membership.number for life in running if life.membership.number in servers]
    return not may_continue([n for n in alive if n is not None], servers, ())
