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
from operator import methodcaller
from random import Random

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.fields import (
    ALL_BYTES,
    BYTES,
    ID,
    INT,
    INTS,
    MESSAGE,
    MESSAGES,
    PACKET,
    PACKETS,
    STAMP,
    TEXT,
    names_of,
)
from flexgroup.core.guarantees import Guarantee, guarantees_of_channels
from flexgroup.core.keyed_notary import SEAL_BYTES, KeyedNotary
from flexgroup.core.layer import Context, Layer, Record, Send, Suspect, View, copied
from flexgroup.core.message import NO_MESSAGE, Message, Packet, message_id, stamp
from flexgroup.core.replicas import Replicas, members_of_groups, replicas_of_sizes
from flexgroup.core.stack import Stack, packets_by_level
from flexgroup.core.state import fingerprint, fork, fork_layer, state_names
from flexgroup.protocols.catalogue import PROTOCOLS, StackPlan
from flexgroup.worlds.bench import Bench

Rule = Callable[[StackPlan], None]

SIZE = 4
"""How many processes the systems have in which a stack is tried."""

EVERYONE = tuple(range(SIZE))

SEEDS = range(8)

DAMAGED_PACKETS = 200
HOSTILE_RUNS = 200
MOST_QUOTES = 3
"""How deep packets of such runs stand within packets."""

Told = Callable[[Stack], None]
"""Something that a process was told, as the call that tells it to any stack."""


def check_conformance(plan: StackPlan) -> None:
    """Try a stack against every rule; an AssertionError says which one it breaks, and how."""
    for rule in RULES:
        try:
            rule(plan)
        except AssertionError as broken:
            raise AssertionError(f"{plan.name}: {name_of_rule(rule)}: {broken}") from broken


def name_of_rule(rule: Rule) -> str:
    return rule.__name__.replace("_", " ")


BELOW = {
    Guarantee.TOTAL: "log",
    Guarantee.LEADER: "leader",
    Guarantee.PROTECTED_MEMORY: "protected-memory",
}
"""The layer that gives what no channel has."""


def whole_stack(name: str) -> str:
    """The protocol and, below it, what gives it all that it needs and no channel has."""
    needs = PROTOCOLS[name].layer.NEEDS
    return " ".join([*[layer for need, layer in BELOW.items() if need in needs], name])


def needs_order(plan: StackPlan) -> bool:
    """Whether packets of this stack must not overtake each other."""
    try:
        plan.promises(guarantees_of_channels(reliable=True, fifo=False))
    except UsageError:
        return True
    return False


# Systems under way.


GROUPS = replicas_of_sizes([2, 1, 1])


def replicas_for(plan: StackPlan) -> Replicas:
    """Groups of replicas, if the stack needs any: one, if a message cannot go to several."""
    if not plan.needs_replicas:
        return ()
    client = plan.builder(SIZE, replicas=GROUPS)(SIZE)
    try:
        client.cast(Message(message_id(SIZE, 0), EVERYONE, b""))
    except UsageError:
        return (EVERYONE,)
    return GROUPS


class Trial:
    """A stack on a bench, a seeded random schedule of it, and what each process was told."""

    def __init__(self, plan: StackPlan, seed: int) -> None:
        """Multicast ten messages of different lengths from processes and, if they may, clients."""
        self.random = random = Random(seed)
        replicas = replicas_for(plan)
        self.bench = Bench(plan, SIZE, replicas=replicas)
        self.told: list[list[Told]] = [[] for _ in range(SIZE)]
        self.in_order = needs_order(plan)
        for number in range(10):
            to = tuple(sorted(random.sample(range(SIZE), random.randint(1, SIZE))))
            if replicas:
                groups = random.sample(range(len(replicas)), random.randint(1, len(replicas)))
                to = members_of_groups(replicas, tuple(sorted(groups)))
            origin = random.choice((SIZE, SIZE + 1, random.randrange(SIZE)))
            if plan.closed:
                origin %= SIZE
            self.cast(origin, to, bytes([number]) * random.choice((0, 1, 200)))

    @property
    def stacks(self) -> list[Stack]:
        """The stack of each process; those of clients are not tried."""
        return [self.bench.hosts[process].stack for process in range(SIZE)]

    def cast(self, origin: int, to: tuple[int, ...], payload: bytes) -> None:
        self._note(origin, "cast", self.bench.cast(origin, to, payload))

    def move(self) -> Packet:
        """Let any packet arrive that may be next, and now and then a timer run out."""
        random, bench = self.random, self.bench
        source, target = random.choice(sorted(bench.channels))
        length = len(bench.channels[source, target])
        packet = bench.deliver(source, target, 0 if self.in_order else random.randrange(length))
        self._note(target, "receive", source, packet)
        running = sorted((p, *timer) for p, timers in bench.timers.items() for timer in timers)
        if running and random.random() >= 0.7:
            process, level, name = random.choice(running)
            bench.end_timer(process, level, name)
            self._note(process, "timer", level, name)
        return packet

    def rest(self) -> list[list[Told]]:
        """Run to the end, and return what each process was told, to be told to others too.

        Every process casts a message first, is told of a view while messages are under way and,
        when nothing is in flight any more, to suspect another one.
        """
        self.told = [[] for _ in range(SIZE)]
        for process in range(SIZE):
            self.cast(process, tuple(range(SIZE)), b"last")
        for process in range(SIZE):
            view = View(1, tuple(range(SIZE)))
            self.bench.tell(process, view)
            self._note(process, "notice", view)
        while self.bench.channels:
            self.move()
        for process in range(SIZE):
            suspected = (process + 1) % SIZE
            self.bench.suspect(process, suspected)
            self._note(process, "notice", Suspect(suspected))
        return self.told

    def _note(self, process: int, event: str, *what: object) -> None:
        """Keep what a process was told, and answer every open offer with any of its options."""
        if process < SIZE:
            self.told[process].append(methodcaller(event, *what))
        for other, host in sorted(self.bench.hosts.items()):
            while host.offers:
                offer = host.offers[0]
                chosen = self.random.randrange(offer.options)
                self.bench.choose(other, chosen)
                self._note(other, "choose", offer.level, offer.name, chosen)


def under_way(plan: StackPlan, seed: int) -> Trial:
    """A trial in the middle of things."""
    trial = Trial(plan, seed)
    for _ in range(trial.random.randint(5, 15)):
        trial.move()
    return trial


def drive(stack: Stack, told: list[Told]) -> list[object]:
    """Tell a stack all of this, and return what it asks for, in a form that can be compared."""
    asked: list[object] = []
    for tell in told:
        tell(stack)
        for effect in stack.take_effects():
            kind = type(effect)
            asked.append((kind, [getattr(effect, name) for name in names_of(kind)]))
    return asked


# A layer can be copied.


def a_fork_shares_nothing_with_the_original(plan: StackPlan) -> None:
    for seed in SEEDS:
        trial = under_way(plan, seed)
        twins = [fork(stack) for stack in trial.stacks]
        before = [fingerprint(twin) for twin in twins]
        there = [fingerprint(stack) for stack in trial.stacks]
        assert before == there, f"seed {seed}: a fork has another fingerprint than the original"
        trial.rest()
        assert [fingerprint(twin) for twin in twins] == before, (
            f"seed {seed}: what happened to the original changed its fork"
        )


def a_fork_goes_on_as_the_original_does(plan: StackPlan) -> None:
    for seed in SEEDS:
        trial = under_way(plan, seed)
        originals = trial.stacks
        twins = [(fork(stack), fork(stack)) for stack in originals]
        told = trial.rest()
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
        for stack in under_way(plan, seed).stacks:
            fingerprint(stack)
            for layer in stack.layers:
                for attribute in state_names(layer):
                    value = getattr(layer, attribute)
                    twin = fork_layer(value) if isinstance(value, Layer) else copied(value)
                    assert is_copy(value, twin), (
                        f"{type(layer).__name__}.{attribute} = {value!r} cannot be copied"
                    )


def is_deeply_immutable(value: object) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(is_deeply_immutable, value))
    if isinstance(value, Packet):
        return all(is_deeply_immutable(getattr(value, name)) for name, _ in value.FIELDS)
    return value is None or isinstance(value, int | str | bytes | Message)


def is_copy(value: object, twin: object) -> bool:
    """Whether the two are equal, and what can change of one is no part of the other."""
    if is_deeply_immutable(value):
        return value == twin
    if value is twin or type(value) is not type(twin):
        return False
    if isinstance(value, Record | Layer):
        names = state_names(value)
        return all(is_copy(getattr(value, name), getattr(twin, name)) for name in names)
    if isinstance(value, list) and isinstance(twin, list):
        return len(value) == len(twin) and all(map(is_copy, value, twin))
    if isinstance(value, dict) and isinstance(twin, dict):
        if value.keys() != twin.keys() or not all(map(is_deeply_immutable, value)):
            return False
        return all(is_copy(item, twin[key]) for key, item in value.items())
    return isinstance(value, set) and value == twin and all(map(is_deeply_immutable, value))


# A layer is deterministic.


def equal_states_give_equal_effects_however_they_were_filled(plan: StackPlan) -> None:
    for seed in SEEDS:
        trial = under_way(plan, seed)
        twins = [(fork(stack), fork(stack)) for stack in trial.stacks]
        for _, other in twins:
            for layer in other.layers:
                shuffle_containers(layer, trial.random)
        told = trial.rest()
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
        if isinstance(value, Record | Layer):
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
        trial = Trial(plan, seed)
        assert trial.bench.channels, "nothing was ever sent"
        while trial.bench.channels:
            packet = trial.move()
            name = type(packet).__name__
            assert type(packet) in declared, f"{name} is sent, but PACKETS does not name it"
            encoded = codec.encode(packet)
            assert codec.decode(encoded) == packet, f"{packet!r} comes back as another packet"
            measure = codec.measure(packet)
            assert measure.header_bytes + measure.payload_bytes == len(encoded), (
                f"{packet!r} is measured as it is not encoded"
            )
            if measure.message == NO_MESSAGE:
                assert measure.payload_bytes == 0
            elif not may_carry_several(packet):
                about = trial.bench.messages[measure.message]
                assert isinstance(about.payload, bytes)
                assert measure.payload_bytes in (0, len(about.payload))


def may_carry_several(packet: Packet) -> bool:
    """Whether a packet, or one that a message in it carries, has a list of messages or packets."""
    for name, kind in packet.FIELDS:
        if kind in (MESSAGES, PACKET, PACKETS):
            return True
        carried = getattr(packet, name).payload if kind == MESSAGE else None
        if isinstance(carried, Packet) and may_carry_several(carried):
            return True
    return False


class Quoted(Packet):
    """Something to stand in a packet that quotes others."""

    number: int


def example_of(kind: int, number: int) -> object:
    """A value of a field's kind; another one for every number."""
    examples: dict[int, Callable[[int], object]] = {
        INT: lambda n: n,
        ID: lambda n: message_id(n, n + 1),
        STAMP: lambda n: stamp(n + 1, n),
        INTS: lambda n: (n, n + 1),
        TEXT: lambda n: f"text {n}",
        MESSAGE: lambda n: Message(message_id(n, 0), (n,), bytes([n])),
        MESSAGES: lambda n: tuple(Message(message_id(n, seq), (n,), b"") for seq in range(2)),
        BYTES: lambda n: b"bytes %d" % n,
        ALL_BYTES: lambda n: (b"", b"bytes %d" % n),
        PACKET: lambda n: Quoted(n),
        PACKETS: lambda n: (Quoted(n), Quoted(n + 1)),
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
        for channel in under_way(plan, seed).bench.channels.values()
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
        notary = KeyedNotary(1, Codec([layer]))
        context = Context(1, SIZE, options, replicas=replicas_for(plan), notary=notary)
        yield layer, Stack([layer(context)])


def refusal(stack: Stack, sender: int, packet: Packet) -> PeerError | None:
    """Hand a packet to a stack, and return the error that blames the peer for it, if any."""
    try:
        stack.receive(sender, packet)
    except PeerError as error:
        return error
    return None


def hostile_values(
    random: Random,
    kind: int,
    carried: Callable[[], bytes | Packet],
    quoted: Callable[[], Packet],
) -> object:
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

    if kind in (BYTES, ALL_BYTES):
        data = random.randbytes(random.choice((0, 1, SEAL_BYTES)))
        return data if kind == BYTES else (data,) * random.randrange(3)
    if kind in (PACKET, PACKETS):
        return quoted() if kind == PACKET else tuple(quoted() for _ in range(random.randrange(3)))

    def message() -> Message:
        to = {number() for _ in range(random.randrange(6))}
        return Message(identity(), random.choice((tuple(sorted(to)), EVERYONE)), carried())

    if kind == MESSAGES:
        return tuple(message() for _ in range(random.randrange(3)))
    return message()


def hostile_packet(
    random: Random, levels: list[tuple[type[Packet], ...]], quotes: int = 0
) -> Packet:
    """A packet of the right type, as the codec could produce it, with any values."""
    flat = [
        one for one in levels[0] if not any(kind in (PACKET, PACKETS) for _, kind in one.FIELDS)
    ]
    packet = random.choice(levels[0] if quotes < MOST_QUOTES else flat)

    def carried() -> bytes | Packet:
        return hostile_packet(random, levels[1:]) if levels[1:] else random.randbytes(2)

    def quoted() -> Packet:
        return hostile_packet(random, levels, quotes + 1)

    return packet(*(hostile_values(random, kind, carried, quoted) for _, kind in packet.FIELDS))


def hostile_packets_are_the_fault_of_the_peer(plan: StackPlan) -> None:
    codec = Codec(plan.layers)
    for seed in range(HOSTILE_RUNS):
        random = Random(seed)
        stack = plan.builder(SIZE, replicas=replicas_for(plan))(random.randrange(SIZE))
        stack.start()
        stack.take_effects()
        told: list[Packet] = []
        for _ in range(random.randint(1, 6)):
            told.append(hostile_packet(random, packets_by_level(plan.layers)))
            try:
                refused = refusal(stack, random.randrange(SIZE + 3), told[-1])
            except Exception as error:
                raise AssertionError(
                    f"seed {seed}: {told} ended in {type(error).__name__}: {error}; "
                    "a packet that no correct peer sends must be refused with a PeerError"
                ) from error
            for effect in stack.take_effects():
                if isinstance(effect, Send) and refused is None:
                    assert codec.decode(codec.encode(effect.packet)) == effect.packet


def packets_of_another_protocol_are_refused(plan: StackPlan) -> None:
    foreign = {packet for other in PROTOCOLS.values() for packet in other.layer.PACKETS}
    for layer, stack in alone(plan):
        for packet in foreign.difference(layer.PACKETS):
            sent = packet(*(example_of(kind, 1) for _, kind in packet.FIELDS))
            refused = refusal(stack, 3, sent)
            assert f"process 3 sent {packet.__name__}, which" in str(refused), (
                f"{layer.__name__} takes {packet.__name__}, which is foreign, or does not say "
                f"who sent it: {refused}"
            )
            assert stack.take_effects() == []


def first_packet(layer: type[Layer], destinations: tuple[int, ...]) -> Packet:
    """What a client's multicast to these destinations sends out."""
    first = layer.PACKETS[0]
    m = Message(message_id(SIZE, 0), destinations, b"")
    nothing: dict[int, object] = {MESSAGE: m, TEXT: "", BYTES: b"", PACKET: Quoted(0)}
    nothing |= dict.fromkeys((INTS, MESSAGES, ALL_BYTES, PACKETS), ())
    return first(*(nothing.get(kind, 0) for _, kind in first.FIELDS))


def a_message_for_others_is_refused(plan: StackPlan) -> None:
    """A correct peer sends a multicast to its destinations only; to deliver it would be wrong."""
    for destinations in ((), (0, 2)):
        for layer, stack in alone(plan):
            before = fingerprint(stack)
            refused = refusal(stack, SIZE, first_packet(layer, destinations))
            assert refused is not None, f"process 1 takes a message to {destinations}"
            assert fingerprint(stack) == before, "a packet that was refused changed the state"
            assert stack.take_effects() == []


def nothing_is_sent_to_processes_that_do_not_exist(plan: StackPlan) -> None:
    """A message may name some, if a peer lies: the world has nobody to hand packets to."""
    for destinations in ((1, SIZE), (1, 2, SIZE + 70)):
        for layer, stack in alone(plan):
            if refusal(stack, SIZE, first_packet(layer, destinations)) is not None:
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
