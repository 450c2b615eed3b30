"""`flexgroup.simulate` and `flexgroup.explore`: the commands as functions, whose runs show
themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import flexgroup
from flexgroup.cli.main import main
from flexgroup.cli.parser import build_parser
from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Layer
from flexgroup.core.message import Message
from flexgroup.lab.address import read_address
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol
from flexgroup.runs.simulated import HandlerRaisedError, SimulatedRun
from flexgroup.testing.script import check as check_script
from flexgroup.trace.reader import read_runs

SMALL = {"processes": 4, "clients": 3, "workload": "random:2", "network": "unit", "duration": 0.02}
CYCLE = {"processes": 4, "message": ["0,2", "0,2", "0,3", "2,3"]}


@pytest.fixture(scope="module")
def run() -> SimulatedRun:
    return flexgroup.simulate("skeen", **SMALL)  # type: ignore[arg-type]


NOT_IN_A_NOTEBOOK = {
    "simulate": set[str](),
    "explore": set(
        "all_destinations beside out save resume spark master executor_memory servers join leave "
        "cuts breaks delays ticks replay".split()
    ),
}
"""Options of searches that are saved, on Spark, of all systems of a size, and of servers."""


@pytest.mark.parametrize(
    ("name", "function"), [("simulate", flexgroup.simulate), ("explore", flexgroup.explore)]
)
def test_arguments_are_the_options_of_the_command(
    name: str, function: Callable[..., object]
) -> None:
    given = build_parser().parse_args([name, "--protocol", "skeen"])
    options = vars(given)
    for other in ("stack", "json", "protocols", "run", *NOT_IN_A_NOTEBOOK[name]):
        options.pop(other, None)
    arguments = {
        argument: each.default
        for argument, each in inspect.signature(function).parameters.items()
        if argument not in ("protocol", "progress")
    }
    assert {key: () if value == [] else value for key, value in options.items()} == arguments


def test_a_run_is_what_the_command_prints(
    run: SimulatedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for key, value in SMALL.items() for word in (f"--{key}", str(value))]
    assert main(["simulate", "--protocol", "skeen", *options]) == 0
    assert capsys.readouterr().out == f"{run}\n"


def test_verdicts_and_latencies_are_tables(run: SimulatedRun) -> None:
    assert set(run.verdicts.outcome) == {"holds"}
    assert "acyclic order" in run.verdicts.index
    latencies = run.latencies
    assert len(latencies) == run.metrics["messages"]
    assert latencies.loc["4.0", "last"] == pytest.approx(0.002)
    assert latencies.loc["4.0", "origin"] == 4
    assert set(latencies.steps) == {2.0}


def test_what_was_not_delivered_has_no_latency() -> None:
    run = flexgroup.simulate("skeen", **SMALL, crash="1@5ms")  # type: ignore[arg-type]
    waiting = run.latencies[~run.latencies.answered]
    assert len(waiting) > 0
    assert waiting["last"].isna().all()
    assert run.violated


def test_a_run_shows_itself(run: SimulatedRun) -> None:
    assert ElementTree.fromstring(run._repr_svg_()).tag.endswith("svg")
    page = run._repr_html_()
    assert run.outcome.run in page
    assert "acyclic order, minimality: holds" in page
    assert ElementTree.fromstring(page).find(".//{*}svg") is not None
    plotted = ElementTree.fromstring(run.plot()._repr_svg_())
    assert "latency (ms)" in "".join(plotted.itertext())


def test_the_picture_is_of_what_is_asked_for(run: SimulatedRun) -> None:
    shown = run.diagram("5.0").standalone
    assert "message 5.0" in shown
    assert "message 4.0" not in shown
    with pytest.raises(UsageError, match=r"there is no message '9\.9'"):
        run.diagram("9.9")


def test_the_picture_is_of_what_is_violated() -> None:
    run = flexgroup.simulate(
        "best-effort", processes=4, clients=4, workload="random:3", duration=0.01, check="all"
    )
    violated = next(v for v in run.checked if v.outcome == "violated" and v.witness)
    assert "violated" in run._repr_html_()
    assert violated.explanation.splitlines()[0] in run._repr_html_().replace("&#x27;", "'")
    assert "what the verdict names" in run.diagram().standalone


def test_a_run_can_be_written_as_well(tmp_path: Path) -> None:
    run = flexgroup.simulate("skeen", **SMALL, out=tmp_path / "traces")  # type: ignore[arg-type]
    assert [row.run for row in read_runs(tmp_path / "traces")] == [run.outcome.run]
    assert run.diagram().packets > 0
    assert len(run.latencies) == run.metrics["messages"]


def test_a_choice_that_is_none_is_named() -> None:
    with pytest.raises(UsageError, match="check='most' is not possible"):
        flexgroup.simulate("skeen", check="most")
    with pytest.raises(UsageError, match="reduction='some' is not possible"):
        flexgroup.explore("skeen", **CYCLE, reduction="some")  # type: ignore[arg-type]


class Stumbles(Layer):
    """Fails at the first multicast."""

    def on_cast(self, m: Message) -> None:
        raise RuntimeError("not yet")


def test_a_handler_that_raises_is_the_cause_of_what_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    protocol = Protocol("stumbles", Stumbles, "fails", source="this test")
    monkeypatch.setitem(PROTOCOLS, "stumbles", protocol)
    with pytest.raises(
        HandlerRaisedError, match="a handler raised RuntimeError: not yet"
    ) as caught:
        flexgroup.simulate("stumbles", **SMALL)  # type: ignore[arg-type]
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.verdict.property == "conduct"


def test_an_exploration_shows_its_counterexample() -> None:
    found = flexgroup.explore("dcc-published", **CYCLE)  # type: ignore[arg-type]
    assert found.violated
    assert found.verdicts.outcome["acyclic order"] == "violated"
    assert set(found.verdicts.outcome.drop("acyclic order")) == {"unknown"}, "it was not all tried"
    assert not check_script(found.script)
    assert found.latencies.steps.to_dict() == {"a": 3, "b": 2, "c": 4, "d": 2}
    assert "acyclic order violated" in found.diagram().standalone
    assert "acyclic order" in found._repr_html_()
    assert "steps" in found.plot()._repr_svg_()
    assert read_address(found.address.query).moves == found.address.moves


def test_where_nothing_is_violated_one_of_the_runs_is_shown() -> None:
    found = flexgroup.explore("skeen", processes=2, message=["0,1", "0,1"])
    assert not found.violated
    assert set(found.verdicts.outcome) == {"holds"}
    assert not check_script(found.script)
    assert set(found.latencies.steps) == {2}
    assert ElementTree.fromstring(found._repr_svg_()).tag.endswith("svg")


def test_what_was_not_tried_is_unknown() -> None:
    found = flexgroup.explore("skeen", processes=3, message=["0,1", "1,2", "0,2"], max_states=50)
    assert set(found.verdicts.outcome) == {"unknown"}


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flexgroup.runs.explored.shortest", interrupted)
    found = flexgroup.explore("dcc-published", **CYCLE)  # type: ignore[arg-type]
    ((violation, smallest),) = found.counterexamples
    assert smallest.violation == violation
    assert smallest.stopped_at == "an interrupt"
