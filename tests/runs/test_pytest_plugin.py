"""The plugin of pytest: what a project of somebody else gets from it, and what it is spared.

Each suite runs in a process of its own: one in this would throw away the modules it has loaded.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SCRIPTS = Path(__file__).parents[1] / "scripts"
GOOD = (SCRIPTS / "df_single_destination.txt").read_text(encoding="utf-8")
WRONG = GOOD.replace("  1: a b\n", "  1: b a\n")

OWN = """
from flexgroup.core.layer import Layer
from flexgroup.core.message import Message
from flexgroup.protocols.best_effort import Data
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, register


class Echo(Layer):
    PACKETS = (Data,)

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Data) -> None:
        self.deliver(packet.m)


if "echo" not in PROTOCOLS:
    register(Protocol("echo", Echo, "delivers what it is sent", source="this test"))
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with two texts, one of which is a script that goes wrong."""
    (pytester.path / "scripts").mkdir()
    (pytester.path / "scripts" / "good.txt").write_text(GOOD, encoding="utf-8")
    (pytester.path / "notes.txt").write_text("nothing of ours", encoding="utf-8")
    return pytester


def test_who_asks_for_nothing_gets_nothing(project: pytest.Pytester) -> None:
    project.makepyfile("def test_theirs(): pass")
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_scripts_that_are_named_are_tests_and_one_that_goes_otherwise_shows_how(
    project: pytest.Pytester,
) -> None:
    project.makeini("[pytest]\nflexgroup_scripts = scripts/*.txt")
    wrong = project.path / "scripts" / "wrong.txt"
    wrong.write_text(WRONG, encoding="utf-8")
    result = project.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*expected*",
            "*1: b a*",
            "*answered*",
            "*1: a b*",
            f"run it with: flexgroup replay {wrong}",
        ]
    )
    project.runpytest_subprocess("--rewrite-scripts").assert_outcomes(passed=2)
    assert wrong.read_text(encoding="utf-8") == GOOD


def test_a_script_that_makes_no_sense_says_why(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nflexgroup_scripts = notes.txt")
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["it cannot be run: unknown command 'nothing'; commands: stack, *"])


def test_protocols_of_ones_own_are_those_of_the_project(project: pytest.Pytester) -> None:
    project.makepyfile(echo_protocol=OWN)
    project.makepyprojecttoml(
        '[tool.flexgroup]\nprotocols = ["echo_protocol"]\n'
        '[tool.pytest.ini_options]\nflexgroup_scripts = ["scripts/*.txt"]\n'
    )
    echo = "stack echo over fifo channels, processes 2\ncast 0 a to=1\n----\nok\n  0->1 Data a\n"
    (project.path / "scripts" / "echo.txt").write_text(echo, encoding="utf-8")
    project.makepyfile(
        """
        def test_it(explores, simulates):
            explored = explores("echo", processes=2, message=["0,1", "0,1"])
            assert explored.result.exhausted
            runs = simulates("echo", processes=2, clients=1, workload="random:2",
                             duration=0.002, seeds=range(3))
            assert [run.described.seed for run in runs] == [0, 1, 2]
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=3)


FAILING = """
from hypothesis import given, settings
from flexgroup.testing.strategies import schedules

CYCLE = dict(processes=4, message=["0,2", "0,2", "0,3", "2,3"])

def test_breaks(explores):
    explores("dcc-published", **CYCLE)

def test_is_caught(explores):
    explores("dcc-published", **CYCLE, violates="acyclic order")

def test_is_not_caught(explores):
    explores("dcc", **CYCLE, violates="acyclic order")

def test_is_too_large(explores):
    explores("skeen", processes=4, message=["0,1,2,3"] * 4, max_states=100)

def test_simulated(simulates):
    simulates("best-effort", processes=4, clients=4, workload="random:3", duration=0.01,
              check="all", seeds=range(5, 6))

@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(schedule=schedules("best-effort", processes=3, messages=3))
def test_any_order(schedule):
    schedule.keeps_its_promises()
"""


def test_failures_tell_how_to_see_them_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=5)
    result.stdout.fnmatch_lines(
        [
            "*stack dcc-published over fifo channels, processes 4",
            "explore it again with: flexgroup explore --protocol 'dcc-published' --processes 4 *",
            "acyclic order: no schedule violates it",
            "*exhausted: * no property is violated",
            "so it was not all tried: *",
            "*prefix order: violated",
            "simulate it again with: flexgroup simulate --protocol best-effort *--seed 5 *",
            "*best-effort: cycle with 2 processes and messages to *; replay with:",
        ],
        consecutive=False,
    )
