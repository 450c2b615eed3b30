"""Virtual synchrony: who goes from one view to the next together delivered the same in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.journal import VIEW
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace import schema
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History, View, parse_view
from flexgroup.trace.reader import load_history, read_run
from flexgroup.trace.recorder import Recorder, Sink
from flexgroup.trace.run import Run
from flexgroup.trace.writer import TraceWriter

from .histories import identity, told


def virtual_synchrony(history: History) -> Verdict:
    [verdict] = check(history, ["virtual synchrony"])
    return verdict


def test_holds_when_both_deliver_the_same_between_the_views() -> None:
    verdict = virtual_synchrony(
        told("""
            0 view 1 of 0,1
            1 view 1 of 0,1
            0 multicast 0.0 to 0,1
            1 multicast 1.0 to 0,1
            0 deliver 0.0
            0 deliver 1.0
            1 deliver 1.0
            1 deliver 0.0
            0 view 2 of 0,1
            1 view 2 of 0,1
        """)
    )
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.explanation == "checked 4 deliveries before 2 changes of view"


def test_a_message_that_one_of_them_missed() -> None:
    verdict = virtual_synchrony(
        told("""
            0 view 1 of 0,1,2
            1 view 1 of 0,1,2
            0 multicast 0.0 to 0,1,2
            0 deliver 0.0
            0 view 2 of 0,1
            1 view 2 of 0,1
        """)
    )
    assert verdict.violations == 1
    assert verdict.witness == (Step(0, 2, "deliver", identity("0.0")),)
    assert str(verdict) == (
        "virtual synchrony: violated\n"
        "  let a = message 0.0 to {0,1,2}, v = view 1 of {0,1,2}, w = view 2 of {0,1}\n"
        "  process 0 installed v (step 0), delivered a (step 2) and then installed w (step 3)\n"
        "  process 1 installed v (step 0) and then w (step 1) and did not deliver a between them"
    )


def test_a_message_that_came_after_the_view_change() -> None:
    verdict = virtual_synchrony(
        told("""
            0 view 1 of 0,1
            1 view 1 of 0,1
            0 multicast 0.0 to 0,1
            0 deliver 0.0
            0 view 2 of 0,1
            1 view 2 of 0,1
            1 deliver 0.0
        """)
    )
    late = Step(1, 2, "deliver", identity("0.0"))
    assert verdict.witness == (Step(0, 2, "deliver", identity("0.0")), late)
    assert verdict.explanation.endswith("did not deliver a between them, but outside them (step 2)")


@pytest.mark.parametrize(
    "story",
    [
        pytest.param("0 view 2 of 0\n1 view 2 of 1", id="the next view is another"),
        pytest.param("0 view 2 of 0,1", id="the other stays in the first view"),
        pytest.param("1 crash\n0 view 2 of 0,1\n1 view 2 of 0,1", id="the other crashed meanwhile"),
    ],
)
def test_who_does_not_move_along_need_not_deliver_the_same(story: str) -> None:
    begin = "0 view 1 of 0,1\n1 view 1 of 0,1\n0 multicast 0.0 to 0,1\n0 deliver 0.0\n"
    assert virtual_synchrony(told(begin + story)).outcome is Outcome.HOLDS


def test_a_message_is_missed_only_by_its_destinations() -> None:
    story = """
        0 view 1 of 0,1
        1 view 1 of 0,1
        0 multicast 0.0 to 0
        0 deliver 0.0
        0 deliver 7.7
        0 view 2 of 0,1
        1 view 2 of 0,1
    """
    assert virtual_synchrony(told(story)).outcome is Outcome.HOLDS


def test_violations_are_missing_deliveries() -> None:
    story = """
        0 view 1 of 0,1,2
        1 view 1 of 0,1,2
        2 view 1 of 0,1,2
        0 multicast 0.0 to 0,1,2
        0 multicast 0.1 to 0,1,2
        0 deliver 0.0
        0 deliver 0.1
        1 deliver 0.1
        0 view 2 of 0,1,2
        1 view 2 of 0,1,2
        2 view 2 of 0,1,2
    """
    assert virtual_synchrony(told(story)).violations == 3


def test_a_run_cut_short_is_decided_all_the_same() -> None:
    story = """
        0 view 1 of 0,1
        1 view 1 of 0,1
        0 multicast 0.0 to 0,1
        0 deliver 0.0
        0 view 2 of 0,1
        1 view 2 of 0,1
    """
    assert virtual_synchrony(told(story, complete=False)).outcome is Outcome.VIOLATED


def test_without_views_nothing_is_known() -> None:
    verdict = virtual_synchrony(told("0 multicast 0.0 to 0\n0 deliver 0.0"))
    assert (verdict.outcome, verdict.explanation) == (Outcome.UNKNOWN, "the trace has no views")


# From the trace.


def tell(sink: Sink, detail: str) -> None:
    recorder = Recorder(sink)
    for process in (1, 0):
        recorder.other(VIEW, process, 0, 10, 0, detail)
    recorder.flush()


def test_views_are_collected_and_read_back_alike(tmp_path: Path) -> None:
    detail = '{"members":[1,0],"number":3}'
    collector = Collector()
    tell(collector, detail)
    with TraceWriter(tmp_path, "run") as writer:
        tell(writer, detail)
        writer.close(Run(run="run", world="made up", stack="none", processes=2))
    read = load_history(tmp_path, read_run(tmp_path, "run")).views
    for views in (read, collector.history("run", 2, True).views):
        assert views.distinct == (View(3, (0, 1)),)
        assert views.process.tolist() == [0, 1]
        assert views.view.tolist() == [0, 0]
    assert (tmp_path / "events" / f"event={schema.VIEW}").is_dir()


@pytest.mark.parametrize(
    "detail",
    [None, "", "three", "3", '{"number":3}', '{"members":[0]}', '{"members":["a"],"number":3}',
     '{"members":3,"number":3}', '{"members":[0],"number":"3"}'],
)  # fmt: skip
def test_a_view_without_number_or_members_is_refused(detail: str | None) -> None:
    with pytest.raises(UsageError, match="it must have a number and members, as"):
        parse_view(detail)
