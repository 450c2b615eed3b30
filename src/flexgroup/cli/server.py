"""`flexgroup server`: the group server of a machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import (
    Command,
    Group,
    Option,
    flag,
    from_one,
    path_here,
    repeated,
    seconds,
    tls_option,
)
from flexgroup.core.errors import UsageError
from flexgroup.liars.named import ATTACKERS
from flexgroup.wire.address import DEFAULT_PORT, parse_server_address

if TYPE_CHECKING:
    from flexgroup.server.settings import Settings
    from flexgroup.wire.seals import SealKeys

MOST_FILES = 1 << 16
LONGEST_ORDER = 16
"""So many bytes of a line on standard input are kept; orders are shorter."""

LIMITS = ("largest_message", "pack", "queue", "slow_seconds")
"""The options that are fields of `flexgroup.server.settings.Limits`."""


COMMAND = Command(
    "server",
    "a group server; processes on its machine connect to it",
    """\
flexgroup server --listen 127.0.0.1:7400                            # the first
  flexgroup server --listen 127.0.0.1:7401 --join 127.0.0.1:7400      # joins it
""",
    (
        Option("--name", help="the name of this server; default: host name and port"),
        Option(
            "--listen", default=f"127.0.0.1:{DEFAULT_PORT}", metavar="HOST:PORT",
            help="where clients and other servers connect; port 0 takes any (%(default)s)",
        ),
        Option("--unix", type=path_here, metavar="PATH", help="a local socket for clients, too"),
        repeated(
            "--join", "HOST:PORT",
            "a running server; several may be named, of which the first that answers is taken; "
            "without it, this server is the first",
        ),
        tls_option(),
        Option(
            "--seals", type=path_here, metavar="DIR",
            help="the folder with the key of this server and the public keys of all, for groups "
            "that tolerate liars; see flexgroup certificates",
        ),
        Option(
            "--data", type=path_here, metavar="DIR",
            help="keep there what this server needs to come back as the same one when it is "
            "started again; then neither --name nor --join is needed",
        ),
        Option("--trace", type=path_here, metavar="DIR", help="record a trace there"),
        Option(
            "--patience", type=seconds, default=2.0, metavar="SECONDS",
            help="how long another server may be silent before it is suspected, at most "
            "(%(default)s), 0.5 or more; the same for all servers",
        ),
        Option(
            "--least-patience", type=seconds, metavar="SECONDS",
            help="how long at least, where links are quick (a quarter of --patience, but not less "
            "than five beats and 0.5); as much as --patience: always that long",
        ),
        flag(
            "--no-rejoin",
            "end when the others exclude this server, instead of joining them again",
        ),
        flag(
            "--until-input-ends",
            "stop when standard input ends, so that it never outlives what started it",
        ),
        Option(
            "--log", choices=("text", "json", "none"), default="text",
            help="how the log on standard error is written (%(default)s)",
        ),
        Group(
            "limits",
            Option("--largest-message", type=from_one, metavar="BYTES"),
            Option(
                "--pack", type=from_one, metavar="MESSAGES",
                help="how many messages of clients may share a multicast; 1: every one gets its "
                "own",
            ),
            Option(
                "--queue", type=from_one, metavar="MESSAGES",
                help="how many messages may wait for a client before senders are slowed down",
            ),
            Option(
                "--slow-seconds", type=seconds, metavar="SECONDS",
                help="how long the queue of a client may stay full before the client is given up",
            ),
        ),
        Group(
            "faults below the stacks, for trials",
            *(
                Option(name, type=float, default=0.0, metavar="SHARE")
                for name in ("--loss", "--duplication", "--reordering")
            ),
            Option(
                "--attack", choices=tuple(ATTACKERS), metavar="KIND",
                help="make this server a liar, which breaks its groups of replicas: "
                f"{', '.join(ATTACKERS)}; for trials only",
            ),
            Option(
                "--yes-this-server-lies", metavar="NAME", dest="lies",
                help="with --attack: the name of the server once more, since no group that matters "
                "must have such a server by mistake",
            ),
            Option("--seed", type=int, default=1),
            flag(
                "--cut-by-input",
                "the line `cut` on standard input cuts this server off from the others, and the "
                "line `mend` ends that; goes with --until-input-ends",
            ),
        ),
    ),
    "Serve groups until stopped (Ctrl-C or SIGTERM: in good order).",
    "say where it listens as JSON",
)  # fmt: skip


def collect_garbage_seldom() -> None:
    """Let the collector look at little, and seldom.

    What a message leaves behind is freed at once, without the collector; and what was loaded up to
    now stays, so it need not be looked through again and again.
    """
    import gc

    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def allow_many_connections() -> None:
    """Let this process have as many open files, and so connections, as the system permits."""
    import sys
    from contextlib import suppress

    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def run(options: argparse.Namespace) -> int:
    import asyncio
    import signal

    from flexgroup.server.log import set_up_logging
    from flexgroup.server.server import GroupServer
    from flexgroup.wire import event_loop

    set_up_logging(options.log)
    allow_many_connections()
    settings = settings_of(options)

    async def serve() -> str:
        server = GroupServer(settings)
        collect_garbage_seldom()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.stop)

        if options.until_input_ends:
            orders = {}
            if options.cut_by_input:
                orders = {b"cut": lambda: server.cut(True), b"mend": lambda: server.cut(False)}
            follow_input(orders, server.stop)

        def ready() -> None:
            if options.json:
                told = {"server": server.identity.name, "address": server.address}
                print(json.dumps(told), flush=True)
            else:
                print(f"{server.identity.name} serves at {server.address}", flush=True)

        return await server.run(ready)

    event_loop.run(serve())
    return 0


def follow_input(orders: Mapping[bytes, Callable[[], None]], stop: Callable[[], None]) -> None:
    """Do what the lines of standard input say, and stop when it ends."""
    import asyncio
    import os
    import sys

    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    rest = b""

    def readable() -> None:
        nonlocal rest
        data = os.read(descriptor, 4096)
        if not data:
            loop.remove_reader(descriptor)
            stop()
        *lines, rest = (rest[-LONGEST_ORDER:] + data).split(b"\n")
        for line in lines:
            if line in orders:
                orders[line]()

    loop.add_reader(descriptor, readable)


def other_servers(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the servers that may be joined; all may be started with the same list."""
    here = parse_server_address(options.listen)
    others = tuple(address for address in options.join if parse_server_address(address) != here)
    if options.join and not others:
        raise UsageError(
            f"a server cannot join itself: {options.join[0]} is where it listens; "
            "name another server with --join, or leave that out if this is the first"
        )
    return others


def settings_of(options: argparse.Namespace) -> Settings:
    from flexgroup.membership.timings import Timings
    from flexgroup.server.settings import Limits, Settings
    from flexgroup.wire.certificates import SERVER, client_context, server_context
    from flexgroup.worlds.network.faults import Faults

    listen = parse_server_address(options.listen)
    join = other_servers(options)
    if options.cut_by_input and not options.until_input_ends:
        raise UsageError("--cut-by-input follows standard input: give --until-input-ends, too")
    _check_attack(options)
    chosen: dict[str, Any] = {name: getattr(options, name) for name in LIMITS}
    tls: Path | None = options.tls
    return Settings(
        name=options.name or "",
        host=listen.host,
        port=listen.port,
        unix=options.unix,
        join=join,
        data=options.data,
        trace=options.trace,
        tls_server=None if tls is None else server_context(tls),
        tls_client=None if tls is None else client_context(tls, SERVER),
        limits=Limits(**{name: value for name, value in chosen.items() if value is not None}),
        timings=Timings.of(options.patience, options.least_patience),
        faults=Faults(options.loss, options.duplication, options.reordering, options.seed),
        rejoin=not options.no_rejoin,
        seals=_seals(options),
        attack=options.attack or "",
    )


def _seals(options: argparse.Namespace) -> SealKeys | None:
    """The keys in the folder that is given, if one is: those of the server of this name."""
    from flexgroup.wire.seals import read_seal_keys

    if options.seals is None:
        return None
    if not options.name:
        raise UsageError("--seals needs --name: keys are those of servers by name")
    return read_seal_keys(options.seals, options.name)


def _check_attack(options: argparse.Namespace) -> None:
    """Refuse to lie by accident."""
    if options.attack is None:
        if options.lies is not None:
            raise UsageError("--yes-this-server-lies says how sure you are of --attack KIND")
        return
    if not options.name or options.lies != options.name:
        raise UsageError(
            f"--attack {options.attack} makes this server lie to the others; if that is what you "
            "want, say its name twice: --name NAME --yes-this-server-lies NAME"
        )
    if options.data is not None:
        raise UsageError("--attack goes without --data: a liar comes back having forgotten all")
    print(
        f"{options.name} IS AN ATTACKER ({options.attack}): it breaks what it takes part in",
        file=sys.stderr,
        flush=True,
    )
