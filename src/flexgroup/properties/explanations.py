"""How verdicts speak: letters for messages, one line per reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import History, RunFacts

SHOWN_PROCESSES = 12


class Letters:
    """The messages of an explanation, each under a letter."""

    def __init__(self, run: IndexedHistory, messages: Iterable[int]) -> None:
        self._run = run
        names = run.history.names
        free = (letter for letter in _letters() if letter not in names.values())
        self._letters = {
            message: names.get(run.identity(message)) or next(free)
            for message in dict.fromkeys(messages)
        }

    def __getitem__(self, message: int) -> str:
        return self._letters[message]

    def let(self) -> str:
        meanings = [f"{letter} = {describe(self._run, m)}" for m, letter in self._letters.items()]
        return "let " + ", ".join(meanings)

    def chain(self, links: Iterable[tuple[int, int]]) -> tuple[list[Step], list[str]]:
        """Tell why each message is before the next, from the rows of two deliveries by one process.

        The events come back as well, in the same order.
        """
        run, steps, lines = self._run, list[Step](), list[str]()
        for row, later_row in links:
            before, after = run.delivery(row), run.delivery(later_row)
            a, b = self[int(run.delivered[row])], self[int(run.delivered[later_row])]
            lines.append(
                f"{a} < {b}, because {run.node(before.process)} delivered"
                f" {a} {at(before)} and then {b} {at(after)}"
            )
            steps += [before, after]
        return steps, lines


def _letters() -> Iterator[str]:
    for round_ in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield f"{letter}{round_}" if round_ else letter


def describe(run: IndexedHistory, message: int) -> str:
    name = f"message {run.name(message)}"
    if run.multicast_row[message] == NONE:
        return f"{name} ({'multicast unknown' if run.unrecorded[message] else 'never multicast'})"
    return f"{name} to {shown(run.history, run.destinations(message))}"


def shown(about: RunFacts, processes: Sequence[int]) -> str:
    """Write a set of processes; of a large one, the first."""
    written = about.called.listed(processes[:SHOWN_PROCESSES])
    if len(processes) > SHOWN_PROCESSES:
        written += f",... ({len(processes)} processes)"
    return f"{{{written}}}"


def at(step: Step) -> str:
    return f"(step {step.step})"


def lost_events(about: RunFacts) -> str:
    lost = about.called.listed(process for process, _ in about.lost)
    return f"the last events of {{{lost}}} are lost"


def plural(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"


def checked(deliveries: int, multicasts: int) -> str:
    """Tell how much was looked at, so that success on nothing shows."""
    return f"checked {plural(deliveries, 'delivery')} and {plural(multicasts, 'multicast')}"


def holds(run: IndexedHistory, name: str) -> Verdict:
    told = checked(len(run.history.deliveries.message), len(run.history.multicasts.message))
    return Verdict(name, Outcome.HOLDS, 0, None, told)


def violated(
    run: IndexedHistory, name: str, violations: int, witness: Iterable[Step], lines: list[str]
) -> Verdict:
    named = tuple(_named(run.history, step) for step in witness)
    return Verdict(name, Outcome.VIOLATED, violations, named, "\n".join(lines))


def _named(history: History, step: Step) -> Step:
    """Return an event with the names of its process and its message, where the run has any."""
    node = history.nodes[step.process] if step.process < len(history.nodes) else None
    return replace(step, node=node, name=history.message_name(step.message))
