"""A page of Markdown as a page of the site: headings that links can name, and links that stay."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token

from flexgroup.diagram.markup import Markup, element, join, text

INDEX = "README.md"
MARKDOWN = MarkdownIt("commonmark").enable("table")
PICTURE = re.compile(r"<picture>.*</picture>\s*", re.S)
"""The one thing that pages say in HTML: a picture for light screens and another for dark ones."""

SHOWN = re.compile(r'(?<=src=")[^"]+|(?<=srcset=")[^"]+')
SCROLLED = '<div class="scroll" tabindex="0">'
HEADINGS = ("h2", "h3")
"""The levels of headings that a table of contents has."""


@dataclass
class Section:
    """A heading, and the plain text below it up to the next one."""

    heading: str
    anchor: str
    level: str
    words: list[str] = field(default_factory=list)


@dataclass
class Page:
    """One page: what it is called, its markup, its sections, and what it shows or leads to."""

    path: str
    """Where its Markdown is, from the root of the tree."""
    title: str
    body: Markup
    sections: list[Section]
    links: list[str]
    """What it leads to or shows within the tree, from the root: files, without anchors."""

    @property
    def target(self) -> str:
        return target_of(self.path)


def target_of(path: str) -> str:
    """Return where a file of the tree is on the site; a page in the place of what is no picture."""
    name = PurePosixPath(path)
    if name.suffix == ".md":
        return str(name.with_suffix(".html")) if path != INDEX else "index.html"
    if name.suffix in (".py", ".txt", ".csv"):
        return f"{path}.html"
    return path


def slug(heading: str) -> str:
    """Return what a link names a heading by, as GitHub does."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def read_page(path: str, markdown: str, leads_to: Callable[[str], bool]) -> Page:
    """Return the page; `leads_to` tells which files of the tree are on the site."""
    tokens = MARKDOWN.parse(markdown)
    links: list[str] = []
    for token in all_tokens(tokens):
        for attribute in ("href", "src"):
            address = token.attrs.get(attribute)
            if isinstance(address, str):
                found, moved = moved_link(path, address, leads_to)
                token.attrs[attribute] = moved
                links += [found] if found else []
        if token.type in ("html_block", "html_inline"):
            links += _move_picture(path, token, leads_to)
    sections = _name_headings(tokens, PurePosixPath(path).stem)
    body = MARKDOWN.renderer.render(tokens, MARKDOWN.options, {})
    # What is wider than a phone is scrolled by itself, with the keyboard as well.
    body = re.sub("<table>(.*?)</table>", rf"{SCROLLED}<table>\1</table></div>", body, flags=re.S)
    body = body.replace("<pre>", '<pre tabindex="0">')
    return Page(path, sections[0].heading, Markup(body), sections, links)


def all_tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from all_tokens(token.children or [])


def moved_link(path: str, address: str, leads_to: Callable[[str], bool]) -> tuple[str, str]:
    """Return which file of the tree a link of a page leads to, if any, and the link on the site."""
    if re.match(r"[a-z]+:", address) or address.startswith("#"):
        return "", address
    file, hash_, anchor = address.partition("#")
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
    if not leads_to(found):
        return "", address
    here = posixpath.dirname(target_of(path)) or "."
    return found, posixpath.relpath(target_of(found), here) + hash_ + anchor


def _move_picture(path: str, token: Token, leads_to: Callable[[str], bool]) -> list[str]:
    """Let a picture show its files on the site, and return them; other HTML is text."""
    if not PICTURE.fullmatch(token.content):
        token.content = text(token.content)
        return []
    found = [moved_link(path, address, leads_to) for address in SHOWN.findall(token.content)]
    moved = iter([address for _, address in found])
    token.content = SHOWN.sub(lambda _: next(moved), token.content)
    return [file for file, _ in found if file]


def _name_headings(tokens: list[Token], name: str) -> list[Section]:
    """Give each heading its anchor, and return the sections; the first is the whole page's."""
    sections = [Section(name, "", "h1")]
    seen: Counter[str] = Counter()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = "".join(_plain(tokens[place + 1]))
            anchor = slug(heading)
            again, seen[anchor] = seen[anchor], seen[anchor] + 1
            anchor = f"{anchor}-{again}" if again else anchor
            token.attrs["id"] = anchor
            if token.tag == "h1" and sections[0].heading == name:
                sections[0].heading = heading
            else:
                sections.append(Section(heading, anchor, token.tag))
        elif token.type == "inline" and tokens[place - 1].type != "heading_open":
            sections[-1].words.append("".join(_plain(token)))
        elif token.type in ("fence", "code_block"):
            sections[-1].words.append(token.content)
    return sections


def _plain(token: Token) -> Iterator[str]:
    for child in token.children or ():
        if child.type in ("text", "code_inline"):
            yield child.content
        elif child.type in ("softbreak", "hardbreak"):
            yield " "


def whole_page(page: Page, kind: str = "prose") -> Markup:
    """Return the page with everything around it: the way to others, its contents, search."""
    up = "../" * (len(PurePosixPath(page.target).parts) - 1)
    headings = [section for section in page.sections[1:] if section.level in HEADINGS]
    contents: object = ""
    if len(headings) > 2:
        items = [
            element("li", element("a", each.heading, href=f"#{each.anchor}"), class_=each.level)
            for each in headings
        ]
        contents = element(
            "details",
            element("summary", "On this page"),
            element("ul", *items),
            class_="contents",
        )
    find = element(
        "form",
        element(
            "label",
            element("span", "Search", class_="unseen"),
            element("input", type="search", name="q", placeholder="Search"),
        ),
        method="get",
        action=f"{up}search.html",
        role="search",
    )
    top = element(
        "header",
        element("a", "FlexGroup", href=f"{up}index.html", class_="brand"),
        element("a", "Documentation", href=f"{up}docs/README.html"),
        element("a", "Gallery", href=f"{up}gallery.html"),
        element("a", "All pages", href=f"{up}search.html"),
        find,
        class_="top",
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{page.title} · FlexGroup" if page.path != INDEX else "FlexGroup"),
        element("link", rel="stylesheet", href=f"{up}site.css"),
        element("link", rel="icon", href="data:,"),
    )
    main = element("main", contents, page.body, class_=kind)
    html = element("html", head, element("body", top, main), lang="en")
    return Markup(f"<!doctype html>\n{html}\n")


def source_page(path: str, source: str) -> Page:
    """Return a page that shows a file of the tree as it is."""
    heading = element("h1", PurePosixPath(path).name)
    body = join([heading, element("pre", element("code", source), tabindex="0")])
    return Page(f"{path}.md", path, body, [Section(path, "", "h1")], [])
