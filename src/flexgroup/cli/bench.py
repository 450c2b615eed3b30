"""`flexgroup bench`: throughput and latency of a stack on the real network."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import (
    Command,
    Option,
    from_one,
    print_json,
    protocols_for_servers,
    repeated,
    seconds,
    tls_option,
)
from flexgroup.cli.progress import progress_bar
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.load.measurement import Load

NAME = "bench"
"""The process that creates the group has this name and, with TLS, a certificate for it."""

MOST_CLIENTS = 1 << 16
"""A message has room for so many different numbers of loops, were all of them at one member."""


COMMAND = Command(
    "bench",
    "throughput and latency of a stack on the real network",
    'flexgroup bench --stack "RELIABLE ATOMIC" --servers 3 --clients 64 --payload 64 --duration 5',
    (
        Option(
            "--stack", default="RELIABLE ATOMIC", metavar="S",
            help="the stack of the group that is used (RELIABLE ATOMIC)",
        ),
        Option("--servers", type=int, default=3, metavar="N", help="how many to start (3)"),
        repeated(
            "--connect", "HOST:PORT", "a running server to use instead; may be repeated",
        ),
        tls_option("; for servers that are started here, they are made there"),
        Option(
            "--clients", type=from_one, default=64, metavar="N",
            help="closed loops, over all members (64)",
        ),
        Option(
            "--payload", type=int, default=64, metavar="BYTES", help="the size of a message (64)"
        ),
        Option(
            "--duration", type=seconds, default=5.0, metavar="S", help="measured seconds (5)"
        ),
    ),
    "Start servers on this machine, or connect to running ones, and a member process for each;"
    " every client is a loop that sends a message to all members and the next one when that"
    " has come back, in its place in the order.",
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    check(options)
    with ExitStack() as stack:
        if options.connect:
            addresses = options.connect
        else:
            from flexgroup.load.local_cluster import LocalCluster

            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            more = ["--log", "none", *protocols_for_servers(options)]
            if options.tls is not None:
                make_certificates_for(options)
                more += ["--tls", str(options.tls)]
            servers = LocalCluster(options.servers, folder, more)
            addresses = stack.enter_context(servers).addresses
        load = bench(options, addresses)
    show(options, len(addresses), load)
    return 0


def check(options: argparse.Namespace) -> None:
    from flexgroup.load.closed_loops import SMALLEST_PAYLOAD
    from flexgroup.protocols.catalogue import parse_stack

    parse_stack(options.stack)
    if options.clients > MOST_CLIENTS:
        raise UsageError(f"{options.clients} clients are too many; give up to {MOST_CLIENTS}")
    if options.payload < SMALLEST_PAYLOAD:
        raise UsageError(
            f"a payload of {options.payload} bytes has no room for whose it is and when it was"
            f" sent; give {SMALLEST_PAYLOAD} or more"
        )


def make_certificates_for(options: argparse.Namespace) -> None:
    from flexgroup.wire.authority import make_certificates

    # The names that the processes of `flexgroup.load.member` take.
    members = [f"member-{number}" for number in range(options.servers)]
    make_certificates(options.tls, [NAME, *members])


def bench(options: argparse.Namespace, addresses: list[str]) -> Load:
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
        members = stack.enter_context(started(commands))

        def server_cpu() -> float:
            return sum(float(link.inspect()["totals"]["cpu_seconds"]) for link in links)

        with progress_bar(f"measuring {options.stack}", wanted=not options.json) as progress:
            return measure(members, options.duration, server_cpu, progress)


def show(options: argparse.Namespace, servers: int, load: Load) -> None:
    figures = load.summary()
    if options.json:
        print_json(
            {
                "stack": options.stack,
                "servers": servers,
                "clients": options.clients,
                "payload": options.payload,
                **asdict(figures),
                "load": load.counts(),
            }
        )
        return
    print(
        f"{options.stack}: {servers} servers, {options.clients} clients,"
        f" {options.payload} bytes, {figures.seconds:g} s\n"
        f"  throughput {figures.messages_a_second:,.0f} messages/s,"
        f" {figures.deliveries_a_second:,.0f} deliveries/s\n"
        f"  latency p50 {figures.p50_ms:.3f} ms, p90 {figures.p90_ms:.3f} ms,"
        f" p99 {figures.p99_ms:.3f} ms, longest {figures.max_ms:.3f} ms\n"
        f"  processor time a message: servers {figures.server_cpu_us:.1f} us,"
        f" members {figures.member_cpu_us:.1f} us"
    )
