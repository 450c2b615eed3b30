"""docs/design.md names tests, packages and methods that exist."""

from __future__ import annotations

import re

from flexgroup.core.guarantees import Guarantee
from flexgroup.core.layer import Layer

from .fences import ROOT, code_words, prose, tables

PAGE = ROOT / "docs" / "design.md"


def table_with(column: str) -> list[dict[str, str]]:
    (table,) = [table for table in tables(PAGE) if column in table[0]]
    return table


def test_every_rule_is_enforced_by_tests_that_exist() -> None:
    named = [word for row in table_with("enforced by") for word in code_words(row["enforced by"])]
    assert len(named) > 10
    for word in named:
        file, _, test = word.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), word


def methods(column: str) -> set[str]:
    words = [word for row in table_with(column) for word in code_words(row[column])]
    return {word.partition("(")[0] for word in words}


def test_the_contract_is_the_whole_contract() -> None:
    public = {name for name in vars(Layer) if re.fullmatch(r"[a-z]\w*", name)}
    slots = {"context", "effects", "is_top", "level", "process", "size"}
    questions = {"is_for_me", "refuse", "seal", "is_sealed"}
    assert methods("handler") | methods("verb") | questions == public - slots
    assert questions <= {word.partition("(")[0] for word in code_words(prose(PAGE))}


def test_the_packages_are_those_that_are_there() -> None:
    package = ROOT / "src" / "flexgroup"
    there = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    named = {row["package"].strip("`").partition("/")[0] for row in table_with("package")}
    assert named == there


def test_the_guarantees_mean_what_the_code_says() -> None:
    rows = {row["guarantee"]: row["means"] for row in table_with("guarantee")}
    assert rows == {guarantee.value: guarantee.meaning for guarantee in Guarantee}


def test_files_that_the_page_names_exist() -> None:
    for word in code_words(prose(PAGE)):
        if word.startswith(("tests/", "src/", "benchmarks/")):
            assert (ROOT / word.partition("::")[0]).exists(), word


def test_the_modules_on_the_way_of_a_message_exist() -> None:
    walks = [table for table in tables(PAGE) if "module" in table[0]]
    assert len(walks) == 3
    for row in (row for walk in walks for row in walk):
        for word in code_words(row["module"]):
            assert (ROOT / "src" / "flexgroup" / word).is_file(), word
