"""A real Chromium without a window, driven through Selenium, for looking at a page.

The driver is the one on the PATH, so nothing is downloaded.
"""

from __future__ import annotations

import json
import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"

PHONE = 360
DESKTOP = 1280

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def found_browser() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def why_not() -> str | None:
    """Why there can be no browser test here, or None."""
    if found_browser() is None:
        return (
            f"no browser on the PATH ({', '.join(BROWSERS)}); on Debian: apt-get install chromium"
        )
    if shutil.which(DRIVER) is None:
        return f"no {DRIVER} on the PATH; on Debian: apt-get install chromium-driver"
    return None


class Browser:
    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self._width = DESKTOP

    def open(
        self, page: Path, width: int = DESKTOP, scheme: str = "light", scripts: bool = True
    ) -> None:
        """Load a file as a reader with such a screen and such preferences would see it."""
        self.visit(page.resolve().as_uri(), width, scheme, scripts)

    def visit(
        self, address: str, width: int = DESKTOP, scheme: str = "light", scripts: bool = True
    ) -> None:
        """Load the page at an address in the same way."""
        self._width = width
        self._tell(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=800, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self._tell(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self._tell("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._tell("Network.enable")
        self._forget()
        self.driver.get(address)

    def run(self, script: str, *arguments: object) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the console of the browser holds: errors, warnings, violations of the policy."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def requests(self) -> list[str]:
        """The addresses that the page made the browser ask for: neither its own, nor those of the
        browser's own pages, one of which may still be loading when ours opens."""
        page = self.driver.current_url
        asked = []
        for entry in self.driver.get_log("performance"):  # type: ignore[no-untyped-call]
            message = json.loads(entry["message"])["message"]
            request = message["method"] == "Network.requestWillBeSent"
            if request and message["params"]["documentURL"].startswith(page):
                asked.append(message["params"]["request"]["url"])
        return [url for url in asked if not url.startswith(page)]

    def picture(self, target: Path, height: int | None = None) -> None:
        """The whole page, however long, or its beginning, so high."""
        clip = {}
        if height is not None:
            # Not what the page says: a scroll bar takes room from it, which no picture has.
            clip["clip"] = {"x": 0, "y": 0, "width": self._width, "height": height, "scale": 1}
        shot = self._tell("Page.captureScreenshot", captureBeyondViewport=True, **clip)
        target.write_bytes(b64decode(shot["data"]))

    def _tell(self, command: str, **parameters: object) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def _forget(self) -> None:
        for log in ("browser", "performance"):
            self.driver.get_log(log)  # type: ignore[no-untyped-call]


@contextmanager
def started(profile: Path) -> Iterator[Browser]:
    options = ChromeOptions()
    options.binary_location = found_browser() or ""
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which(DRIVER)))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
