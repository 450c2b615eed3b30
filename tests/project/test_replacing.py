"""Tests that replace a part of the package run where that has an effect: in the pure form.

Compiled code does not look up the functions that it calls. So whoever replaces one is in a file
`test_pure_*.py`, and where the compiled form is tested, each of these files is run here.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from flexgroup._pure import compiled

from .sources import PACKAGE, ROOT, SOURCE, constant_of_setup, tree

TESTS = ROOT / "tests"
PURE = sorted(TESTS.rglob("test_pure_*.py"))

if compiled():  # otherwise pytest collects them itself

    @pytest.mark.slow
    @pytest.mark.parametrize("path", PURE, ids=[str(path.relative_to(TESTS)) for path in PURE])
    def test_what_replaces_parts_of_the_package_passes(
        path: Path, request: pytest.FixtureRequest
    ) -> None:
        command = [sys.executable, "-m", "pytest", str(path), "-q", "-p", "no:cacheprovider"]
        command += ["-p", "no:xdist", "-m", request.config.getoption("markexpr")]
        run = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"FLEXGROUP_PURE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert run.returncode == 0, run.stdout


def test_whoever_replaces_what_is_compiled_is_run_in_the_pure_form() -> None:
    """Elsewhere it would have no effect, which a test that expects no error does not notice."""
    replacing = [path for path in TESTS.rglob("test_*.py") if names_of_replacing(path)]
    assert not set(replacing) - set(PURE), "name them test_pure_*.py"
    assert replacing  # otherwise nothing was looked at


@cache
def names_of_replacing(path: Path) -> frozenset[str]:
    """The functions and values of a test file that replace what is compiled, themselves or with
    something of another file; for the tests among them, pytest knows no other name."""
    imported = dict(imports_of(path))
    found = {
        name
        for name, (source, original) in imported.items()
        if source.is_relative_to(TESTS) and original in names_of_replacing(source)
    }
    is_more = True
    while is_more:
        more = {
            name
            for statement in tree(path).body
            for name in names_that_it_gives(statement)
            if replaces(statement, imported) or found.intersection(names_in(statement))
        }
        is_more = not more <= found
        found |= more
    return frozenset(found)


def imports_of(path: Path) -> Iterator[tuple[str, tuple[Path, str]]]:
    """What is imported from the package and from other tests: from which file, and its name there,
    which is empty for the module itself."""
    for node in tree(path).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        base = path.parents[node.level - 1] if node.level else SOURCE
        module = base.joinpath(*(node.module or "").split("."))
        for alias in node.names:
            name = alias.asname or alias.name
            if module.with_suffix(".py").is_file():
                yield name, (module.with_suffix(".py"), alias.name)
            elif (module / f"{alias.name}.py").is_file():
                yield name, (module / f"{alias.name}.py", "")


def names_that_it_gives(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


def names_in(statement: ast.stmt) -> set[str]:
    """Those that it uses; tests name the fixtures that they use as their arguments."""
    nodes = list(ast.walk(statement))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.arg for node in nodes if isinstance(node, ast.arg)}


def replaces(statement: ast.stmt, imported: dict[str, tuple[Path, str]]) -> bool:
    """Whether it replaces something of a compiled class, or what a compiled module defines."""
    for node in ast.walk(statement):
        match node:
            case ast.Call(ast.Attribute(attr="setattr"), [target, what, *_]):
                is_of_class = isinstance(target, ast.Attribute)
                name = target.value if isinstance(target, ast.Attribute) else target
                if not isinstance(name, ast.Name) or name.id not in imported:
                    continue
                source, original = imported[name.id]
                if is_compiled(source) and (original or is_of_class or defines(source, what)):
                    return True
    return False


def is_compiled(source: Path) -> bool:
    names = constant_of_setup("COMPILED")
    return source.is_relative_to(PACKAGE) and str(source.relative_to(PACKAGE)) in names


def defines(source: Path, what: ast.expr) -> bool:
    """Whether a module may define it so that compiled code does not look it up: variables it does,
    unless they are final."""
    if not isinstance(what, ast.Constant):
        return True
    for node in tree(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == what.value:
            return True
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == what.value:
            return ast.unparse(node.annotation).startswith("Final")
    return False
