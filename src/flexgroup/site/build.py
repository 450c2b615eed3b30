"""All pages of the site, from a source tree: its Markdown, what it shows, the gallery, search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from flexgroup.core.errors import UsageError
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.diagram.picture import resources
from flexgroup.lab.gallery import FIGURES, TRIALS, GuidedRun
from flexgroup.lab.saved import picture_of, script_of
from flexgroup.lab.stepping import Standing, stand_at
from flexgroup.properties.verdict import Outcome
from flexgroup.site.pages import INDEX, Page, Section, read_page, source_page, whole_page

STYLES = ("diagram/theme.css", "lab/lab.css", "site/site.css")
SHOWN_AS_THEY_ARE = (".py", ".txt", ".csv")
PICTURES = (".svg", ".png")


@dataclass(frozen=True)
class Built:
    """What was written."""

    pages: int
    files: int


def build(tree: Path, out: Path) -> Built:
    """Write the site of the source tree at `tree` to the folder `out`."""
    if not (tree / INDEX).is_file() or not (tree / "docs" / INDEX).is_file():
        raise UsageError(
            f"'{tree}' has no {INDEX} and docs/{INDEX}; name the folder of FlexGroup's sources"
        )
    paths = [INDEX, "CONTRIBUTING.md"]
    paths += [path.relative_to(tree).as_posix() for path in sorted((tree / "docs").rglob("*.md"))]
    known = {path for path in paths if (tree / path).is_file()}

    def leads_to(path: str) -> bool:
        is_other = PurePosixPath(path).suffix in (*SHOWN_AS_THEY_ARE, *PICTURES)
        return path in known or (is_other and not path.startswith("..") and (tree / path).is_file())

    pages = [read_page(path, _text(tree / path), leads_to) for path in paths if path in known]
    shown = sorted({link for page in pages for link in page.links} - known)
    for path in shown:
        if PurePosixPath(path).suffix in PICTURES:
            _write(out / path, (tree / path).read_bytes())
        else:
            pages.append(source_page(path, _text(tree / path)))
    pages.append(_gallery(out))
    for page in pages:
        _write(out / page.target, whole_page(page).encode())
    _write(out / "search.html", whole_page(_all_pages(pages), "search").encode())
    _write(out / "search.js", f"{_sections(pages)}\n{resources('site/search.js')}".encode())
    _write(out / "site.css", resources(*STYLES).encode())
    return Built(len(pages) + 1, sum(path.is_file() for path in out.rglob("*")))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# The gallery.


def _gallery(out: Path) -> Page:
    """Write what the gallery shows, and return its page."""
    sections = [Section("Gallery", "", "h1")]
    parts: list[object] = [
        element("h1", "Gallery"),
        element(
            "p",
            "Published algorithms on trial, and figures of papers. Each run is one of this code; ",
            element("code", "flexgroup lab"),
            " has them all to step through, on its first page. ",
            element("a", "The findings", href="docs/findings.html"),
            " say more.",
        ),
    ]
    for heading, runs in (
        ("Published algorithms on trial", TRIALS),
        ("Figures of papers", FIGURES),
    ):
        anchor = heading.lower().replace(" ", "-")
        parts.append(element("h2", heading, id=anchor))
        sections.append(Section(heading, anchor, "h2"))
        for run in runs:
            parts.append(_shown(run, out))
            sections.append(Section(run.heading, run.name, "h3", [run.words]))
    return Page("gallery.md", "Gallery", join(parts), sections, [])


def _shown(run: GuidedRun, out: Path) -> Markup:
    standing = stand_at(run.address.whole)
    picture, script = f"gallery/{run.name}.svg", f"gallery/{run.name}.txt"
    _write(out / picture, picture_of(standing).encode())
    _write(out / script, script_of(standing).encode())
    broken = [
        join([element("p", f"{judged.name}: violated", class_="violated"),
              element("pre", judged.explanation, class_="explanation", tabindex="0")])
        for judged in standing.judged
        if judged.outcome is Outcome.VIOLATED and judged.name == run.breaks
    ]  # fmt: skip
    return element(
        "section",
        element("h3", run.heading, id=run.name),
        element("p", run.words),
        *broken,
        element(
            "div",
            element("img", src=picture, alt=_in_words(run, standing), loading="lazy"),
            class_="scroll",
            tabindex="0",
        ),
        element("p", element("a", "The run as a script", href=script)),
    )


def _in_words(run: GuidedRun, standing: Standing) -> str:
    steps = len(standing.address.moves)
    return f"Space-time diagram of {run.heading}: {standing.address.stack}, {steps} steps"


# Search.


def _all_pages(pages: Sequence[Page]) -> Page:
    items = [
        element("li", element("a", page.title, href=page.target))
        for page in sorted(pages, key=lambda page: page.title.lower())
    ]
    body = join(
        [
            element("h1", "All pages"),
            element("p", "", id="found", role="status"),
            element("ol", id="results"),
            element("ul", *items, class_="all", id="all"),
            element("script", src="search.js", defer=""),
        ]
    )
    return Page("search.md", "All pages", body, [Section("All pages", "", "h1")], [])


def _sections(pages: Sequence[Page]) -> str:
    """Return what is searched, as a script: of each section its page, anchor, headings and text."""
    rows = [
        [page.target, section.anchor, page.title, section.heading,
         " ".join(" ".join(section.words).split())]
        for page in pages
        for section in page.sections
    ]  # fmt: skip
    return f"const SECTIONS = {json.dumps(rows, ensure_ascii=False, separators=(',', ':'))};"
