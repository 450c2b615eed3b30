"""The lab in a real Chromium: stepped by clicks alone, with scripts and without."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

from flexgroup.cli.main import main
from flexgroup.lab.address import read_address
from flexgroup.lab.gallery import TRIALS, GuidedRun

from ..report.browser import DESKTOP, PHONE, Browser
from .conftest import Visited

pytestmark = pytest.mark.xdist_group("browser")

CYCLE = "/run?stack=dcc-published&processes=4&message=0,2+0,2+0,3+2,3"
SCREENS = [(width, scheme) for width in (PHONE, DESKTOP) for scheme in ("light", "dark")]
SECONDS = 60.0


def click(browser: Browser, words: str) -> None:
    """Click the first link whose text begins so, or the button that says so, and see where it leads
    to."""
    elements = browser.driver.find_elements(By.CSS_SELECTOR, "a, button")
    wanted = next((element for element in elements if element.text.startswith(words)), None)
    assert wanted is not None, f"nothing says '{words}' on {browser.driver.current_url}"
    browser.run("document.documentElement.dataset.left = 'yes'")
    wanted.click()
    wait_for(lambda: is_another_page(browser))


def is_another_page(browser: Browser) -> bool:
    """Tell whether the page that was left has gone and the next is there."""
    arrived = "return document.readyState === 'complete' && !document.documentElement.dataset.left"
    try:
        return bool(browser.run(arrived))
    except WebDriverException:
        return False  # in between


def said(browser: Browser, selector: str) -> list[str]:
    """Return the texts of all these elements, as they are at one moment."""
    found: list[str] = browser.run(
        "return [...document.querySelectorAll(arguments[0])]"
        ".map(each => (each.innerText ?? each.textContent).trim())",
        selector,
    )
    return found


def verdict(browser: Browser, name: str) -> str:
    names, words = said(browser, ".verdicts dt"), said(browser, ".verdicts dd")
    return dict(zip(names, words, strict=True))[name]


def wait_for(happened: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    until = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_dcc_as_published_is_stepped_to_its_cycle(
    browser: Browser, visited: Visited, scripts: bool
) -> None:
    """From the first page, by clicks alone."""
    browser.visit(f"{visited.base}/", scripts=scripts)
    click(browser, "Begin")
    click(browser, "Let all clients multicast")
    for packet in (
        *("4 → 0", "0 → 1", "1 → 2", "5 → 0", "6 → 0", "0 → 1", "1 → 2"),
        *("2 → 3", "7 → 2", "0 → 2"),
    ):
        click(browser, f"{packet} arrives")
        assert verdict(browser, "acyclic order") == "holds so far"
    click(browser, "2 → 3 arrives")
    assert verdict(browser, "acyclic order").startswith("violated since this step")
    assert "nothing need happen any more" in said(browser, "main > p")[0]
    assert {"process 0", "process 3"} <= set(said(browser, "svg.across text.lane"))
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "svg.across .events .witness")) == 6
    assert browser.complaints() == []


def test_back_branch_reload_and_a_copied_link(
    browser: Browser, second_browser: Browser, visited: Visited
) -> None:
    browser.visit(f"{visited.base}{CYCLE}&moves=m4.a,m5.b")
    click(browser, "4 → 0 arrives")
    arrived = browser.driver.current_url
    steps = said(browser, "ol.steps li")
    browser.driver.back()
    assert said(browser, "ol.steps li") == steps[:2]
    click(browser, "5 → 0 arrives")
    branch = said(browser, "ol.steps li")
    assert branch[:2] == steps[:2]
    assert branch[2] != steps[2]
    browser.driver.refresh()
    assert said(browser, "ol.steps li") == branch
    second_browser.visit(arrived)
    assert said(second_browser, "ol.steps li") == steps
    states = said(second_browser, ".card")
    browser.visit(arrived)
    assert said(browser, ".card") == states


def test_what_the_last_step_changed_is_marked(browser: Browser, visited: Visited) -> None:
    browser.visit(f"{visited.base}{CYCLE}&moves=m4.a,d4.0")
    (changed,) = browser.driver.find_elements(By.CSS_SELECTOR, ".card.changed")
    assert changed.get_attribute("data-process") == "0"
    marked = [element.text for element in changed.find_elements(By.TAG_NAME, "mark")]
    assert marked[0] == "a"  # delivered
    assert len(said(browser, "mark")) == len(marked)


def test_a_crash_is_injected(browser: Browser, visited: Visited) -> None:
    browser.visit(
        f"{visited.base}/run?stack=vcube-atomic&processes=3&message=0:0,1,2&crashes=1&moves=m0.a"
    )
    click(browser, "0 → 1 arrives")
    click(browser, "0 crashes")
    assert "Process 0, crashed" in said(browser, ".card h3")
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "svg.across .events .mark.crash")) == 1
    assert not [words for words in said(browser, ".moves a") if "→ 0 arrives" in words]
    click(browser, "1 suspects 0")
    assert "suspects" in said(browser, ".card")[1]


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_search_from_the_middle_ends_in_a_link(
    browser: Browser, visited: Visited, scripts: bool
) -> None:
    moves = "m4.a,m5.b,m6.c,m7.d,d4.0,d0.1,d1.2,d5.0"
    browser.visit(f"{visited.base}{CYCLE}&moves={moves}", scripts=scripts)
    click(browser, "Search")
    wait_for(lambda: any(word.startswith("Step to it") for word in said(browser, "a")))
    assert "violated: acyclic order" in said(browser, "[role=status]")[0]
    click(browser, "Step to it")
    assert f"moves={moves}&ahead=" in browser.driver.current_url
    click(browser, "End")
    assert verdict(browser, "acyclic order").startswith("violated since this step")


def test_a_search_that_finds_nothing_says_how_far_it_looked(
    browser: Browser, visited: Visited
) -> None:
    """The corrected protocol, from the same place."""
    corrected = CYCLE.replace("dcc-published", "dcc")
    browser.visit(f"{visited.base}{corrected}&moves=m4.a,m5.b,m6.c,m7.d,d4.0,d0.1,d1.2,d5.0")
    click(browser, "Search")
    wait_for(lambda: "exhausted" in said(browser, "[role=status]")[0])
    assert "no property is violated" in said(browser, "[role=status]")[0]
    click(browser, "Back to the run")
    assert said(browser, "h1") == ["dcc"]


def test_a_saved_script_replays_to_the_same_verdict_and_opens_again(
    browser: Browser, visited: Visited, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = TRIALS[4].address.whole
    saved = visited.ask(f"/script?{run.query}")
    assert (
        'filename="vcube-atomic-published-acyclic-order.txt"'
        in saved.headers["content-disposition"]
    )
    script = tmp_path / "saved.txt"
    script.write_text(saved.text, encoding="utf-8")
    assert main(["replay", str(script)]) == 1
    assert "acyclic order: violated" in capsys.readouterr().out
    browser.visit(f"{visited.base}/")
    browser.driver.find_element(By.ID, "script").send_keys(saved.text)
    click(browser, "Open")
    wait_for(lambda: said(browser, "h1") == [run.stack])
    click(browser, "End")
    assert verdict(browser, "acyclic order").startswith("violated")
    opened = read_address(browser.driver.current_url.partition("?")[2])
    assert opened.moves == run.moves


def test_a_file_is_read_into_the_page(browser: Browser, visited: Visited, tmp_path: Path) -> None:
    script = tmp_path / "some.txt"
    script.write_text("stack skeen over fifo channels, processes 2\ncast 2 a to=0,1\n")
    browser.visit(f"{visited.base}/")
    browser.driver.find_element(By.CSS_SELECTOR, "input[type=file]").send_keys(str(script))
    text = browser.driver.find_element(By.ID, "script")
    wait_for(lambda: bool(text.get_attribute("value")))
    click(browser, "Open")
    wait_for(lambda: said(browser, "h1") == ["skeen"])


@pytest.mark.parametrize("trial", TRIALS[1::3], ids=lambda trial: trial.name)
def test_a_trial_of_the_gallery_is_stepped_with_its_words_beside_it(
    browser: Browser, visited: Visited, trial: GuidedRun
) -> None:
    browser.visit(f"{visited.base}/")
    link = browser.driver.find_elements(By.CSS_SELECTOR, ".trials a")[TRIALS.index(trial)]
    browser.driver.execute_script("arguments[0].click()", link)
    for _ in range(2):
        assert trial.heading in said(browser, ".beside")[0]
        (following,) = browser.driver.find_elements(By.CSS_SELECTOR, "ul.moves a.next")
        browser.driver.execute_script("arguments[0].click()", following)
    click(browser, "End")
    assert trial.heading in said(browser, ".beside")[0]
    assert verdict(browser, trial.breaks).startswith("violated since this step")


def test_arrow_keys_go_along_the_run(browser: Browser, visited: Visited) -> None:
    browser.visit(f"{visited.base}/run?{TRIALS[0].address.at(3).query}")
    body = browser.driver.find_element(By.TAG_NAME, "body")
    body.send_keys("\ue014")  # to the right
    wait_for(lambda: said(browser, ".steering p")[0].startswith("Step 4 of"))
    browser.driver.find_element(By.TAG_NAME, "body").send_keys("\ue012")  # to the left
    wait_for(lambda: said(browser, ".steering p")[0].startswith("Step 3 of"))


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_fits_the_screen_and_asks_for_nothing_elsewhere(
    browser: Browser, visited: Visited, width: int, scheme: str
) -> None:
    end = TRIALS[4].address.whole.query
    for path in ("/", f"/run?{end}", "/nowhere", CYCLE):
        browser.visit(f"{visited.base}{path}", width, scheme)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        asked = [url for url in browser.requests() if not url.startswith(visited.base)]
        assert [url for url in asked if not url.startswith("data:")] == []
        complaints = [words for words in browser.complaints() if "404" not in words]
        assert complaints == []


def test_every_control_has_a_name_and_every_link_can_be_told_from_others(
    browser: Browser, visited: Visited
) -> None:
    for path in ("/", f"/run?{TRIALS[4].address.at(9).query}"):
        browser.visit(f"{visited.base}{path}")
        nameless = browser.run(
            "return [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
            ".filter(each => !each.labels.length).map(each => each.outerHTML)"
        )
        assert nameless == []
        headings = browser.run("return [...document.querySelectorAll('h1')].length")
        assert headings == 1
        regions = said(browser, "section[aria-labelledby]")
        assert len(regions) >= 3
    words = said(browser, "ul.moves a")
    assert len(words) == len(set(words))
    assert all(re.search(r"\w", text) for text in words)
