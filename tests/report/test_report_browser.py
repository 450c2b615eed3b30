"""The page in a real Chromium: from a file, on a phone and a desk, light and dark, with and without
scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexgroup.report import write_report

from .browser import DESKTOP, PHONE, Browser
from .directories import OPPOSITE, experiment, record, write_tables

pytestmark = pytest.mark.xdist_group("browser")

SCREENS = [(width, scheme) for width in (PHONE, DESKTOP) for scheme in ("light", "dark")]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_opens_without_a_network_and_without_a_complaint(
    browser: Browser, sample: Path, width: int, scheme: str
) -> None:
    browser.open(sample, width, scheme)
    assert browser.requests() == []
    assert browser.complaints() == []
    assert browser.run("return document.querySelectorAll('section').length") == 6


def test_what_the_page_might_ask_for_would_be_noticed(browser: Browser, tmp_path: Path) -> None:
    """Else the test above could pass because nobody looks."""
    curious = tmp_path / "curious.html"
    curious.write_text("<!doctype html><title>x</title><img src='missing.png'>", encoding="utf-8")
    browser.open(curious)
    assert [url.rpartition("/")[2] for url in browser.requests()] == ["missing.png"]
    assert len(browser.complaints()) == 1


@pytest.mark.parametrize("width", [320, PHONE, 768, DESKTOP])
def test_the_page_never_scrolls_sideways(browser: Browser, sample: Path, width: int) -> None:
    browser.open(sample, width)
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_on_a_phone_wide_tables_scroll_by_themselves(browser: Browser, sample: Path) -> None:
    browser.open(sample, PHONE)
    scrolling = browser.run(
        "return [...document.querySelectorAll('#measures ~ .scroll')]"
        ".filter(each => each.scrollWidth > each.clientWidth).length"
    )
    assert scrolling > 0


def test_on_a_phone_text_is_large_enough_to_read(browser: Browser, sample: Path) -> None:
    """Also that of charts, which shrink with the screen."""
    browser.open(sample, PHONE)
    heights = browser.run(
        "return [...document.querySelectorAll('p, td, svg text')]"
        ".filter(each => each.getClientRects().length && each.textContent)"
        ".map(each => { const svg = each.closest('svg');"
        " const scale = svg && svg.viewBox.baseVal.width"
        "   ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;"
        " return parseFloat(getComputedStyle(each).fontSize) * scale })"
    )
    assert len(heights) > 100
    assert min(heights) >= 10


def rgb(colour: str) -> list[float]:
    return [float(part) for part in re.findall(r"[\d.]+", colour)[:3]]


def brightness(colour: str) -> float:
    return sum(rgb(colour)) / 3


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_it_follows_the_preference_for_light_or_dark(
    browser: Browser, sample: Path, scheme: str, dark: bool
) -> None:
    browser.open(sample, scheme=scheme)
    paper, ink, drawn = browser.run(
        "const style = getComputedStyle(document.body);"
        "const label = document.querySelector('svg.space-time text.lane');"
        "return [style.backgroundColor, style.color, getComputedStyle(label).fill]"
    )
    assert (brightness(paper) < 128) is dark
    assert abs(brightness(paper) - brightness(ink)) > 128
    assert drawn == ink, "pictures follow, too"


def test_a_diagram_has_as_many_arrows_as_there_were_packets(
    browser: Browser, tmp_path: Path
) -> None:
    found = record(tmp_path / "traces", [OPPOSITE])
    write_tables(tmp_path, found)
    sends = [
        row for row in found[0]["evidence"]
        if row["event"] == "send" and row["property"] == "acyclic order"
    ]  # fmt: skip
    browser.open(write_report(tmp_path))
    arrows = browser.run(
        "return [...document.querySelectorAll('.space-time.across .events .packet')]"
        ".filter(each => each.getBoundingClientRect().width > 0).length"
    )
    assert arrows == len(sends) > 0


@pytest.mark.parametrize(("width", "shown"), [(PHONE, "down"), (DESKTOP, "across")])
def test_time_runs_down_on_a_phone_and_across_on_a_desk(
    browser: Browser, sample: Path, width: int, shown: str
) -> None:
    browser.open(sample, width)
    visible = browser.run(
        "return [...document.querySelectorAll('svg.space-time')]"
        ".filter(each => each.getClientRects().length).map(each => each.classList[1])"
    )
    assert set(visible) == {shown}
    assert len(visible) == 3


COLUMN = (
    "const table = document.querySelector('#measures ~ .scroll table');"
    "const headings = [...table.tHead.rows[0].cells];"
    "const column = headings.findIndex(each => each.textContent.startsWith(arguments[0]));"
    "for (let click = 0; click < arguments[1]; click++)"
    "  headings[column].querySelector('button').click();"
    "return [headings[column].getAttribute('aria-sort'),"
    " [...table.tBodies[0].rows].map(row => row.cells[column].textContent)]"
)


def as_number(text: str) -> float:
    return float(text.partition(" ")[0].replace(",", ""))


def test_a_click_sorts_by_number_and_another_turns_it_round(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    order, values = browser.run(COLUMN, "throughput", 1)
    numbers = [as_number(value) for value in values]
    assert order == "descending"
    assert numbers == sorted(numbers, reverse=True)
    order, values = browser.run(COLUMN, "throughput", 1)
    assert order == "ascending"
    assert [as_number(value) for value in values] == sorted(numbers)


def test_a_click_sorts_by_name(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    order, values = browser.run(COLUMN, "stack", 1)
    assert order == "ascending"
    assert values == sorted(values)


def test_it_can_be_read_without_scripts(browser: Browser, sample: Path) -> None:
    browser.open(sample, scripts=False)
    assert browser.run("return document.querySelectorAll('th button').length") == 0
    text = browser.run("return document.body.innerText")
    for words in ("Random destinations", "because process 0 delivered d", "dcc-published", "± 442"):
        assert words in text
    assert browser.complaints() == []


def test_a_script_in_the_name_of_a_run_does_not_run(browser: Browser, tmp_path: Path) -> None:
    name = "<script>document.title = 'taken'</script><b onclick=alert(1)>"
    found = record(tmp_path / "traces", [OPPOSITE])
    found[0]["measures"]["run"] = name
    for row in found[0]["evidence"]:
        row["run"] = name
    write_tables(tmp_path, found)
    browser.open(write_report(tmp_path))
    assert browser.driver.title != "taken"
    assert name in browser.run("return document.querySelector('article code').textContent")


def test_even_a_script_that_got_into_the_page_is_refused(browser: Browser, tmp_path: Path) -> None:
    """The second lock: the policy runs our own script and no other."""
    report = write_report(experiment(tmp_path, [OPPOSITE]))
    text = report.read_text(encoding="utf-8")
    smuggled = "<body><script>document.title = 'taken'</script><img src='https://example.com/x'>"
    report.write_text(text.replace("<body>", smuggled), encoding="utf-8")
    browser.open(report)
    assert browser.driver.title != "taken"
    assert len(browser.complaints()) >= 2
