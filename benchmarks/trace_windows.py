"""How long the lab takes from all of a long recorded run to one of its messages.

    python benchmarks/trace_windows.py [--duration 9.1] [--traces DIR]

A run of Skeen among sixteen processes and 32 clients is simulated into a folder, ten million events
with the duration that is usual here, or the run of a trace set that is there already is taken. Then
a Chromium opens the page of the run, and follows one cell of the picture after the other until
single events are to be seen, and the name of a message after that. What is timed is each page from
the click until it is there. The yardstick is reading the columns of times and processes once with
pyarrow, and nothing else.
"""

from __future__ import annotations

import argparse
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import uvicorn
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from flexgroup.lab.app import HOST, Lab
from flexgroup.lab.window import RunName, Window
from flexgroup.trace.reader import read_runs
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

MOST_SECONDS = 1.0
"""What each page may take once the run has been read."""

MOST_ZOOMS = 3
WAIT = 300.0


@contextmanager
def listening(directory: Path) -> Iterator[str]:
    with socket.create_server((HOST, 0)) as taken:
        host = f"{HOST}:{taken.getsockname()[1]}"
        lab = Lab((), [directory])
        config = uvicorn.Config(lab.application(lambda: frozenset({host})), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            yield f"http://{host}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def browser(arguments: argparse.Namespace) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = arguments.browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    driver = Chrome(options=options, service=Service(arguments.driver))
    try:
        yield driver
    finally:
        driver.quit()


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def columns_alone(directory: Path) -> None:
    for file in (directory / "events").rglob("*.parquet"):
        pq.ParquetFile(file).read(["process", "time"])


def wait_until_read(driver: Chrome) -> None:
    until = time.monotonic() + WAIT
    while driver.find_elements(By.CSS_SELECTOR, "h1 + [data-search]"):
        if time.monotonic() > until:
            raise SystemExit("the run was not read in time")
        time.sleep(0.05)


def events_told(driver: Chrome) -> int:
    told = driver.find_element(By.CSS_SELECTOR, "nav.steering p").text
    return int(re.sub(r"\D", "", told.partition(" event")[0]))


def next_page(driver: Chrome) -> str | None:
    """Return the address of a cell in the middle of the picture; None, if events are shown one by
    one."""
    if driver.find_elements(By.ID, "events"):
        return None
    where: str = driver.execute_script(
        "const cells = [...document.querySelectorAll('svg.across a[tabindex]')];"
        "return cells[Math.floor(cells.length / 2)].href.baseVal"
    )
    return where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--duration", type=float, default=9.1, help="virtual seconds (9.1)")
    parser.add_argument("--traces", type=Path, help="a trace set of one run that is there")
    parser.add_argument("--browser", default="/usr/bin/chromium")
    parser.add_argument("--driver", default="/usr/bin/chromedriver")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = options.traces or Path(folder) / "traces"
        if options.traces is None:
            record_scenario(Scenario("skeen", 16, 32, duration=options.duration), directory)
        measure(directory, options)


def measure(directory: Path, options: argparse.Namespace) -> None:
    (run,) = read_runs(directory)
    floor = timed(lambda: columns_alone(directory))
    rows: list[tuple[str, float]] = [("pyarrow reads times and processes", floor)]
    with listening(directory) as base, browser(options) as driver:
        first = f"{base}{Window(RunName(directory.resolve().name, run.run)).path}"

        def load(where: str) -> float:
            return timed(lambda: driver.get(where))

        def read() -> None:
            driver.get(first)
            wait_until_read(driver)

        rows.append(("the run is read, once", timed(read)))
        rows.append(("the whole run", load(first)))
        events = events_told(driver)
        counts: list[int] = []
        while (where := next_page(driver)) is not None:
            rows.append((f"zoom {len(counts) + 1}", load(f"{base}{where}")))
            counts.append(events_told(driver))
        name = driver.find_element(By.CSS_SELECTOR, "table.events a.message")
        rows.append((f"message {name.text}", load(name.get_attribute("href") or "")))
    print(f"{events:,} events; zooms show {', '.join(f'{count:,}' for count in counts)}")
    for words, seconds in rows:
        print(f"  {words}: {seconds:.2f} s, {seconds / floor:.2f} times the columns alone")
    slow = [words for words, seconds in rows[2:] if seconds > MOST_SECONDS]
    fine = not slow and len(counts) <= MOST_ZOOMS
    print("as wanted" if fine else f"not as wanted: {', '.join(slow) or 'too many zooms'}")


if __name__ == "__main__":
    main()
