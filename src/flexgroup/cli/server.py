"""`flexgroup server`: the group server of a machine."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flexgroup.cli.arguments import Help, import_protocols
from flexgroup.core.errors import UsageError

EXAMPLE = """\
example:
  flexgroup server --listen 127.0.0.1:7400                            # the first
  flexgroup server --listen 127.0.0.1:7401 --join 127.0.0.1:7400      # joins it
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "server",
        help="a group server; processes on its machine connect to it",
        description="Serve groups until stopped (Ctrl-C or SIGTERM: in good order).",
        epilog=EXAMPLE,
        formatter_class=Help,
    )
    parser.add_argument("--name", help="the name of this server; default: host name and port")
    parser.add_argument(
        "--listen",
        default="127.0.0.1:7400",
        metavar="HOST:PORT",
        help="where clients and other servers connect; port 0 takes any (default: %(default)s)",
    )
    parser.add_argument("--unix", type=Path, metavar="PATH", help="a local socket for clients, too")
    parser.add_argument(
        "--join",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="a running server; several may be named, of which the first that answers is taken; "
        "without it, this server is the first",
    )
    parser.add_argument(
        "--tls", type=Path, metavar="DIR", help="mutual TLS, with certificates from this folder"
    )
    parser.add_argument("--trace", type=Path, metavar="DIR", help="record a trace there")
    parser.add_argument(
        "--patience",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="how long another server may be silent before it is suspected (default: %(default)s)",
    )
    parser.add_argument(
        "--no-rejoin",
        action="store_true",
        help="end when the others exclude this server, instead of joining them again",
    )
    parser.add_argument(
        "--protocols",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module, which registers protocols; every server needs the same",
    )
    parser.add_argument(
        "--until-input-ends",
        action="store_true",
        help="stop when standard input ends, so that it never outlives what started it",
    )
    parser.add_argument("--log", choices=("text", "json", "none"), default="text")
    parser.add_argument("--json", action="store_true", help="say where it listens as JSON")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--largest-message", type=int, metavar="BYTES")
    limits.add_argument(
        "--pack", type=int, metavar="MESSAGES",
        help="how many messages of clients may share a multicast; 1: every one gets its own",
    )  # fmt: skip
    limits.add_argument("--queue", type=int, metavar="MESSAGES")
    limits.add_argument("--slow-seconds", type=float, metavar="SECONDS")
    trials = parser.add_argument_group("faults below the stacks, for trials")
    trials.add_argument("--loss", type=float, default=0.0, metavar="SHARE")
    trials.add_argument("--duplication", type=float, default=0.0, metavar="SHARE")
    trials.add_argument("--reordering", type=float, default=0.0, metavar="SHARE")
    trials.add_argument("--seed", type=int, default=1)
    parser.set_defaults(run=run)


def collect_garbage_seldom() -> None:
    """What a message leaves behind is freed at once, without the collector; what was loaded up to
    now stays, and need not be looked through again and again."""
    import gc

    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def run(options: argparse.Namespace) -> int:
    import asyncio
    import signal

    from flexgroup.server.log import set_up_logging
    from flexgroup.server.server import GroupServer
    from flexgroup.wire import event_loop

    set_up_logging(options.log)
    settings = settings_of(options)

    async def serve() -> str:
        server = GroupServer(settings)
        collect_garbage_seldom()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.stop)

        if options.until_input_ends:
            stop_at_end_of_input(server.stop)

        def ready() -> None:
            if options.json:
                told = {"server": server.settings.name, "address": server.address}
                print(json.dumps(told), flush=True)
            else:
                print(f"{server.settings.name} serves at {server.address}", flush=True)

        return await server.run(ready)

    event_loop.run(serve())
    return 0


def stop_at_end_of_input(stop: Callable[[], None]) -> None:
    import asyncio
    import os
    import sys

    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()

    def readable() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            stop()

    loop.add_reader(descriptor, readable)


def check(options: argparse.Namespace) -> None:
    """Limits under which a server can live, and another server to join."""
    for option, least in (("largest_message", 1), ("pack", 1), ("queue", 1)):
        value = getattr(options, option)
        if value is not None and value < least:
            raise UsageError(f"--{option.replace('_', '-')} {value}: give {least} or more")
    for option in ("patience", "slow_seconds"):
        value = getattr(options, option)
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"--{option.replace('_', '-')} {value:g}: give seconds above 0")
    if options.join and not others(options):
        raise UsageError(
            f"a server cannot join itself: {options.join[0]} is where it listens; "
            "name another server with --join, or leave that out if this is the first"
        )


def others(options: argparse.Namespace) -> tuple[str, ...]:
    """The servers that may be joined. All may be started with the same list."""
    from flexgroup.wire.address import parse_server_address

    here = parse_server_address(options.listen)
    return tuple(address for address in options.join if parse_server_address(address) != here)


def settings_of(options: argparse.Namespace) -> Any:
    from flexgroup.server.limits import Limits
    from flexgroup.server.membership import Timings
    from flexgroup.server.settings import Settings
    from flexgroup.wire.address import parse_server_address
    from flexgroup.worlds.network.faults import Faults

    listen = parse_server_address(options.listen)
    check(options)
    import_protocols(options.protocols)
    chosen: dict[str, Any] = {
        name: value
        for name, value in (
            ("largest_message", options.largest_message),
            ("pack", options.pack),
            ("queue", options.queue),
            ("slow_seconds", options.slow_seconds),
        )
        if value is not None
    }
    tls_server = tls_client = None
    if options.tls is not None:
        from flexgroup.wire.certificates import client_context, server_context

        tls_server = server_context(options.tls)
        tls_client = client_context(options.tls, "server")
    return Settings(
        name=options.name or "",
        host=listen.host,
        port=listen.port,
        unix=options.unix,
        join=others(options),
        trace=options.trace,
        tls_server=tls_server,
        tls_client=tls_client,
        limits=Limits(**chosen),
        timings=Timings(patience=options.patience),
        faults=Faults(options.loss, options.duplication, options.reordering, options.seed),
        rejoin=not options.no_rejoin,
    )
