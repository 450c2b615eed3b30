"""A cluster of memberships in virtual time: hosts, links that break, crashes, stops.

Everything random comes from one seed. Each host has the real domains, with a stack that delivers
what comes as it comes and repeats nothing, so servers differ when a change is due.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from flexgroup.membership.configuration import Configuration, GroupEntry
from flexgroup.membership.effects import (
    Answer,
    Connect,
    Disconnect,
    Drain,
    Effect,
    Excluded,
    Freeze,
    Install,
    Save,
    SendOn,
    SendTo,
)
from flexgroup.membership.flush import Report
from flexgroup.membership.machine import Membership
from flexgroup.membership.messages import Beat, ControlMessage, Introduced
from flexgroup.membership.operations import AnyOperation, LeaveServers
from flexgroup.membership.side_view import Origin
from flexgroup.membership.stable import AnyRecord, Snapshot, may_be_late, recovered
from flexgroup.membership.suspicion import NEVER, may_continue
from flexgroup.membership.timings import Timings
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.hosting.hosted_domain import HostedDomain
from flexgroup.worlds.network.envelope import Envelope
from flexgroup.worlds.network.faults import Faults

TICK = 0.1
REDIAL = 0.1
SHORTEST, LONGEST = 0.001, 0.03
STACK = "best-effort"


@dataclass(frozen=True)
class Packets:
    """What one server sends to another for a domain."""

    domain: int
    changed: int
    """The configuration in which a group of the domain has changed last, at the sender."""
    data: bytes


class Life:
    """One membership of a host: from its start to its exclusion."""

    def __init__(self, host: Host, contact: Host | None, origin: Origin | None = None) -> None:
        self.host = host
        self.link = len(host.cluster.lives)
        """The number under which all others know the link to it."""
        host.cluster.lives.append(self)
        cluster = host.cluster
        self.membership = Membership(
            host.name, host.name, cluster.timings, cluster.keeps_data, origin=origin
        )
        self.contact = contact
        self.contact_life = contact.life if contact is not None else None
        self.contact_is_cut = False
        self.wanted: dict[int, str] = {}
        self.dead = False
        self.installed: list[Configuration] = []
        self.deployment = Deployment(Faults(), lambda configuration, domain: None)
        self.delivered: dict[int, list[bytes]] = {}
        """By domain; what is left over at its end included."""
        self.sent: dict[int, list[bytes]] = {}
        self.ended_domains: set[int] = set()
        """The domains that it has taken to their end."""
        self.in_view: dict[tuple[int, int], list[bytes]] = {}
        """What was delivered, by group and view."""
        self.ahead: list[tuple[int, Packets]] = []
        self.is_installing = False
        """What came ahead of a configuration is delivered with it, even if it is late for that."""
        self.draining: Drain | None = None
        self.stopped_at = 0.0
        self.stood_still: list[float] = []
        """For how long it had stopped something, each time before it went on."""
        self.known_since: dict[int, float] = {}
        """When each server came into a configuration of this one."""
        self.waiting: dict[int, AnyOperation] = {}
        self.answers: dict[int, tuple[str, str] | None] = {}
        self.excluded: str | None = None
        self.to_be_saved: list[AnyRecord] = []
        """What is lost with the process, unless something else is saved before."""
        self.casts = 0
        self.leftovers = 0

    @property
    def is_member(self) -> bool:
        """As far as it knows."""
        return not self.dead and not self.membership.ended and bool(self.installed)

    @property
    def stands_still(self) -> bool:
        """It is a member, and has delivered nothing for longer than any change takes."""
        since = self.host.cluster.now - self.stopped_at
        patience = self.host.cluster.timings.patience
        return self.is_member and self.deployment.is_changing and since > patience

    def may_deliver(self) -> bool:
        """Whether enough others have told it that they do not go on without it before now."""
        cluster = self.host.cluster
        servers = [server.number for server in self.installed[-1].servers]
        me = self.membership.number
        party = [n for n in servers if n == me or cluster.now < self._is_not_missed_until(n)]
        return may_continue(party, servers, cluster.dead_servers())

    def _is_not_missed_until(self, number: int) -> float:
        """By another server, as far as that one has told."""
        cluster = self.host.cluster
        at_first = self.known_since[number] + cluster.timings.patience
        return max(at_first, cluster.promises.get((number, self.membership.number), NEVER))

    def request(self, operation: AnyOperation) -> int:
        ticket = self.membership.propose(operation, self.host.cluster.now)
        self.waiting[ticket] = operation
        self.host.do_effects(self)
        return ticket

    def all_delivered(self) -> list[bytes]:
        return [text for texts in self.delivered.values() for text in texts]

    def cast(self, group: str) -> None:
        """To the servers of the group's members, this one too if it is among them."""
        is_running = self.is_member and not self.host.is_stopped
        entry = self.deployment.group(group) if is_running else None
        hosted = self.deployment.domain_of.get(entry.number) if entry is not None else None
        if entry is None or hosted is None or self.deployment.is_stopped(hosted, (entry.number,)):
            return
        self.casts += 1
        text = f"{self.link}:{self.casts}".encode()
        self.host.cluster.destinations[text] = hosted.entry.number, entry
        self.sent.setdefault(hosted.entry.number, []).append(text)
        hosted.cast(self.milliseconds, (entry.number,), 1, text)
        self.pass_on(hosted)

    @property
    def milliseconds(self) -> int:
        return int(self.host.cluster.now * 1000)

    def take(self, sender: int, packets: Packets) -> None:
        hosted = self.deployment.hosted.get(packets.domain)
        if hosted is None:
            if self.deployment.is_ahead(packets.domain):
                self.ahead.append((sender, packets))
        elif packets.changed > hosted.changed:
            self.ahead.append((sender, packets))
        elif not hosted.is_frozen:
            process = hosted.process_of[sender]
            hosted.domain.receive(self.milliseconds, process, packets.data, 0)
            self.pass_on(hosted)

    def pass_on(self, hosted: HostedDomain) -> None:
        for envelope in hosted.take_delivered():
            is_allowed = hosted.entry.partitionable or self.is_installing or self.may_deliver()
            assert is_allowed, f"{self.host.name} delivers, and others may have gone on"
            self.deliver(envelope)
        for process, data in enumerate(hosted.domain.outgoing):
            if data:
                hosted.domain.outgoing[process] = bytearray()
                packets = Packets(hosted.entry.number, hosted.changed, bytes(data))
                self.host.carry(self, hosted.servers[process], packets)
        if self.draining is not None:
            self.see_whether_drained()

    def deliver(self, envelope: Envelope) -> None:
        text = envelope.contents
        domain, _ = self.host.cluster.destinations[text]
        self.delivered.setdefault(domain, []).append(text)
        for number, _ in envelope.groups:
            view = self.deployment.configuration.group_numbered[number].view
            self.in_view.setdefault((number, view), []).append(text)

    def see_whether_drained(self) -> None:
        effect = self.draining
        if effect is not None and self.deployment.is_drained(effect.casts):
            self.draining = None
            self.membership.drained(effect, self.host.cluster.now)
            self.host.do_effects(self)


class Host:
    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.life: Life | None = None
        self.lives: list[Life] = []
        self.is_stopped = False
        self.kept_for_later: list[Callable[[], None]] = []
        self.saved: list[AnyRecord] = []
        """The records on its disk, of which the first is a snapshot."""

    def start(self, contact: Host | None) -> None:
        """Found a cluster, or join it through the contact; who has something saved comes back."""
        self.life = self.new_life(contact)
        self.life.contact_is_cut = contact is not None and self.cluster.is_cut(self, contact)
        self.lives.append(self.life)
        if self.saved and contact is None:
            first, *since = self.saved
            assert isinstance(first, Snapshot)
            self.life.membership.restore(recovered(first, since), self.cluster.now)
        elif contact is None:
            self.life.membership.found(self.cluster.now)
        else:
            self.life.membership.join(self.cluster.now)
        self.do_effects(self.life)

    def new_life(self, contact: Host | None) -> Life:
        return Life(self, contact)

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
            case Save(Snapshot() as snapshot):
                self.saved, life.to_be_saved = [snapshot], []
            case Save() if may_be_late(effect.record):
                life.to_be_saved.append(effect.record)
            case Save():
                self.saved += [*life.to_be_saved, effect.record]
                life.to_be_saved = []
            case Freeze():
                if not life.deployment.is_changing:
                    life.stopped_at = cluster.now
                report = life.deployment.freeze(effect)
                cluster.later(0.0, lambda: self.run(life, lambda: self.froze(life, effect, report)))
            case Drain():
                life.draining = effect
                cluster.later(0.0, lambda: self.run(life, life.see_whether_drained))
            case Install():
                self.install(life, effect)
            case Answer():
                life.answers[effect.ticket] = effect.error
                if isinstance(life.waiting.get(effect.ticket), LeaveServers):
                    life.dead = life.dead or effect.error is None
            case Excluded():
                life.excluded = effect.reason
                cluster.later(0.5, lambda: self.start_again(life))

    def froze(self, life: Life, effect: Freeze, report: Report) -> None:
        life.membership.frozen(effect, report, self.cluster.now)

    def install(self, life: Life, effect: Install) -> None:
        deployment = life.deployment
        going_on = {domain.number for domain in effect.configuration.domains}
        life.ended_domains.update(set(deployment.hosted) - going_on)
        for envelope in deployment.finish(effect.configuration, effect.flush):
            life.deliver(envelope)
            life.leftovers += 1
        if life.installed and deployment.is_changing:
            life.stood_still.append(self.cluster.now - life.stopped_at)
        deployment.install(
            effect.configuration,
            effect.number,
            effect.casts,
            life.milliseconds,
            effect.is_restarted,
            effect.stands_still,
            effect.is_apart,
        )
        life.installed.append(effect.configuration)
        life.draining = None
        for server in effect.configuration.servers:
            life.known_since.setdefault(server.number, self.cluster.now)
        for group in effect.configuration.groups if not effect.is_restarted else ():
            life.in_view.setdefault((group.number, group.view), [])
        self.look()
        ahead, life.ahead = life.ahead, []
        life.is_installing = True
        for sender, packets in ahead:
            life.take(sender, packets)
        life.is_installing = False

    def look(self) -> None:
        """A configuration is installed, and nothing is delivered in it yet."""

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

    def carry(self, life: Life, number: int, what: ControlMessage | Packets) -> None:
        """To a server by its number, as its connection leads to it."""
        if isinstance(what, Beat):
            self.cluster.note(life, number, what)
        if number == life.membership.number:
            self.cluster.send(life, self, life, what)
        elif number in life.wanted:
            there = self.cluster.hosts[life.wanted[number]]
            self.cluster.send(life, there, there.life, what)


class Cluster:
    def __init__(self, seed: int, timings: Timings | None = None, keeps_data: bool = False) -> None:
        self.keeps_data = keeps_data
        """Whether hosts have disks, which outlive their processes."""
        self.random = Random(seed)
        self.timings = timings or Timings()
        self.now = 0.0
        self.hosts: dict[str, Host] = {}
        self.lives: list[Life] = []
        self.destinations: dict[bytes, tuple[int, GroupEntry]] = {}
        """The domain and the group, as it was, of everything that was multicast."""
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
        self.latency = SHORTEST, LONGEST
        self.promises: dict[tuple[int, int | None], float] = {}
        """Until when one server has promised another not to go on without it."""

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
        host = self.new_host(name)
        self.hosts[name] = host
        host.start(None if contact is None else self.hosts[contact])
        self._keep_running(host)
        return host

    def new_host(self, name: str) -> Host:
        return Host(self, name)

    def _keep_running(self, host: Host) -> None:
        life = host.life
        self.later(self.random.random() * TICK, lambda: self._tick(host, life))
        self.later(self.random.random() * REDIAL, lambda: self._redial(host, life))

    def restart(self, host: Host) -> None:
        """Start a host again whose process is dead; without data it joins as a new server."""
        life = host.life
        assert life is not None
        if life.dead:
            if host.saved:
                host.start(None)
            else:
                life.dead = False
                life.excluded = "started again"
                life.membership.ended = True
                host.start_again(life)
            self._keep_running(host)

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

    def _tick(self, host: Host, began: Life | None) -> None:
        life = host.life
        if life is None or life.dead or (began is not None and began.dead):
            return
        if not host.is_stopped:
            life.membership.tick(self.now)
            host.do_effects(life)
        self.later(TICK, lambda: self._tick(host, life))

    def _redial(self, host: Host, began: Life | None) -> None:
        """Whoever has a connection to a process that is dead finds out, if the network lets it."""
        life = host.life
        if life is None or life.dead or (began is not None and began.dead):
            return
        if not host.is_stopped:
            for number, address in list(life.wanted.items()):
                there = self.hosts[address]
                if not self.is_cut(host, there) and self._is_gone(there, number):
                    if there.life is None or there.life.dead:
                        life.membership.link_lost(number, True, self.now)
                    else:
                        life.membership.replaced(number, self.now)
                    host.do_effects(life)
            contact = life.contact_life
            if contact is not None and not life.installed:
                lost = contact.dead or contact.host.life is not contact
                if lost or life.contact_is_cut:
                    life.membership.contact_lost(self.now)
                    host.do_effects(life)
        self.later(REDIAL, lambda: self._redial(host, life))

    def _is_gone(self, host: Host, number: int) -> bool:
        life = host.life
        if life is None or life.dead:
            return True
        return self.former_lives_are_gone and life.membership.number not in (None, number)

    def dead_servers(self) -> set[int]:
        """The servers that never come back."""
        if self.keeps_data:
            return set()
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
        if host.life is not None and not host.life.dead:
            # A host that was stopped looks at the clock before anything else.
            host.life.membership.tick(self.now)
            host.do_effects(host.life)
        todo, host.kept_for_later = host.kept_for_later, []
        for action in todo:
            action()

    # Messages

    def note(self, sender: Life, receiver: int, beat: Beat) -> None:
        """What one server promises another in a beat, and that it keeps what it has promised."""
        pair = beat.sender, receiver
        until = beat.echo + beat.echoed_patience
        self.promises[pair] = max(self.promises.get(pair, NEVER), until)
        # Who is taken for dead is not missed for its silence.
        for missed in set(beat.silent) - sender.membership._detector.gone:
            until = self.promises.get((beat.sender, missed), NEVER)
            assert self.now >= until or not self._lives_on(missed), (
                f"server {beat.sender} misses {missed}, which relies on it until {until}"
            )

    def _lives_on(self, number: int) -> bool:
        """Whether this server has never been dead or excluded."""
        lives = [life for life in self.lives if life.membership.number == number]
        return len(lives) == 1 and lives[0].is_member

    def send(
        self,
        sender: Life,
        there: Host,
        life: Life | None,
        what: ControlMessage | Packets,
    ) -> None:
        """In order from host to host, unless the connection is cut when it is sent or arrives."""
        here = sender.host
        if self.is_cut(here, there) or life is None:
            return
        way = here.name, there.name
        arrival = max(self.now + self.random.uniform(*self.latency), self._arrival.get(way, 0.0))
        self._arrival[way] = arrival

        def arrive() -> None:
            if not self.is_cut(here, there) and not life.dead:
                there.run(life, lambda: self._hand_over(sender, life, what))

        self.later(arrival - self.now, arrive)

    def _hand_over(self, sender: Life, receiver: Life, what: ControlMessage | Packets) -> None:
        if isinstance(what, ControlMessage):
            number = sender.membership.number
            if isinstance(what, Introduced):
                number = what.number  # under which the newcomer was dialled
            receiver.membership.received(sender.link, number, what, self.now)
        elif receiver.is_member and sender.membership.number is not None:
            receiver.take(sender.membership.number, what)


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
    check_same_deliveries(cluster)
    check_same_in_a_view(cluster)


def check_same_deliveries(cluster: Cluster) -> None:
    """What one that goes on has delivered or sent, all destinations that go on have delivered."""
    for number in {domain for life in all_lives(cluster) for domain in life.ended_domains}:
        going_on = [life for life in all_lives(cluster) if number in life.ended_domains]
        delivered = {life: life.delivered.get(number, []) for life in going_on}
        sent = [life.sent.get(number, []) for life in going_on]
        for text in {t for texts in (*delivered.values(), *sent) for t in texts}:
            _, group = cluster.destinations[text]
            for life in going_on:
                if life.membership.number in group.servers:
                    assert delivered[life].count(text) == 1, (number, life.host.name, text)


def check_same_in_a_view(cluster: Cluster) -> None:
    """Servers that go on from one view of a group to the next have delivered the same in it."""
    servers_of = {
        (group.number, group.view): group.servers
        for life in all_lives(cluster)
        for configuration in life.installed
        for group in configuration.groups
    }
    for (group, view), servers in servers_of.items():
        both = [
            life
            for life in all_lives(cluster)
            if {(group, view), (group, view + 1)} <= life.in_view.keys()
            and life.membership.number in servers
        ]
        for life in both[1:]:
            one, other = sorted(life.in_view[group, view]), sorted(both[0].in_view[group, view])
            assert one == other, f"group {group} in view {view}: {one} and {other}"


def is_quiet(cluster: Cluster) -> bool:
    """All hosts that live are in one configuration of just them, and nothing is asked for."""
    lives = [host.life for host in cluster.hosts.values() if host.life and not host.life.dead]
    if not all(life.is_member and not life.deployment.is_changing for life in lives):
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
