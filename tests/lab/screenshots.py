"""The pictures of the lab in the documentation, made anew: `python -m tests.lab.screenshots`.

With `run` or `cluster` behind it, one of them. They are what a real Chromium shows, light and dark;
a cluster of real servers is started for the second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from flexgroup.lab.app import Lab
from flexgroup.lab.cluster import LiveCluster
from flexgroup.lab.gallery import BY_NAME
from flexgroup.load.local_cluster import LocalCluster

from ..report.browser import Browser, started, why_not
from .conftest import Visited, listening

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
SCHEMES = ("light", "dark")
STACK = "RELIABLE ATOMIC"
SECONDS = 15
WIDTH = 1180


def shoot(browser: Browser, address: str, name: str, height: int) -> None:
    """Write how the page at this address begins, on a screen of moderate width."""
    for scheme in SCHEMES:
        browser.visit(address, WIDTH, scheme)
        time.sleep(1.5)  # until what is live has come
        target = FIGURES / f"{name}-{scheme}.png"
        browser.picture(target, height)
        print(target)


def shoot_run(browser: Browser) -> None:
    run = BY_NAME["vcube-crash"].address.whole
    with listening(Lab()) as visited:
        shoot(browser, f"{visited.base}/run?{run.query}", "lab", 1170)


def shoot_cluster(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder) / "traces"
        traces.mkdir()
        options = ["--patience", "1", "--cut-by-input", "--trace", str(traces)]
        with LocalCluster(3, Path(folder), options) as own:
            live = LiveCluster(own.addresses, traces=traces, own=own, stack=STACK)
            with listening(Lab(live=live)) as visited:
                play(visited)
                shoot(browser, f"{visited.base}/cluster", "cluster", 1250)


SHOTS = {"run": shoot_run, "cluster": shoot_cluster}


def play(visited: Visited) -> None:
    """Have messages sent for a while, and a server killed."""
    visited.post("/cluster/steady", messages="40")
    for number, words in ((1, "hello"), (2, "who is there?"), (3, "three of us")):
        visited.post("/cluster/send", member=str(number), text=words)
    time.sleep(SECONDS)
    visited.post("/cluster/server", server="server-2", act="kill")
    time.sleep(SECONDS)


def main() -> int:
    reason = why_not()
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as profile, started(Path(profile)) as browser:
        for name in sys.argv[1:] or SHOTS:
            SHOTS[name](browser)
    return 0


if __name__ == "__main__":
    sys.exit(main())
