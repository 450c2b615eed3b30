"""Charts: every point in its place, every interval drawn, nothing outside the picture."""

from __future__ import annotations

import re
from math import isclose

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flexgroup.report.charts import (
    ChartPoint,
    ChartSeries,
    Scale,
    axis,
    bars,
    curves,
    marker,
    short,
    spans_wide,
)
from flexgroup.report.tables import interval, number_text

from ..diagram.elements import Element, parsed

SKEEN = ChartSeries(
    "Skeen", 0, (ChartPoint(1000, 0.2), ChartPoint(5000, 0.5, x_half=300, y_half=0.1))
)
DCC = ChartSeries("DCC", 1, (ChartPoint(2000, 0.4), ChartPoint(9000, 0.6)))


def picture(markup: str) -> Element:
    return parsed(markup).children[0]


def load(*series: ChartSeries, log: bool = False) -> Element:
    scales = Scale("throughput"), Scale("latency", log)
    return picture(curves(series, *scales).svg("chart", "the subject"))


def test_there_is_a_curve_for_each_series_and_a_marker_for_each_point() -> None:
    found = load(SKEEN, DCC)
    assert [len(each.find("path", "curve")) for each in found.find("g", "series")] == [1, 1]
    assert len(found.find("g", "series")[0].find("g", "point")) == 2
    assert len(found.find("g", "series")[1].find("g", "point")) == 2


def test_larger_values_are_further_right_and_further_up() -> None:
    path = load(DCC).find("path", "curve")[0].attributes["d"] or ""
    (x1, y1), (x2, y2) = [
        (float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)
    ]  # fmt: skip
    assert x1 < x2
    assert y1 > y2


def test_confidence_intervals_are_drawn_where_runs_were_repeated() -> None:
    found = load(SKEEN, DCC).find("path", "interval")
    assert len(found) == 1
    assert {"H", "V"} <= set(found[0].attributes["d"] or "")


def test_axes_have_names_and_the_picture_says_what_it_shows() -> None:
    found = load(SKEEN)
    assert {"throughput", "latency"} <= {label.text for label in found.find("text")}
    assert found.attributes["aria-label"] == "the subject"


def test_bars_are_grouped_and_show_their_values() -> None:
    skeen, dcc = (ChartPoint(0, 41.0), ChartPoint(1, 12.0)), (ChartPoint(0, 2500.0),)
    series = [ChartSeries("Skeen", 0, skeen), ChartSeries("DCC", 1, dcc)]
    found = picture(bars(["random:2", "random:8"], series, Scale("rate")).svg("chart", "rates"))
    words = [label.text for label in found.find("text")]
    assert words[-7:] == ["random:2", "41", "2.5k", "random:8", "12", "Skeen", "DCC"]


def test_bars_are_as_long_as_their_values() -> None:
    series = [
        ChartSeries("Skeen", 0, (ChartPoint(0, 50.0),)),
        ChartSeries("DCC", 1, (ChartPoint(0, 100.0),)),
    ]
    found = picture(bars(["all"], series, Scale("rate")).svg("chart", "rates"))
    one, two, *_ = (float(bar.attributes["width"] or 0) for bar in found.find("rect", "bar"))
    assert isclose(2 * one, two, rel_tol=0.01)


def test_series_beyond_the_last_colour_have_other_markers() -> None:
    looks = {(number % 8, marker(number)) for number in range(24)}
    assert len(looks) == 24


def test_the_legend_names_every_series() -> None:
    series = [ChartSeries("a < b", 0, ()), ChartSeries("c", 1, ())]
    for drawn in (load(*series), picture(bars([], series, Scale("rate")).svg("chart", "rates"))):
        assert [words.text for words in drawn.find("text", "key")] == ["a < b", "c"]


@pytest.mark.parametrize("log", [False, True])
@given(
    points=st.lists(
        st.tuples(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1e6), st.floats(0, 1e6)),
        max_size=6,
    )
)
@example([(0.0, 0.0, 0.0, 5e-324)])
@example([(5e-324, 1e-310, 0.0, 1e-300), (1.0, 1.0, 0.0, 0.0)])
def test_whatever_the_values_everything_lies_inside(
    log: bool, points: list[tuple[float, float, float, float]]
) -> None:
    series = ChartSeries("any", 0, tuple(ChartPoint(x, y, "", a, b) for x, y, a, b in points))
    found = load(series, log=log)
    (drawn,) = found.find("g", "series")
    lines = [*found.find("path", "axis"), *found.find("path", "grid")]
    lines += [*drawn.find("path", "curve"), *drawn.find("path", "interval")]
    places = [path.attributes["d"] or "" for path in lines]
    places += [point.attributes["transform"] or "" for point in drawn.find("g", "point")]
    assert len(drawn.find("g", "point")) == len(points)
    for x, y in re.findall(r"[ML(](-?[\d.]+) (-?[\d.]+)", " ".join(places)):
        assert -1 <= float(x) <= 401
        assert -1 <= float(y) <= 301


@given(st.lists(st.floats(1e-6, 1e9), min_size=1), st.booleans())
def test_an_axis_shows_all_values_and_has_a_few_labels(values: list[float], log: bool) -> None:
    found = axis(values, 0, 100, log)
    assert found.low <= min(values) * (1 + 1e-6)
    assert found.high >= max(values) * (1 - 1e-6)
    assert 1 <= len(found.ticks(6)) <= 12


def test_labels_of_an_axis_are_round() -> None:
    assert [short(tick) for tick in axis([29_000], 0, 100).ticks(6)] == [
        "0", "5k", "10k", "15k", "20k", "25k", "30k",
    ]  # fmt: skip
    assert [short(tick) for tick in axis([1, 64], 0, 100, log=True).ticks(6)] == [
        "1", "3", "10", "30", "100",
    ]  # fmt: skip


def test_a_logarithmic_axis_is_chosen_only_for_values_far_apart() -> None:
    assert spans_wide([0.2, 40.0])
    assert not spans_wide([0.2, 4.0])
    assert not spans_wide([])


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (0.22851, "0.2285"), (12.5, "12.5"), (63.0, "63"), (29250.4, "29,250"),
     (0.00001234, "1.23e-05"), (100, "100"), (1200, "1,200"), (float("nan"), "-")],
)  # fmt: skip
def test_numbers_in_tables_have_four_digits_that_count(value: float, written: str) -> None:
    assert number_text(value) == written


def test_an_interval_is_written_to_the_same_decimal_as_its_middle() -> None:
    assert interval(2.4214, 0.1296) == "2.421 ± 0.130"
    assert interval(20500, 2828.4) == "20,500 ± 2,828"
    assert interval(25.0, 0.0012) == "25.0000 ± 0.0012"
