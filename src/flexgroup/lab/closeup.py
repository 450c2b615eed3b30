"""A narrow window of a recorded run: its events one by one, as a diagram and as a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from flexgroup.diagram.density import ACROSS
from flexgroup.diagram.drawing import diagram
from flexgroup.diagram.events import TraceEvent, event_of
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.diagram.selection import alphabet
from flexgroup.export.told import in_order, words_of
from flexgroup.lab.overview import BESIDE, View
from flexgroup.lab.window import TOP, identity_of, set_of
from flexgroup.trace.message_names import message_names
from flexgroup.trace.names import Names
from flexgroup.trace.timeline import Timeline

MOST_EVENTS = 100
"""Windows of so many events show them one by one."""

MOST_OF_MESSAGES = 300
"""So many, where messages are chosen: one wants to see these, and not how many there are."""

PLACE = "\0"

MOST_AROUND_NAMED = 500
"""So many, where some are to be found: those farther from them are left out of the picture."""


def most_shown(view: View) -> int:
    """Return how many events a window shows one by one, at most."""
    window = view.window
    if window.beside is None and window.named:
        return MOST_AROUND_NAMED
    return MOST_OF_MESSAGES if window.messages else MOST_EVENTS


def is_close(view: View, count: int) -> bool:
    """Tell whether events are shown one by one: these are few, or happen at one time."""
    return count <= most_shown(view) or view.last - view.first <= 1


def closeup(view: View, rows: Sequence[int], letters: Mapping[str, str] | None = None) -> Markup:
    """Return the diagram and the list of these events, which are all of the window."""
    read = view.timeline.read(rows)
    known = set(rows)
    others = sorted(set(view.timeline.other_ends(read)) - known)
    events = [event_of(row) for row in read]
    if letters is None:
        letters = letters_of(events, view.window.messages)
    names = named_messages(view.timeline, view.names, letters)
    return join(
        [
            _diagram(view, events, view.timeline.read(others) if others else [], letters, names),
            _messages(view, events, letters, names),
            _list(view, events, names),
        ]
    )


def named_messages(timeline: Timeline, names: Names, messages: Iterable[str]) -> Names:
    """Return the names of a run with those of these messages."""
    identities = {identity_of(message): message for message in messages}
    told = message_names(timeline, identities)
    return replace(names, messages={identities[identity]: told[identity] for identity in told})


def _diagram(
    view: View,
    events: Sequence[TraceEvent],
    others: Sequence[dict[str, object]],
    letters: Mapping[str, str],
    names: Names,
) -> Markup:
    run = view.timeline.run
    chosen = view.window.chosen
    # Only then is what has not happened here something that did not happen.
    is_all = (
        view.window.first is None
        and chosen.processes is None
        and chosen.kinds is None
        and chosen.destinations is None
    )
    drawn = diagram(
        [*events, *map(event_of, others)],
        letters,
        set(view.window.named),
        run.processes,
        run.run,
        complete=run.complete and is_all,
        named="what the verdict names" if view.window.beside is None else "the first difference",
        nodes=names.nodes,
        messages=names.messages,
        legend=(ACROSS if view.window.beside is None else BESIDE).legend,
    )
    notes = list(drawn.notes)
    if others:
        notes.append("Packets that come from elsewhere, or go there, are drawn with both ends.")
    return element(
        "section",
        element(
            "div", drawn.across, drawn.down, class_="scroll", tabindex="0", role="region",
            aria_label="Space-time diagram",
        ),
        element("p", " ".join(notes), class_="quiet small"),
    )  # fmt: skip


def letters_of(events: Iterable[TraceEvent], first: Sequence[str] = ()) -> dict[str, str]:
    """Return a letter for each message of these events; those that an address names come first, as
    they do where a verdict is explained."""
    found = dict.fromkeys(event.message for event in events if event.message is not None)
    names = dict.fromkeys([*(name for name in first if name in found), *found])
    return dict(zip(names, alphabet(), strict=False))


def _messages(
    view: View, events: Sequence[TraceEvent], letters: Mapping[str, str], names: Names
) -> Markup:
    """The messages of a window, each a link to all of its events."""
    here = {event.message for event in events}
    messages = [message for message in letters if message in here]
    if not messages:
        return Markup()
    return element(
        "section",
        element("h2", "Messages here", id="messages"),
        element(
            "ul",
            *(element("li", *_message(view, each, letters[each], names)) for each in messages),
            class_="names",
        ),
        aria_labelledby="messages",
    )


def _message(view: View, message: str, letter: str, names: Names) -> list[object]:
    parts: list[object] = [element("strong", letter), " ", message_link(view, message, names)]
    destinations = view.timeline.destinations_of(identity_of(message))
    if destinations is not None:
        alike = replace(
            view.window.whole, messages=(), named=(), processes="", beside=None,
            destinations=",".join(map(str, destinations)),
        )  # fmt: skip
        told = set_of(destinations, names)
        words = element("span", f"all messages to {told}", class_="unseen")
        parts += [" to ", element("a", element("span", told), words, href=f"{alike.path}{TOP}")]
    return parts


def message_link(view: View, message: str, names: Names) -> Markup:
    """The name of a message, which leads to all of its events."""
    wanted = replace(
        view.window.whole, messages=(message,), named=(), kinds=(), processes="", destinations="",
        beside=None,
    )  # fmt: skip
    told = names.message(message)
    return element("a", told, href=f"{wanted.path}{TOP}", class_="message")


def _list(view: View, events: Sequence[TraceEvent], names: Names) -> Markup:
    rows = []
    named = set(view.window.named)
    for event in in_order(events):
        words: list[object] = [words_of(event, names)]
        if event.message is not None:
            # Where the link has its place is seen by a name that nothing else has.
            marked = replace(names, messages={event.message: PLACE})
            before, _, after = words_of(event, marked).partition(PLACE)
            words = [before, message_link(view, event.message, names), after]
        what = element("mark", *words) if event.place in named else join(words)
        rows.append(
            element(
                "tr",
                element("td", view.told(event.time, 1000), class_="when"),
                element("td", names.process(event.process), class_="where"),
                element("td", event.step, class_="when step"),
                element("td", what),
            )
        )
    head = element(
        "tr",
        *(
            element("th", word, scope="col", class_=word)
            for word in ("time", "where", "step", "what")
        ),
    )
    return element(
        "section",
        element("h2", "Events here", id="events"),
        element(
            "div",
            element("table", element("thead", head), element("tbody", *rows), class_="events"),
            class_="scroll",
        ),
        element(
            "p",
            "In the order of steps, and a packet is sent before it is received, whatever the "
            "clocks of different machines say.",
            class_="quiet small",
        ),
        aria_labelledby="events",
    )
