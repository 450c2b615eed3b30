"""Every schedule of a small system, for protocols whose packets only travel upwards.

In both forms of DCC a process sends only to higher ones. So every run is equal, for all who
take part, to one in which process 0 first handles everything that will ever reach it, then
process 1, and so on; and what a process can see is any merge of its incoming channels, each
in its own order. Enumerating those merges, process by process, enumerates all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flexgroup.core.codec import Codec
from flexgroup.core.host import Host, World
from flexgroup.core.journal import Transmission
from flexgroup.core.message import Message, MessageId, Packet, message_id
from flexgroup.core.precedence import is_acyclic
from flexgroup.core.state import fingerprint
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.testing.schedules import CYCLE, STUCK, System
from flexgroup.worlds.explorer import all_systems

Channels = dict[tuple[int, int], tuple[Packet, ...]]
Order = tuple[MessageId, ...]


def systems(processes: int, messages: int) -> Iterator[System]:
    """Every system of a size, as the explorer lists them."""
    for scope in all_systems.systems(processes, messages):
        yield System(processes, tuple(cast.destinations for cast in scope.casts))


class Upwards(World):
    """What was sent in one run so far, and what the process delivered that takes part now."""

    def __init__(self, size: int, channels: Channels, delivered: Order = ()) -> None:
        self.size = size
        self.channels = channels
        self.delivered = delivered

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        for target in to:
            assert target > host.process or host.process >= self.size, "a packet going down"
            channel = (host.process, target)
            self.channels[channel] = (*self.channels.get(channel, ()), transmission.packet)

    def on_deliver(self, host: Host, m: Message) -> None:
        self.delivered += (m.id,)


def every_run(plan: StackPlan, system: System) -> Iterator[tuple[Order, ...]]:
    """What each process delivers, for every run; runs that nobody can tell apart come once."""
    size, codec = system.processes, Codec(plan.layers)

    def host_of(process: int, world: World) -> Host:
        return Host(plan.build(process, size), world, codec)

    world = Upwards(size, {})
    for client, destinations in enumerate(system.messages, start=size):
        message = Message(message_id(client, 0), destinations, b"")
        host_of(client, world).cast(0, message)
    yield from _from_process(0, host_of, size, world.channels, ())


def outcomes(plan: StackPlan, system: System) -> set[str]:
    """The promises that some run breaks."""
    broken = set()
    wanted = sum(len(destinations) for destinations in system.messages)
    for orders in every_run(plan, system):
        if not is_acyclic([list(order) for order in orders]):
            broken.add(CYCLE)
        elif sum(map(len, orders)) < wanted:
            broken.add(STUCK)
    return broken


def _from_process(
    process: int,
    host_of: Callable[[int, World], Host],
    size: int,
    channels: Channels,
    orders: tuple[Order, ...],
) -> Iterator[tuple[Order, ...]]:
    if process == size:
        yield orders
        return
    inputs = [packets for (_, target), packets in channels.items() if target == process]
    senders = [source for (source, target) in channels if target == process]
    seen: set[tuple[bytes, tuple[int, ...], Order, tuple[object, ...]]] = set()
    world = Upwards(size, channels)
    waiting = [(host_of(process, world), world, (0,) * len(inputs))]
    while waiting:
        host, world, taken = waiting.pop()
        outputs = tuple(item for item in world.channels.items() if item[0][0] == process)
        key = (fingerprint(host.stack), taken, world.delivered, outputs)
        if key in seen:
            continue
        seen.add(key)
        more = [place for place, packets in enumerate(inputs) if taken[place] < len(packets)]
        if not more:
            found = (*orders, world.delivered)
            yield from _from_process(process + 1, host_of, size, world.channels, found)
        for place in more:
            twin = host.fork()
            twin.world = after = Upwards(size, dict(world.channels), world.delivered)
            twin.receive(0, senders[place], Transmission(inputs[place][taken[place]]))
            taken_now = (*taken[:place], taken[place] + 1, *taken[place + 1 :])
            waiting.append((twin, after, taken_now))
