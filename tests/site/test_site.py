"""The documentation as a site: every link leads somewhere, and every page can be read anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from flexgroup.cli.main import main
from flexgroup.lab.gallery import FIGURES, TRIALS
from flexgroup.site.pages import read_page, slug
from flexgroup.testing.script import check as check_script

from ..docs.fences import PAGES, ROOT, anchors, name_of
from ..lab.test_lab_browser import is_another_page, wait_for
from ..report.browser import DESKTOP, PHONE, Browser, started, why_not

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    assert main(["docs", str(ROOT), "--out", str(out)]) == 0
    return out


class Links(HTMLParser):
    """What a page names, and what can be named in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.addresses += [
            value for key in ("href", "src", "srcset", "action") if (value := found.get(key))
        ]
        if name := found.get("id"):
            assert name not in self.names, f"{name} stands twice"
            self.names.add(name)


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {path: Links(path) for path in site.rglob("*.html")}
    broken = [
        f"{path.relative_to(site)}: {problem}"
        for path, links in pages.items()
        for problem in broken_links(path, links, pages)
    ]
    assert broken == []
    assert sum(len(links.addresses) for links in pages.values()) > 1000


def broken_links(path: Path, links: Links, pages: dict[Path, Links]) -> Iterator[str]:
    for address in links.addresses:
        if address.startswith(("http://", "https://", "data:")):
            continue
        file, _, anchor = unquote(address).partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.is_file():
            yield f"{address}: there is no such file"
        elif anchor and anchor not in pages[target].names:
            yield f"{address}: there is no such heading"


def test_every_page_of_the_tree_is_there_with_its_headings(site: Path) -> None:
    for page in PAGES:
        name = name_of(page)
        target = "index.html" if name == "README.md" else f"{name.removesuffix('.md')}.html"
        assert anchors(page) <= Links(site / target).names, name


def test_every_run_of_the_gallery_is_shown(site: Path) -> None:
    page = (site / "gallery.html").read_text(encoding="utf-8")
    for run in (*TRIALS, *FIGURES):
        assert f'id="{run.name}"' in page
        assert (site / "gallery" / f"{run.name}.svg").stat().st_size > 1000
        script = (site / "gallery" / f"{run.name}.txt").read_text(encoding="utf-8")
        assert check_script(script) == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in (*site.rglob("*.html"), site / "site.css", site / "search.js"):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            assert not re.search(r'(src|action)="https?:', text), path
        assert "@import" not in text
    assert "fetch(" not in (site / "search.js").read_text(encoding="utf-8")


def test_headings_have_the_names_that_github_gives_them() -> None:
    markdown = "# The page\n\n## `a_b`, and *more*\n\ntext\n\n## Twice\n\n## Twice\n"
    page = read_page("docs/x.md", markdown, lambda path: False)
    assert page.title == "The page"
    assert [section.anchor for section in page.sections] == ["", "a_b-and-more", "twice", "twice-1"]
    assert page.sections[1].words == ["text"]
    assert slug("With Spark: 2 ways?") == "with-spark-2-ways"


def test_links_of_a_page_move_with_it() -> None:
    markdown = (
        "# x\n[a](../README.md#y) [b](other.md) [c](https://a.example/x.md) [d](#e)"
        " [f](../src) ![g](figures/g.svg)"
    )
    page = read_page("docs/x.md", markdown, lambda path: path != "src")
    assert re.findall(r'(?:href|src)="([^"]*)"', page.body) == [
        *("../index.html#y", "other.html", "https://a.example/x.md", "#e", "../src"),
        "figures/g.svg",
    ]
    assert page.links == ["README.md", "docs/other.md", "docs/figures/g.svg"]


def test_a_picture_for_light_and_dark_is_the_only_markup() -> None:
    markdown = (
        '# x\n\n<picture>\n<source media="(prefers-color-scheme: dark)" srcset="a/dark.png">\n'
        '<img src="a/light.png" alt="words">\n</picture>\n'
    )
    page = read_page("docs/x.md", markdown, lambda path: True)
    assert page.links == ["docs/a/dark.png", "docs/a/light.png"]
    assert '<img src="a/light.png" alt="words">' in page.body


def test_markup_in_markdown_is_text() -> None:
    page = read_page("x.md", "# x\n<script>alert(1)</script>\n", lambda path: False)
    assert "<script>" not in page.body


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "name the folder of FlexGroup's sources" in capsys.readouterr().err


# In a real browser.


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with started(tmp_path_factory.mktemp("profile")) as ready:
        yield ready


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_no_page_is_wider_than_the_screen(
    site: Path, browser: Browser, width: int, scheme: str
) -> None:
    for name in ("index", "gallery", "search", "docs/README", "docs/network", "docs/changes"):
        browser.open(site / f"{name}.html", width, scheme)
        assert browser.run("return document.documentElement.scrollWidth") <= width, name
        assert browser.complaints() == []


def test_search_finds_sections_and_leads_there(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    field = browser.driver.find_element("css selector", "input[type=search]")
    browser.run("document.documentElement.dataset.left = 'yes'")
    field.send_keys("cyclic component forgotten\n")
    wait_for(lambda: is_another_page(browser))
    found = browser.run("return [...document.querySelectorAll('#results a')].map(a => a.href)")
    assert any("docs/watch.html#how-a-run-is-followed" in address for address in found)
    assert browser.run("return document.getElementById('all').hidden")
    browser.driver.get(found[0])
    assert browser.run("return document.querySelector('h1').textContent")
    assert browser.complaints() == []


def test_without_scripts_search_lists_all_pages(site: Path, browser: Browser) -> None:
    browser.open(site / "search.html", scripts=False)
    shown = json.loads(browser.run(
        "return JSON.stringify([...document.querySelectorAll('#all a')].map(a => a.textContent))"
    ))  # fmt: skip
    assert len(shown) > len(PAGES)
