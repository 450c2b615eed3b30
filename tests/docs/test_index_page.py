"""docs/README.md leads to every page, so that none is lost."""

from __future__ import annotations

from .fences import PAGES, ROOT, links

INDEX = ROOT / "docs" / "README.md"


def test_every_page_is_reached_from_the_index() -> None:
    reached = {(INDEX.parent / link.partition("#")[0]).resolve() for link in links(INDEX)}
    # Pages of single protocols are reached from the index of their folder, as its own test says.
    lost = [page for page in PAGES if page not in reached | {INDEX} and page.parent == INDEX.parent]
    assert lost == []
