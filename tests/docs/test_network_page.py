"""docs/network.md names files, limits and frames that exist."""

from __future__ import annotations

from dataclasses import fields

from flexgroup.server.peers import links
from flexgroup.server.settings import Limits
from flexgroup.wire.frames import HEADER_BYTES

from .fences import ROOT, code_words, prose, tables

PAGE = ROOT / "docs" / "network.md"


def table_with(*columns: str) -> list[dict[str, str]]:
    (table,) = [table for table in tables(PAGE) if set(columns) <= set(table[0])]
    return table


def test_files_that_the_page_names_exist() -> None:
    named = {word for word in code_words(prose(PAGE)) if word.endswith(".py")}
    assert len(named) > 3
    for word in named:
        assert (ROOT / "src" / "flexgroup" / word).is_file(), word


def test_the_kinds_of_frames_between_servers_are_all_there() -> None:
    kinds = {int(row["kind"]): row["name"] for row in table_with("kind", "name")}
    assert [getattr(links, kinds[number]) for number in range(len(kinds))] == list(range(7))


def test_a_frame_begins_as_the_page_says() -> None:
    *header, _ = [row["bytes"] for row in table_with("bytes")]
    assert sum(map(int, header)) == HEADER_BYTES


def test_the_limits_are_those_of_a_server() -> None:
    named = {word for row in table_with("limit") for word in code_words(row["limit"])}
    assert named <= {field.name for field in fields(Limits)}
