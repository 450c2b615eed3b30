"""The first page of the lab: choose a system, open a script, or step through a finding."""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.diagram.markup import Markup, element, join
from flexgroup.lab.gallery import FIGURES, TRIALS, GuidedRun
from flexgroup.lab.page import document
from flexgroup.protocols.catalogue import PROTOCOLS

FAULTS = {
    "crashes": "processes that crash",
    "suspicions": "wrong suspicions",
    "restarts": "processes that start again",
    "losses": "packets lost",
    "duplicates": "packets doubled",
    "timers": "timers that run out",
}

EXAMPLE = "0,2 0,2 0,3 2,3"
LONGEST_SCRIPT = 60_000


def front_page(token: str, recorded: bool = False) -> Markup:
    return document(
        "Begin",
        element("h1", "See a protocol run, step it, break it"),
        element(
            "p",
            "Every packet waits until you let it arrive. At each step you see what each process "
            "holds, and whether what its stack promises still holds.",
        ),
        element("p", element("a", "Recorded runs", href="/traces"), " that this lab was given")
        if recorded
        else "",
        _choose(),
        _gallery("Published algorithms on trial", "trials", TRIALS),
        _gallery("Figures of papers, step by step", "figures", FIGURES),
        _open(token),
    )


def _choose() -> Markup:
    stacks = element("datalist", *(element("option", value=name) for name in PROTOCOLS), id="names")
    text = element(
        "input", name="stack", value="dcc-published", required="", list="names", autocomplete="off"
    )
    fields = [
        _field("Protocol, or a stack, lowest first", text, stacks),
        _field("Processes", _number("processes", 4, 1, 16)),
        _field("Messages to whom: 0,2 from a client, 1:0,2 from process 1",
               element("input", name="message", value=EXAMPLE, required="")),
        _field("Channels", element(
            "select", element("option", "fifo"), element("option", "reordering"), name="channels")),
        _field("Groups of replicas, by size (3,1), if any", element("input", name="replicas")),
        _field("Liars, as 2:equivocate, if any", element("input", name="liar")),
        _field("Views that processes are told of, if any", element("input", name="view")),
    ]  # fmt: skip
    faults = [_field(words, _number(name, 0, 0, 20)) for name, words in FAULTS.items()]
    return element(
        "section",
        element("h2", "Begin a run", id="begin"),
        element(
            "form",
            element("div", *fields, class_="fields"),
            element(
                "fieldset",
                element("legend", "What may go wrong, at most so often"),
                element("div", *faults, class_="fields"),
            ),
            element("button", "Begin", type="submit"),
            method="get",
            action="/begin",
        ),
        aria_labelledby="begin",
    )


def _field(words: str, *control: Markup) -> Markup:
    return element("label", element("span", words), *control)


def _number(name: str, value: int, least: int, most: int) -> Markup:
    bounds = {"min": str(least), "max": str(most)}
    return element("input", type="number", name=name, value=str(value), **bounds)


def _gallery(heading: str, name: str, runs: Sequence[GuidedRun]) -> Markup:
    return element(
        "section",
        element("h2", heading, id=name),
        element("div", *map(_guided, runs), class_="trials"),
        aria_labelledby=name,
    )


def _guided(run: GuidedRun) -> Markup:
    steps = len(run.address.ahead)
    link = element("a", f"Step through it: {steps} steps", href=f"/run?{run.address.query}")
    return element(
        "article", element("h3", run.heading), element("p", run.words), element("p", link)
    )


def _open(token: str) -> Markup:
    return element(
        "section",
        element("h2", "Open a run", id="open"),
        element(
            "p",
            "A golden script, a counterexample of the explorer, or the script that another lab "
            "has saved. ",
            element("code", "flexgroup lab PATH"),
            " opens scripts and the traces of counterexamples.",
        ),
        element(
            "form",
            element("input", type="hidden", name="token", value=token),
            element("label", "A file: ", element("input", type="file", data_into="script"),
                    hidden=""),
            element(
                "p",
                element("label", "The text of a script", for_="script"),
                element("textarea", name="script", id="script", rows="6", required="",
                        maxlength=str(LONGEST_SCRIPT)),
            ),
            element("button", "Open", type="submit"),
            method="post",
            action="/open",
        ),
        aria_labelledby="open",
    )  # fmt: skip


def error_page(words: str) -> Markup:
    return document(
        "That cannot be",
        element("h1", "That cannot be"),
        element("p", words),
        element("p", element("a", "Begin anew", href="/")),
    )


def beside(run: GuidedRun) -> Markup:
    return join([element("strong", f"{run.heading}. "), run.words])
