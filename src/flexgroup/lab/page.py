"""The page of a run: what may come next, the picture, the verdicts, and every process."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from flexgroup.core.layer import Layer
from flexgroup.core.message import name_of
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.lab.address import Address
from flexgroup.lab.states import NOTHING, attributes
from flexgroup.lab.stepping import Judged, Move, ProcessState, Standing, delivered_by
from flexgroup.properties.verdict import Outcome
from flexgroup.worlds.explorer.machine import Local
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import LETTERS, Scope
from flexgroup.worlds.explorer.scope_words import command_of

HEADINGS = {
    "cast": "Multicast",
    "receive": "A packet arrives",
    "choice": "Choose",
    "timer": "A timer runs out",
    "view": "Tell of a view",
    "suspect": "Suspect",
    "trust": "Trust again",
    "crash": "Crash",
    "restart": "Start again",
    "lost": "Lose a packet",
    "doubled": "Double a packet",
}
"""The headings of moves, in the order in which they stand on the page."""

SCRIPT = "/lab.js"
STYLE = "/lab.css"


def document(title: str, *body: object, refresh: int = 0, live: str | None = None) -> Markup:
    """Return a whole page; `refresh` is the seconds after which it is looked at again, and `live`
    where it is told what has changed."""
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} · FlexGroup lab"),
        element("link", rel="stylesheet", href=STYLE),
        element("link", rel="icon", href="data:,"),
        element("script", src=SCRIPT, defer=""),
    ]
    if refresh:
        again = element("meta", http_equiv="refresh", content=str(refresh))
        head.append(element("noscript", again))
    top = element(
        "header",
        element("a", "FlexGroup lab", href="/", class_="brand"),
        element("a", "Live cluster", href="/cluster"),
        class_="top",
    )
    html = element(
        "html",
        element("head", *head),
        element("body", top, element("main", *body, data_live=live)),
        lang="en",
    )
    return Markup(f"<!doctype html>\n{html}")


def run_page(standing: Standing, token: str, beside: str = "") -> Markup:
    """Return the page of a run; `beside` is what is to be read beside it."""
    address = standing.address
    total = len(address.moves)
    where = f"{total} {'step' if total == 1 else 'steps'}"
    return document(
        f"{address.stack}, {where}",
        _heading(standing),
        element("p", beside, class_="beside") if beside else "",
        _steering(address),
        _beyond(standing),
        element(
            "div",
            element("div", _moves(standing), class_="first"),
            element("div", _verdicts(standing), _diagram(standing), class_="second"),
            class_="columns",
        ),
        _processes(standing),
        _steps(standing),
        _take_away(standing, token),
    )


def _heading(standing: Standing) -> Markup:
    scope = standing.address.scope
    channels = "FIFO channels" if scope.fifo else "channels that reorder"
    state = f"{standing.in_flight} packets in flight" if standing.in_flight else "nothing in flight"
    if standing.ended:
        state = "nothing need happen any more"
    return join(
        [
            element("h1", standing.address.stack),
            element("p", f"{scope.described()}, {channels}; {state}.", class_="quiet"),
        ]
    )


def _beyond(standing: Standing) -> Markup:
    """What this run tells of that nobody can click here."""
    places = standing.run.beyond
    if not places:
        return Markup()
    links = join(
        [_link(standing.address.query_at(place), f"step {place}") for place in places], ", "
    )
    words: list[object] = [
        "This run goes beyond its scope: ", links, ". What happens there stands in a script or in "
        "an address, and is not offered here. "
    ]  # fmt: skip
    moves = standing.address.moves
    if any(moves[place - 1].kind == "lost" for place in places):
        words.append(
            "A stack that relies on channels promises nothing once these lose what one correct "
            "process sent to another; what a process sent before it crashed may be lost."
        )
    return element("p", *words, class_="beyond")


def _link(query: str, words: object, **attributes: str | None) -> Markup:
    return element("a", words, href=f"/run?{query}", **attributes)


def _steering(address: Address) -> Markup:
    """The way back and forth along the run."""
    done, whole = len(address.moves), len(address.moves) + len(address.ahead)
    parts = [
        ("Beginning", 0, done > 0, None),
        ("Back", done - 1, done > 0, "ArrowLeft"),
        ("Forward", done + 1, done < whole, "ArrowRight"),
        ("End", whole, done < whole, None),
    ]
    links = [
        _link(address.query_at(place), words, data_key=key)
        if possible
        else element("span", words, class_="idle", aria_disabled="true")
        for words, place, possible, key in parts
    ]
    told = f"Step {done} of {whole}" if whole else "Nothing has happened yet"
    if address.ahead:
        told += f"; next in this run: {said(address.ahead[0], address.scope)}"
    items = element("ul", *(element("li", link) for link in links))
    return element(
        "nav", items, element("p", told, role="status"), class_="steering", aria_label="Steps"
    )


def said(step: ScheduleStep, scope: Scope) -> str:
    """Return a step in a few words."""
    process, source = step.process, step.source
    behind = f", the one behind {step.place} others" if step.place else ""
    words = {
        "receive": f"{source} → {process} arrives{behind}",
        "lost": f"{source} → {process} is lost{behind}",
        "doubled": f"{source} → {process} is there twice{behind}",
        "timer": f"{process}: timer {step.name}",
        "choice": f"{process}: option {step.number}",
        "crash": f"{process} crashes",
        "suspect": f"{process} suspects {source}",
        "trust": f"{process} trusts {source} again",
        "restart": f"{process} starts again"
        + (", and what was in flight to it is lost" if step.number else ""),
    }
    if step.kind == "cast":
        cast = scope.casts[step.number]
        to = ",".join(map(str, cast.destinations))
        words["cast"] = f"{process} multicasts {LETTERS[step.number]} to {to}"
    if step.kind == "view":
        members = ",".join(map(str, scope.views[step.number - 1]))
        words["view"] = f"{process} is told of view {step.number} of {members}"
    within = f", and {process} crashes after {step.crash_after} of what it does about it"
    return words[step.kind] + (within if step.crash_after else "")


def _moves(standing: Standing) -> Markup:
    """Every possible next step, as a link."""
    address = standing.address
    order = list(HEADINGS)

    def rank(move: Move) -> tuple[bool, int]:
        return bool(move.step.crash_after), order.index(move.step.kind)

    groups = []
    for (within, kind), moves in groupby(sorted(standing.moves, key=rank), key=rank):
        heading = "Crash in the middle" if within else HEADINGS[order[kind]]
        items = [element("li", _move(address, move)) for move in moves]
        groups += [element("h3", heading), element("ul", *items, class_="moves")]
    if not groups:
        groups = [element("p", "Nothing can happen any more: the run is over.")]
    everything = _all_casts(standing)
    return element(
        "section",
        element("h2", "What happens next?", id="next"),
        element("p", _link(everything.query, "Let all clients multicast")) if everything else "",
        *groups,
        aria_labelledby="next",
    )


def _all_casts(standing: Standing) -> Address | None:
    """The run when all clients have multicast, if several have yet to."""
    casts = [
        move.step
        for move in standing.moves
        if move.step.kind == "cast" and move.step.process >= standing.address.scope.processes
    ]
    if len(casts) < 2:
        return None
    address = standing.address
    for step in casts:
        address = address.after(step)
    return address


def _move(address: Address, move: Move) -> Markup:
    words = [said(move.step, address.scope)]
    if move.words:
        words.append(element("span", f" {move.words}", class_="packet"))
    is_next = address.ahead[:1] == (move.step,)
    if is_next:
        words.append(element("span", " next in this run", class_="hint"))
    kind = "fault" if move.fault else None
    return _link(address.query_after(move.step), join(words), class_="next" if is_next else kind)


def _verdicts(standing: Standing) -> Markup:
    rows = [_verdict(standing, judged) for judged in standing.judged]
    return element(
        "section",
        element("h2", "What the stack promises", id="verdicts"),
        element("dl", *rows, class_="verdicts"),
        element(
            "p",
            "Conduct: no handler fails, and nobody refuses what another process sent. What must "
            "happen in the end is decided when nothing need happen any more. Steps in an "
            "explanation count what that process did, as in the picture.",
            class_="quiet small",
        ),
        aria_labelledby="verdicts",
    )


def _verdict(standing: Standing, judged: Judged) -> Markup:
    violated = judged.outcome is Outcome.VIOLATED
    words: list[object] = [element("span", _in_words(standing, judged), class_=judged.outcome)]
    if violated and judged.since is not None:
        address = standing.address
        place = _link(address.query_at(judged.since), f"step {judged.since}")
        words += [" since ", place if judged.since < len(address.moves) else "this step"]
    if violated and judged.explanation:
        words.append(element("pre", judged.explanation, class_="explanation"))
    return element("div", element("dt", judged.name), element("dd", *words))


def _in_words(standing: Standing, judged: Judged) -> str:
    if judged.outcome is Outcome.HOLDS:
        return "holds" if standing.ended else "holds so far"
    return "not decided yet" if judged.outcome is Outcome.UNKNOWN else "violated"


def _diagram(standing: Standing) -> Markup:
    if not standing.address.moves:
        words = "The picture grows with each step."
        return element("section", element("p", words, class_="quiet"))
    drawn = standing.performed.diagram(standing.violated, standing.address.stack)
    return element(
        "section",
        element("h2", "The run", id="picture"),
        element(
            "div", drawn.across, drawn.down, class_="scroll", tabindex="0", role="region",
            aria_label="Space-time diagram",
        ),
        element("p", " ".join(drawn.notes), class_="quiet small"),
        aria_labelledby="picture",
    )  # fmt: skip


def _processes(standing: Standing) -> Markup:
    size = standing.address.scope.processes
    shown = [state for state in standing.processes if state.process < size or _is_of_note(state)]
    return element(
        "section",
        element("h2", "Every process", id="processes"),
        element(
            "p",
            "What the last step changed is marked; what is as at the start is not shown.",
            class_="quiet small",
        ),
        element("div", *(_process(standing, state) for state in shown), class_="cards"),
        aria_labelledby="processes",
    )


def _is_of_note(state: ProcessState) -> bool:
    """Clients take part in few protocols, and are left out where they do not."""
    return any(
        attributes(layer, {}) != attributes(first, {})
        for layer, first in zip(state.now.host.stack.layers, state.at_start.layers, strict=True)
    )


def _process(standing: Standing, state: ProcessState) -> Markup:
    size = standing.address.scope.processes
    name = f"{'Process' if state.process < size else 'Client'} {state.process}"
    lie = dict(standing.address.scope.liars).get(state.process)
    name += f", a liar: {lie}" if lie else ""
    if state.now.crashed:
        name += ", crashed"
    parts: list[object] = [element("h3", name)]
    facts = _facts(standing, state.now)
    before = _facts(standing, state.before) if state.before is not None else facts
    parts.append(_listed(_marked(facts, before)))
    if state.now.problem:
        parts.append(element("p", state.now.problem, class_="violated"))
    old = state.before.host.stack if state.before is not None else state.now.host.stack
    layers = zip(state.now.host.stack.layers, old.layers, state.at_start.layers, strict=True)
    for layer, was, first in layers:
        parts += _layer(standing, layer, was, first)
    kind = "card changed" if state.has_changed else "card"
    return element("article", *parts, class_=kind, data_process=state.process)


def _facts(standing: Standing, local: Local) -> list[tuple[str, str]]:
    """Return what the world knows of a process."""
    letters = [standing.letters.get(m) or name_of(m) for m in delivered_by(local)]
    # What a liar says that it delivered counts for nothing, and is not kept.
    is_liar = local.host.process in dict(standing.address.scope.liars)
    facts = [
        ("delivered", "" if is_liar else " ".join(letters) or NOTHING),
        ("timers", ", ".join(name for _, name, _ in local.timers)),
        ("offers", ", ".join(f"{name} of {options}" for _, name, options in local.offers)),
        ("suspects", ", ".join(map(str, local.suspects))),
    ]
    return [(name, value) for name, value in facts if value]


def _layer(standing: Standing, layer: Layer, before: Layer, first: Layer) -> Iterable[object]:
    now, was, at_start = (attributes(part, standing.letters) for part in (layer, before, first))
    shown = [
        (name, value, changed)
        for (name, value, changed), (_, begun) in zip(_marked(now, was), at_start, strict=True)
        if changed or value != begun
    ]
    yield element("h4", type(layer).__name__)
    yield _listed(shown) if shown else element("p", "as at the start", class_="quiet small")


def _marked(
    now: list[tuple[str, str]], before: list[tuple[str, str]]
) -> list[tuple[str, str, bool]]:
    was = dict(before)
    return [(name, value, was.get(name) != value) for name, value in now]


def _listed(rows: Iterable[tuple[str, str, bool]]) -> Markup:
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", name),
                element("dd", element("mark", value) if changed else value),
            )
            for name, value, changed in rows
        ),
        class_="state",
    )


def _steps(standing: Standing) -> Markup:
    """The whole run, each step a link to the state after it."""
    address = standing.address
    done = len(address.moves)
    items = []
    for place, step in enumerate((*address.moves, *address.ahead), 1):
        link = _link(
            address.query_at(place),
            said(step, address.scope),
            aria_current="step" if place == done else None,
            class_="ahead" if place > done else None,
        )
        packet = standing.words_of(place) if place <= done else ""
        items.append(element("li", link, element("span", f" {packet}", class_="packet")))
    if not items:
        return Markup()
    return element(
        "section",
        element("h2", "All steps", id="steps"),
        element("ol", *items, class_="steps"),
        aria_labelledby="steps",
    )


def _take_away(standing: Standing, token: str) -> Markup:
    address = standing.address
    query = address.query
    files = [
        ("Script", "/script", "for flexgroup replay, or as a test"),
        ("Picture", "/picture", "SVG"),
        ("Trace", "/trace", "for flexgroup verify, as an archive"),
    ]
    items = [
        element("li", element("a", name, href=f"{path}?{query}", download=""), f", {words}")
        for name, path, words in files
    ]
    return element(
        "section",
        element("h2", "Take it away", id="away"),
        element("ul", *items),
        element("p", "The address of this page is the run: a copied link shows the same."),
        element("p", "Every schedule of this scope, from its beginning:"),
        element("pre", command_of(address.stack, address.scope)),
        element("h2", "Search from here", id="search"),
        element(
            "form",
            element("input", type="hidden", name="token", value=token),
            element("input", type="hidden", name="address", value=query),
            element(
                "p",
                "Every way in which this run can go on, for at most ",
                element(
                    "label",
                    element("span", "seconds", class_="unseen"),
                    element("input", type="number", name="seconds", value="20", min="1", max="120"),
                ),
                " seconds.",
            ),
            element("button", "Search", type="submit"),
            method="post",
            action="/search",
        ),
        aria_labelledby="away",
    )
