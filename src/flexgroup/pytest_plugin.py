"""A plugin of pytest: golden scripts as tests, and protocols explored and simulated in tests.

It changes nothing until it is asked to. Scripts are collected where `flexgroup_scripts` in the
configuration of pytest names them, by patterns from its root folder; the fixtures `explores` and
`simulates` are there for tests that take them. Protocols of one's own are those that the
`[tool.flexgroup]` table of the project names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flexgroup.runs.explored import Explored
    from flexgroup.runs.simulated import SimulatedRun

SCRIPTS = "flexgroup_scripts"
REWRITE = "--rewrite-scripts"

SEEDS = range(1, 2)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what may be said of golden scripts."""
    parser.addini(
        SCRIPTS,
        "patterns of FlexGroup's golden scripts, each of which is a test: tests/scripts/*.txt",
        type="linelist",
        default=[],
    )
    parser.getgroup("flexgroup").addoption(
        REWRITE,
        action="store_true",
        help="write the answers that golden scripts get now into their files; review the diff",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> GoldenScript | None:
    """Collect a script that the configuration names."""
    config = parent.config
    patterns = config.getini(SCRIPTS)
    if not patterns or not file_path.is_relative_to(config.rootpath):
        return None
    name = file_path.relative_to(config.rootpath).as_posix()
    if not any(fnmatch(name, pattern) for pattern in patterns):
        return None
    _import_own_protocols(config.rootpath)
    script: GoldenScript = GoldenScript.from_parent(parent, path=file_path)
    return script


class GoldenScript(pytest.File):
    """A file with a golden script, which is one test."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the test that the script goes as written."""
        yield GoesAsWritten.from_parent(self, name="goes_as_written")


class DiffersError(Exception):
    """A script does not go as written."""


class GoesAsWritten(pytest.Item):
    """The test that a script gets the answers that it has."""

    def runtest(self) -> None:
        """Check the script, or write the answers that it gets."""
        from flexgroup.core.errors import FlexGroupError
        from flexgroup.testing.script import check, rewrite

        try:
            text = self.path.read_text(encoding="utf-8")
            if self.config.getoption(REWRITE):
                self.path.write_text(rewrite(text), encoding="utf-8")
                return
            mismatches = check(text)
        except (FlexGroupError, UnicodeDecodeError) as error:
            raise DiffersError(f"it cannot be run: {error}") from None
        if mismatches:
            raise DiffersError("\n".join(map(str, mismatches)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show answers beside those that were expected, and how to see all of them."""
        if not isinstance(excinfo.value, DiffersError):
            return super().repr_failure(excinfo, style)
        return f"{self.path.name}\n{excinfo.value}\n\nrun it with: flexgroup replay {self.path}"

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the file in reports."""
        return self.path, None, self.path.stem


@pytest.fixture
def explores(pytestconfig: pytest.Config) -> Callable[..., Explored]:
    """Explore a system whole: `explores("skeen", processes=2, message=["0,1", "0,1"])`.

    Arguments are those of `flexgroup.explore`, and `violates`, the properties that must be
    violated. The test fails with a script if others are, or if not every schedule was tried.
    """
    _import_own_protocols(pytestconfig.rootpath)
    return _explores


def _explores(protocol: str, *, violates: str | tuple[str, ...] = (), **options: Any) -> Explored:
    __tracebackhide__ = True
    from flexgroup.runs.explored import explore
    from flexgroup.worlds.explorer.scope_words import command_of

    wanted = {violates} if isinstance(violates, str) else set(violates)
    explored = explore(protocol, **options)
    command = command_of(explored.plan.name, explored.result.scope)
    broken = explored.result.broken
    if broken - wanted or explored.unseen:
        pytest.fail(f"{explored}\n\nexplore it again with: {command}", pytrace=False)
    if wanted - broken:
        missed = ", ".join(sorted(wanted - broken))
        pytest.fail(
            f"{missed}: no schedule violates it\n{explored}\n\nexplore it again with: {command}",
            pytrace=False,
        )
    if not wanted and not explored.result.exhausted and options.get("walks") is None:
        pytest.fail(
            f"{explored.result.last_line()}\n\n"
            f"so it was not all tried: allow more, make the system smaller, or give walks=N\n"
            f"explore it again with: {command}",
            pytrace=False,
        )
    return explored


@pytest.fixture
def simulates(pytestconfig: pytest.Config) -> Callable[..., list[SimulatedRun]]:
    """Simulate: `simulates("skeen", processes=4, workload="random:2", seeds=range(10))`.

    Arguments are those of `flexgroup.simulate`, with `seeds` in the place of `seed`. The test fails
    with the verdict, and with the command that simulates the run again, if something is violated.
    """
    _import_own_protocols(pytestconfig.rootpath)
    return _simulates


def _simulates(protocol: str, *, seeds: range = SEEDS, **options: Any) -> list[SimulatedRun]:
    __tracebackhide__ = True
    from flexgroup.runs.simulated import simulate

    runs = []
    for seed in seeds:
        run = simulate(protocol, seed=seed, **options)
        if run.violated:
            pytest.fail(f"{run}\n\nsimulate it again with: {run.command}", pytrace=False)
        runs.append(run)
    return runs


_imported: set[Path] = set()


def _import_own_protocols(folder: Path) -> None:
    if folder not in _imported:
        from flexgroup.runs.own_protocols import configured_protocols, import_protocols

        _imported.add(folder)
        import_protocols(configured_protocols(folder))
