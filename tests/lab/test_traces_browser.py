"""Recorded runs in a real Chromium: from all of a run to one message, to a violation, and two side
by side."""

from __future__ import annotations

import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from ..report.browser import DESKTOP, PHONE, Browser
from .conftest import RecordedRuns, Visited
from .test_lab_browser import SCREENS, is_another_page, said, wait_for

pytestmark = pytest.mark.xdist_group("browser")


def open_page(browser: Browser, lab: Visited, path: str, scripts: bool = True) -> None:
    """Open a page, and wait until what it shows has been read."""
    browser.visit(f"{lab.base}{path}", scripts=scripts)
    wait_for(lambda: loaded(browser, scripts))


def loaded(browser: Browser, scripts: bool) -> bool:
    if not is_another_page(browser):
        return False  # in between
    if not browser.driver.find_elements(By.CSS_SELECTOR, "[data-search]"):
        return True
    if not scripts:
        browser.driver.refresh()
    return False


def press(browser: Browser, words: str) -> None:
    """Follow the link that says so, or press the button, wherever on the page it is."""
    wanted = browser.driver.find_elements(
        By.XPATH, f"//main//*[self::a or self::button][.='{words}']"
    )
    assert wanted, f"nothing says '{words}' on {browser.driver.current_url}"
    browser.run("document.documentElement.dataset.left = 'yes'; arguments[0].click()", wanted[0])
    wait_for(lambda: is_another_page(browser))


def follow(browser: Browser, selector: str, place: int) -> str:
    """Follow one of the links in the picture, and return what it says."""
    links = browser.driver.find_elements(By.CSS_SELECTOR, f"svg {selector}")
    shown = [link for link in links if link.is_displayed()]
    words: str = browser.run("return arguments[0].querySelector('title').textContent", shown[place])
    browser.run("document.documentElement.dataset.left = 'yes'")
    where = browser.run("return arguments[0].href.baseVal", shown[place])
    browser.run("location.href = arguments[0]", where)
    wait_for(lambda: is_another_page(browser))
    return words


def events_told(browser: Browser) -> int:
    found = re.match(r"([\d,]+) events?", said(browser, "nav.steering p")[0])
    assert found is not None
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_three_zooms_lead_from_the_whole_run_to_one_message(
    browser: Browser, recorded: Visited, runs: RecordedRuns, scripts: bool
) -> None:
    open_page(browser, recorded, runs.window(runs.long), scripts)
    whole = events_told(browser)
    assert whole > 50_000
    counts = [whole]
    while not said(browser, "h2#events"):
        words = follow(browser, "a[tabindex]", len(counts) * 100)
        wait_for(lambda: loaded(browser, scripts))
        told = re.search(r": ([\d,]+) events?", words)
        assert told is not None
        counts.append(events_told(browser))
        assert counts[-1] == int(told[1].replace(",", ""))
    assert len(counts) - 1 <= 3
    assert 0 < counts[-1] <= 100
    (name, *_) = said(browser, "table.events a.message")
    press(browser, name)
    assert said(browser, "ul.chips li") == [f"only messages {name} all"]
    rows = said(browser, "table.events tbody tr")
    assert len(rows) == events_told(browser)
    assert all(name in row for row in rows)
    assert "multicast" in rows[0]
    assert len(said(browser, "svg.across .events .mark.deliver")) == 4
    assert browser.complaints() == []


def test_times_and_names_lead_on_with_the_keyboard(
    browser: Browser, recorded: Visited, runs: RecordedRuns
) -> None:
    open_page(browser, recorded, runs.window(runs.long))
    everything = events_told(browser)
    follow(browser, "a:not([tabindex])", 0)  # the first band
    assert said(browser, "ul.chips li") == ["only processes 16-17 all"]
    assert 0 < events_told(browser) < everything
    press(browser, "all")
    assert events_told(browser) == everything
    follow(browser, "a:not([tabindex])", -1)  # the last slice of time
    late = events_told(browser)
    assert 0 < late < everything
    browser.driver.find_element(By.TAG_NAME, "body").send_keys("\ue012")  # to the left
    wait_for(lambda: is_another_page(browser) and events_told(browser) != late)
    browser.driver.back()
    wait_for(lambda: events_told(browser) == late)
    press(browser, "Whole run")
    assert events_told(browser) == everything


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_one_jumps_to_a_violation(
    browser: Browser, recorded: Visited, runs: RecordedRuns, scripts: bool
) -> None:
    open_page(browser, recorded, runs.window(runs.broken), scripts)
    assert said(browser, ".verdicts .violated") == ["violated"]
    press(browser, "acyclic order")
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "svg.across .events .witness")) == 4
    assert len(said(browser, "table.events mark")) == 4
    # The letters are those of the explanation.
    letters = dict(re.findall(r"([ab]) = message (\d+\.\d+)", said(browser, "pre")[0]))
    assert said(browser, "ul.names li strong") == list("ab")
    for letter, name in letters.items():
        assert any(item.startswith(f"{letter} {name} to") for item in said(browser, "ul.names li"))
    address = browser.driver.current_url
    browser.visit(address, scripts=scripts)  # a copied link shows the same
    assert len(said(browser, "table.events mark")) == 4


def test_events_are_chosen_by_a_form(
    browser: Browser, recorded: Visited, runs: RecordedRuns
) -> None:
    open_page(browser, recorded, runs.window(runs.calm))
    everything = events_told(browser)
    browser.driver.find_element(By.CSS_SELECTOR, "input[value=deliver]").click()
    browser.driver.find_element(By.NAME, "processes").send_keys("0-2")
    group = Select(browser.driver.find_element(By.NAME, "destinations"))
    members = group.options[1].get_attribute("value")
    group.select_by_index(1)
    press(browser, "Show")
    assert 0 < events_told(browser) < everything
    assert f"destinations={members}" in browser.driver.current_url.replace("%2C", ",")
    rows = said(browser, "table.events tbody tr")
    assert all("deliver" in row and re.search(r"process [012]\b", row) for row in rows)
    for chip in ("all", "all", "all"):
        press(browser, chip)
    assert events_told(browser) == everything


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_two_runs_are_seen_side_by_side_from_their_first_difference(
    browser: Browser, recorded: Visited, runs: RecordedRuns, scripts: bool
) -> None:
    open_page(browser, recorded, runs.window(runs.calm), scripts)
    Select(browser.driver.find_element(By.NAME, "with")).select_by_visible_text(runs.crashed)
    press(browser, "See both side by side")
    wait_for(lambda: loaded(browser, scripts))
    assert said(browser, "h2.run") == [runs.calm, runs.crashed]
    assert said(browser, "main > p")[0].startswith("The runs part at process 2")
    ours, theirs = said(browser, "table.events mark")
    assert theirs == "crash"
    assert ours != "crash"
    first = said(browser, "#part + div tbody tr")[0]
    assert first.startswith("process 2")
    assert ours in first
    # Both at the same place: where time is counted from.
    marked = [row for row in said(browser, "table.events tr") if row.startswith("+0 ns")]
    assert len(marked) == 2
    before = said(browser, "nav.steering p")
    press(browser, "Out")
    assert said(browser, "nav.steering p") != before
    press(browser, "Whole run")
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, ".pair svg.density.across")) == 2
    follow(browser, "a[tabindex]", 40)
    assert said(browser, "h2.run") == [runs.calm, runs.crashed]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_fits_the_screen_and_asks_for_nothing_elsewhere(
    browser: Browser, recorded: Visited, runs: RecordedRuns, width: int, scheme: str
) -> None:
    compared = runs.window(runs.calm).replace("/window", "/compare")
    for path in (
        "/traces",
        runs.window(runs.long),
        runs.window(runs.calm, message="6.0"),
        f"{compared}&with={runs.traces}/{runs.crashed}",
    ):
        open_page(browser, recorded, path)
        browser.visit(f"{recorded.base}{path}", width, scheme)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        asked = [url for url in browser.requests() if not url.startswith(recorded.base)]
        assert [url for url in asked if not url.startswith("data:")] == []
        assert browser.complaints() == []
        nameless = browser.run(
            "return [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
            ".filter(each => !each.labels.length).map(each => each.outerHTML)"
        )
        assert nameless == []


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_nothing_in_the_picture_is_written_over_or_cut_off(
    browser: Browser, recorded: Visited, runs: RecordedRuns, width: int
) -> None:
    open_page(browser, recorded, runs.window(runs.long))
    browser.visit(f"{recorded.base}{runs.window(runs.long)}", width)
    boxes = browser.run(
        "const seen = [...document.querySelectorAll('svg.density')].find(s => s.checkVisibility());"
        "const frame = seen.getBoundingClientRect();"
        "return [...seen.querySelectorAll('text')].map(t => [t.textContent, "
        "t.getBoundingClientRect(), frame]).map(([w, b, f]) => [w, b.left - f.left, "
        "b.top - f.top, b.right - f.left, b.bottom - f.top, f.width, f.height])"
    )
    assert len(boxes) > 20
    for words, left, top, right, bottom, wide, high in boxes:
        assert left >= -1, words
        assert top >= -1, words
        assert right <= wide + 1, words
        assert bottom <= high + 1, words
    for number, (words, left, top, right, bottom, *_) in enumerate(boxes):
        for other, left2, top2, right2, bottom2, *_ in boxes[number + 1 :]:
            apart = right <= left2 + 1 or right2 <= left + 1
            # The box of a line of text is higher than its letters.
            apart = apart or bottom <= top2 + 7 or bottom2 <= top + 7
            assert apart, f"'{words}' and '{other}' overlap"
