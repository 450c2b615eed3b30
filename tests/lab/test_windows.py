"""Windows on recorded runs: their addresses, how times are told, and who shares a line."""

from __future__ import annotations

import threading
from pathlib import Path
from shutil import copytree

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.diagram.density import ACROSS, DOWN, Band, Cell, Slice, density
from flexgroup.lab.judging import judge
from flexgroup.lab.overview import View, overview
from flexgroup.lab.times import Times, lasting, since
from flexgroup.lab.traces import MOST_KEPT, Kept, TraceSets
from flexgroup.lab.window import RunName, Window, numbers_of, ranges_of, read_window, set_of
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.names import Names
from flexgroup.trace.timeline import Chosen

from .conftest import RecordedRuns

RUN = RunName("first", "a run/of\u00fc")


@pytest.mark.parametrize(
    "window",
    [
        Window(RUN),
        Window(RUN, first=-5, last=10**18),
        Window(RUN, RunName("second", "other"), -1000, 1000),
        Window(RUN, processes="0-3,7", kinds=("send", "crash"), messages=("5.0", "7.2")),
        Window(RUN, destinations="0,2,5", named=((3, 17), (0, 2)), skip=300),
    ],
)
def test_an_address_has_all_of_a_window(window: Window) -> None:
    assert read_window(window.query) == window
    assert read_window(window.path.partition("?")[2]) == window


def test_an_address_chooses_events() -> None:
    window = read_window("run=x&processes=2,0-1&kind=send&message=5.1&destinations=3,1")
    assert window.chosen == Chosen((0, 1, 2), ("send",), ((1 << 20) | 5,), (1, 3))
    assert read_window("run=x").chosen == Chosen()


@pytest.mark.parametrize("text", ["0-3,7", "0", "1,3,5-9"])
def test_processes_are_written_as_they_are_read(text: str) -> None:
    assert ranges_of(numbers_of(text)) == text


def test_large_sets_are_written_as_ranges() -> None:
    assert set_of([0, 1, 4], Names()) == "{0,1,4}"
    assert set_of(range(100), Names()) == "{0-99}"


@pytest.mark.parametrize(
    ("time", "resolution", "told"),
    [
        (0, 10**8, "0 ns"),
        (1_234_567_890, 10**8, "1.2 s"),
        (1_234_567_890, 10**6, "1.234 s"),
        (1_234_567_890, 1, "1.234567890 s"),
        (4_321, 100, "4.3 µs"),
    ],
)
def test_times_are_as_exact_as_they_need_be(time: int, resolution: int, told: str) -> None:
    assert Times(0, 10**10).told(time, resolution) == told
    assert since(time, resolution) == f"+{told}"
    if time:
        assert since(-time, resolution) == f"-{told}"


def test_times_since_1970_count_from_the_first_event() -> None:
    began = 1_700_000_000 * 10**9
    assert Times(began, began + 10**9).told(began + 250_000_000, 10**6) == "+250 ms"
    assert lasting(1_500_000) == "1.5 ms"
    assert lasting(7_200 * 10**9) == "7,200 s"


def test_shades_tell_more_from_less() -> None:
    bands = [Band("processes", ("0",), "process 0", "", "/p0")]
    slices = [Slice(f"{at} s", f"{at} s to {at + 1} s", f"/{at}") for at in range(4)]
    cells = {(0, at): Cell(count, f"{count:,} events", f"/0/{at}")
             for at, count in enumerate((1, 10, 100, 1000))}  # fmt: skip
    for layout in (ACROSS, DOWN):
        drawn = density(layout, bands, slices, cells, "Events", "found")
        for at, shade in enumerate((1, 3, 5, 6)):
            begin = drawn.index(f'href="/0/{at}"')
            assert f'class="cell n{shade}"' in drawn[begin : drawn.index("</a>", begin)]
        assert 'role="group"' in drawn  # in an image, links could not be reached
    same = {(0, at): Cell(7, "7 events", f"/0/{at}") for at in range(4)}
    assert density(ACROSS, bands, slices, same, "Events", "found").count("7 events</text>") == 1


def bands_of(runs: RecordedRuns, run: str, processes: str = "") -> str:
    sets = TraceSets([runs.directory])
    window = Window(RunName(runs.traces, run), processes=processes)
    reading = sets.timeline(window.of)
    assert reading.wait(60)
    return overview(View(window, reading.get(), *reading.get().span))


def test_many_processes_share_lines_and_few_have_their_own(runs: RecordedRuns) -> None:
    drawn = bands_of(runs, runs.long)
    assert ">process 15<" in drawn
    assert ">clients 46-47<" in drawn  # two and two, since 48 lines are too many
    assert ">only processes 13-15<" in drawn  # on a phone
    assert ">client 47<" in bands_of(runs, runs.long, "44-47")


def test_trace_sets_with_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = [tmp_path / name / "traces" for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir(parents=True)
    assert list(TraceSets(folders).directories) == ["traces", "traces-2", "traces-3"]


def test_a_run_is_read_once_and_again_when_its_files_change(
    runs: RecordedRuns, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copytree(runs.directory, copy)
    sets, name = TraceSets([copy]), RunName("copy", runs.calm)
    reading = sets.timeline(name)
    assert reading.wait(60)
    assert sets.timeline(name) is reading
    sends = copy / "events" / "event=send" / f"{runs.calm}.parquet"
    sends.write_bytes(sends.read_bytes()[:1000])
    again = sets.timeline(name)
    assert again.wait(60)
    assert "truncated, damaged" in again.problem
    with pytest.raises(UsageError, match="truncated, damaged"):
        again.get()


def test_few_runs_are_kept_in_memory() -> None:
    """Those that were looked at last."""
    kept: Kept[int, str] = Kept(threading.Lock())
    for number in range(10):
        assert kept.get(number, "Reading", lambda reading: reading.words).wait(60)
        assert kept.get(0, "Reading again", lambda reading: reading.words).get() == "Reading"
    assert [number for number in range(10) if kept.known(number)] == [0, 7, 8, 9]
    assert len([number for number in range(10) if kept.known(number)]) == MOST_KEPT


def test_a_run_is_judged_in_a_process_of_its_own(runs: RecordedRuns) -> None:
    found = {each.name: each for each in judge(runs.directory, runs.broken)}
    assert found["integrity"].outcome is Outcome.HOLDS
    broken = found["acyclic order"]
    assert broken.outcome is Outcome.VIOLATED
    assert len(broken.named) == 4
    assert len(broken.messages) == 2
    for message in broken.messages:
        assert f"message {message}" in broken.explanation
