"""`flexgroup bench`: throughput and latency of a stack on the real network."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import declare, print_json
from flexgroup.cli.progress import progress_bar
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.cli.arguments import Commands
    from flexgroup.load.closed_loops import Load
    from flexgroup.load.processes import LoadProcess

NAME = "bench"
"""Of the process that creates the group; with TLS, of its certificate."""

EXAMPLE = (
    'flexgroup bench --stack "RELIABLE ATOMIC" --servers 3 --clients 64 --payload 64 --duration 5'
)

MOST_CLIENTS = 1 << 16
"""That a message has room to name, were all of them at one member."""


def add_to(commands: Commands) -> None:
    parser = declare(
        commands, "bench", run, "throughput and latency of a stack on the real network", EXAMPLE
    )
    parser.description = (
        "Start servers on this machine, or connect to running ones, and a member process for each;"
        " every client is a loop that sends a message to all members and the next one when that"
        " has come back, in its place in the order."
    )
    add = parser.add_argument
    add("--stack", default="RELIABLE ATOMIC", metavar="S",
        help="of the group that is used (RELIABLE ATOMIC)")  # fmt: skip
    add("--servers", type=int, default=3, metavar="N", help="how many to start (3)")
    add("--connect", action="append", metavar="HOST:PORT",
        help="a running server to use instead; may be repeated")  # fmt: skip
    add(
        "--tls",
        type=Path,
        metavar="DIR",
        help="mutual TLS; of servers that are started here, the certificates are put there",
    )
    add("--clients", type=int, default=64, metavar="N", help="closed loops, over all members (64)")
    add("--payload", type=int, default=64, metavar="BYTES", help="of a message (64)")
    add("--duration", type=float, default=5.0, metavar="S", help="measured seconds (5)")


@dataclass(frozen=True)
class Figures:
    """What one measurement comes to."""

    load: Load
    server_cpu: float
    """Seconds of processor time of all servers."""

    def microseconds(self, cpu: float) -> float:
        """Of processor time, a message."""
        return cpu / self.load.completed * 1e6 if self.load.completed else 0.0


def run(options: argparse.Namespace) -> int:
    check(options)
    with ExitStack() as stack:
        if options.connect:
            addresses = options.connect
        else:
            from flexgroup.server.local_cluster import LocalCluster

            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            more = ["--log", "none"]
            if options.tls is not None:
                make_certificates_for(options)
                more += ["--tls", str(options.tls)]
            servers = LocalCluster(options.servers, folder, more)
            addresses = stack.enter_context(servers).addresses
        figures = bench(options, addresses)
    show(options, len(addresses), figures)
    return 0


def check(options: argparse.Namespace) -> None:
    from flexgroup.load.closed_loops import SMALLEST_PAYLOAD
    from flexgroup.protocols.catalogue import parse_stack

    parse_stack(options.stack)
    if options.clients < 1:
        raise UsageError(f"{options.clients} clients send nothing; give a number from 1 on")
    if options.clients > MOST_CLIENTS:
        raise UsageError(f"{options.clients} clients are too many; give up to {MOST_CLIENTS}")
    if options.payload < SMALLEST_PAYLOAD:
        raise UsageError(
            f"a payload of {options.payload} bytes has no room for whose it is and when it was"
            f" sent; give {SMALLEST_PAYLOAD} or more"
        )
    if not 0 < options.duration < float("inf"):
        raise UsageError(
            f"a duration of {options.duration} s is not possible; give seconds above 0"
        )


def make_certificates_for(options: argparse.Namespace) -> None:
    from flexgroup.wire.certificates import make_certificates

    # The names that the processes of `flexgroup.load.member` take.
    members = [f"member-{number}" for number in range(options.servers)]
    make_certificates(options.tls, [NAME, *members])


def bench(options: argparse.Namespace, addresses: list[str]) -> Figures:
    from flexgroup.client import blocking
    from flexgroup.load.closed_loops import share_of
    from flexgroup.load.processes import measure, started

    group = f"bench-{secrets.token_hex(4)}"
    with ExitStack() as stack:
        links = [
            stack.enter_context(blocking.connect(address, name=NAME, tls=options.tls))
            for address in addresses
        ]
        created = blocking.Group(links[0], group)
        created.create(options.stack, owner=NAME)
        stack.callback(created.destroy)
        program = [sys.executable, "-m", "flexgroup.load.member"]
        commands = [
            [
                *program, address, "--group", group, "--number", str(number),
                "--loops", str(share_of(options.clients, len(addresses), number)),
                "--payload", str(options.payload),
                *(("--tls", str(options.tls)) if options.tls is not None else ()),
            ]
            for number, address in enumerate(addresses)
        ]  # fmt: skip
        members: list[LoadProcess] = stack.enter_context(started(commands))

        def cpu_of_servers() -> float:
            return sum(float(link.inspect()["totals"]["cpu_seconds"]) for link in links)

        with progress_bar(f"measuring {options.stack}", wanted=not options.json) as progress:
            load, server_cpu = measure(members, options.duration, cpu_of_servers, progress)
    return Figures(load, server_cpu)


def show(options: argparse.Namespace, servers: int, figures: Figures) -> None:
    load = figures.load
    server_cpu = figures.microseconds(figures.server_cpu)
    member_cpu = figures.microseconds(load.cpu - figures.server_cpu)
    if options.json:
        print_json(
            {
                "stack": options.stack,
                "servers": servers,
                "clients": options.clients,
                "payload": options.payload,
                "seconds": load.seconds,
                "messages_a_second": load.throughput,
                "deliveries_a_second": load.delivered / load.seconds,
                "p50_ms": load.percentile(0.5),
                "p99_ms": load.percentile(0.99),
                "server_cpu_us": server_cpu,
                "member_cpu_us": member_cpu,
                "load": load.to_json(),
            }
        )
        return
    print(
        f"{options.stack}: {servers} servers, {options.clients} clients,"
        f" {options.payload} bytes, {load.seconds:g} s"
    )
    print(
        f"  throughput {load.throughput:,.0f} messages/s,"
        f" {load.delivered / load.seconds:,.0f} deliveries/s"
    )
    print(f"  latency p50 {load.percentile(0.5):.3f} ms, p99 {load.percentile(0.99):.3f} ms")
    print(f"  processor time a message: servers {server_cpu:.1f} us, members {member_cpu:.1f} us")
