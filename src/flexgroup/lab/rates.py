"""Lines that go on to the right: how much there was in each of the last seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flexgroup.diagram.markup import Markup, element

HUES = 8
"""How many colours the theme has for series."""

HIGH = 100


@dataclass(frozen=True)
class Series:
    """The values of the last seconds, the latest last."""

    name: str
    values: Sequence[float]
    hue: int = 0


def rates(heading: str, series: Sequence[Series], seconds: int, unit: str) -> Markup:
    """Return a picture of the series, with the same in words."""
    highest = max((value for each in series for value in each.values), default=0.0)
    top = nice_bound(highest)
    lines = [
        element(
            "polyline",
            points=" ".join(
                f"{seconds - len(each.values) + place + 1},{HIGH - HIGH * value / top:.1f}"
                for place, value in enumerate(each.values)
            ),
            class_=f"hue{each.hue % HUES} dash{each.hue // HUES % 3}",
        )
        for each in series
    ]
    drawing = element(
        "svg",
        *lines,
        viewBox=f"0 0 {seconds} {HIGH}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    now = [
        element(
            "li",
            element("span", class_=f"key hue{each.hue % HUES}", aria_hidden="true"),
            f"{each.name} ",
            element("strong", f"{each.values[-1] if each.values else 0.0:,.{_digits(top)}f}"),
        )
        for each in series
    ]
    return element(
        "figure",
        element("figcaption", heading),
        element(
            "div",
            element("span", f"{top:,g} {unit}", class_="top"),
            drawing,
            element("span", f"{seconds} s ago", class_="ago"),
            element("span", "now", class_="now"),
            class_="plot",
        ),
        element("ul", *now, class_="keys"),
        class_="rates",
    )


def nice_bound(highest: float) -> float:
    """Return a round number that is not below the highest value, and above 0."""
    bound = 1.0
    while bound < highest:
        bound *= 2.5 if str(bound)[0] == "2" else 2
    return bound


def _digits(top: float) -> int:
    return 1 if top <= 10 else 0
