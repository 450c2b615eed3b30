"""Sources in which everything that follows from declared fields is written out, for mypyc.

A class declares its fields once, and Python derives the rest when the class is created
(`flexgroup.core.fields`). mypyc compiles what stands in a source, so the build gives it a copy of
the package in which constructors, copies and FIELDS stand there too. No line moves: they go into
the two blank lines that follow every class, and a traceback of the compiled form tells the line of
the source that people read.

The build loads this module, and no other of the package but `flexgroup.core.fields`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from flexgroup.core import fields
from flexgroup.core.fields import Field

MARK = "dataclass_transform"
"""The decorator of the bases whose subclasses declare fields."""

PACKET = "flexgroup.core.message.Packet"
RECORD = "flexgroup.core.layer.Record"

FUTURE = "from __future__ import annotations"


class Declared(NamedTuple):
    """A class that declares fields: which of the marked bases it has, and all its fields.

    `homes` tells where the names in annotations and defaults of the fields come from.
    """

    base: str
    fields: tuple[Field, ...]
    homes: dict[str, str]


class Module:
    """One source: its lines, its classes, and what its global names stand for."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = text.split("\n")
        body = ast.parse(text).body
        self.classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
        self.homes = {class_: f"{name}.{class_}" for class_ in self.classes}
        self.aliases: dict[str, str] = {}
        for node in body:
            if isinstance(node, ast.ImportFrom):
                for found in node.names:
                    self.homes[found.asname or found.name] = f"{node.module}.{found.name}"
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                self.homes[ast.unparse(target)] = f"{name}.{ast.unparse(target)}"
                if isinstance(node, ast.Assign):
                    self.aliases[ast.unparse(target)] = ast.unparse(node.value)


class Package:
    """All modules of a package, by their full names."""

    def __init__(self, folder: Path) -> None:
        self.modules: dict[str, Module] = {}
        self.paths: dict[str, Path] = {}
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder.parent)
            parts = relative.with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.modules[name] = Module(name, path.read_text(encoding="utf-8"))
            self.paths[name] = relative

    def write(self, folder: Path) -> None:
        """Write everything out into this folder, which has nothing else in it afterwards."""
        wanted = set()
        for name, module in self.modules.items():
            self._write_out(module)
            path = folder / self.paths[name]
            wanted.add(path)
            text = "\n".join(module.lines)
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        for path in set(folder.rglob("*.py")) - wanted:
            path.unlink()

    def _write_out(self, module: Module) -> None:
        imports: set[str] = set()
        for name, node in module.classes.items():
            mark = _mark_of(node)
            declared = self.declared(module.homes[name])
            if mark is not None:
                _blank(module.lines, mark)
            elif declared is not None:
                for field in _fields_in(node):
                    _cut_default(module.lines, field)
                self._derive(module, node, declared, imports)
        if imports:
            place = module.lines.index(FUTURE)
            module.lines[place] = "; ".join([FUTURE, *sorted(imports)])

    def _derive(
        self, module: Module, node: ast.ClassDef, declared: Declared, imports: set[str]
    ) -> None:
        """Put what follows from the fields behind the class, and ask for the imports it needs."""
        owner = node.name
        fields.check(owner, declared.fields)
        written = [fields.constructor(declared.fields)]
        words = _PlainWords(self, declared.homes)
        resolved = [
            f._replace(annotation=ast.unparse(words.plain(f.annotation))) for f in declared.fields
        ]
        if declared.base == PACKET:
            kinds = tuple((f.name, fields.kind_of(owner, f.name, f.annotation)) for f in resolved)
            written.append(f"FIELDS: ClassVar[Fields] = {kinds!r}")
            imports.add("from typing import ClassVar")
            imports.add("from flexgroup.core.fields import Fields")
        elif declared.base == RECORD:
            written.append(fields.copier(owner, resolved))
            if "deeply_copied(" in written[-1]:
                imports.add("from flexgroup.core.layer import deeply_copied")
        for name, home in declared.homes.items():
            if name not in module.homes:
                imports.add(f"from {home.rpartition('.')[0]} import {name}")
        end = node.end_lineno or 0
        module.lines += [""] * (end + 3 - len(module.lines))  # where it is the last one
        for place, line in enumerate(written, end):
            if module.lines[place].strip():
                raise ValueError(f"{module.name}.{owner} is not followed by two blank lines")
            module.lines[place] = f"    {line}"

    def declared(self, home: str) -> Declared | None:
        """What the class of this full name declares and inherits, if it declares fields."""
        module_name, _, class_name = home.rpartition(".")
        module = self.modules.get(module_name)
        if module is None or class_name not in module.classes:
            return None
        node = module.classes[class_name]
        if _mark_of(node):
            return Declared(home, (), {})
        for base in node.bases:
            above = self.declared(module.homes.get(ast.unparse(base), ""))
            if above is not None:
                own = tuple(map(_field, _fields_in(node)))
                homes = {
                    name.id: module.homes[name.id]
                    for field in _fields_in(node)
                    for name in ast.walk(field)
                    if isinstance(name, ast.Name) and name.id in module.homes
                }
                return Declared(above.base, above.fields + own, above.homes | homes)
        return None


class _PlainWords(ast.NodeTransformer):
    """Puts what they stand for in place of other names for types."""

    def __init__(self, package: Package, homes: dict[str, str]) -> None:
        self._package = package
        self._homes = homes

    def visit_Name(self, node: ast.Name) -> ast.AST:
        module, _, name = self._homes.get(node.id, "").rpartition(".")
        there = self._package.modules.get(module)
        if name in fields.KINDS or there is None or name not in there.aliases:
            return node
        return _PlainWords(self._package, there.homes).plain(there.aliases[name])

    def plain(self, annotation: str) -> ast.AST:
        meant: ast.AST = self.visit(ast.parse(annotation, mode="eval").body)
        return meant


def _mark_of(node: ast.ClassDef) -> ast.expr | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == MARK:
            return decorator
    return None


def _fields_in(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and fields.is_field(
            ast.unparse(statement.annotation)
        ):
            yield statement


def _field(node: ast.AnnAssign) -> Field:
    name, annotation = ast.unparse(node.target), ast.unparse(node.annotation)
    if node.value is None:
        return Field(name, annotation)
    return Field(name, annotation, ast.unparse(node.value), _is_made_anew(node.value))


def _is_made_anew(default: ast.expr) -> bool:
    """It makes something that can change: a list, dict, set or record."""
    if isinstance(default, ast.Call):
        return ast.unparse(default.func) != "frozenset"
    return not isinstance(
        default, ast.Constant | ast.Name | ast.Attribute | ast.UnaryOp | ast.BinOp | ast.Tuple
    )


def _cut_default(lines: list[str], node: ast.AnnAssign) -> None:
    """Cut the default, which mypyc would give every instance before the constructor does."""
    if node.value is not None:
        first, last = node.annotation.end_lineno or 0, node.end_lineno or 0
        lines[first - 1] = lines[first - 1].encode()[: node.annotation.end_col_offset].decode()
        lines[first:last] = [""] * (last - first)


def _blank(lines: list[str], node: ast.expr) -> None:
    lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
