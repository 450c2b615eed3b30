"""The documentation is run: its Python, its scripts, its commands; and its links lead somewhere.

All Python of a page shares one namespace, in order. A block of text right behind a block of
Python is what that must print.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from flexgroup.cli.parser import build_parser
from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import PROTOCOLS
from flexgroup.testing.script import check
from flexgroup.trace.collector import Collector
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from .fences import PAGES, ROOT, Fence, anchors, fences, links, name_of

COMMAND = re.compile(r"^(?:\$ )?(?:\S*/)?flexgroup( .+)$")
MAKE = re.compile(r"^(?:\$ )?make ([a-z]+)\b")


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if any(fence.language == language for fence in fences(page))]


@pytest.fixture(autouse=True)
def _same_protocols_afterwards() -> Iterator[None]:
    """A page may register a protocol; others must not see it."""
    before = dict(PROTOCOLS)
    yield
    PROTOCOLS.clear()
    PROTOCOLS.update(before)


def a_small_run() -> dict[str, object]:
    collector = Collector()
    outcome = run_scenario(Scenario("skeen", 4, 2, "random:2", duration=0.001), collector)
    return {"history": collector.history(outcome.run, 4, outcome.complete)}


# What a page takes for granted.
GIVEN: dict[str, Callable[[], dict[str, object]]] = {"docs/properties.md": a_small_run}


def run_python(fence: Fence, page: str, namespace: dict[str, object]) -> str:
    """Execute one block; what it printed."""
    if fence.text.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(
            fence.text, namespace, page, page, fence.line - 1
        )
        out = StringIO()
        results = doctest.DocTestRunner(verbose=False).run(test, out=out.write, clear_globs=False)
        namespace.update(test.globs)
        assert results.failed == 0, out.getvalue()
        return ""
    printed = StringIO()
    # The blank lines make the line numbers in a traceback those of the page.
    code = compile("\n" * (fence.line - 1) + fence.text, page, "exec", dont_inherit=True)
    with redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_python_runs_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = name_of(page)
    namespace: dict[str, object] = {"__name__": "page"}
    if name in GIVEN:
        namespace.update(GIVEN[name]())
    found = fences(page)
    for fence, behind in zip(found, [*found[1:], None], strict=True):
        if fence.language != "python":
            continue
        printed = run_python(fence, name, namespace)
        if behind is not None and behind.language == "text":
            assert printed == behind.text, f"{name}, line {fence.line}"


SCRIPTS = [
    pytest.param(fence.text, id=f"{name_of(page)}:{fence.line}")
    for page in PAGES
    for fence in fences(page)
    if fence.language == "script"
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_goes_as_written(script: str) -> None:
    mismatches = check(script)
    assert not mismatches, "\n" + "\n".join(map(str, mismatches))


def shell_lines() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for fence in fences(page):
            if fence.language in ("", "sh", "console"):
                for line in fence.text.replace("\\\n", " ").splitlines():
                    yield f"{name_of(page)}:{fence.line}", line.strip()


COMMANDS = [(where, match[1]) for where, line in shell_lines() if (match := COMMAND.match(line))]


def test_commands_are_understood() -> None:
    not_understood = []
    for where, command in COMMANDS:
        try:
            options = build_parser().parse_args(shlex.split(command, comments=True))
        except UsageError:
            not_understood.append(f"{where}: {command}")
            continue
        assert callable(options.run)
        script = getattr(options, "path", None)
        if script is not None and script.suffix == ".txt":
            assert (ROOT / script).is_file(), f"{where}: {script} does not exist"
    assert not not_understood


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.M))
    named = {match[1] for _, line in shell_lines() if (match := MAKE.match(line))}
    assert named
    assert named <= targets


def broken_links(page: Path) -> Iterator[str]:
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{link}: there is no such heading"


def test_links_lead_somewhere() -> None:
    broken = [f"{name_of(page)}: {problem}" for page in PAGES for problem in broken_links(page)]
    assert not broken


def test_there_is_something_to_look_at() -> None:
    assert len(SCRIPTS) >= 10
    assert len(COMMANDS) >= 5
    assert ROOT / "docs" / "tutorial.md" in pages_with("python")
    assert sum(len(links(page)) for page in PAGES) > 40
