"""The two forms of the package: which one runs, and that an old compiled one never does."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import traceback
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from flexgroup import _pure
from flexgroup.core.errors import PeerError
from flexgroup.core.layer import Context
from flexgroup.core.message import Message
from flexgroup.protocols.skeen import Skeen, Start

from .sources import PACKAGE, ROOT, SOURCES, constant_of_setup, dotted, imports, nodes

SUFFIX = EXTENSION_SUFFIXES[0]

IMPORT_CORE = """
import flexgroup.core.message, flexgroup._pure
print(flexgroup._pure.compiled(), flexgroup.core.message.__file__)
"""


def python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environ, capture_output=True, text=True
    )


def test_the_pure_form_runs_on_request_whatever_is_compiled() -> None:
    run = python(IMPORT_CORE, FLEXGROUP_PURE="1")
    assert run.returncode == 0, run.stderr
    is_compiled, file = run.stdout.split()
    assert is_compiled == "False"
    assert file.endswith("message.py")


def test_compiled_modules_are_not_older_than_their_sources() -> None:
    assert _pure.edited_since_compiled() == [], "run `make compiled`"


@pytest.mark.skipif(os.environ.get("FLEXGROUP_PURE") == "1", reason="the pure form was asked for")
@pytest.mark.skipif(
    not shutil.which("cc") or not Path(sysconfig.get_path("include"), "Python.h").is_file(),
    reason="there is nothing to compile with",
)
def test_what_can_be_compiled_is_compiled() -> None:
    """Otherwise a module that mypyc cannot compile would go unnoticed but for its slowness."""
    assert _pure.compiled(), "run `make compiled` to see why not, or `make pure` to test this form"


def test_an_isolated_build_has_all_that_classes_are_derived_from() -> None:
    """Where pip builds without these, mypyc does not know the fields of such classes, gives up,
    and the package is installed in pure Python."""
    derived_from = {
        base.partition(".")[0]
        for path in in_reach([PACKAGE / name for name in constant_of_setup("COMPILED")])
        for base in base_classes(path)
    }
    others = derived_from - sys.stdlib_module_names - {"flexgroup"}
    assert "msgspec" in others  # otherwise nothing was looked at
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    required = {re.split(r"[^\w.-]", line)[0].lower() for line in build["requires"]}
    distributions = packages_distributions()
    missing = {name for name in others if required.isdisjoint(map(str.lower, distributions[name]))}
    assert not missing, f"add to the requirements of [build-system]: {sorted(missing)}"


def in_reach(modules: list[Path]) -> set[Path]:
    """These modules and all that they import, directly or through others: mypyc reads them."""
    files = {f"flexgroup.{dotted(path)}": path for path in SOURCES}
    todo, reached = set(modules), set[Path]()
    while todo:
        path = todo.pop()
        reached.add(path)
        todo |= {files[found.module] for found in imports(path) if found.module in files} - reached
    return reached


def base_classes(path: Path) -> Iterator[str]:
    """The classes that those of a file are derived from, where an import says whose they are."""
    imported = {}
    for node in nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                imported[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in nodes(path):
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            while isinstance(base, ast.Subscript | ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and base.id in imported:
                yield imported[base.id]


def test_a_traceback_names_the_line_that_people_read() -> None:
    """Also in the compiled form, which is made from a copy in which more is written out."""
    skeen = Skeen(Context(0, 1))
    with pytest.raises(PeerError) as caught:
        skeen.on_packet(0, Start(Message(0, (5,), b"")))
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.filename.endswith("src/flexgroup/protocols/skeen.py")
    lines = (PACKAGE / "protocols" / "skeen.py").read_text().splitlines()
    assert lines[(frame.lineno or 0) - 1].strip() == "raise self.refuse(sender, packet)"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A source tree with this mechanism and one module, `core.message`, as if compiled."""
    package = tmp_path / "src" / "flexgroup"
    (package / "core").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    shutil.copy(PACKAGE / "_pure.py", package)
    (package / "__init__.py").write_text("from flexgroup._pure import choose_form\nchoose_form()\n")
    (package / "core" / "__init__.py").touch()
    (package / "core" / "message.py").touch()
    # Importing it fails; these tests look only at which of the two Python would take.
    (package / "core" / f"message{SUFFIX}").write_text("not an extension")
    return package


def date(path: Path, when: int) -> None:
    os.utime(path, (when, when))


def found(package: Path, **environ: str) -> tuple[str, str]:
    run = python(
        "from importlib.util import find_spec; print(find_spec('flexgroup.core.message').origin)",
        PYTHONPATH=str(package.parent),
        FLEXGROUP_PURE="",
        **environ,
    )
    assert run.returncode == 0, run.stderr
    return Path(run.stdout.strip()).name, run.stderr


def test_a_fresh_extension_is_taken(copy: Path) -> None:
    date(copy / "core" / "message.py", 1_000)
    date(copy / "core" / f"message{SUFFIX}", 1_000)
    assert found(copy) == (f"message{SUFFIX}", "")


def test_an_edited_source_is_taken_and_that_is_said(copy: Path) -> None:
    date(copy / "core" / "message.py", 2_000)
    date(copy / "core" / f"message{SUFFIX}", 1_000)
    name, said = found(copy)
    assert name == "message.py"
    assert "core/message.py changed since it was compiled" in said


def test_times_mean_nothing_outside_a_source_tree(copy: Path) -> None:
    (copy.parents[1] / "pyproject.toml").unlink()
    date(copy / "core" / "message.py", 2_000)
    date(copy / "core" / f"message{SUFFIX}", 1_000)
    assert found(copy) == (f"message{SUFFIX}", "")


def test_an_extension_without_its_source_is_not_taken(copy: Path) -> None:
    (copy / "core" / "message.py").unlink()
    run = python("import flexgroup.core.message", PYTHONPATH=str(copy.parent), FLEXGROUP_PURE="")
    assert "flexgroup.core.message is compiled, but has no source" in run.stderr
