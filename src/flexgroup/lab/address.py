"""The address of a run: the whole of it, so that a page needs nothing else.

    stack=dcc-published&processes=4&message=0,2 0,2 0,3 2,3&moves=m4.a,d4.0&ahead=m5.b

A scope is said in the words of `flexgroup explore`. Moves are named by what happens, never by the
state that they lead to: `d4.0` is the arrival of the oldest packet from 4 to 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import parse_qs, quote, unquote, urlencode

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import LETTERS, Scope
from flexgroup.worlds.explorer.scope_words import STOCKS, scope_of, words_of

MOST_PROCESSES = 16
MOST_MESSAGES = 16
MOST_MOVES = 500
LONGEST = 16_384
"""Characters of an address: longer ones are cut by browsers and mail programs."""

SPREAD = ("message", "group", "view", "crash", "suspect", "twin", "liar")
"""Options that may be given several times; in an address, their values stand side by side."""

OPTIONS = ("processes", "replicas", "channels", "any-order", *SPREAD, *STOCKS)

KINDS = {
    "d": "receive", "l": "lost", "w": "doubled", "m": "cast", "t": "timer", "o": "choice",
    "x": "crash", "s": "suspect", "y": "trust", "r": "restart", "v": "view",
}  # fmt: skip
"""The letters of moves: deliver, lose, double, multicast, timer, option, crash, suspect, trust
again (yes), restart, view."""

FORM = re.compile(r"(?:k(\d{1,5})\.)?([a-z])(\d{1,3})(?:\.([^.]*))?(?:\.(\d{1,4}))?")


@dataclass(frozen=True)
class Address:
    """A scope of a stack, what has happened in it, and how a run that is followed goes on."""

    stack: str
    scope: Scope
    moves: tuple[ScheduleStep, ...] = ()
    ahead: tuple[ScheduleStep, ...] = ()
    guided: str = ""
    """The run of the gallery whose words stand beside this one, if any."""

    @property
    def plan(self) -> StackPlan:
        return parse_stack(self.stack)

    @property
    def query(self) -> str:
        """The address as the query of a URL."""
        return self.query_at(len(self.moves))

    def query_at(self, place: int) -> str:
        """The address of `at(place)`."""
        words = self._words
        return self._query_with(words[:place], words[place:])

    def query_after(self, step: ScheduleStep) -> str:
        """The address of `after(step)`."""
        done = len(self.moves)
        if self.ahead[:1] == (step,):
            return self.query_at(done + 1)
        return self._query_with([*self._words[:done], _word(step)], [])

    @property
    def whole(self) -> Address:
        """The run with all that lies ahead."""
        return replace(self, moves=(*self.moves, *self.ahead), ahead=())

    def at(self, place: int) -> Address:
        """The run when so many steps of all of it have happened."""
        steps = (*self.moves, *self.ahead)
        return replace(self, moves=steps[:place], ahead=steps[place:])

    def after(self, step: ScheduleStep) -> Address:
        """The run when this has happened next; what lies ahead is left, unless it begins so."""
        if self.ahead[:1] == (step,):
            return self.at(len(self.moves) + 1)
        return replace(self, moves=(*self.moves, step), ahead=())

    @cached_property
    def _words(self) -> list[str]:
        """All moves as they stand in a URL: a page has many that differ little."""
        return [_word(step) for step in (*self.moves, *self.ahead)]

    @cached_property
    def _scope_words(self) -> str:
        scope = [(name, " ".join(values)) for name, values in words_of(self.scope).items()]
        return urlencode([("stack", self.stack), *scope], safe=",:.")

    def _query_with(self, moves: Sequence[str], ahead: Sequence[str]) -> str:
        query = self._scope_words
        query += f"&moves={','.join(moves)}" if moves else ""
        query += f"&ahead={','.join(ahead)}" if ahead else ""
        return query + (f"&guided={quote(self.guided)}" if self.guided else "")


def read_address(query: str) -> Address:
    """Return the run of an address; a UsageError says what is wrong with it."""
    if len(query) > LONGEST:
        raise UsageError(f"an address has at most {LONGEST:,} characters, and this {len(query):,}")
    try:
        words = parse_qs(query, max_num_fields=40, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise UsageError("this is not an address of the lab: begin on its first page") from None
    address = scope_asked_for(words)
    moves, ahead = (_read_moves(address.scope, words, name) for name in ("moves", "ahead"))
    if len(moves) + len(ahead) > MOST_MOVES:
        raise UsageError(f"a run has at most {MOST_MOVES} moves here; begin a new one")
    return replace(address, moves=moves, ahead=ahead, guided=" ".join(words.get("guided", ())))


def scope_asked_for(words: Mapping[str, Sequence[str]]) -> Address:
    """Return the beginning of a run in the scope that these words describe."""
    unknown = sorted(set(words) - {"stack", "moves", "ahead", "guided", *OPTIONS})
    if unknown:
        raise UsageError(f"an address has no '{unknown[0]}'; it has: stack, {', '.join(OPTIONS)}")
    if not words.get("stack"):
        raise UsageError("which protocol? Give one, for example skeen")
    told = {
        name: " ".join(words[name]).split() if name in SPREAD else [words[name][-1].strip()]
        for name in OPTIONS
        if words.get(name) and words[name][-1].strip()
    }
    scope = scope_of(told)
    if scope.processes > MOST_PROCESSES or len(scope.casts) > MOST_MESSAGES:
        raise UsageError(
            f"the lab shows up to {MOST_PROCESSES} processes and {MOST_MESSAGES} messages; larger "
            "systems are for flexgroup simulate"
        )
    plan = parse_stack(words["stack"][-1])
    plan.check_replicas(scope.replicas, scope.processes)
    if scope.bounds.restarts:
        plan.check_restarts()
    return Address(plan.name, scope)


def token(step: ScheduleStep) -> str:
    """Return a move as it stands in an address."""
    letter = next(letter for letter, kind in KINDS.items() if kind == step.kind)
    first, *rest = (step.process,)
    match step.kind:
        case "receive" | "lost" | "doubled":
            first, rest = step.source, [str(step.process)]
            rest += [str(step.place)] if step.place else []
        case "cast":
            rest = [LETTERS[step.number]]
        case "timer":
            rest = [quote(step.name, safe="").replace(".", "%2E")]
        case "choice" | "view":
            rest = [str(step.number)]
        case "suspect" | "trust":
            rest = [str(step.source)]
        case "restart":
            rest = ["lost"] if step.number else []
    within = f"k{step.crash_after}." if step.crash_after else ""
    return within + ".".join([f"{letter}{first}", *rest])


def _word(step: ScheduleStep) -> str:
    """Return a move as it stands in the query of a URL."""
    return quote(token(step), safe=".")


def _read_moves(
    scope: Scope, words: Mapping[str, Sequence[str]], name: str
) -> tuple[ScheduleStep, ...]:
    text = ",".join(words.get(name, ()))
    return tuple(_read_move(scope, word) for word in text.split(",") if word)


def _read_move(scope: Scope, word: str) -> ScheduleStep:
    match = FORM.fullmatch(word)
    kind = KINDS.get(match[2]) if match else None
    if match is None or kind is None:
        raise UsageError(f"'{word}' is no move; one is written as d4.0, m4.a, x1 or s1.0")
    step = ScheduleStep(kind, int(match[3]), crash_after=int(match[1] or 0))
    rest = match[4] or ""
    if kind == "timer":
        return replace(step, name=unquote(rest))
    if kind == "restart":
        return replace(step, number=1 if rest == "lost" else 0)
    if kind == "cast":
        place = LETTERS.find(rest) if len(rest) == 1 else -1
        if not 0 <= place < len(scope.casts):
            raise UsageError(f"'{word}' multicasts a message that is not planned here")
        return replace(step, number=place)
    if kind == "crash":
        return step
    if not re.fullmatch(r"[0-9]{1,4}", rest):
        raise UsageError(f"'{word}' is no move; a number is missing, as in {match[2]}1.0")
    if kind in ("receive", "lost", "doubled"):
        place = int(match[5] or 0)
        return replace(step, process=int(rest), source=int(match[3]), place=place)
    if kind in ("suspect", "trust"):
        return replace(step, source=int(rest))
    if kind == "view" and not 1 <= int(rest) <= len(scope.views):
        raise UsageError(f"'{word}' tells of a view that is not planned here")
    return replace(step, number=int(rest))
