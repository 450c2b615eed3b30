"""`flexgroup lab`: a local page on which a protocol is run step by step."""

from __future__ import annotations

import argparse
import json
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import (
    Command,
    Group,
    Option,
    make_folder,
    path_here,
    protocols_for_servers,
    tls_option,
)
from flexgroup.core.errors import UsageError
from flexgroup.wire.address import parse_server_address

if TYPE_CHECKING:
    from flexgroup.lab.cluster import LiveCluster

LAST_PORT = 65535
STACK = "RELIABLE ATOMIC"

COMMAND = Command(
    "lab",
    "a local page on which a protocol is run, stepped and broken, and recorded runs are seen",
    "flexgroup lab",
    (
        Option(
            "paths", nargs="*", type=path_here, metavar="path",
            help="a script to open, or trace sets with recorded runs of any length",
        ),
        Option(
            "--run", dest="recorded", metavar="NAME",
            help="which run of the trace set to open (the only one, or a list of all)",
        ),
        Option(
            "--port", type=int, default=0, metavar="P", help="where to listen (any that is free)"
        ),
        Group(
            "a live cluster",
            Option(
                "--servers", type=int, metavar="N",
                help="start so many servers on this machine, which the page may kill and cut off",
            ),
            Option(
                "--stack", metavar="S",
                help=f"with --servers: the stack of the group at the beginning ({STACK})",
            ),
            Option(
                "--cluster", metavar="ADDRESS,...",
                help="look at running servers: one is enough, and knows the others",
            ),
            tls_option(", one of which is NAME's"),
            Option("--name", default="lab", help="with --tls: the name of the certificate (lab)"),
            Option(
                "--trace", type=path_here, metavar="DIR",
                help="where the servers record what they do, to be watched; with --servers, a "
                "folder that is removed at the end unless this names another",
            ),
        ),
    ),
    "Serve a page on this machine alone, and say where, until stopped (Ctrl-C). Every link on it "
    "is a run. With --servers or --cluster, it shows a live cluster as well.",
    "print where it is as a JSON object",
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    if not 0 <= options.port <= LAST_PORT:
        raise UsageError(f"--port {options.port} is not possible; give 0 to {LAST_PORT}")
    try:
        import uvicorn

        from flexgroup.lab.app import HOST, Lab
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the lab needs {error.name}, which is not installed: pip install 'flexgroup[lab]'"
        ) from None
    traces, page = _opened(options.paths, options.recorded)
    with ExitStack() as stack:
        live = _live(options, stack)
        listening = stack.enter_context(socket.socket())
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, options.port))
        except OSError as error:
            raise UsageError(
                f"cannot listen at {HOST}:{options.port}: {error.strerror}; choose another --port"
            ) from None
        port = listening.getsockname()[1]
        hosts = frozenset({f"{HOST}:{port}", f"localhost:{port}"})
        lab = Lab(options.protocols, traces, live)
        if page == "/" and live is not None:
            page = "/cluster"
        address = f"http://{HOST}:{port}{page}"
        listening.listen()
        print(json.dumps({"address": address}) if options.json else address, flush=True)
        config = uvicorn.Config(
            lab.application(lambda: hosts),
            log_level="error",
            access_log=False,
            server_header=False,
            limit_concurrency=32,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        lab.cluster.is_stopping = lambda: server.should_exit
        with suppress(KeyboardInterrupt):  # which is how one stops it
            server.run(sockets=[listening])
    return 0


def _live(options: argparse.Namespace, stack: ExitStack) -> LiveCluster | None:
    """The cluster that is to be shown, if any; one of its own is stopped with the stack."""
    from flexgroup.lab.cluster import LiveCluster
    from flexgroup.load.local_cluster import LocalCluster
    from flexgroup.protocols.catalogue import parse_stack

    if options.cluster is not None:
        if options.servers is not None or options.stack is not None:
            raise UsageError("--cluster is for servers that run: leave out --servers and --stack")
        addresses = [str(parse_server_address(each)) for each in options.cluster.split(",")]
        if options.trace is not None and not options.trace.is_dir():
            raise UsageError(f"--trace '{options.trace}' is not a directory; where do they record?")
        return LiveCluster(addresses, options.tls, options.trace, name=options.name)
    if options.servers is None:
        for name in ("stack", "tls", "trace"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} is about a cluster: give --servers or --cluster, too")
        return None
    if options.tls is not None:
        raise UsageError("servers of the lab's own do without TLS; leave out --tls")
    words = STACK if options.stack is None else options.stack
    parse_stack(words)
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="flexgroup-lab-")))
    traces = options.trace or folder / "traces"
    make_folder(traces, "--trace")
    arguments = ["--log", "json", "--patience", "1", "--cut-by-input", "--trace", str(traces)]
    arguments += protocols_for_servers(options)
    own = stack.enter_context(LocalCluster(options.servers, folder, arguments))
    return LiveCluster(own.addresses, traces=traces, own=own, stack=words)


def _opened(paths: Sequence[Path], name: str | None) -> tuple[Sequence[Path], str]:
    """Return the trace sets among the paths, and the page to begin with."""
    if paths and all(path.is_dir() for path in paths):
        return paths, _page_of_traces(paths, name)
    if len(paths) > 1:
        strange = next(path for path in paths if not path.is_dir())
        raise UsageError(f"'{strange}' is no trace set; give one script, or directories of traces")
    return (), "".join(_page_of_script(path) for path in paths) or "/"


def _page_of_script(path: Path) -> str:
    from flexgroup.lab.opened import open_script
    from flexgroup.lab.stepping import stand_at

    try:
        text = path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        raise UsageError(f"'{path}' is not a text; give a script or a trace set") from None
    try:
        return f"/run?{stand_at(open_script(text).whole).address.at(0).query}"
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _page_of_traces(directories: Sequence[Path], name: str | None) -> str:
    """Return the page of the run that is meant: one that can be stepped through is; and a list, if
    several may be meant."""
    from flexgroup.lab.recorded import run_of_name, steps_of
    from flexgroup.lab.traces import TraceSets
    from flexgroup.lab.window import RunName, Window
    from flexgroup.trace.timeline import events_told_of

    sets = TraceSets(directories)
    runs = [RunName(traces, run) for traces in sets.directories for run in sets.runs(traces)]
    meant = [run for run in runs if name in (None, run.run)]
    if not meant:
        run_of_name(directories[0], name)  # which says what runs there are
    if len(meant) != 1:
        return "/traces"
    directory, run = sets.directory(meant[0].traces), sets.run(meant[0])
    events_told_of(
        directory, run, sets.runs(meant[0].traces)
    )  # what is truncated or missing is told at once
    try:
        return f"/run?{steps_of(directory, run, sets.runs(meant[0].traces)).query}"
    except UsageError:
        return Window(meant[0]).path
