"""The pictures of the lab in the documentation, made anew: `python -m tests.lab.screenshots`.

With `run` or `cluster` behind it, one of them. They are what a real Chromium shows, light and dark;
a cluster of real servers is started for the second.

    python -m tests.lab.screenshots views FOLDER

has all views of the lab, whole, as a phone and a desktop show them, light and dark: to be looked at
for what is cut, overprinted or unexplained.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from flexgroup.lab.app import Lab
from flexgroup.lab.cluster import LiveCluster
from flexgroup.lab.gallery import BY_NAME
from flexgroup.load.local_cluster import LocalCluster
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

from ..report.browser import DESKTOP, PHONE, Browser, started, why_not
from .conftest import Visited, listening

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
SCHEMES = ("light", "dark")
STACK = "RELIABLE ATOMIC"
SECONDS = 15
WIDTH = 1180
MOST_HEIGHT = 2600
RUN = "vcube-crash"


LAST_CARD = "[...document.querySelectorAll('.card')].at(-1).getBoundingClientRect().bottom"


def shoot(browser: Browser, address: str, name: str, height: int | None = None) -> None:
    """Write how the page at this address begins, on a screen of moderate width: so much of it, or
    all until its last card ends."""
    for scheme in SCHEMES:
        browser.visit(address, WIDTH, scheme)
        time.sleep(1.5)  # until what is live has come
        target = FIGURES / f"{name}-{scheme}.png"
        browser.picture(target, height or int(browser.run(f"return {LAST_CARD}")) + 8)
        print(target)


def shoot_run(browser: Browser) -> None:
    run = BY_NAME[RUN].address.whole
    with listening(Lab()) as visited:
        shoot(browser, f"{visited.base}/run?{run.query}", "lab", 1170)


def shoot_cluster(browser: Browser) -> None:
    with played() as visited:
        shoot(browser, f"{visited.base}/cluster", "cluster")


@contextmanager
def played() -> Iterator[Visited]:
    """A lab with a cluster of its own, of which a server was killed."""
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder) / "traces"
        traces.mkdir()
        options = ["--patience", "1", "--cut-by-input", "--trace", str(traces)]
        with LocalCluster(3, Path(folder), options) as own:
            live = LiveCluster(own.addresses, traces=traces, own=own, stack=STACK)
            with listening(Lab(live=live)) as visited:
                play(visited)
                yield visited


SHOTS = {"run": shoot_run, "cluster": shoot_cluster}


def play(visited: Visited) -> None:
    """Have messages sent for a while, and a server killed."""
    visited.post("/cluster/steady", messages="40")
    for number, words in ((1, "hello"), (2, "who is there?"), (3, "three of us")):
        visited.post("/cluster/send", member=str(number), text=words)
    time.sleep(SECONDS)
    visited.post("/cluster/server", server="server-2", act="kill")
    time.sleep(SECONDS)


def shoot_views(browser: Browser, folder: Path) -> None:
    """Write all views to a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = recorded(folder / "runs")
    with listening(Lab((), [folder / "runs"])) as visited:
        shoot_each(browser, visited, folder, "front", "/")
        shoot_each(browser, visited, folder, "run", f"/run?{BY_NAME[RUN].address.whole.query}")
        afar, near = (f"/window?traces=runs&run={run}" for run in runs)
        beside = f"/compare?traces=runs&run={runs[0]}&with=runs/{runs[1]}"
        for path in (afar, near):
            while not json.loads(visited.ask(path.replace("/window", "/told")).text)["over"]:
                visited.ask(path)
        shoot_each(browser, visited, folder, "afar", afar)
        shoot_each(browser, visited, folder, "near", f"{near}&message=6.0")
        shoot_each(browser, visited, folder, "beside", beside)
    with played() as visited:
        shoot_each(browser, visited, folder, "cluster", "/cluster")


def shoot_each(browser: Browser, visited: Visited, folder: Path, name: str, path: str) -> None:
    for width, screen in ((PHONE, "phone"), (DESKTOP, "desktop")):
        for scheme in SCHEMES:
            browser.visit(f"{visited.base}{path}", width, scheme)
            time.sleep(1.5)  # until what is live has come
            browser.picture(folder / f"{name}-{screen}-{scheme}.png", MOST_HEIGHT)


def recorded(directory: Path) -> list[str]:
    """Record two runs that are alike until a process of the second crashes."""
    calm = Scenario("vcube-atomic", 6, 4, duration=0.02)
    crashed = replace(calm, faults=Faults(crashes=("2@8ms",), detection="2ms"))
    return [record_scenario(each, directory, force=True).run for each in (calm, crashed)]


def main() -> int:
    reason = why_not()
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as profile, started(Path(profile)) as browser:
        if sys.argv[1:2] == ["views"]:
            shoot_views(browser, Path(sys.argv[2]))
            return 0
        for name in sys.argv[1:] or SHOTS:
            SHOTS[name](browser)
    return 0


if __name__ == "__main__":
    sys.exit(main())
