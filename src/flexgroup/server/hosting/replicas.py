"""The replicas at this server, one of each replicated domain that names it.

Servers are found by name: one that fails and comes back has another number in the configuration,
and the same replicas. Changes of the configuration tell whom to suspect, and stop nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from shutil import rmtree
from typing import final

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.message import MessageId
from flexgroup.core.varints import varints
from flexgroup.membership.configuration import Configuration, ReplicatedDomain
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.server.hosting.replica import Replica, recorded_steps, replica_name
from flexgroup.server.hosting.round import Round
from flexgroup.server.peers.links import REPLICAS, PeerLinks, head_of
from flexgroup.server.peers.replica_channel import LOST
from flexgroup.server.peers.stable_storage import StableStorage
from flexgroup.server.settings import ServerIdentity, Settings
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.network.envelope import Envelope
from flexgroup.worlds.network.layer_files import LayerFiles

log = logging.getLogger("flexgroup.server")

LOST_FRAME = varints([LOST])

Recording = Callable[[Configuration, ReplicatedDomain, int], Recorder | None]
"""Makes a recorder for a replica whose history is so many steps long, if a trace is wanted."""


@final
class Replicas:
    cast_waiting: Callable[[Replica, int], None]
    """Has multicast what waits for a replica."""
    delivered: Callable[[Replica, Iterable[MessageId]], None]
    """Is told that some of what a replica has multicast is delivered there."""
    give: Callable[[Envelope], None]
    """Gives members what is delivered."""
    lost: Callable[[Collection[int]], None]
    """Is told that nobody can be in these groups over this server any more."""

    def __init__(
        self,
        settings: Settings,
        identity: ServerIdentity,
        round: Round,
        links: PeerLinks,
        recording: Recording,
        hand_over: Callable[[Recorder], None],
        storage: StableStorage | None,
        silent: Callable[[], Collection[int]],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._round = round
        self._links = links
        self._recording = recording
        self._hand_over = hand_over
        """Takes what a replica has recorded."""
        self._storage = storage
        self._silent = silent
        """The numbers of the servers that are taken for failed."""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.hosted: dict[int, Replica] = {}
        """The replicas by the number of their domain."""
        self.of_group: dict[int, Replica] = {}
        """The same, by the numbers of all groups of the domain, of which each is in one."""
        self._opened: dict[int, LayerFiles] = {}
        """The files of replicas that are about to start, by the numbers of their domains."""
        self._lost: set[int] = set()
        """The domains whose replica at this server has nothing to start from any more."""
        self._numbers: dict[str, int] = {}
        """The numbers of the servers that are in the configuration, by name."""
        self._missed: dict[int, ReplicatedDomain] = {}
        """The domains, by number, of the configuration that this server had accepted when the
        others went on without it."""

    @property
    def server(self) -> str:
        """The name of this server."""
        return self._identity.name

    def _folder(self) -> Path | None:
        """Where replicas of this cluster keep what they store, if the server keeps data."""
        return None if self._storage is None else self._storage.replicas() / self._identity.cluster

    def open_files(self, configuration: Configuration) -> None:
        """Read what is stored of all replicas here before anything happens: with a file that cannot
        be used the server does not start, and has changed nothing."""
        root = self._folder()
        for entry in configuration.replicated:
            if root is not None and self._identity.name in entry.servers:
                folder = root / f"{entry.number:06}"
                if folder.exists():
                    self._opened[entry.number] = self._files(folder, entry)

    def _files(self, folder: Path, entry: ReplicatedDomain) -> LayerFiles:
        layers = parse_stack(entry.stack).layers
        owner = replica_name(self._identity.cluster, entry, self._identity.name)
        files = LayerFiles(folder, Codec(layers), layers, owner)
        if files.cut_off:
            told = {"folder": str(folder), "bytes": files.cut_off}
            log.warning("cut off", extra={"data": told})
        return files

    # Configurations.

    def install(self, before: Configuration, configuration: Configuration) -> None:
        """Go on in this configuration, which follows that one; without a number, that is none."""
        was_there = self._numbers
        self._numbers = {server.name: server.number for server in configuration.servers}
        going_on = {entry.number for entry in configuration.replicated}
        for number in [number for number in self.hosted if number not in going_on]:
            self._end(number)
        self._lost &= going_on
        for entry in configuration.replicated:
            replica = self.hosted.get(entry.number)
            if entry.number in self._lost:
                continue
            if replica is None and self._identity.name in entry.servers:
                is_new = bool(before.number) and entry.number >= before.next_domain
                has_missed = self._missed.get(entry.number) == entry
                self._begin(configuration, entry, is_new or has_missed)
            elif replica is not None:
                for process, name in enumerate(entry.servers):
                    if name in was_there and self._numbers.get(name) != was_there[name]:
                        replica.give_up(process)
        self._missed.clear()
        self._forget_files(configuration)
        self.look()

    def _begin(self, configuration: Configuration, entry: ReplicatedDomain, is_new: bool) -> None:
        """Begin with a domain that is created now, or was while this server was left out, or go on
        with what is stored of another; who has neither must not take part: it may have promised
        something and forgotten it."""
        plan = parse_stack(entry.stack)
        files: LayerFiles | None = None
        root = self._folder()
        if root is not None:
            folder = root / f"{entry.number:06}"
            if is_new or folder.exists():
                files = self._opened.pop(entry.number, None) or self._files(folder, entry)
        if not self._can_seal(plan, entry):
            if files is not None:
                files.close()
            self._lose(entry)
            return
        was_there = files is not None and files.was_there
        if (files is None and not is_new) or (was_there and not plan.starts_again):
            if files is not None:
                files.close()
            self._lose(entry)
            return
        # Who was not recorded from the beginning cannot be from here on: others may have got
        # packets of it, and nobody would find that it sent them.
        recorder: Recorder | None = None
        steps = recorded_steps(files)
        if files is None or steps or not files.was_there:
            recorder = self._recording(configuration, entry, steps)
        settings = self._settings
        replica = Replica(
            entry,
            self._identity.cluster,
            self._identity.name,
            settings.faults,
            recorder,
            settings.clock,
            files,
            settings.seals,
            settings.attack,
        )
        self.hosted[entry.number] = replica
        for group in entry.groups:
            self.of_group[group.number] = replica
        replica.start(self._round.now())
        self._round.request()

    def _can_seal(self, plan: StackPlan, entry: ReplicatedDomain) -> bool:
        """Whether this server has the keys that a domain needs; another one may have created it."""
        try:
            self._settings.check_seals(plan, entry.servers)
        except UsageError as error:
            log.error("no keys", extra={"data": {"domain": entry.number, "why": str(error)}})
            return False
        return True

    def _lose(self, entry: ReplicatedDomain) -> None:
        """The replica of a domain must not start again; members have to go to others."""
        self._lost.add(entry.number)
        if entry.number in self.hosted:
            self._end(entry.number)
        names = [group.name for group in entry.groups]
        log.warning("replica lost", extra={"data": {"domain": entry.number, "groups": names}})
        self.lost([group.number for group in entry.groups])

    def _start_again(self, replica: Replica) -> None:
        """Others have given this replica up. If its stack stores nothing, it has nothing to go on
        with: what it has in memory lacks what they did not keep for it."""
        if parse_stack(replica.entry.stack).starts_again:
            replica.restart(self._round.now())
        else:
            self._lose(replica.entry)

    def _end(self, number: int) -> None:
        """A replica takes no part any more."""
        replica = self.hosted.pop(number)
        for group in replica.entry.groups:
            self.of_group.pop(group.number, None)
        replica.close()

    def _forget_files(self, configuration: Configuration) -> None:
        """Keep the files of domains that there are, or that come later."""
        root = self._folder()
        if root is None or not root.exists():
            return
        going_on = {f"{entry.number:06}" for entry in configuration.replicated}
        following = f"{configuration.next_domain:06}"
        for folder in sorted(root.iterdir()):
            if folder.name not in going_on and folder.name < following:
                rmtree(folder, ignore_errors=True)

    def excluded(self, missed: Configuration | None) -> None:
        """The others go on without this server: they have given its replicas up, which start
        again from what they stored before they meet them again. With the domains that began in a
        configuration that it may have missed, it begins when it is admitted again."""
        self._numbers = {}
        if missed is not None:
            self._missed = {entry.number: entry for entry in missed.replicated}
        for replica in list(self.hosted.values()):
            self._start_again(replica)
        self.look()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for replica in self.hosted.values():
            replica.close()
        self.hosted.clear()
        self.of_group.clear()

    # Other servers.

    def look(self) -> None:
        """See who is there, and over which links; to be called every moment."""
        if not self.hosted:
            return
        silent = self._silent()
        now = self._round.now()
        for replica in self.hosted.values():
            suspected: list[int] = []
            for process, name in enumerate(replica.entry.servers):
                if process == replica.process:
                    continue
                number = self._numbers.get(name)
                if number is None or number in silent or replica.is_lost(process):
                    suspected.append(process)
                self._say(replica, process, self._meet(replica, process, number))
                self._say(replica, process, replica.got(process))
            replica.suspect_only(now, suspected)
            replica.is_later()
        self._round.request()

    def _meet(self, replica: Replica, process: int, number: int | None) -> list[bytes]:
        link = None if number is None else self._links.by_server.get(number)
        return replica.meet(process, 0 if link is None else link.number)

    def _say(self, replica: Replica, process: int, frames: list[bytes]) -> None:
        number = self._numbers.get(replica.entry.servers[process])
        if number is None or number not in self._links.by_server:
            return  # what is kept is sent when there is a link
        for frame in frames:
            self._links.gather(number, head_of(REPLICAS, replica.entry.number, 0), frame)

    def came(self, server: int, domain: int, data: bytes, at: int) -> None:
        """A server has sent something to the replica of a domain, which may not be there yet; then
        that says hello when it is, and is told again."""
        replica = self.hosted.get(domain)
        if replica is None:
            if domain in self._lost:
                self._links.gather(server, head_of(REPLICAS, domain, 0), LOST_FRAME)
            return
        names = replica.entry.servers
        for process, name in enumerate(names):
            if self._numbers.get(name) == server and process != replica.process:
                self._say(replica, process, self._meet(replica, process, server))
                self._say(replica, process, replica.came(self._round.began, process, data, at))
                if replica.given_up:
                    self._start_again(replica)
                    self.look()
                return
        for name, number in self._numbers.items():
            if number == server:
                raise PeerError(f"the server {name} has no replica of domain {domain}")

    # Rounds.

    def flush(self, now: int) -> None:
        """Multicast what clients have sent, and give members what is delivered. Where a trace is
        recorded, that is saved before; StorageError says that it cannot be."""
        earliest: int | None = None
        for replica in self.hosted.values():
            while True:
                self.cast_waiting(replica, now)
                envelopes = replica.take_delivered()
                if replica.recorder is not None:
                    replica.save(self._hand_over)
                for envelope in envelopes:
                    self.give(envelope)
                settled, replica.settled = replica.settled, []
                self.delivered(replica, settled)
                if not envelopes:
                    break
            end = replica.domain.earliest_timer()
            if end is not None and (earliest is None or end < earliest):
                earliest = end
        self._set_timer(earliest, now)

    def save(self) -> bool:
        """Save what has to be, send what waits for that, and return whether there was something;
        StorageError says that it cannot be saved."""
        has_saved = False
        for replica in self.hosted.values():
            if replica.must_save:
                has_saved = True
                replica.save(self._hand_over)
                for process, frame in replica.take_outgoing():
                    self._say(replica, process, [frame])
        return has_saved

    def _set_timer(self, earliest: int | None, now: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if earliest is not None:
            self._timer = self._loop.call_later(max(0, earliest - now) / 1000, self._end_timers)

    def _end_timers(self) -> None:
        self._timer = None
        for replica in self.hosted.values():
            replica.domain.end_timers(self._round.now())
        self._round.request()
