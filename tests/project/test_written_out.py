"""The copies of sources that mypyc compiles: what follows from declared fields stands there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from flexgroup._written_out import Package

from .sources import PACKAGE, SOURCES

BASES = '''from __future__ import annotations
@dataclass_transform()
class {name}:
    """A base."""
'''

PARTS = '''from __future__ import annotations

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, MessageId, Packet

Numbers = tuple[int, ...]


class InEpoch(Packet):
    epoch: int
    before: Numbers


class Entry(Record):
    """What is known of a message."""

    m: Message | None
    seen: set[Numbers] = set()  # whom it reached
    other: Entry | None = (
        None
    )

    def has(self, process: int) -> bool:
        return process in self.seen
'''

PROTOCOL = '''from __future__ import annotations

from flexgroup.core.message import MessageId
from flexgroup.protocols.parts import InEpoch


class Flush(InEpoch):
    """(FLUSH, epoch, before, m)."""

    m: MessageId
    n: tuple[int, ...] = ()


END = 1
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with the two bases and two modules that use them."""
    folder = tmp_path / "src" / "flexgroup"
    for path, text in {
        "core/message.py": BASES.format(name="Packet"),
        "core/layer.py": BASES.format(name="Record"),
        "protocols/__init__.py": "",
        "protocols/parts.py": PARTS,
        "protocols/small.py": PROTOCOL,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def written(package: Path) -> Path:
    Package(package).write(package.parents[1] / "out")
    return package.parents[1] / "out" / "flexgroup"


def test_derived_members_stand_in_the_blank_lines_behind_a_class(package: Path) -> None:
    lines = (written(package) / "protocols" / "small.py").read_text().split("\n")
    assert lines == [
        "from __future__ import annotations; from flexgroup.core.fields import Fields;"
        " from flexgroup.protocols.parts import Numbers; from typing import ClassVar",
        *PROTOCOL.split("\n")[1:10],
        "    n: tuple[int, ...]",
        "    def __init__(self, epoch: int, before: Numbers, m: MessageId,"
        " n: tuple[int, ...] = ()) -> None:"
        " self.epoch = epoch; self.before = before; self.m = m; self.n = n",
        "    FIELDS: ClassVar[Fields] = (('epoch', 0), ('before', 3), ('m', 1), ('n', 3))",
        "END = 1",
        "",
    ]


def test_records_are_copied_field_by_field_and_defaults_made_anew(package: Path) -> None:
    lines = (written(package) / "protocols" / "parts.py").read_text().split("\n")
    other = lines.index("    other: Entry | None")
    assert lines[other + 1 : other + 3] == ["", ""]
    assert lines[other + 6] == (
        "    def __init__(self, m: Message | None, seen: set[Numbers] | None = None,"
        " other: Entry | None = None) -> None:"
        " self.m = m; self.seen = set() if seen is None else seen; self.other = other"
    )
    assert lines[other + 7] == (
        "    def copy(self) -> Entry:"
        " return Entry(self.m, self.seen.copy(), deeply_copied(self.other))"
    )


def test_the_copy_follows_the_source(package: Path) -> None:
    copy = written(package)
    (package / "protocols" / "small.py").unlink()
    (package / "protocols" / "parts.py").write_text("HERE = 1\n")
    written(package)
    assert not (copy / "protocols" / "small.py").exists()
    assert (copy / "protocols" / "parts.py").read_text() == "HERE = 1\n"


def test_no_line_of_the_package_moves(tmp_path: Path) -> None:
    """So that a traceback of the compiled form names the right lines."""
    Package(PACKAGE).write(tmp_path)
    for path in SOURCES:
        copy = tmp_path / "flexgroup" / path.relative_to(PACKAGE)
        assert places(copy) >= places(path), path


def places(path: Path) -> set[tuple[str, int]]:
    """Functions, classes and returned values, and where they stand."""
    return {
        (ast.unparse(node) if isinstance(node, ast.Return) else node.name, node.lineno)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Return)
    }
