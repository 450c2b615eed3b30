"""The pages of the protocols agree with the catalogue, the wire and the code they speak of."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from random import Random

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.guarantees import names
from flexgroup.protocols.catalogue import ALL, LAST, PROTOCOLS, parse_stack
from flexgroup.testing.bench import Bench

from .fences import ROOT, code_words, fences, links, name_of, prose, tables

FOLDER = ROOT / "docs" / "protocols"
INDEX = FOLDER / "README.md"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path != INDEX)

ANSWERS = {ALL: "all destinations", LAST: "the last destination"}

# The column of a page's tables that names our code, and whose code it names.
CODE_COLUMNS = {
    ("skeen.md", "ours"): "skeen",
    ("df.md", "ours"): "df",
    ("fifo.md", "ours"): "fifo",
    ("best-effort.md", "ours"): "best-effort",
    ("dcc.md", "`dcc_published`"): "dcc-published",
    ("dcc.md", "`dcc`"): "dcc",
}


def index_table(column: str) -> list[dict[str, str]]:
    (table,) = [table for table in tables(INDEX) if column in table[0]]
    return table


def test_every_protocol_is_in_the_index_with_its_guarantees() -> None:
    rows = {row["stack"].strip("`"): row for row in index_table("needs")}
    assert set(rows) == set(PROTOCOLS)
    for name, row in rows.items():
        layer = PROTOCOLS[name].layer
        assert row["needs"] == names(layer.NEEDS)
        assert row["gives"] == names(layer.GIVES)
        assert row["keeps"] == names(layer.KEEPS)


def test_every_page_is_in_the_index() -> None:
    assert {path.name for path in PAGES} <= set(links(INDEX))


def test_who_answers_is_what_the_catalogue_says() -> None:
    for row in index_table("who answers a client"):
        name = row["stack"].split(",")[0].strip("`")
        assert row["who answers a client"] == ANSWERS[PROTOCOLS[name].answers]


def header_formulas() -> list[tuple[str, str, str]]:
    return [
        (row["stack"].strip("`"), row["packet"].strip("`"), row["bytes"].strip("`"))
        for row in index_table("bytes")
    ]


@pytest.mark.parametrize(("stack", "packet", "formula"), header_formulas())
def test_headers_have_the_size_that_the_index_says(stack: str, packet: str, formula: str) -> None:
    plan = parse_stack(stack)
    codec = Codec(plan.layers)
    random = Random(1)
    seen = 0
    for n in (2, 5, 8):
        bench = Bench(plan, n)
        for _ in range(10):
            k = random.randint(1, n)
            bench.cast(n, tuple(sorted(random.sample(range(n), k))))
            while bench.channels:
                sent = bench.deliver(*next(iter(bench.channels)))
                if type(sent).__name__ == packet:
                    changed = len(getattr(sent, "changed", ())) // 2
                    size = eval(formula, {"k": k, "n": n, "c": changed})
                    assert codec.measure(sent).header_bytes == size
                    seen += 1
    assert seen > 5


def test_the_index_knows_every_packet() -> None:
    listed = {(stack.split("/")[0], packet) for stack, packet, _ in header_formulas()}
    sent = {
        (name, packet.__name__)
        for name, protocol in PROTOCOLS.items()
        for packet in protocol.layer.PACKETS
    }
    assert sent - listed == {("dcc-published", "Enter")}  # the same as that of dcc


@pytest.mark.parametrize(("page", "column"), CODE_COLUMNS)
def test_what_the_tables_name_is_in_the_code(page: str, column: str) -> None:
    protocol = PROTOCOLS[CODE_COLUMNS[page, column]]
    module = import_module(protocol.layer.__module__)
    layer = parse_stack(protocol.name).build(0, 3).layers[0]
    fields = {field for packet in protocol.layer.PACKETS for field, _ in packet.FIELDS}
    cells = [row[column] for table in tables(FOLDER / page) for row in table if column in row]
    words = [word for cell in cells for word in code_words(cell)]
    assert len(words) > 1
    missing = [
        word
        for word in words
        if not (
            hasattr(layer, word)
            or hasattr(module, word)
            or word in fields
            or (Path(str(module.__file__)).parent / f"{word}.py").exists()
        )
    ]
    assert not missing, f"{page} names {missing}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_says_what_every_page_says(page: Path) -> None:
    text = prose(page)
    for item in ("*Source*", "*Assumes*", "*Guarantees*", "*Genuine*", "*Who answers a client*"):
        assert f"- {item}" in text
    for heading in ("## Costs", "## A worked example"):
        assert heading in text
    assert any(fence.language == "script" for fence in fences(page))


def test_tests_and_scripts_that_the_pages_name_exist() -> None:
    for page in [INDEX, *PAGES]:
        for word in code_words(prose(page)):
            if word.startswith(("tests/", "src/", "benchmarks/")):
                assert list(ROOT.glob(word)), f"{name_of(page)} names {word}"
