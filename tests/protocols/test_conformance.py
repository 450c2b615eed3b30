"""What every layer must do to be hosted: be copied, be told the same twice, speak the wire.

All protocols of the catalogue are tested alike, each over the channels it needs. A stack that
is under way comes from a random schedule that is stopped in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.guarantees import Guarantee
from flexgroup.core.layer import (
    CancelTimer,
    Deliver,
    Effect,
    Layer,
    Record,
    Save,
    Send,
    SetTimer,
    Suspect,
    Trust,
)
from flexgroup.core.message import (
    ID,
    INT,
    INTS,
    MESSAGE,
    NO_MESSAGE,
    STAMP,
    TEXT,
    Message,
    Packet,
    message_id,
    stamp,
)
from flexgroup.core.stack import Stack
from flexgroup.core.state import fingerprint, fork, state_names
from flexgroup.protocols.catalogue import PROTOCOLS, StackPlan, parse_stack
from flexgroup.testing.bench import Bench

STACKS = [*PROTOCOLS, "dcc/rv", "dcc-published/rv", "fifo dcc", "fifo skeen", "reliable causal"]

SIZE = 4

every_stack = pytest.mark.parametrize("name", STACKS)

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def needs_fifo(plan: StackPlan) -> bool:
    return Guarantee.FIFO in plan.layers[0].NEEDS


def cast_some(bench: Bench, random: Random) -> None:
    """Ten multicasts by processes and, if they may, by clients; payloads of different lengths."""
    for number in range(10):
        to = tuple(sorted(random.sample(range(SIZE), random.randint(1, SIZE))))
        origin = random.choice((SIZE, SIZE + 1, random.randrange(SIZE)))
        if bench.plan.closed:
            origin %= SIZE
        bench.cast(origin, to, bytes([number]) * random.choice((0, 1, 200)))


def move(bench: Bench, random: Random) -> tuple[int, int, Packet]:
    """Let any packet arrive that may be next."""
    source, target = random.choice(sorted(bench.channels))
    length = len(bench.channels[source, target])
    place = 0 if needs_fifo(bench.plan) else random.randrange(length)
    return source, target, bench.deliver(source, target, place)


def end_some_timer(bench: Bench, random: Random) -> tuple[int, int, str] | None:
    """Let a timer run out now and then, if one is set."""
    running = sorted((p, *timer) for p, timers in bench.timers.items() for timer in timers)
    if not running or random.random() < 0.7:
        return None
    process, level, name = random.choice(running)
    bench.end_timer(process, level, name)
    return process, level, name


def under_way(plan: StackPlan, seed: int) -> tuple[Bench, Random]:
    """A bench in the middle of things."""
    random = Random(seed)
    bench = Bench(plan, SIZE)
    cast_some(bench, random)
    for _ in range(random.randint(5, 15)):
        move(bench, random)
        end_some_timer(bench, random)
    return bench, random


def told(effect: Effect) -> object:
    """An effect as something that can be compared."""
    if isinstance(effect, Send):
        return "send", effect.to, effect.packet
    if isinstance(effect, Deliver):
        return "deliver", effect.message
    if isinstance(effect, SetTimer):
        return "timer", effect.level, effect.name, effect.ticks
    if isinstance(effect, CancelTimer):
        return "cancel", effect.level, effect.name
    if isinstance(effect, Save):
        return "save", effect.level, effect.value
    if isinstance(effect, Suspect | Trust):
        return type(effect).__name__, effect.process
    raise AssertionError(f"no protocol asks for {type(effect).__name__} yet: compare it here")


def arrivals_at(bench: Bench, process: int, random: Random) -> list[tuple[int, Packet | str]]:
    """What arrives at a process from now on, to be told to another stack as well.

    Packets with their sender, and timers by level and name.
    """
    arrived: list[tuple[int, Packet | str]] = []
    while bench.channels:
        source, target, packet = move(bench, random)
        if target == process:
            arrived.append((source, packet))
        ended = end_some_timer(bench, random)
        if ended is not None and ended[0] == process:
            arrived.append(ended[1:])
    return arrived


def drive(stack: Stack, arrivals: list[tuple[int, Packet | str]]) -> list[object]:
    asked: list[object] = []
    for origin, what in arrivals:
        if isinstance(what, Packet):
            stack.receive(origin, what)
        else:
            stack.timer(origin, what)
        asked += [told(effect) for effect in stack.take_effects()]
    return asked


# Rule 2 of the core: forkable.


@every_stack
@pytest.mark.parametrize("seed", range(5))
def test_a_fork_shares_nothing_with_the_original(name: str, seed: int) -> None:
    bench, random = under_way(parse_stack(name), seed)
    twins = [fork(bench.stacks[process]) for process in range(SIZE)]
    before = [fingerprint(twin) for twin in twins]
    assert before == [fingerprint(bench.stacks[process]) for process in range(SIZE)]
    moved = 0
    while bench.channels:
        move(bench, random)
        moved += 1
    assert [fingerprint(twin) for twin in twins] == before
    assert moved > 0
    after = [fingerprint(bench.stacks[process]) for process in range(SIZE)]
    # The first has no state, and the detectors none that messages change.
    if name not in ("best-effort", "vcube-detector", "heartbeat"):
        assert after != before


@every_stack
@pytest.mark.parametrize("seed", range(5))
def test_a_fork_goes_on_as_the_original_does(name: str, seed: int) -> None:
    bench, random = under_way(parse_stack(name), seed)
    one, other = fork(bench.stacks[2]), fork(bench.stacks[2])
    arrivals = arrivals_at(bench, 2, random)
    assert drive(one, arrivals) == drive(other, arrivals)
    assert fingerprint(one) == fingerprint(other) == fingerprint(bench.stacks[2])


# Rule 1 of the core: deterministic.


def shuffle_containers(layer: Layer, random: Random) -> None:
    """Fill every dict and set of the state anew, in another order."""
    for name in state_names(layer):
        value = getattr(layer, name)
        if isinstance(value, dict):
            entries = list(value.items())
            random.shuffle(entries)
            value.clear()
            value.update(entries)
        elif isinstance(value, set):
            members = list(value)
            random.shuffle(members)
            value.clear()
            value.update(members)


@every_stack
@pytest.mark.parametrize("seed", range(5))
def test_equal_states_give_equal_effects_however_they_were_filled(name: str, seed: int) -> None:
    bench, random = under_way(parse_stack(name), seed)
    one, other = fork(bench.stacks[2]), fork(bench.stacks[2])
    for layer in other.layers:
        shuffle_containers(layer, random)
    assert fingerprint(one) == fingerprint(other)
    arrivals = arrivals_at(bench, 2, random)
    assert drive(one, arrivals) == drive(other, arrivals)
    assert fingerprint(one) == fingerprint(other)


def deeply_immutable(value: object) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(deeply_immutable, value))
    if isinstance(value, Packet):
        return all(deeply_immutable(getattr(value, name)) for name, _ in value.FIELDS)
    return value is None or isinstance(value, int | str | bytes | Message)


def copied_by_itself(record: Record) -> bool:
    return is_copy(record, record.copy())


def is_copy(value: object, copied: object) -> bool:
    """Equal, and what can change of one is no part of the other."""
    if deeply_immutable(value):
        return value == copied
    if value is copied or type(value) is not type(copied):
        return False
    if isinstance(value, Record):
        names = state_names(value)
        return all(is_copy(getattr(value, name), getattr(copied, name)) for name in names)
    if isinstance(value, list) and isinstance(copied, list):
        return len(value) == len(copied) and all(map(is_copy, value, copied))
    return value == copied and copied_by_fork(value)


def copied_by_fork(value: object) -> bool:
    """Immutable, or a container of immutable values, or a dict of records of such."""
    if isinstance(value, dict):
        return all(map(deeply_immutable, value)) and all(
            copied_by_itself(item) if isinstance(item, Record) else deeply_immutable(item)
            for item in value.values()
        )
    if isinstance(value, list | set):
        return all(map(deeply_immutable, value))
    return deeply_immutable(value)


@every_stack
@pytest.mark.parametrize("seed", range(5))
def test_state_holds_only_what_can_be_copied_and_fingerprinted(name: str, seed: int) -> None:
    bench, _ = under_way(parse_stack(name), seed)
    for process in range(SIZE):
        fingerprint(bench.stacks[process])
        for layer in bench.stacks[process].layers:
            for attribute in state_names(layer):
                value = getattr(layer, attribute)
                assert copied_by_fork(value), f"{type(layer).__name__}.{attribute} = {value!r}"


# The wire.


@every_stack
@pytest.mark.parametrize("seed", range(5))
def test_packets_survive_the_codec(name: str, seed: int) -> None:
    plan = parse_stack(name)
    codec = Codec(plan.layers)
    random = Random(seed)
    bench = Bench(plan, SIZE)
    cast_some(bench, random)
    seen = set()
    while bench.channels:
        _, _, packet = move(bench, random)
        encoded = codec.encode(packet)
        assert codec.decode(encoded) == packet
        measure = codec.measure(packet)
        assert measure.header_bytes + measure.payload_bytes == len(encoded)
        seen.add(type(packet))
        end_some_timer(bench, random)
        if measure.about == NO_MESSAGE:
            assert measure.payload_bytes == 0
            continue
        about = bench.messages[measure.about]
        assert isinstance(about.payload, bytes)
        assert measure.payload_bytes in (0, len(about.payload))
    assert seen


def example_of(kind: int, number: int) -> object:
    """A value of a field's kind; another one for every number."""
    examples: dict[int, Callable[[int], object]] = {
        INT: lambda n: n,
        ID: lambda n: message_id(n, n + 1),
        STAMP: lambda n: stamp(n + 1, n),
        INTS: lambda n: (n, n + 1),
        TEXT: lambda n: f"text {n}",
        MESSAGE: lambda n: Message(message_id(n, 0), (n,), bytes([n])),
    }
    return examples[kind](number)


@pytest.mark.parametrize(
    "packet",
    [packet for protocol in PROTOCOLS.values() for packet in protocol.layer.PACKETS],
    ids=lambda packet: f"{packet.__module__.rpartition('.')[2]}-{packet.__name__}",
)
def test_fields_are_the_parameters_of_init_in_order(packet: type[Packet]) -> None:
    values = [example_of(kind, number) for number, (_, kind) in enumerate(packet.FIELDS)]
    built = packet(*values)
    assert [getattr(built, name) for name, _ in packet.FIELDS] == values


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_packet_that_is_sent_is_declared(protocol: str) -> None:
    plan = parse_stack(protocol)
    bench = Bench(plan, SIZE)
    random = Random(1)
    cast_some(bench, random)
    sent = set()
    while bench.channels:
        sent.add(type(move(bench, random)[2]))
        end_some_timer(bench, random)
    assert sent
    assert sent <= set(plan.top.layer.PACKETS)


# Input that no correct peer would send.


@every_stack
@unhurried
@given(data=st.binary(max_size=60))
def test_random_bytes_are_a_packet_or_the_fault_of_the_peer(name: str, data: bytes) -> None:
    codec = Codec(parse_stack(name).layers)
    try:
        packet = codec.decode(data)
    except PeerError:
        return
    assert codec.decode(codec.encode(packet)) == packet


@every_stack
@unhurried
@given(seed=st.integers(0, 4), cut=st.integers(0, 400), flip=st.integers(0, 255))
def test_damaged_packets_are_a_packet_or_the_fault_of_the_peer(
    name: str, seed: int, cut: int, flip: int
) -> None:
    plan = parse_stack(name)
    codec = Codec(plan.layers)
    bench, _ = under_way(plan, seed)
    packet = bench.channels[min(bench.channels)][0] if bench.channels else None
    if packet is None:
        return
    damaged = bytearray(codec.encode(packet))
    damaged[cut % len(damaged)] ^= flip
    for data in (bytes(damaged), bytes(damaged)[: cut % len(damaged)]):
        try:
            codec.decode(data)
        except PeerError:
            continue


small = st.integers(0, SIZE + 2)
huge = st.integers(0, 1 << 70)
numbers = st.one_of(small, small, huge)
identities = st.builds(message_id, st.integers(0, SIZE + 3), st.one_of(small, st.just(1 << 39)))
destination_sets = st.lists(numbers, max_size=5, unique=True).map(lambda to: tuple(sorted(to)))
payloads = st.binary(max_size=3)


def hostile_packets(layers: list[type[Layer]]) -> st.SearchStrategy[Packet]:
    """Packets of the right types, as the codec could produce them, with any values."""
    carried: st.SearchStrategy[bytes | Packet] = payloads
    if len(layers) > 1:
        carried = hostile_packets(layers[1:])
    fields: dict[int, st.SearchStrategy[object]] = {
        INT: numbers,
        ID: identities,
        STAMP: st.builds(stamp, st.one_of(small, st.integers(0, 1 << 42)), small),
        INTS: st.one_of(
            st.lists(numbers, max_size=SIZE * SIZE).map(tuple),
            # A clock of the right length, which gets further.
            st.lists(small, min_size=6, max_size=6).map(tuple),
        ),
        TEXT: st.text(max_size=5),
        MESSAGE: st.builds(Message, identities, destination_sets, carried),
    }
    return st.one_of(
        *(
            st.builds(packet, *(fields[kind] for _, kind in packet.FIELDS))
            for packet in layers[0].PACKETS
        )
    )


@every_stack
@unhurried
@given(data=st.data())
def test_hostile_packets_are_the_fault_of_the_peer(name: str, data: st.DataObject) -> None:
    """Whatever they say, a layer takes them or blames the sender; nothing else goes wrong."""
    plan = parse_stack(name)
    codec = Codec(plan.layers)
    stack = plan.build(data.draw(st.integers(0, SIZE - 1)), SIZE)
    stack.start()
    for packet in data.draw(st.lists(hostile_packets(plan.layers), min_size=1, max_size=6)):
        try:
            stack.receive(data.draw(small), packet)
        except PeerError:
            stack.take_effects()
            continue
        for effect in stack.take_effects():
            if isinstance(effect, Send):
                assert codec.decode(codec.encode(effect.packet)) == effect.packet


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("other", PROTOCOLS)
def test_packets_of_another_protocol_are_refused(protocol: str, other: str) -> None:
    if protocol == other:
        return
    stack = parse_stack(protocol).build(1, SIZE)
    for packet in PROTOCOLS[other].layer.PACKETS:
        if packet in PROTOCOLS[protocol].layer.PACKETS:
            continue
        values = [example_of(kind, 1) for _, kind in packet.FIELDS]
        with pytest.raises(PeerError, match=f"process 3 sent {packet.__name__}, which"):
            stack.receive(3, packet(*values))
        assert stack.take_effects() == []


def first_packet(plan: StackPlan, destinations: tuple[int, ...]) -> Packet:
    """What a client's multicast to these destinations sends out."""
    first = plan.top.layer.PACKETS[0]
    m = Message(message_id(SIZE, 0), destinations, b"")
    nothing = {MESSAGE: m, INTS: ()}
    return first(*(nothing.get(kind, 0) for _, kind in first.FIELDS))


@pytest.mark.parametrize("destinations", [(), (0, 2)], ids=["nobody", "others"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_message_for_others_is_refused(protocol: str, destinations: tuple[int, ...]) -> None:
    """A correct peer sends a multicast to its destinations only; to deliver it would be wrong."""
    plan = parse_stack(protocol)
    stack = plan.build(1, SIZE)
    before = fingerprint(stack)
    with pytest.raises(PeerError):
        stack.receive(SIZE, first_packet(plan, destinations))
    assert fingerprint(stack) == before
    assert stack.take_effects() == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_is_sent_to_processes_that_do_not_exist(protocol: str) -> None:
    """A message may name some, if a peer lies: the world has nobody to hand packets to."""
    plan = parse_stack(protocol)
    for destinations in ((1, SIZE), (1, 2, SIZE + 70)):
        stack = plan.build(1, SIZE)
        try:
            stack.receive(SIZE, first_packet(plan, destinations))
        except PeerError:
            continue
        sends = [effect for effect in stack.take_effects() if isinstance(effect, Send)]
        assert [target for effect in sends for target in effect.to if target >= SIZE] == []
