"""The page's own style and script, and the policy that lets nothing else run."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from flexgroup.diagram.drawing import style as diagram_style
from flexgroup.diagram.markup import Markup


@cache
def style() -> Markup:
    """The themes, the style of diagrams and that of the page."""
    return Markup(f"{diagram_style()}\n{_resource('style.css')}")


@cache
def script() -> Markup:
    return Markup(_resource("page.js"))


def policy() -> str:
    """No resource from anywhere; of styles and scripts only these two, known by their digests."""
    return (
        f"default-src 'none'; style-src {_digest(style())}; script-src {_digest(script())}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _resource(name: str) -> str:
    return files("flexgroup.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
