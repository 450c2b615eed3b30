"""What the linter and the type checker do not look at."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

from .sources import PACKAGE, ROOT, SOURCES, nodes, tree

NAMES = [path.relative_to(PACKAGE).as_posix() for path in SOURCES]

NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

# A name that fits anything attracts everything.
NO_NAMES = frozenset("util utils utilities helper helpers manager managers common misc".split())

# A docstring is a sentence of its own: one that opens with such a word is the tail of a sentence
# that begins with the name beside it.
DANGLING = frozenset(
    "About Above Among As At Below Between Beyond By For From In Into Like Of On Per Since Than To"
    " Under Until Whom With Without".split()
)

# Lines of code, without docstrings, comments and blank lines: what explains a file does not make
# it harder to read.
LONGEST = 470
LONGEST_PROTOCOL = 300
LONGER_FOR_A_REASON = {
    "protocols/table.py": "it is a row for each protocol, and nothing else",
    "protocols/reliable.py": "sending, asking again and forgetting refer to the same lists",
}
"""Files that may exceed the limit, and why cutting them would hurt."""


def test_modules_are_named_after_what_they_hold() -> None:
    vague = [
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if NO_NAMES & {*path.relative_to(ROOT).with_suffix("").parts, *path.stem.split("_")}
    ]
    assert not vague


def lines_of_code(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(code)


def test_files_can_be_read_in_one_go() -> None:
    too_long = {
        name: lines
        for name, path in zip(NAMES, SOURCES, strict=True)
        if (lines := lines_of_code(path))
        > (LONGEST_PROTOCOL if name.startswith("protocols/") else LONGEST)
    }
    assert too_long.keys() == LONGER_FOR_A_REASON.keys(), too_long


def test_every_module_says_what_it_is() -> None:
    silent = [
        name
        for name, path in zip(NAMES, SOURCES, strict=True)
        if tree(path).body and not ast.get_docstring(tree(path))
    ]
    assert not silent


def test_no_docstring_opens_with_a_dangling_preposition() -> None:
    dangling = [
        f"{name}:{node.lineno}: {text.splitlines()[0]}"
        for name, path in zip(NAMES, SOURCES, strict=True)
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(text := node.value.value, str) and text.strip()
        if text.split()[0].rstrip(",:") in DANGLING
    ]
    assert not dangling, "\n".join(dangling)


def test_protocols_are_composed_of_parts_and_inherit_from_none() -> None:
    """What several protocols share is a record that each of them holds."""
    inheriting = [
        f"{name}: {node.name}({ast.unparse(base)})"
        for name, path in zip(NAMES, SOURCES, strict=True)
        if name.startswith("protocols/") and name != "protocols/table.py"
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if ast.unparse(base) not in ("Layer", "Packet", "Record", "Protocol")
    ]
    assert not inheriting
