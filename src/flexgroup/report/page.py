"""The page: one HTML document that needs nothing but itself."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from flexgroup.diagram.markup import Markup, element, join
from flexgroup.diagram.picture import resources
from flexgroup.report.contents import Contents
from flexgroup.report.figures import (
    claims_markup,
    claims_that_appear,
    described_figures,
    figure_markup,
    styles,
    usual_figures,
)
from flexgroup.report.measures import measures_markup
from flexgroup.report.production import production_markup
from flexgroup.report.verdicts import HOLDS, UNKNOWN, VIOLATED, totals, verdicts_markup
from flexgroup.report.violations import violations_markup

GENERATOR = '<meta name="generator" content="flexgroup report">'
"""The line by which a page of ours, which may be replaced, is told from another file."""


def page(contents: Contents) -> str:
    title = str(contents.about.get("title") or contents.directory.resolve().name)
    sections = _sections(contents)
    links = [element("li", element("a", heading, href=f"#{name}")) for name, heading, _ in sections]
    body = join(
        [
            element("header", element("h1", title), _subtitle(contents), _totals(contents)),
            element("nav", element("ul", *links), aria_label="Contents"),
            element(
                "main",
                *(
                    element("section", element("h2", heading, id=name), told, aria_labelledby=name)
                    for name, heading, told in sections
                ),
            ),
        ]
    )
    head = join(
        [
            element("meta", charset="utf-8"),
            Markup(GENERATOR),
            element("meta", http_equiv="Content-Security-Policy", content=policy()),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", f"{title} · FlexGroup"),
            element("link", rel="icon", href="data:,"),
            element("style", style()),
        ],
        "\n",
    )
    document = element(
        "html",
        element("head", head),
        "\n",
        element("body", body, "\n", element("script", script())),
        lang="en",
    )
    return f"<!doctype html>\n{document}\n"


def _sections(contents: Contents) -> list[tuple[str, str, Markup]]:
    """Return the name, the title and the body of each section that has anything to say."""
    sections = [
        ("figures", "Figures", _figures(contents)),
        ("claims", "Claims", claims_markup(contents.claims)),
        ("verdicts", "Verdicts", verdicts_markup(contents)),
        ("violations", "Violations", violations_markup(contents)),
        ("measures", "Measures", measures_markup(contents)),
        ("production", "How it was produced", production_markup(contents)),
    ]
    return [section for section in sections if section[-1]]


def _figures(contents: Contents) -> Markup:
    points = [] if contents.points is None else contents.points.to_pylist()
    figures = described_figures(contents.about)
    if figures is None:
        figures = usual_figures(points)
    style_of = styles(figures)
    drawn = [figure_markup(figure, points, style_of) for figure in figures]
    if any(figure.paper for figure in figures):
        return join(drawn)
    return element("div", *drawn, class_="gallery") if drawn else Markup()


def _subtitle(contents: Contents) -> Markup:
    source = contents.about.get("source")
    return element("p", source, class_="quiet") if source else Markup()


def _totals(contents: Contents) -> Markup:
    counted = totals(contents)
    violated = f"{counted[VIOLATED]:,}"
    entries: list[tuple[str, str, str | None]] = [
        ("runs", f"{contents.runs.num_rows:,}", None),
        ("verdicts that hold", f"{counted[HOLDS]:,}", None),
        ("violated", violated, None),
        ("unknown", f"{counted[UNKNOWN]:,}", UNKNOWN if counted[UNKNOWN] else None),
    ]
    if counted[VIOLATED]:
        entries[2] = ("violated", element("a", violated, href="#violations"), VIOLATED)
    if contents.claims:
        appear = claims_that_appear(contents.claims)
        entries.append(("claims that appear", f"{appear} of {len(contents.claims)}", None))
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value, class_=kind))
            for name, value, kind in entries
        ),
        class_="totals",
    )


def style() -> Markup:
    """Return the themes, the style of diagrams and charts, and that of the page."""
    names = ("diagram/theme.css", "diagram/diagram.css", "report/charts.css", "report/style.css")
    return Markup(resources(*names))


def script() -> Markup:
    return Markup(resources("report/page.js"))


def policy() -> str:
    """Allow no resource from anywhere, and of styles and scripts only ours, known by digest."""
    return (
        f"default-src 'none'; style-src {_digest(style())}; script-src {_digest(script())}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
