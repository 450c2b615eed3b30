"""Compile the hot modules with mypyc where that is possible; see docs/compiling.md.

Everything else about the package stands in pyproject.toml.

The environment variable FLEXGROUP_PURE chooses:
    unset   compile if a C compiler is found; if anything fails, warn and go on in pure Python
    1       do not compile
    0       compile, and fail if that does not work (what `make compiled` asks for)
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Relative, because setuptools and mypyc name what they make after these paths; pip, make and
# a person in the root of the repository all start here.
ROOT = Path.cwd()
SOURCE = Path("src")
PACKAGE = SOURCE / "flexgroup"
WRITTEN_OUT = Path("build", "written-out")

# What is compiled: what runs millions of times. Protocols that are studied rather than run are
# not, since compiling takes minutes as it is. (Nor is core/errors.py: compiled, its classes could
# not be combined with those of Python, as in an error that is a TimeoutError as well.) A pattern
# may match nothing; a plain path must exist, so that a module that was renamed does not silently
# become slow.
COMPILED = (
    "client/connection.py",
    "client/inbox.py",
    "client/order.py",
    "client/outgoing.py",
    "client/receiving.py",
    "core/codec.py",
    "core/guarantees.py",
    "core/host.py",
    "core/journal.py",
    "core/layer.py",
    "core/message.py",
    "core/precedence.py",
    "core/replicas.py",
    "core/stack.py",
    "core/state.py",
    "core/varints.py",
    "load/closed_loops.py",
    "membership/beats.py",
    "membership/change.py",
    "membership/leader.py",
    "membership/machine.py",
    "membership/newcomers.py",
    "membership/next_configuration.py",
    "membership/outbox.py",
    "membership/patience.py",
    "membership/proposals.py",
    "membership/sides.py",
    "membership/suspicion.py",
    "protocols/abcast.py",
    "protocols/all2all_atomic.py",
    "protocols/atomic.py",
    "protocols/best_effort.py",
    "protocols/causal.py",
    "protocols/causal_rst.py",
    "protocols/dcc.py",
    "protocols/dcc_published.py",
    "protocols/df.py",
    "protocols/fifo.py",
    "protocols/ft_abcast.py",
    "protocols/leader.py",
    "protocols/log.py",
    "protocols/parts/daisy_chain.py",
    "protocols/parts/delivery_log.py",
    "protocols/parts/destination_agreement.py",
    "protocols/parts/detection.py",
    "protocols/parts/group_channels.py",
    "protocols/parts/group_timestamps.py",
    "protocols/parts/hypercube.py",
    "protocols/parts/known_messages.py",
    "protocols/parts/leading.py",
    "protocols/parts/ledger.py",
    "protocols/parts/new_leader.py",
    "protocols/parts/paxos_packets.py",
    "protocols/parts/patience.py",
    "protocols/parts/pbft_catching_up.py",
    "protocols/parts/pbft_log.py",
    "protocols/parts/pbft_packets.py",
    "protocols/parts/pbft_sequence.py",
    "protocols/parts/permit.py",
    "protocols/parts/primcast_packets.py",
    "protocols/parts/primcast_turn.py",
    "protocols/parts/proposals.py",
    "protocols/parts/ramcast_packets.py",
    "protocols/parts/ramcast_turn.py",
    "protocols/parts/senders.py",
    "protocols/parts/taken_messages.py",
    "protocols/parts/timestamp_vectors.py",
    "protocols/parts/timestamps.py",
    "protocols/parts/turn.py",
    "protocols/parts/view_changes.py",
    "protocols/parts/white_box_messages.py",
    "protocols/parts/white_box_packets.py",
    "protocols/parts/white_box_progress.py",
    "protocols/parts/white_box_turn.py",
    "protocols/paxos.py",
    "protocols/pbft.py",
    "protocols/primcast.py",
    "protocols/protected_memory.py",
    "protocols/ramcast.py",
    "protocols/reliable.py",
    "protocols/replicated.py",
    "protocols/safe.py",
    "protocols/skeen.py",
    "protocols/vcube_atomic.py",
    "protocols/vcube_atomic_published.py",
    "protocols/white_box.py",
    "server/clients/backpressure.py",
    "server/clients/confirmations.py",
    "server/clients/intake.py",
    "server/clients/members.py",
    "server/clients/replica_intake.py",
    "server/clients/session.py",
    "server/clients/turns.py",
    "server/connection.py",
    "server/clients/contents.py",
    "server/hosting/deployment.py",
    "server/hosting/hosted_domain.py",
    "server/hosting/replica.py",
    "server/hosting/replicas.py",
    "server/hosting/round.py",
    "server/peers/links.py",
    "server/peers/membership_host.py",
    "server/peers/pieces.py",
    "server/peers/replica_channel.py",
    "server/switchboard.py",
    "trace/recorder.py",
    "trace/rows.py",
    "virtual/clients.py",
    "virtual/internet.py",
    "virtual/loop.py",
    "virtual/network.py",
    "virtual/tcp.py",
    "virtual/world.py",
    "wire/frames.py",
    "wire/socket_writer.py",
    "workloads/subsets.py",
    "worlds/explorer/budgets.py",
    "worlds/explorer/exchange.py",
    "worlds/explorer/frontier.py",
    "worlds/explorer/in_flight.py",
    "worlds/explorer/machine.py",
    "worlds/explorer/ownership.py",
    "worlds/explorer/packed_states.py",
    "worlds/explorer/property_checks.py",
    "worlds/explorer/reduction.py",
    "worlds/explorer/search.py",
    "worlds/explorer/spilled.py",
    "worlds/explorer/symmetry.py",
    "worlds/explorer/visited.py",
    "worlds/network/domain.py",
    "worlds/network/envelope.py",
    "worlds/network/faults.py",
    "worlds/network/layer_files.py",
    "worlds/network/send_window.py",
    "worlds/network/stability.py",
    "worlds/simulator/channels.py",
    "worlds/simulator/clients.py",
    "worlds/simulator/engine.py",
    "worlds/simulator/events.py",
    "worlds/simulator/faults.py",
    "worlds/simulator/machine.py",
    "worlds/simulator/network.py",
)

# A compiled module may take types and constants from any module it imports, so a change there
# must compile again. The import rules (tests/project/test_imports.py) keep these packages out
# of reach of the compiled modules: a change in them costs nothing.
OUT_OF_REACH = {
    "cli",
    "diagram",
    "experiments",
    "metrics",
    "pipeline",
    "properties",
    "report",
    "runs",
    "sweeps",
    "testing",
}

# Nobody else calls the functions of the compiled modules. A C compiler has to be told so, or each
# call takes a detour by which another library could replace the function, and none is inlined.
CALLED_DIRECTLY = [] if os.name == "nt" else ["-fvisibility=hidden"]

# The commands that build, and those of them that build beside the sources.
BUILDING = {"build", "build_ext", "bdist_wheel", "editable_wheel"}
IN_PLACE = {"build_ext", "editable_wheel"}

MADE_FROM = Path("build", "compiled-from")  # the digest of what the last build was made from
STARTED = time.time()
CHOICE = os.environ.get("FLEXGROUP_PURE", "")


REMINDER_SECONDS = 15.0


@contextmanager
def announced(stage: str, usually: str) -> Iterator[None]:
    """Say what is done and how long that usually takes; then, now and then, for how long it has."""
    print(f"flexgroup: {stage}, usually {usually}", flush=True)
    begun = time.monotonic()
    is_done = threading.Event()

    def remind() -> None:
        while not is_done.wait(REMINDER_SECONDS):
            print(f"flexgroup: {stage}, for {time.monotonic() - begun:.0f} s", flush=True)

    threading.Thread(target=remind, daemon=True).start()
    try:
        yield
    finally:
        is_done.set()


def modules() -> list[Path]:
    found: set[Path] = set()
    for entry in COMPILED:
        if any(sign in entry for sign in "*?["):
            found.update(PACKAGE.glob(entry))
        elif (PACKAGE / entry).is_file():
            found.add(PACKAGE / entry)
        else:
            raise FileNotFoundError(f"setup.py compiles {entry}, but {PACKAGE / entry} is missing")
    # An empty __init__.py has nothing to gain.
    return sorted(p for p in found if p.name != "__init__.py" or p.read_text().strip())


def digest() -> str:
    """The digest of all that the compiled form depends on: sources, this file, Python, mypyc."""
    made_from = hashlib.sha256(f"{sys.version} {version('mypy')}".encode())
    for path in [Path("setup.py"), *sorted(PACKAGE.rglob("*.py"))]:
        if not OUT_OF_REACH.intersection(path.parts[2:3]):
            made_from.update(f"\n{path.as_posix()}\n".encode() + path.read_bytes())
    return made_from.hexdigest()


def extensions_in_source() -> set[Path]:
    return {path for path in SOURCE.rglob("*") if path.name.endswith(tuple(EXTENSION_SUFFIXES))}


def date(extensions: set[Path]) -> None:
    """Date them to when the build began: a source that was edited during the build is newer."""
    for path in extensions:
        os.utime(path, (STARTED, STARTED))


def up_to_date(made_from: str) -> bool:
    present = extensions_in_source()
    expected = {path.with_suffix(EXTENSION_SUFFIXES[0]) for path in modules()}
    if not expected <= present or not MADE_FROM.is_file() or MADE_FROM.read_text() != made_from:
        return False
    date(present)  # some source may be newer without being different
    return True


def compiler_missing() -> bool:
    if os.name == "nt":
        return False  # setuptools knows where to look; let it try
    command = os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")
    return shutil.which(shlex.split(command)[0]) is None


def give_up(problem: BaseException) -> None:
    """Fall back to pure Python; nothing half-built may stay where Python would import it."""
    for path in extensions_in_source():
        path.unlink()
    MADE_FROM.unlink(missing_ok=True)
    if CHOICE == "0":
        raise problem
    # mypyc has printed its reasons; what it raises is only an exit status.
    reason = "the reason stands above" if isinstance(problem, SystemExit) else problem
    print(
        f"\nflexgroup: WARNING: not compiled: {reason}\n"
        "flexgroup: WARNING: pure Python works the same, but slower\n",
        file=sys.stderr,
    )


def written_out() -> Path:
    """A copy of the sources for mypyc, in which what follows from declared fields stands too."""
    # Importing the package itself would import what an isolated build does not have.
    package = ModuleType("flexgroup")
    package.__path__ = [str(PACKAGE)]
    sys.modules["flexgroup"] = package
    from flexgroup._written_out import Package

    Package(PACKAGE).write(WRITTEN_OUT / SOURCE)
    return WRITTEN_OUT


def compiled_from(folder: Path) -> list[Extension]:
    """What mypyc makes of the modules in a copy of the sources."""
    from mypyc.build import mypycify

    # No configuration file: how strictly types are checked is the business of `make check`,
    # and an isolated build has no numpy to look at.
    options = ["--config-file=", "--ignore-missing-imports"]
    # Tracebacks of the compiled form name files as mypyc is told of them, from where it runs.
    with chdir(folder):
        found: list[Extension] = mypycify(
            [*options, *map(str, modules())],
            opt_level="3",
            debug_level="0",
            target_dir=str(ROOT / "build"),
            group_name="flexgroup",
        )
    for extension in found:
        extension.sources = [os.path.relpath(source, ROOT) for source in extension.sources]
        extension.extra_compile_args = [*extension.extra_compile_args, *CALLED_DIRECTLY]
    return found


def extensions() -> list[Extension]:
    # pip also runs this file several times only to ask for metadata, and mypyc takes seconds.
    if CHOICE == "1" or not BUILDING.intersection(sys.argv):
        return []
    try:
        made_from = digest()
        if IN_PLACE.intersection(sys.argv) and up_to_date(made_from):
            print("flexgroup: the compiled modules are up to date")
            return []
        if compiler_missing():
            raise FileNotFoundError("no C compiler was found")
        with announced(f"translating {len(modules())} modules to C", "half a minute"):
            found = compiled_from(written_out())
        MADE_FROM.with_suffix(".next").write_text(made_from)
        return found
    # mypyc says what it cannot compile and then leaves: SystemExit
    except (Exception, SystemExit) as problem:
        give_up(problem)
        return []


class BuildCompiled(build_ext):
    """build_ext, all or nothing: compiled modules call each other without asking Python."""

    def run(self) -> None:
        names = [self.get_ext_filename(extension.name) for extension in self.extensions]
        if not names:
            return
        try:
            with announced("compiling the C code", "one to two minutes"):
                super().run()
        except Exception as problem:
            for name in names:
                Path(self.build_lib, name).unlink(missing_ok=True)
            self.extensions = self.distribution.ext_modules = []
            give_up(problem)
            return
        if self.inplace:
            made = {SOURCE / name for name in names}
            for path in extensions_in_source() - made:
                path.unlink()  # its module was renamed, or another Python built it
            date(made)
            MADE_FROM.with_suffix(".next").replace(MADE_FROM)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildCompiled})
