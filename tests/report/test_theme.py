"""The colours of the page can be told from its background, light and dark."""

from __future__ import annotations

import re

import pytest

from flexgroup.report.page import policy, style

LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    for block in re.findall(r":root \{(.*?)\}", style(), flags=re.S)[:2]
)

TEXT = ("ink", "quiet", "link", "bad", "good", "unsure")
SERIES = tuple(f"s{number}" for number in range(8))


def luminance(colour: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("colour", [*TEXT, *SERIES])
def test_text_and_marks_stand_out_from_the_paper(theme: dict[str, str], colour: str) -> None:
    """4.5 is what the guidelines ask for text; marks carry letters, so they need it, too."""
    assert contrast(theme[colour], theme["paper"]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_panels(theme: dict[str, str]) -> None:
    for panel in ("panel", "bad-panel"):
        assert contrast(theme["ink"], theme[panel]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_of_diagrams_can_be_seen(theme: dict[str, str]) -> None:
    assert contrast(theme["rule"], theme["paper"]) >= 3


def test_both_themes_name_the_same_colours() -> None:
    assert set(LIGHT) == set(DARK)


def test_the_policy_knows_style_and_script_by_their_digests() -> None:
    assert policy().count("'sha256-") == 2
