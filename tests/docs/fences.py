"""Reading Markdown: fenced blocks, links and tables of the documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PAGES = sorted(
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    if path.exists()
)


@dataclass(frozen=True)
class Fence:
    """A fenced block: the word behind the first backquotes, the text, where the text begins."""

    language: str
    text: str
    line: int


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def fences(page: Path) -> list[Fence]:
    found: list[Fence] = []
    language: str | None = None
    lines: list[str] = []
    start = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            if language is None:
                language, lines, start = line[3:].strip(), [], number + 1
            else:
                found.append(Fence(language, "\n".join([*lines, ""]), start))
                language = None
        elif language is not None:
            lines.append(line)
    assert language is None, f"{name_of(page)}: the fence before line {start} is not closed"
    return found


def prose(page: Path) -> str:
    """The text without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """What a link may name after #: the headings, as GitHub writes them."""
    headings = re.findall(r"^#+ +(.+)$", prose(page), flags=re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings
    }


def tables(page: Path) -> list[list[dict[str, str]]]:
    """Every table as rows by column name, without the backquotes around code."""
    found: list[list[dict[str, str]]] = []
    block: list[list[str]] = []
    for line in [*prose(page).splitlines(), ""]:
        if line.startswith("|"):
            block.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if len(block) > 2:
            head = block[0]
            found.append([dict(zip(head, cells, strict=True)) for cells in block[2:]])
        block = []
    return found


def code_words(cell: str) -> list[str]:
    """What stands between backquotes."""
    return re.findall(r"`([^`]+)`", cell)
