"""What the page says about an experiment, and that it needs nothing but itself."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from flexgroup.cli.parser import build_parser
from flexgroup.liars.named import in_words, parse_liars
from flexgroup.report import write_report
from flexgroup.report.contents import read_contents
from flexgroup.report.figure import Figure
from flexgroup.report.figures import figure_file
from flexgroup.report.production import commands
from flexgroup.report.violations import MOST_SHOWN, violations
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario

from ..diagram.elements import Element, parsed
from .directories import (
    ABOUT,
    CIRCLE,
    CLAIMS,
    DEFAULT,
    GOOD,
    OPPOSITE,
    PAPER_SAYS,
    STUCK,
    experiment,
    record,
    write_table,
    write_tables,
)


@pytest.fixture(scope="module")
def page(sample: Path) -> Element:
    return parsed(sample.read_text(encoding="utf-8"))


def section(page: Element, name: str) -> Element:
    (found,) = [s for s in page.find("section") if s.attributes["aria-labelledby"] == name]
    return found


def rows(table: Element) -> list[list[str]]:
    return [[cell.text for cell in row.children] for row in table.find("tr")]


def test_it_begins_with_what_it_is_about_and_how_it_went(page: Element) -> None:
    assert page.find("h1")[0].text == "Random destinations on a small system"
    totals = {entry.children[0].text: entry.children[1].text for entry in
              page.find("dl", "totals")[0].children}  # fmt: skip
    assert totals == {
        "runs": str(len(DEFAULT)),
        "verdicts that hold": "80",
        "violated": "4",
        "unknown": "0",
        "claims that appear": "1 of 2",
    }


def test_sections_can_be_reached_from_the_top(page: Element) -> None:
    links = [link.attributes["href"] for link in page.find("nav")[0].find("a")]
    assert links == ["#figures", "#claims", "#verdicts", "#violations", "#measures", "#production"]
    assert {f"#{heading.attributes['id']}" for heading in page.find("h2")} == set(links)


def test_a_figure_shows_our_data_beside_what_the_paper_says(page: Element) -> None:
    figures = section(page, "figures").find("figure")
    assert [figure.find("h3")[0].text for figure in figures] == [
        "7.1a: Two random destinations",
        "7.5: Genuine messages",
        "Table 7.1: Steps and packets",
    ]
    curves = figures[0]
    assert [len(each.find("path", "curve")) for each in curves.find("g", "series")] == [1, 1, 1]
    assert len(curves.find("path", "interval")) > 0
    paper = curves.find("div", "paper")[0].text
    assert "section 7.1" in paper
    assert PAPER_SAYS in paper
    assert len(curves.find("tbody")[0].children) == 9, "three stacks, three loads, as numbers"


def test_a_stack_has_the_same_colour_in_every_figure(page: Element) -> None:
    def colours(figure: Element, name: str, kind: str) -> list[set[str]]:
        return [item.classes - {kind} for item in figure.find("g", "legend")[0].find(name, kind)]

    curves, bars = section(page, "figures").find("figure")[:2]
    assert len(colours(curves, "path", "curve")) == 3
    assert colours(curves, "path", "curve") == colours(bars, "rect", "bar")


def test_claims_stand_beside_what_was_measured(page: Element) -> None:
    assert rows(section(page, "claims").find("table")[0])[1:] == [
        [CLAIMS[0]["claim"], "7.4", "Skeen is genuine", "✓ yes", "Skeen 100%"],
        [CLAIMS[1]["claim"], "7.1", CLAIMS[1]["paper"], "✗ no", CLAIMS[1]["evidence"]],
    ]


def test_verdicts_are_counted_with_violations_first(page: Element) -> None:
    """Stacks and properties that are violated: a wide table is cut off on the right."""
    table = rows(section(page, "verdicts").find("table")[0])
    assert table == [
        ["stack", "validity", "pairwise order", "acyclic order", "integrity"],
        ["best-effort", "1", "✗ 1 of 1", "✗ 1 of 1", "1"],
        ["dcc-published", "✗ 1 of 2", "2", "✗ 1 of 2", "2"],
        ["dcc", "6", "6", "6", "6"],
        ["df", "6", "6", "6", "6"],
        ["skeen", "6", "6", "6", "6"],
    ]


def test_every_violation_has_its_explanation_and_a_diagram(page: Element) -> None:
    found = section(page, "violations").find("article")
    assert len(found) == 3
    for violation in found:
        assert ": violated" in violation.find("pre", "explanation")[0].text
        assert violation.find("svg", "space-time", "across")
        assert violation.find("svg", "space-time", "down")


def test_dcc_as_published_is_caught_with_the_circle_it_delivers(page: Element) -> None:
    (circle,) = [
        article
        for article in section(page, "violations").find("article")
        if CIRCLE.run in article.text
    ]
    assert "d < a, because process 0 delivered d" in circle.find("pre", "explanation")[0].text
    picture = circle.find("svg", "across")[0].find("g", "events")[0]
    letters = {letter.text for letter in picture.find("text", "letter")}
    assert letters == {"a", "b", "c", "d"}
    assert len(picture.find("g", "witness")) == 8, "two deliveries at each of four processes"


def test_orders_that_the_same_deliveries_violate_are_shown_once(page: Element) -> None:
    (opposite,) = [
        article
        for article in section(page, "violations").find("article")
        if OPPOSITE.run in article.text
    ]
    assert opposite.find("h3")[0].text.startswith("1. Acyclic order and pairwise order:")
    assert len(opposite.find("svg", "across")) == 1
    assert len(opposite.find("pre", "explanation")) == 2


def test_a_delivery_that_is_missing_is_in_the_diagram(page: Element) -> None:
    (stuck,) = [
        article for article in section(page, "violations").find("article")
        if STUCK.run in article.text
    ]  # fmt: skip
    assert stuck.find("svg", "across")[0].find("g", "missing")


def test_measures_have_confidence_intervals(page: Element) -> None:
    table = rows(section(page, "measures").find("table")[0])
    assert table[0][:7] == [
        "stack", "workload", "processes", "clients", "network", "runs", "throughput (messages/s)",
    ]  # fmt: skip
    assert [row[6] for row in table if row[0] == "skeen"] == [
        "4,531 ± 442",
        "14,531 ± 1,326",
        "22,656 ± 3,977",
    ]


def test_it_says_how_it_was_produced(page: Element) -> None:
    told = section(page, "production").text
    for words in ("flexgroup 0.1.0", "seeds", "1, 2, 5", "flexgroup simulate", "flexgroup replay"):
        assert words in told


@pytest.mark.parametrize(
    "scenario",
    [
        GOOD[0],
        CIRCLE,
        Scenario("fifo dcc", 4, 2, "random:2", "lan:fifo=no", 0.001, 3),
        Scenario(
            "skeen", 4, 2, "random:2", "lan", 0.001, 7, 0.0, 0.5,
            Faults(("3@1ms",), ("3@2ms",), ("0,1|2,3@1ms-2ms",), ("0:2@1ms-2ms",), "1ms"),
        ),
        Scenario(
            "leader best-effort", 6, 1, "broadcast", "unit", 0.01, groups="2x3", answers="last",
            links="6:0=5ms 6:1=3ms",
        ),
        Scenario(
            "best-effort", 4, 2, "random:2", "lan", 0.001,
            faults=Faults(liars=("2:twin", "3:skip")),
        ),
    ],
    ids=lambda scenario: f"{scenario.stack} {scenario.groups}{scenario.faults.liars}",
)  # fmt: skip
def test_the_command_it_gives_is_that_of_the_run(scenario: Scenario, tmp_path: Path) -> None:
    (row,) = [each["measures"] for each in record(tmp_path, [scenario])]
    simulate, replay = commands(row)
    options = build_parser().parse_args(shlex.split(simulate)[1:])
    faults = Faults(
        tuple(options.crash), tuple(options.recover), tuple(options.partition),
        tuple(options.suspect), options.detection,
        liars=tuple(in_words(parse_liars(options.twin, options.liar))),
    )  # fmt: skip
    again = Scenario(
        options.stack, options.processes, options.clients, options.workload, options.network,
        options.duration, options.seed, options.rate, options.drain, faults,
        groups=options.groups, answers=options.answers, links=" ".join(options.link),
    )  # fmt: skip
    assert again.run == scenario.run
    assert shlex.split(replay) == ["flexgroup", "replay", str(options.out)]


def test_a_run_that_no_command_can_repeat_gets_none() -> None:
    assert commands({"run": "theirs", "world": "production"}) == []


def test_the_page_names_no_resource_and_forbids_any(page: Element) -> None:
    (policy,) = [
        meta.attributes["content"] or ""
        for meta in page.find("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for element in page.below():
        assert element.name not in ("img", "iframe", "object", "embed", "video", "audio")
        assert not element.attributes.get("src")
        assert (element.attributes.get("href") or "#").startswith(("#", "data:,"))
        assert "style" not in element.attributes, "the policy lets no style attribute work"


def test_every_table_has_a_caption_and_headings(page: Element) -> None:
    for table in page.find("table"):
        assert table.find("caption")[0].text
        assert all(
            cell.attributes.get("scope") == "col" for cell in table.find("thead")[0].find("th")
        )


def test_every_picture_says_what_it_shows(page: Element) -> None:
    for picture in page.find("svg"):
        assert picture.attributes.get("aria-label") or picture.attributes.get("aria-hidden")


def test_ids_are_unique(page: Element) -> None:
    ids = [element.attributes["id"] for element in page.below() if "id" in element.attributes]
    assert len(ids) == len(set(ids))


def test_equal_directories_give_equal_pages(sample: Path) -> None:
    before = sample.read_bytes()
    assert write_report(sample.parent).read_bytes() == before


HOSTILE = '<script>alert("run")</script><img src=x onerror=alert(1)>'


def test_names_and_explanations_of_strangers_stay_text(tmp_path: Path) -> None:
    row = {
        "run": HOSTILE, "stack": HOSTILE, "workload": HOSTILE, "processes": 2, "clients": 1,
        "network": HOSTILE, "world": "simulator", "options": HOSTILE, "faults": HOSTILE, "seed": 1,
    }  # fmt: skip
    write_table(tmp_path, "measures", [row])
    write_table(tmp_path, "points", [{**row, "runs": 1, "throughput": 1.0}])
    write_table(tmp_path, "claims", [{"claim": HOSTILE, "holds": True, "paper": HOSTILE}])
    verdict = {
        "run": HOSTILE, "property": HOSTILE, "outcome": "violated", "violations": 1,
        "witness": '[{"process": 0, "step": 0}]', "explanation": f"let a = message 0.0 {HOSTILE}",
    }  # fmt: skip
    write_table(tmp_path, "verdicts", [verdict])
    event = {
        "run": HOSTILE, "property": HOSTILE, "event": "send", "process": 0, "step": 0, "time": 0,
        "origin": 0, "seq": 0, "peer": 1, "packet": HOSTILE,
    }  # fmt: skip
    write_table(tmp_path, "evidence", [event])
    figure = {"id": HOSTILE, "title": HOSTILE, "kind": "bars", "metrics": [HOSTILE],
              "series": [{"stack": HOSTILE}], "section": HOSTILE, "paper": HOSTILE}  # fmt: skip
    about = {"title": HOSTILE, "source": HOSTILE, "figures": [figure], HOSTILE: HOSTILE}
    (tmp_path / "experiment.json").write_text(json.dumps(about), encoding="utf-8")
    page = parsed(write_report(tmp_path).read_text(encoding="utf-8"))
    assert len(page.find("script")) == 1, "our own"
    assert not page.find("img")
    assert HOSTILE in page.find("h1")[0].text


def test_a_stack_called_unknown_is_not_taken_for_a_verdict(tmp_path: Path) -> None:
    (found,) = record(tmp_path / "traces", [OPPOSITE])
    foreign = {**found, "measures": {**found["measures"], "stack": "unknown"}}
    write_tables(tmp_path, [foreign])
    page = parsed(write_report(tmp_path).read_text(encoding="utf-8"))
    assert rows(section(page, "verdicts").find("table")[0])[1][0] == "unnamed stack"
    (violation,) = page.find("article")
    heading = violation.find("h3")[0].text
    assert "order: unnamed stack" in heading
    assert "unknown" not in heading


def test_of_many_violations_some_of_each_kind_are_shown_and_the_rest_is_counted(
    tmp_path: Path,
) -> None:
    found = record(tmp_path / "traces", [OPPOSITE, CIRCLE])
    often = [
        {**found[0], "measures": {**found[0]["measures"], "run": f"often-{number:03}"}}
        for number in range(100)
    ]
    write_tables(tmp_path, [*often, found[1]])
    shown, total = violations(read_contents(tmp_path))
    assert len(shown) == MOST_SHOWN
    assert total == 201
    assert CIRCLE.run in {violation.run for violation in shown}, "the only one of its kind"
    page = parsed(write_report(tmp_path).read_text(encoding="utf-8"))
    assert len(page.find("article")) == MOST_SHOWN
    more = re.search(r"(\d+) more violated verdicts", section(page, "violations").text)
    assert more is not None
    assert int(more[1]) == 201 - sum(len(violation.properties) for violation in shown)


def test_a_violation_without_events_has_its_explanation_at_least(tmp_path: Path) -> None:
    found = record(tmp_path / "traces", [OPPOSITE])
    write_tables(tmp_path, [{**found[0], "evidence": []}])
    page = parsed(write_report(tmp_path).read_text(encoding="utf-8"))
    (violation,) = page.find("article")
    assert violation.find("pre", "explanation")
    assert not violation.find("svg")


def test_without_a_description_latency_is_drawn_against_throughput(tmp_path: Path) -> None:
    experiment(tmp_path, GOOD)
    (tmp_path / "experiment.json").unlink()
    page = parsed(write_report(tmp_path).read_text(encoding="utf-8"))
    (figure,) = section(page, "figures").find("figure")
    assert figure.find("h3")[0].text == "random:2, 4 processes, network lan"
    assert [words.text for words in figure.find("text", "key")] == ["dcc", "df", "skeen"]


def test_an_experiment_has_the_figures_it_describes_and_no_others(tmp_path: Path) -> None:
    experiment(tmp_path, GOOD)
    (tmp_path / "experiment.json").write_text('{"figures": []}', encoding="utf-8")
    page = parsed(write_report(tmp_path).read_text(encoding="utf-8"))
    assert not page.find("svg", "chart")


def test_what_was_not_found_wanting_has_no_section_of_violations(tmp_path: Path) -> None:
    page = parsed(write_report(experiment(tmp_path, GOOD[:2])).read_text(encoding="utf-8"))
    assert "#violations" not in [link.attributes["href"] for link in page.find("a")]


def test_a_figure_is_a_file_of_its_own_too_with_both_themes(sample: Path) -> None:
    table = read_contents(sample.parent).points
    assert table is not None
    points = table.to_pylist()
    for told in ABOUT["figures"][:2]:
        document = figure_file(Figure.from_json(told), points)
        root = ElementTree.fromstring(document)
        inside = "{http://www.w3.org/2000/svg}"
        assert root.findtext(f"{inside}title") == f"{told['id']}: {told['title']}"
        style = root.findtext(f"{inside}style") or ""
        assert "prefers-color-scheme: dark" in style
        selectors = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]*\{", "", style))
        assert all("svg.chart" in selector for selector in selectors)
        assert document == figure_file(Figure.from_json(told), points)


def test_it_says_what_the_channels_of_the_runs_guarantee(page: Element) -> None:
    production = section(page, "production")
    told = {entry.find("dt")[0].text: entry.find("dd")[0].text for entry in production.find("div")}
    assert told["channels"] == "reliable and fifo"
    (violation, *_) = section(page, "violations").find("article")
    assert "over channels: reliable and fifo" in violation.text
