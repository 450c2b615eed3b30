"""A page or a picture as a tree of elements, to ask it questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

from flexgroup.diagram.markup import VOID


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None]
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text below, in order of the elements."""
        return " ".join([*self.texts, *(child.text for child in self.children)]).strip()

    @property
    def classes(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())

    def find(self, name: str, *classes: str) -> list[Element]:
        return [
            element
            for element in self.below()
            if element.name == name and element.classes.issuperset(classes)
        ]

    def below(self) -> Iterator[Element]:
        for child in self.children:
            yield child
            yield from child.below()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("document", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag, f"</{tag}> does not close what is open"

    def handle_data(self, data: str) -> None:
        self.open[-1].texts.append(data)


def parsed(markup: str) -> Element:
    """The tree; elements must be closed in the order in which they were opened."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    assert [element.name for element in reader.open] == ["document"]
    return reader.open[0]
