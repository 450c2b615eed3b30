"""The files of the package, their syntax trees, each parsed once for all rules, and who imports
whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "flexgroup"
SOURCES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All of a file's tree, flat."""
    return list(ast.walk(tree(path)))


def constant_of_setup(name: str) -> Any:
    """A constant of setup.py, which cannot be imported without building."""
    (value,) = [
        node.value
        for node in tree(ROOT / "setup.py").body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name
    ]
    return ast.literal_eval(value)


@dataclass(frozen=True)
class Import:
    module: str
    line: int


def dotted(path: Path) -> str:
    """The module's name without the leading `flexgroup.`; `` for the top itself."""
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, top_level_only: bool = False) -> Iterator[Import]:
    """Every import of a file, also inside functions and under TYPE_CHECKING, absolute."""
    package = ["flexgroup", *path.relative_to(PACKAGE).parent.parts]
    for node in statements(tree(path)) if top_level_only else nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                if (module, alias.name) == ("flexgroup", "__version__"):
                    continue  # a constant, there for everyone
                # `from package import module` and `from module import name` look the same.
                inner = f"{module}.{alias.name}"
                yield Import(inner if is_module(inner) else module, node.lineno)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Those outside functions: they run, or are read by a type checker, at the import."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from statements(child)


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()
