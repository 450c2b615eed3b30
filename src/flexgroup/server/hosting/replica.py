"""One replica: the process of a replicated domain at this server.

Its stack survives crashes itself. So it is not stopped by changes of the configuration, nor flushed
with them. What its clients multicast it delivers as well, so that is what it confirms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final, final

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Suspect, Trust
from flexgroup.core.message import Message, MessageId, message_id
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.core.seals import Notary
from flexgroup.core.stack import Stack
from flexgroup.core.varints import Reader
from flexgroup.liars.named import with_liars
from flexgroup.membership.configuration import ReplicatedDomain
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.server.peers.replica_channel import DATA, GOT, HELLO, LOST, ReplicaChannel
from flexgroup.trace.recorder import Recorder
from flexgroup.wire.seals import SealKeys, ServerNotary
from flexgroup.worlds.network.domain import Domain
from flexgroup.worlds.network.envelope import Envelope, seal, unseal
from flexgroup.worlds.network.faults import Faults
from flexgroup.worlds.network.layer_files import LayerFiles

log = logging.getLogger("flexgroup.server")

# What it notes besides what its layers store.
INCARNATION: Final = 0
CASTS: Final = 1
NUMBERED: Final = 2
STEPS: Final = 3


@final
class Replica:
    def __init__(
        self,
        entry: ReplicatedDomain,
        cluster: str,
        server: str,
        faults: Faults,
        recorder: Recorder | None,
        clock: Callable[[], int],
        files: LayerFiles | None,
        seals: SealKeys | None = None,
        attack: str = "",
    ) -> None:
        self.entry = entry
        self.process = entry.servers.index(server)
        self.group = next(group for group in entry.groups if server in group.servers)
        """The group that it is a replica of."""
        self._plan = plan = parse_stack(entry.stack)
        self._partition = replicas_of_sizes([len(group.servers) for group in entry.groups])
        self._processes_of = {
            group.number: processes
            for group, processes in zip(entry.groups, self._partition, strict=True)
        }
        self._seals = seals
        self._attack = attack
        self._cluster = cluster
        self._files = files
        """Where it keeps what it must not forget; if nowhere, it does not come back."""
        self.recorder = recorder
        size = len(entry.servers)
        self.domain = Domain(
            self._build(),
            Codec(plan.layers),
            size,
            faults,
            recorder,
            clock,
            files,
            forgiving=plan.tolerates_liars,
        )
        self.promises = plan.promises(faults.channels())
        self._channels = self._new_channels()
        noted = {} if files is None else files.noted
        self.incarnation = noted.get(INCARNATION, 0) + 1
        """How often it has started."""
        self.given_up = 0
        """The incarnation that another replica has given up, if it is not an earlier one."""
        self.casts = noted.get(CASTS, 0)
        """How many envelopes it has multicast, in all incarnations."""
        self.numbered = noted.get(NUMBERED, 0)
        """How many messages the group was delivered, as all of its replicas count them."""
        self._own: dict[MessageId, Message] = {} if files is None else dict(files.casts)
        """What it has multicast and not delivered yet."""
        self.under_way_bytes = sum(map(_size, self._own.values()))
        self.settled: list[MessageId] = []
        """What it has multicast and delivered since somebody looked."""
        self.suspected: set[int] = set()
        self._has_delivered = False
        """Something was delivered since all was saved."""
        self.is_late = False
        """That was a while ago, so it is to be saved now."""

    def _build(self) -> Stack:
        notary: Notary | None = None
        if self._seals is not None and self._plan.needs_seals:
            told = (self._cluster, str(self.entry.number), self._plan.name, *self.entry.servers)
            where = "\0".join(told).encode()
            codec = Codec(self._plan.layers)
            notary = ServerNotary(self._seals, self.entry.servers, where, codec)

        def build(process: int) -> Stack:
            return self._plan.build(process, len(self.entry.servers), (), self._partition, notary)

        liars = ((self.process, self._attack),) if self._attack else ()
        return with_liars(build, liars)(self.process)

    def _new_channels(self) -> list[ReplicaChannel]:
        named = [replica_name(self._cluster, self.entry, name) for name in self.entry.servers]
        return [ReplicaChannel(named[self.process], other) for other in named]

    def start(self, now: int) -> None:
        """Start, with what is stored if there is something."""
        self.domain.start(now, recorded_steps(self._files))
        self._cast_again(now)
        self._note()
        self.domain.commit()  # others are told of the incarnation

    def restart(self, now: int) -> None:
        """Start again from what is stored, though the server has not failed: others have given up
        this incarnation, or one that comes later."""
        self.incarnation = max(self.incarnation, self.given_up) + 1
        self.given_up = 0
        self._channels = self._new_channels()
        self.suspected = set()
        self.domain.restart(now, self._build())
        self._cast_again(now)
        self._note()
        self.domain.commit()

    def _cast_again(self, now: int) -> None:
        """What was multicast and not delivered may have reached nobody."""
        for identity in sorted(self._own):
            if identity in self._own:
                self.domain.cast_again(now, self._own[identity])

    def close(self) -> None:
        if self._files is not None:
            self._files.close()

    # What clients send.

    def cast(self, now: int, groups: tuple[int, ...], count: int, contents: bytes) -> MessageId:
        """Multicast messages of clients; raises UsageError if the stack refuses them."""
        processes = [p for group in groups for p in self._processes_of[group]]
        payload = seal(tuple([(group, 0) for group in groups]), count, contents)
        m = Message(message_id(self.process, self.casts), tuple(sorted(processes)), payload)
        self.domain.cast(now, m)
        self.casts += 1
        self._own[m.id] = m
        self.under_way_bytes += len(payload)
        if self._files is not None:
            self._files.cast(m)
        return m.id

    @property
    def under_way(self) -> int:
        """How many envelopes it has multicast and not delivered."""
        return len(self._own)

    # What the stack delivers.

    def take_delivered(self) -> list[Envelope]:
        """What the stack has delivered since, opened, with the numbers of messages."""
        opened: list[Envelope] = []
        delivered, self.domain.delivered = self.domain.delivered, []
        for m in delivered:
            own = self._own.pop(m.id, None)
            if own is not None:
                self.under_way_bytes -= _size(own)
                self.settled.append(m.id)
                if self._files is not None:
                    self._files.given(m.id)
            try:
                envelope = unseal(_payload(m))
            except PeerError as error:
                # No replica can open it, so none delivers it.
                log.warning("dropped", extra={"data": {"reason": str(error)}})
                continue
            here = Envelope(((self.group.number, 0),), envelope.count, envelope.contents)
            here.number = self.numbered + 1
            self.numbered += envelope.count
            opened.append(here)
        if delivered:
            self._has_delivered = True
        return opened

    # What it must not forget.

    @property
    def must_save(self) -> bool:
        """Whether it is time to save: other replicas are to learn of something, or it is late.

        What was delivered may be told to members before that. If it is forgotten, it is delivered
        again, under the same numbers, to members that have joined since.
        """
        if self._files is not None and (self._files.is_urgent or self.is_late):
            return True
        return any(self.domain.outgoing)

    def is_later(self) -> None:
        """Some time has passed."""
        self.is_late = self._has_delivered

    def save(self, hand_over: Callable[[Recorder], None]) -> None:
        """Have everything on the disk that the process must not forget.

        What was recorded is handed over before that. So nothing is known to others, or remembered,
        that the trace lacks; what it has beyond, whoever starts again from the disk takes back.

        Raises StorageError if that is not possible; then nothing of it may be told to anybody.
        """
        if self.recorder is not None:
            hand_over(self.recorder)
        self._note()
        self.domain.commit()
        self._has_delivered = self.is_late = False

    def _note(self) -> None:
        if self._files is not None:
            self._files.note(INCARNATION, self.incarnation)
            self._files.note(CASTS, self.casts)
            self._files.note(NUMBERED, self.numbered)
            self._files.note(STEPS, self.domain.host.step)

    # Other replicas.

    def suspect_only(self, now: int, processes: Collection[int]) -> None:
        """Tell the stack whom to suspect from now on, where that has changed."""
        for process in range(len(self._channels)):
            is_suspected = process in processes and process != self.process
            if is_suspected and process not in self.suspected:
                self.suspected.add(process)
                self.domain.notice(now, Suspect(process))
            elif not is_suspected and process in self.suspected:
                self.suspected.discard(process)
                self.domain.notice(now, Trust(process))

    def give_up(self, process: int) -> None:
        """The server of another replica has left the others."""
        self._channels[process].give_up()

    def is_lost(self, process: int) -> bool:
        """Whether another replica was given up, and has not started again."""
        return self._channels[process].is_lost

    def meet(self, process: int, link: int) -> list[bytes]:
        """What is said first on the link to another replica, if that is new; 0: there is none."""
        channel = self._channels[process]
        if channel.link == link:
            return []
        channel.link = link
        channel.is_open = False
        return [channel.hello(self.incarnation)] if link else []

    def came(self, now: int, process: int, data: bytes, at: int) -> list[bytes]:
        """Another replica has sent this; what goes out to it. If that has given up this one, it
        notes so, and whoever hosts it has it start again."""
        channel = self._channels[process]
        reader = Reader(data, at, len(data))
        what = reader.varint()
        if what == HELLO:
            self.given_up, out = channel.said_hello(self.incarnation, reader)
            return out
        if what == DATA:
            if channel.came(self.incarnation, reader):
                self.domain.receive(now, process, data, reader.position)
        elif what == GOT:
            channel.told(self.incarnation, reader)
        elif what == LOST:
            channel.give_up()
        else:
            raise PeerError(f"a frame of kind {what} from a replica; kinds are 0 to 3")
        return []

    def take_outgoing(self) -> list[tuple[int, bytes]]:
        """What goes out when everything is saved, and to which process."""
        out: list[tuple[int, bytes]] = []
        outgoing = self.domain.outgoing
        for process, data in enumerate(outgoing):
            if data:
                sent = self._channels[process].send(self.incarnation, bytes(data))
                out += [(process, frame) for frame in sent]
                outgoing[process] = bytearray()
        return out

    def got(self, process: int) -> list[bytes]:
        """How much has come from another replica, if that is to be told."""
        return self._channels[process].got(self.incarnation)

    def kept_for(self, process: int) -> int:
        """How many bytes are kept until another replica has got them."""
        return self._channels[process].kept


def replica_name(cluster: str, entry: ReplicatedDomain, server: str) -> str:
    """What tells the replica at a server from all others, those of other clusters included: whose
    replica it is, in which partition, of which stack."""
    group = next(group for group in entry.groups if server in group.servers)
    partition = "; ".join(f"{one.name} at {', '.join(one.servers)}" for one in entry.groups)
    return (
        f"the replica of {group.name} at {server} in domain {entry.number} ({partition}) of "
        f"cluster {cluster} with the stack {entry.stack}"
    )


def recorded_steps(files: LayerFiles | None) -> int:
    """How long the history of a replica is that is recorded, as far as anybody else, or itself,
    knows of it; 0: it begins, or was not recorded."""
    return 0 if files is None else files.noted.get(STEPS, 0)


def _payload(m: Message) -> bytes:
    assert isinstance(m.payload, bytes)
    return m.payload


def _size(m: Message) -> int:
    return len(_payload(m))
