"""Every schedule of a small system, for protocols whose packets only travel upwards.

In both forms of DCC a process sends only to higher ones. So every run is equal, for all who
take part, to one in which process 0 first handles everything that will ever reach it, then
process 1, and so on; and what a process can see is any merge of its incoming channels, each
in its own order. Enumerating those merges, process by process, enumerates all runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from flexgroup.core.layer import Deliver, Send
from flexgroup.core.message import Message, MessageId, Packet, message_id
from flexgroup.core.precedence import is_acyclic
from flexgroup.core.stack import Stack
from flexgroup.core.state import fingerprint, fork
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.testing.schedules import CYCLE, STUCK, System
from flexgroup.worlds.explorer import all_systems

Channels = dict[tuple[int, int], tuple[Packet, ...]]
Orders = tuple[tuple[MessageId, ...], ...]


def systems(processes: int, messages: int) -> Iterator[System]:
    """Every system of a size, as the explorer lists them."""
    for scope in all_systems.systems(processes, messages):
        yield System(processes, tuple(cast.destinations for cast in scope.casts))


def every_run(plan: StackPlan, system: System) -> Iterator[Orders]:
    """What each process delivers, for every run; runs that nobody can tell apart come once."""
    channels: Channels = {}
    for number, destinations in enumerate(system.messages):
        client = system.processes + number
        stack = plan.build(client, system.processes)
        stack.cast(Message(message_id(client, 0), destinations, b""))
        _perform(client, stack, channels)
    yield from _from_process(0, plan, system.processes, channels, ())


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
    process: int, plan: StackPlan, size: int, channels: Channels, orders: Orders
) -> Iterator[Orders]:
    if process == size:
        yield orders
        return
    inputs = [packets for (_, target), packets in channels.items() if target == process]
    senders = [source for (source, target) in channels if target == process]
    seen: set[tuple[bytes, tuple[int, ...], tuple[MessageId, ...], tuple[object, ...]]] = set()
    start = (plan.build(process, size), (0,) * len(inputs), (), channels)
    waiting: list[tuple[Stack, tuple[int, ...], tuple[MessageId, ...], Channels]] = [start]
    while waiting:
        stack, taken, delivered, sent = waiting.pop()
        outputs = tuple(item for item in sent.items() if item[0][0] == process)
        key = (fingerprint(stack), taken, delivered, outputs)
        if key in seen:
            continue
        seen.add(key)
        more = [place for place, packets in enumerate(inputs) if taken[place] < len(packets)]
        if not more:
            yield from _from_process(process + 1, plan, size, sent, (*orders, delivered))
        for place in more:
            twin, after = fork(stack), dict(sent)
            twin.receive(senders[place], inputs[place][taken[place]])
            delivered_now = _perform(process, twin, after)
            taken_now = (*taken[:place], taken[place] + 1, *taken[place + 1 :])
            waiting.append((twin, taken_now, delivered + delivered_now, after))


def _perform(process: int, stack: Stack, channels: Channels) -> tuple[MessageId, ...]:
    """Put what the stack sends into the channels; what it delivers."""
    delivered: list[MessageId] = []
    for effect in stack.take_effects():
        if isinstance(effect, Send):
            for target in effect.to:
                assert target > process or process >= stack.layers[0].size, "a packet going down"
                before = channels.get((process, target), ())
                channels[process, target] = (*before, effect.packet)
        elif isinstance(effect, Deliver):
            delivered.append(effect.message.id)
    return tuple(delivered)
