"""Three uses of causal order: right on every stack that has it, wrong without, as the page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .applications import EXAMPLES, example

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "examples.md"

USES = ("token", "observer", "allocator")
CAUSAL = ("causal", "causal-rst", "causal-ses", "causal-isis", "xamp-causal")

every_use = pytest.mark.parametrize("use", USES)


@every_use
@pytest.mark.parametrize("stack", CAUSAL)
def test_with_causal_order_it_is_right(use: str, stack: str) -> None:
    assert example("causal_order").verdict(use, stack, 30) == "right in all of 30 schedules"


@every_use
@pytest.mark.parametrize("stack", ["best-effort", "fifo"])
def test_without_it_is_wrong_and_says_how(use: str, stack: str) -> None:
    verdict = example("causal_order").verdict(use, stack, 30)
    assert verdict.startswith("WRONG in ")
    assert {"token": "was written", "observer": "saw step", "allocator": "was granted"}[use] in (
        verdict
    )


def test_the_page_shows_what_it_prints() -> None:
    command = [sys.executable, str(EXAMPLES / "causal_order.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"```\n{printed}```" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--use", "clock"], "invalid choice: 'clock'"),
        (["--stack", "casual"], "unknown protocol 'casual'"),
        (["--stack", "dcc"], "missing fifo"),
        (["--stack", "leader paxos"], "groups of replicas"),
        (["--seeds", "0"], "there must be one schedule at least"),
    ],
)
def test_bad_input_is_refused_in_a_line(
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["causal_order.py", *options])
    with pytest.raises(SystemExit) as ended:
        example("causal_order").main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
