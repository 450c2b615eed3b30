"""What every layer must do to be hosted, as rules that any protocol can be tried against.

A layer must be copied without sharing anything, ask for the same when it is told the same, speak
the wire, and blame the peer, and nobody else, for what no correct peer would send. A rule takes
the plan of a stack and raises an AssertionError that says what is wrong. A protocol that lives
elsewhere is tried in three lines:

    @pytest.mark.parametrize("rule", RULES, ids=name_of_rule)
    def test_conformance(rule: Rule) -> None:
        rule(parse_stack("sequencer"))

Stacks under way come from seeded random schedules that are stopped in the middle, so a rule that
fails once fails again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError
from flexgroup.core.fields import ID, INT, INTS, MESSAGE, STAMP, TEXT
from flexgroup.core.guarantees import Guarantee
from flexgroup.core.layer import (
    CancelTimer,
    Context,
    Deliver,
    Effect,
    Layer,
    Offer,
    Record,
    Save,
    Send,
    SetTimer,
    Suspect,
    Trust,
    View,
)
from flexgroup.core.message import (
    NO_MESSAGE,
    Message,
    Packet,
    message_id,
    stamp,
)
from flexgroup.core.stack import Stack
from flexgroup.core.state import fingerprint, fork, state_names
from flexgroup.protocols.catalogue import PROTOCOLS, StackPlan
from flexgroup.worlds.bench import Bench

Rule = Callable[[StackPlan], None]

SIZE = 4
"""How many processes the systems have in which a stack is tried."""

SEEDS = range(8)

DAMAGED_PACKETS = 200
HOSTILE_RUNS = 200

Arrival = tuple[str, int, Packet | Message | str, int]
"""Something that a process was told: a message to cast, a packet with its sender, a timer with its
level and name, a choice with its level and name and what was chosen, or a process to suspect."""


def check_conformance(plan: StackPlan) -> None:
    """Try a stack against every rule; an AssertionError says which one it breaks, and how."""
    for rule in RULES:
        try:
            rule(plan)
        except AssertionError as broken:
            raise AssertionError(f"{plan.name}: {name_of_rule(rule)}: {broken}") from broken


def name_of_rule(rule: Rule) -> str:
    return rule.__name__.replace("_", " ")


# Systems under way.


def cast_some(bench: Bench, random: Random) -> None:
    """Multicast ten messages of different lengths from processes and, if they may, clients."""
    for number in range(10):
        to = tuple(sorted(random.sample(range(SIZE), random.randint(1, SIZE))))
        origin = random.choice((SIZE, SIZE + 1, random.randrange(SIZE)))
        if bench.plan.closed:
            origin %= SIZE
        bench.cast(origin, to, bytes([number]) * random.choice((0, 1, 200)))
        list(choose(bench, random))


def move(bench: Bench, random: Random) -> tuple[int, int, Packet]:
    """Let any packet arrive that may be next."""
    source, target = random.choice(sorted(bench.channels))
    length = len(bench.channels[source, target])
    needs_fifo = Guarantee.FIFO in bench.plan.layers[0].NEEDS
    place = 0 if needs_fifo else random.randrange(length)
    return source, target, bench.deliver(source, target, place)


def end_some_timer(bench: Bench, random: Random) -> tuple[int, int, str] | None:
    """Let a timer run out now and then, if one is set."""
    running = sorted((p, *timer) for p, timers in bench.timers.items() for timer in timers)
    if not running or random.random() < 0.7:
        return None
    process, level, name = random.choice(running)
    bench.end_timer(process, level, name)
    return process, level, name


def choose(bench: Bench, random: Random) -> Iterator[tuple[int, int, str, int]]:
    """Answer every open offer with any of its options."""
    for process, host in sorted(bench.hosts.items()):
        while host.offers:
            offer = host.offers[0]
            chosen = random.randrange(offer.options)
            bench.choose(process, chosen)
            yield process, offer.level, offer.name, chosen


def under_way(plan: StackPlan, seed: int) -> tuple[Bench, Random]:
    """A bench in the middle of things."""
    random = Random(seed)
    bench = Bench(plan, SIZE)
    cast_some(bench, random)
    for _ in range(random.randint(5, 15)):
        move(bench, random)
        list(choose(bench, random))
        end_some_timer(bench, random)
        list(choose(bench, random))
    return bench, random


def arrivals(bench: Bench, random: Random) -> list[list[Arrival]]:
    """Run the bench to its end, and return what each process was told, to be told to others too.

    Every process casts a message first and, when nothing is in flight any more, is told to suspect
    another one.
    """
    told: list[list[Arrival]] = [[] for _ in range(SIZE)]

    def choices() -> None:
        for at, level, name, chosen in choose(bench, random):
            if at < SIZE:
                told[at].append(("choice", level, name, chosen))

    for process in range(SIZE):
        m = bench.cast(process, tuple(range(SIZE)), b"last")
        told[process].append(("cast", 0, m, 0))
        choices()
    while bench.channels:
        source, target, packet = move(bench, random)
        if target < SIZE:
            told[target].append(("packet", source, packet, 0))
        choices()
        ended = end_some_timer(bench, random)
        if ended is not None and ended[0] < SIZE:
            told[ended[0]].append(("timer", ended[1], ended[2], 0))
        choices()
    for process in range(SIZE):
        bench.suspect(process, (process + 1) % SIZE)
        told[process].append(("suspect", (process + 1) % SIZE, "", 0))
        choices()
    return told


def drive(stack: Stack, told: list[Arrival]) -> list[object]:
    """Tell a stack all of this, and return what it asks for."""
    asked: list[object] = []
    for kind, origin, what, chosen in told:
        if isinstance(what, Packet):
            stack.receive(origin, what)
        elif isinstance(what, Message):
            stack.cast(what)
        elif kind == "suspect":
            stack.notice(Suspect(origin))
        elif kind == "timer":
            stack.timer(origin, what)
        else:
            stack.choose(origin, what, chosen)
        asked += [comparable(effect) for effect in stack.take_effects()]
    return asked


def comparable(effect: Effect) -> object:
    """An effect as something that can be compared with another."""
    if isinstance(effect, Send):
        return "send", effect.to, effect.packet
    if isinstance(effect, Deliver):
        return "deliver", effect.message
    if isinstance(effect, SetTimer):
        return "timer", effect.level, effect.name, effect.ticks
    if isinstance(effect, CancelTimer):
        return "cancel", effect.level, effect.name
    if isinstance(effect, Offer):
        return "offer", effect.level, effect.name, effect.options
    if isinstance(effect, Save):
        return "save", effect.level, effect.value
    if isinstance(effect, Suspect | Trust):
        return type(effect).__name__, effect.process
    if isinstance(effect, View):
        return "view", effect.number, effect.members
    raise AssertionError(
        f"{type(effect).__name__} is an effect that no rule knows; compare it here"
    )


# A layer can be copied.


def a_fork_shares_nothing_with_the_original(plan: StackPlan) -> None:
    for seed in SEEDS:
        bench, random = under_way(plan, seed)
        twins = [fork(bench.hosts[process].stack) for process in range(SIZE)]
        before = [fingerprint(twin) for twin in twins]
        there = [fingerprint(bench.hosts[process].stack) for process in range(SIZE)]
        assert before == there, f"seed {seed}: a fork has another fingerprint than the original"
        arrivals(bench, random)
        assert [fingerprint(twin) for twin in twins] == before, (
            f"seed {seed}: what happened to the original changed its fork"
        )


def a_fork_goes_on_as_the_original_does(plan: StackPlan) -> None:
    for seed in SEEDS:
        bench, random = under_way(plan, seed)
        originals = [bench.hosts[process].stack for process in range(SIZE)]
        twins = [(fork(stack), fork(stack)) for stack in originals]
        told = arrivals(bench, random)
        for process, (one, other) in enumerate(twins):
            where = f"seed {seed}, process {process}"
            assert drive(one, told[process]) == drive(other, told[process]), (
                f"{where}: forks that are told the same part ways"
            )
            ended = fingerprint(originals[process])
            assert fingerprint(one) == fingerprint(other) == ended, (
                f"{where}: a fork ends in another state than the original"
            )


def state_holds_only_what_can_be_copied(plan: StackPlan) -> None:
    for seed in SEEDS:
        bench, _ = under_way(plan, seed)
        for process in range(SIZE):
            fingerprint(bench.hosts[process].stack)
            for layer in bench.hosts[process].stack.layers:
                for attribute in state_names(layer):
                    value = getattr(layer, attribute)
                    assert is_copied_by_fork(value), (
                        f"{type(layer).__name__}.{attribute} = {value!r} cannot be copied"
                    )


def is_deeply_immutable(value: object) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(is_deeply_immutable, value))
    if isinstance(value, Packet):
        return all(is_deeply_immutable(getattr(value, name)) for name, _ in value.FIELDS)
    return value is None or isinstance(value, int | str | bytes | Message)


def is_copied_by_fork(value: object) -> bool:
    """Whether a value is immutable, a container of such, or a record that copies itself."""
    if isinstance(value, Record):
        return is_copy(value, value.copy())
    if isinstance(value, dict):
        return all(map(is_deeply_immutable, value)) and is_copied_by_fork(list(value.values()))
    if isinstance(value, list):
        return all(
            is_copied_by_fork(item) if isinstance(item, Record) else is_deeply_immutable(item)
            for item in value
        )
    if isinstance(value, set):
        return all(map(is_deeply_immutable, value))
    return is_deeply_immutable(value)


def is_copy(value: object, copied: object) -> bool:
    """Whether the two are equal, and what can change of one is no part of the other."""
    if is_deeply_immutable(value):
        return value == copied
    if value is copied or type(value) is not type(copied):
        return False
    if isinstance(value, Record):
        names = state_names(value)
        return all(is_copy(getattr(value, name), getattr(copied, name)) for name in names)
    if isinstance(value, list) and isinstance(copied, list):
        return len(value) == len(copied) and all(map(is_copy, value, copied))
    if isinstance(value, dict) and isinstance(copied, dict):
        return value.keys() == copied.keys() and all(
            is_copy(item, copied[key]) for key, item in value.items()
        )
    return value == copied and is_copied_by_fork(value)


# A layer is deterministic.


def equal_states_give_equal_effects_however_they_were_filled(plan: StackPlan) -> None:
    for seed in SEEDS:
        bench, random = under_way(plan, seed)
        stacks = [bench.hosts[process].stack for process in range(SIZE)]
        twins = [(fork(stack), fork(stack)) for stack in stacks]
        for _, other in twins:
            for layer in other.layers:
                shuffle_containers(layer, random)
        told = arrivals(bench, random)
        for process, (one, other) in enumerate(twins):
            where = f"seed {seed}, process {process}"
            assert fingerprint(one) == fingerprint(other), (
                f"{where}: the fingerprint depends on the order in which a container was filled"
            )
            assert drive(one, told[process]) == drive(other, told[process]), (
                f"{where}: an effect depends on the order in which a dict or set was filled"
            )
            assert fingerprint(one) == fingerprint(other), f"{where}: equal states part ways"


def shuffle_containers(part: Layer | Record, random: Random) -> None:
    """Fill every dict and set of the state anew, in another order."""
    for name in state_names(part):
        value = getattr(part, name)
        if isinstance(value, Record):
            shuffle_containers(value, random)
        elif isinstance(value, dict):
            for item in value.values():
                if isinstance(item, Record):
                    shuffle_containers(item, random)
            entries = list(value.items())
            random.shuffle(entries)
            value.clear()
            value.update(entries)
        elif isinstance(value, set):
            members = list(value)
            random.shuffle(members)
            value.clear()
            value.update(members)


# A layer speaks the wire.


def packets_survive_the_codec(plan: StackPlan) -> None:
    codec = Codec(plan.layers)
    declared = plan.layers[0].PACKETS
    for seed in SEEDS:
        random = Random(seed)
        bench = Bench(plan, SIZE)
        cast_some(bench, random)
        sent = 0
        while bench.channels:
            _, _, packet = move(bench, random)
            sent += 1
            name = type(packet).__name__
            assert type(packet) in declared, f"{name} is sent, but PACKETS does not name it"
            encoded = codec.encode(packet)
            assert codec.decode(encoded) == packet, f"{packet!r} comes back as another packet"
            measure = codec.measure(packet)
            assert measure.header_bytes + measure.payload_bytes == len(encoded), (
                f"{packet!r} is measured as it is not encoded"
            )
            if measure.about == NO_MESSAGE:
                assert measure.payload_bytes == 0
            else:
                about = bench.messages[measure.about]
                assert isinstance(about.payload, bytes)
                assert measure.payload_bytes in (0, len(about.payload))
            list(choose(bench, random))
            end_some_timer(bench, random)
            list(choose(bench, random))
        assert sent, "nothing was ever sent"


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


def a_packet_is_built_from_its_fields(plan: StackPlan) -> None:
    for layer in plan.layers:
        for packet in layer.PACKETS:
            values = [example_of(kind, number) for number, (_, kind) in enumerate(packet.FIELDS)]
            built = packet(*values)
            held = [getattr(built, name) for name, _ in packet.FIELDS]
            assert held == values, f"{packet.__name__}({values}) holds {held}"


def damaged_bytes_are_a_packet_or_the_fault_of_the_peer(plan: StackPlan) -> None:
    codec = Codec(plan.layers)
    random = Random(1)
    sent = [
        codec.encode(channel[0].packet)
        for seed in SEEDS
        for channel in under_way(plan, seed)[0].channels.values()
    ]
    for number in range(DAMAGED_PACKETS):
        data = bytearray(random.choice(sent) if sent else b"")
        if number % 2 or not data:
            data = bytearray(random.randbytes(random.randrange(60)))
        else:
            data[random.randrange(len(data))] ^= random.randrange(256)
            del data[random.choice((len(data), random.randrange(len(data)))) :]
        try:
            packet = codec.decode(bytes(data))
        except PeerError:
            continue
        assert codec.decode(codec.encode(packet)) == packet, f"{packet!r} does not come back"


# A layer blames the peer for what no correct peer would send.


def alone(plan: StackPlan) -> Iterator[tuple[type[Layer], Stack]]:
    """Each layer of the plan as a stack of its own, at process 1."""
    for layer, options in zip(plan.layers, plan.options, strict=True):
        yield layer, Stack([layer(Context(1, SIZE, options))])


def hostile_values(random: Random, kind: int, carried: Callable[[], bytes | Packet]) -> object:
    """Any value of this kind that the codec could produce, most of them nearly right."""

    def number() -> int:
        return random.choice(
            (random.randrange(SIZE + 3), random.randrange(SIZE + 3), random.randrange(1 << 70))
        )

    def small() -> int:
        return random.randrange(SIZE + 3)

    def identity() -> int:
        return message_id(random.randrange(SIZE + 4), random.choice((small(), 1 << 39)))

    if kind == INT:
        return number()
    if kind == ID:
        return identity()
    if kind == STAMP:
        return stamp(random.choice((small(), random.randrange(1 << 42))), small())
    if kind == INTS:
        if random.random() < 0.5:
            return tuple(small() for _ in range(6))  # a clock of a likely length gets further
        return tuple(number() for _ in range(random.randrange(SIZE * SIZE)))
    if kind == TEXT:
        return "".join(random.choice("aé\0 7") for _ in range(random.randrange(5)))
    to = {number() for _ in range(random.randrange(6))}
    return Message(identity(), tuple(sorted(to)), carried())


def hostile_packet(random: Random, layers: list[type[Layer]]) -> Packet:
    """A packet of the right type, as the codec could produce it, with any values."""
    packet = random.choice(layers[0].PACKETS)

    def carried() -> bytes | Packet:
        return hostile_packet(random, layers[1:]) if layers[1:] else random.randbytes(2)

    return packet(*(hostile_values(random, kind, carried) for _, kind in packet.FIELDS))


def hostile_packets_are_the_fault_of_the_peer(plan: StackPlan) -> None:
    codec = Codec(plan.layers)
    for seed in range(HOSTILE_RUNS):
        random = Random(seed)
        stack = plan.build(random.randrange(SIZE), SIZE)
        stack.start()
        stack.take_effects()
        told: list[Packet] = []
        for _ in range(random.randint(1, 6)):
            told.append(hostile_packet(random, plan.layers))
            try:
                stack.receive(random.randrange(SIZE + 3), told[-1])
            except PeerError:
                stack.take_effects()
                continue
            except Exception as error:
                raise AssertionError(
                    f"seed {seed}: {told} ended in {type(error).__name__}: {error}; "
                    "a packet that no correct peer sends must be refused with a PeerError"
                ) from error
            for effect in stack.take_effects():
                if isinstance(effect, Send):
                    assert codec.decode(codec.encode(effect.packet)) == effect.packet


def packets_of_another_protocol_are_refused(plan: StackPlan) -> None:
    foreign = {packet for other in PROTOCOLS.values() for packet in other.layer.PACKETS}
    for layer, stack in alone(plan):
        for packet in foreign.difference(layer.PACKETS):
            sent = packet(*(example_of(kind, 1) for _, kind in packet.FIELDS))
            refusal = ""
            try:
                stack.receive(3, sent)
            except PeerError as error:
                refusal = str(error)
            assert f"process 3 sent {packet.__name__}, which" in refusal, (
                f"{layer.__name__} takes {packet.__name__}, which is foreign, or does not say "
                f"who sent it: {refusal}"
            )
            assert stack.take_effects() == []


def first_packet(layer: type[Layer], destinations: tuple[int, ...]) -> Packet:
    """What a client's multicast to these destinations sends out."""
    first = layer.PACKETS[0]
    m = Message(message_id(SIZE, 0), destinations, b"")
    nothing = {MESSAGE: m, INTS: ()}
    return first(*(nothing.get(kind, 0) for _, kind in first.FIELDS))


def a_message_for_others_is_refused(plan: StackPlan) -> None:
    """A correct peer sends a multicast to its destinations only; to deliver it would be wrong."""
    for destinations in ((), (0, 2)):
        for layer, stack in alone(plan):
            before = fingerprint(stack)
            try:
                stack.receive(SIZE, first_packet(layer, destinations))
            except PeerError:
                assert fingerprint(stack) == before, "a packet that was refused changed the state"
                assert stack.take_effects() == []
            else:
                raise AssertionError(f"process 1 takes a message to {destinations}")


def nothing_is_sent_to_processes_that_do_not_exist(plan: StackPlan) -> None:
    """A message may name some, if a peer lies: the world has nobody to hand packets to."""
    for destinations in ((1, SIZE), (1, 2, SIZE + 70)):
        for layer, stack in alone(plan):
            try:
                stack.receive(SIZE, first_packet(layer, destinations))
            except PeerError:
                continue
            sends = [effect for effect in stack.take_effects() if isinstance(effect, Send)]
            missing = [target for effect in sends for target in effect.to if target >= SIZE]
            assert missing == [], f"packets were sent to {missing}, who do not exist"


RULES: tuple[Rule, ...] = (
    a_fork_shares_nothing_with_the_original,
    a_fork_goes_on_as_the_original_does,
    state_holds_only_what_can_be_copied,
    equal_states_give_equal_effects_however_they_were_filled,
    packets_survive_the_codec,
    a_packet_is_built_from_its_fields,
    damaged_bytes_are_a_packet_or_the_fault_of_the_peer,
    hostile_packets_are_the_fault_of_the_peer,
    packets_of_another_protocol_are_refused,
    a_message_for_others_is_refused,
    nothing_is_sent_to_processes_that_do_not_exist,
)
