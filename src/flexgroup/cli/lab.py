"""`flexgroup lab`: a local page on which a protocol is run step by step."""

from __future__ import annotations

import argparse
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import Command, Option, path_here
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.lab.address import Address

LAST_PORT = 65535

COMMAND = Command(
    "lab",
    "a local page on which a protocol is run, stepped and broken",
    "flexgroup lab",
    (
        Option(
            "path", nargs="?", type=path_here,
            help="a script to open, or a trace set with a recorded run",
        ),
        Option(
            "--run", dest="recorded", metavar="NAME",
            help="which run of the trace set (the only one)",
        ),
        Option(
            "--port", type=int, default=0, metavar="P", help="where to listen (any that is free)"
        ),
    ),
    "Serve a page on this machine alone, and say where, until stopped (Ctrl-C). Every link on it "
    "is a run.",
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
    opened = _opened(options.path, options.recorded) if options.path is not None else None
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, options.port))
        except OSError as error:
            raise UsageError(
                f"cannot listen at {HOST}:{options.port}: {error.strerror}; choose another --port"
            ) from None
        port = listening.getsockname()[1]
        hosts = frozenset({f"{HOST}:{port}", f"localhost:{port}"})
        lab = Lab(options.protocols)
        address = f"http://{HOST}:{port}/" + (f"run?{opened.query}" if opened else "")
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
        with suppress(KeyboardInterrupt):  # which is how one stops it
            uvicorn.Server(config).run(sockets=[listening])
    return 0


def _opened(path: Path, name: str | None) -> Address:
    from flexgroup.lab.opened import open_script
    from flexgroup.lab.recorded import script_of_trace
    from flexgroup.lab.stepping import stand_at

    try:
        text = script_of_trace(path, name) if path.is_dir() else path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        raise UsageError(f"'{path}' is not a text; give a script or a trace set") from None
    try:
        address = open_script(text)
        return stand_at(address.whole).address.at(0)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
