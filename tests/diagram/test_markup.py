"""Whatever a stranger chose as a name or a text stays text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flexgroup.diagram.markup import Markup, element, join, text

from .elements import parsed


@given(st.text())
def test_any_text_can_be_the_content_of_an_element(anything: str) -> None:
    (found,) = parsed(element("p", anything)).children
    assert found.children == []


@given(st.text())
def test_any_text_can_be_an_attribute(anything: str) -> None:
    (found,) = parsed(element("p", title=anything)).children
    assert set(found.attributes) == {"title"}


def test_a_script_in_a_name_is_shown_and_not_run() -> None:
    assert element("td", "<script>alert(1)</script>") == (
        "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>"
    )


def test_markup_is_not_escaped_again() -> None:
    assert element("p", element("b", "a & b")) == "<p><b>a &amp; b</b></p>"
    assert join([Markup("<br>"), "<"], ", ") == "<br>, &lt;"


def test_characters_that_no_page_may_hold_are_replaced() -> None:
    assert text("a\x00b\x1b[31m\ud800") == "a\ufffdb\ufffd[31m\ufffd"


def test_attributes_are_named_as_in_html() -> None:
    assert element("p", class_="a", aria_label="b", title=None, x=1.25, y=2.0) == (
        '<p class="a" aria-label="b" x="1.2" y="2"></p>'
    )
