"""A scenario: everything that fixes a simulated run, and running it."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.message import MessageId
from flexgroup.core.replicas import Replicas, replicas_of_sizes
from flexgroup.liars.named import check_liars, liars_of, with_liars
from flexgroup.protocols.catalogue import Answers, parse_stack
from flexgroup.trace.recorder import Recorder, Sink
from flexgroup.workloads.catalogue import parse_workload
from flexgroup.workloads.replicated import Replicated
from flexgroup.worlds.simulator.charges import Charges, PricedNotary
from flexgroup.worlds.simulator.clients import SECOND, Clients
from flexgroup.worlds.simulator.engine import Simulation
from flexgroup.worlds.simulator.fault_plans import Faults, parse_faults
from flexgroup.worlds.simulator.faults import FaultPlan
from flexgroup.worlds.simulator.networks import (
    channel_guarantees,
    parse_links,
    parse_network,
    parse_time,
)

if TYPE_CHECKING:
    from flexgroup.trace.run import Run

EVENTS_AT_ONCE = 20_000
ROWS_AT_ONCE = 1 << 18

MOST_PROCESSES = 1 << 12
MOST_MESSAGES_A_SECOND = 1e9
MOST_CASTS = 1 << 20

FIRST = "first"
"""Who multicasts for a client, if it is the first destination."""

EVERYBODY = "all"
"""Who multicasts, in a planned multicast by every process."""

Progress = Callable[[float], None]
"""Told the share of the simulated duration that has passed, from 0 to 1."""


@dataclass(frozen=True)
class Scenario:
    """What to simulate. Equal scenarios give equal traces, to the byte."""

    stack: str
    processes: int = 16
    clients: int = 16
    workload: str = "random:4"
    network: str = "lan"
    duration: float = 1.0
    """Seconds of virtual time during which clients multicast."""
    seed: int = 1
    rate: float = 0.0
    """Messages per second and client in an open loop; 0 for a closed loop."""
    drain: float = 10.0
    """Seconds of virtual time, after `duration`, to finish what is under way."""
    faults: Faults = field(default_factory=Faults)
    casts: str = field(default="", repr=False)
    """Multicasts by members at planned times: with `0@0s all@10ms`, by process 0 at the start and
    by every process at 10 ms. Where a message goes, the workload says."""
    groups: str = field(default="", repr=False)
    """The groups of replicas that the processes are divided into: `10x3` for ten of three. The
    workload then draws groups. Empty for none; told in names only where there are any."""
    answers: str = field(default="", repr=False)
    """Who answers a client: `all` destinations or the `last`. Empty: as the protocol has it."""
    links: str = field(default="", repr=False)
    """Links with a delay of their own: `6:0=1us 0:1=2ms`, each from one process or client to
    another. Empty for none."""
    entry: str = field(default="", repr=False)
    """Who multicasts for a client: `first`, the first destination. Empty: the client itself, or, in
    stacks in which only members multicast, one of these."""

    def __post_init__(self) -> None:
        # Numbers that are equal must look equal: the name of the run is made of how they look.
        for name in ("duration", "rate", "drain"):
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("processes", "clients", "seed"):
            number = getattr(self, name)
            if number != int(number):
                raise UsageError(f"{name} is a whole number, not {number}")
            object.__setattr__(self, name, int(number))

    @property
    def run(self) -> str:
        """A name that tells people the run and differs when anything differs."""
        told = f"{self!r}{self.casts}{' '.join(self.faults.views)}{self.groups}"
        lying = " ".join(self.faults.liars)
        extras = (
            ("answers", self.answers), ("links", self.links), ("liars", lying),
            ("entry", self.entry),
        )  # fmt: skip
        for name, text in extras:
            told += f" {name}={text}" if text else ""
        digest = blake2b(told.encode(), digest_size=4).hexdigest()
        words = f"{self.stack} {self.workload} {self.processes}p {self.clients}c s{self.seed}"
        readable = "".join(c if c.isalnum() or c in "-." else "-" for c in words)
        return f"{readable}-{digest}"


@dataclass(frozen=True)
class SilentClient:
    """A client of a closed loop that never had the answer to a message, and so sent no other."""

    client: int
    message: MessageId
    crashed: tuple[int, ...]
    """Those that have crashed, of the processes that the message went to, or that multicast it for
    the client."""


@dataclass(frozen=True)
class SimulationResult:
    """What clients saw in a run, and how it ended; metrics of the run are those of its trace."""

    run: str
    complete: bool
    """Nothing was under way any more when the run ended."""
    multicasts: int
    answered: int
    deliveries: int
    events: int
    client_throughput: float
    """Multicasts answered within the duration, per second of it."""
    client_latency: float
    """Seconds from a multicast to the last answer that its client has waited for."""
    silent: tuple[SilentClient, ...] = ()
    """Clients that wait in vain: for a process that has crashed, or in a run with nothing under way
    any more."""
    turned_away: int = 0
    """Messages that clients handed to a process that had crashed, so that nobody multicast them."""


def run_scenario(
    scenario: Scenario,
    sink: Sink | None = None,
    progress: Progress | None = None,
    block: int = ROWS_AT_ONCE,
) -> SimulationResult:
    """Simulate; the trace goes to the sink, in blocks of about so many rows."""
    _check(scenario)
    plan = parse_stack(scenario.stack)
    total = scenario.processes + scenario.clients
    network = parse_network(scenario.network, parse_links(scenario.links, total))
    replicas = parse_groups(scenario.groups)
    plan.check_replicas(replicas, scenario.processes)
    if scenario.faults.recoveries:
        plan.check_restarts()
    workload = parse_workload(scenario.workload, len(replicas) or scenario.processes)
    if replicas:
        workload = Replicated(workload, replicas)
    faults = parse_faults(scenario.faults, scenario.processes, total)
    plan.promises(channel_guarantees(network, scenario.faults.drops))
    liars = liars_of(scenario.faults.liars)
    check_liars(liars, scenario.processes)
    codec = Codec(plan.layers)
    charges = Charges(network)

    random = Random(scenario.seed)
    stop_at = round(scenario.duration * SECOND)
    clients = Clients(
        size=scenario.processes,
        clients=scenario.clients,
        workload=workload,
        stop_at=stop_at,
        last_answers=_who_answers(scenario) == Answers.LAST,
        rate=scenario.rate,
        random=random,
        planned=parse_casts(scenario.casts, scenario.processes),
        members_only=plan.closed,
        by_first=scenario.entry == FIRST,
        replicas=replicas if plan.needs_replicas else (),
        liars=frozenset(dict(liars)),
    )
    recorder = Recorder(sink, block)
    simulation = Simulation(
        size=scenario.processes,
        clients=scenario.clients,
        build=with_liars(
            plan.builder(
                scenario.processes,
                replicas=replicas,
                notary_of=lambda process: PricedNotary(process, codec, charges),
            ),
            liars,
        ),
        codec=codec,
        network=network,
        faults=faults,
        application=clients,
        recorder=recorder,
        random=random,
        liars=frozenset(dict(liars)),
    )
    charges.hosts = simulation.hosts
    end_at = stop_at + round(scenario.drain * SECOND)
    with _no_garbage_collection():
        simulation.start()
        while simulation.run(end_at, min(EVENTS_AT_ONCE, block)):
            if progress is not None:
                progress(min(1.0, simulation.now / stop_at))
        recorder.flush()
    answered = clients.answered_count
    return SimulationResult(
        scenario.run,
        complete=len(simulation.queue) == 0,
        multicasts=clients.multicasts,
        answered=answered,
        deliveries=clients.deliveries,
        events=simulation.handled,
        client_throughput=clients.answered_in_time / scenario.duration,
        client_latency=clients.latency_sum / answered / SECOND if answered else 0.0,
        silent=tuple(_silent(clients, simulation, faults)),
        turned_away=clients.turned_away,
    )


def _silent(clients: Clients, simulation: Simulation, faults: FaultPlan) -> Iterator[SilentClient]:
    ended = len(simulation.queue) == 0
    crashed = {process for time, process in faults.crashes if time <= simulation.now}
    for client, message, concerned in clients.still_waiting():
        lost = tuple(sorted(crashed.intersection(concerned)))
        if lost or ended:
            yield SilentClient(client, message, lost)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A simulation makes millions of objects and no cycles of them: searching is lost time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def record_scenario(
    scenario: Scenario,
    directory: Path,
    force: bool = False,
    progress: Progress | None = None,
    part_rows: int | None = None,
) -> SimulationResult:
    """Simulate and write the run into a trace set.

    With `part_rows`, the trace can be read while the simulation runs, in parts of about so many
    rows; otherwise when it is over.
    """
    # Imported here because Arrow takes longer to load than a small simulation takes to run.
    from flexgroup.trace import schema
    from flexgroup.trace.writer import TraceWriter

    described = description(scenario)
    in_parts = part_rows is not None
    with TraceWriter(directory, scenario.run, force, in_parts) as writer:
        if in_parts:
            writer.announce(described)
        outcome = run_scenario(scenario, writer, progress, part_rows or ROWS_AT_ONCE)
        ended = schema.COMPLETE if outcome.complete else schema.CUT
        writer.close(replace(described, outcome=ended))
    return outcome


def description(scenario: Scenario) -> Run:
    """The row of the scenario's run, before it has ended."""
    from flexgroup.trace.cost_models import BY_ALL, BY_LAST, BY_LAST_GROUP, CostModel
    from flexgroup.trace.run import Run, channel_names
    from flexgroup.trace.writer import as_json

    _check(scenario)
    plan = parse_stack(scenario.stack)
    network = parse_network(scenario.network)
    channels = channel_guarantees(network, scenario.faults.drops)
    options = {"duration": scenario.duration, "drain": scenario.drain, "rate": scenario.rate}
    sometimes = {
        "casts": scenario.casts, "answers": scenario.answers, "links": scenario.links,
        "entry": scenario.entry,
    }  # fmt: skip
    answers = BY_ALL
    if _who_answers(scenario) == Answers.LAST:
        answers = BY_LAST_GROUP if scenario.groups and plan.needs_replicas else BY_LAST
    return Run(
        run=scenario.run,
        world="simulator",
        stack=scenario.stack,
        options=as_json(options | {name: text for name, text in sometimes.items() if text}),
        processes=scenario.processes,
        clients=scenario.clients,
        groups=as_json(parse_groups(scenario.groups)) if scenario.groups else None,
        workload=scenario.workload,
        network=scenario.network,
        faults=scenario.faults.text,
        faulty=tuple(dict(liars_of(scenario.faults.liars))),
        seed=scenario.seed,
        channels=channel_names(channels),
        promises=plan.promises(channels),
        # Where processors are shared, what a packet costs depends on what comes with it.
        cost_model=None
        if network.cores
        else CostModel(
            scenario.network.partition(":")[0],
            network.send_cost,
            network.receive_cost,
            network.byte_cost_ps,
            answers,
        ).text,
    )


def _who_answers(scenario: Scenario) -> Answers:
    if not scenario.answers:
        return parse_stack(scenario.stack).top.answers
    try:
        return Answers(scenario.answers)
    except ValueError:
        raise UsageError(
            f"--answers {scenario.answers}: write {' or '.join(Answers)}, whoever answers a client"
        ) from None


def _check(scenario: Scenario) -> None:
    if not 1 <= scenario.processes <= MOST_PROCESSES:
        raise UsageError(
            f"{scenario.processes} processes cannot be simulated; "
            f"give a number from 1 to {MOST_PROCESSES}"
        )
    fewest = 0 if scenario.casts else 1
    if not fewest <= scenario.clients <= MOST_PROCESSES:
        raise UsageError(
            f"{scenario.clients} clients cannot be simulated; "
            f"give a number from {fewest} to {MOST_PROCESSES}"
        )
    if not 0 < scenario.duration < 1e6:
        raise UsageError(
            f"a duration of {scenario.duration} s is not possible; give seconds above 0, under 1e6"
        )
    if not 0 <= scenario.rate <= MOST_MESSAGES_A_SECOND:
        raise UsageError(
            f"a rate of {scenario.rate} messages a second is not possible; "
            f"give 0 for a closed loop, or up to {MOST_MESSAGES_A_SECOND:g}"
        )
    if not 0 <= scenario.drain < 1e6:
        raise UsageError(f"a drain time of {scenario.drain} s is not possible; give 0 to 1e6")
    if scenario.entry not in ("", FIRST):
        raise UsageError(
            f"entry is '{scenario.entry}'; write '{FIRST}', or nothing if clients multicast"
        )
    if not 0 <= scenario.seed < 1 << 63:
        raise UsageError(f"the seed {scenario.seed} is not possible; give 0 to 2**63 - 1")


def parse_groups(text: str) -> Replicas:
    """The groups of replicas that `10x3` stands for: ten of three; none, for no text."""
    if not text:
        return ()
    match = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,3})", text)
    if match is None:
        raise UsageError(f"--groups {text}: write how many groups of how many, for example 10x3")
    return replicas_of_sizes([int(match[2])] * int(match[1]))


def parse_casts(text: str, processes: int) -> list[tuple[int, int]]:
    """The planned multicasts as (time, process); those of one process in the order written."""
    planned = [_planned(word, processes) for word in text.split()]
    count = sum(len(members) for _, members in planned)
    if count > MOST_CASTS:
        raise UsageError(f"{count} planned multicasts are too many; plan up to {MOST_CASTS}")
    casts = [(moment, member) for moment, members in planned for member in members]
    return sorted(casts, key=lambda cast: cast[0])


def _planned(word: str, processes: int) -> tuple[int, range]:
    """The time at which processes multicast, and which processes these are."""
    who, at, time = word.partition("@")
    if not at:
        raise UsageError(f"--cast '{word}': write PROCESS@TIME or all@TIME, for example 0@5ms")
    if who == EVERYBODY:
        return parse_time(time), range(processes)
    if not who.isdecimal() or int(who) >= processes:
        raise UsageError(
            f"--cast '{word}': '{who}' is not a process; they are 0 to {processes - 1}, or all"
        )
    return parse_time(time), range(int(who), int(who) + 1)
