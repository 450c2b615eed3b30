"""A scope in the words of the options of `flexgroup explore`, and of addresses of the lab."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from flexgroup.core.errors import UsageError
from flexgroup.core.replicas import Replicas, replicas_of_sizes
from flexgroup.liars.named import TWIN, in_words, parse_liars
from flexgroup.worlds.explorer.scope import Bounds, Destinations, PlannedCast, Scope

STOCKS = tuple(asdict(Bounds()))
"""The options that say how often something may happen in a run."""

ScopeWords = Mapping[str, Sequence[str]]
"""The values of each option, by its name without dashes."""


def scope_of(words: ScopeWords) -> Scope:
    """Return the scope that these options describe."""
    replicas = _replicas(_last(words, "replicas", ""))
    given = _last(words, "processes", "")
    # Detectors do without messages, where something else may happen.
    happens = words.get("message") or any(words.get(name, ("0",))[-1] != "0" for name in STOCKS)
    if (not given and not replicas) or not happens:
        raise UsageError(
            "which system? Give --processes N and at least one --message P,Q, "
            "or --all-destinations NxM"
        )
    processes = _number(given, "--processes") if given else sum(map(len, replicas))
    casts = []
    client = processes
    for text in words.get("message", ()):
        match = re.fullmatch(r"(?:(\d+):)?(\d+(?:,\d+)*)", text)
        if match is None:
            raise UsageError(f"--message {text}: write destinations as 0,2, or 1:0,2 from 1")
        destinations = tuple(sorted({int(word) for word in match[2].split(",")}))
        origin = int(match[1]) if match[1] else client
        client = max(client, origin + 1) if origin >= processes else client
        casts.append(PlannedCast(origin, destinations))
    crashing = tuple(
        _matching(text, "--crash", r"(\d+)", "0")[0] for text in words.get("crash", ())
    )
    suspecting = tuple(
        (suspicious, suspected)
        for text in words.get("suspect", ())
        for suspicious, suspected in [_matching(text, "--suspect", r"(\d+):(\d+)", "1:0")]
    )
    stocks = {name: _number(_last(words, name, "0"), f"--{name}") for name in STOCKS}
    stocks["crashes"] = stocks["crashes"] or len(crashing)
    stocks["suspicions"] = stocks["suspicions"] or len(suspecting)
    channels = _last(words, "channels", "fifo")
    if channels not in ("fifo", "reordering"):
        raise UsageError(f"--channels {channels}: write fifo or reordering")
    return Scope(
        processes,
        tuple(casts),
        channels == "fifo",
        bool(words.get("any-order")),
        Bounds(**stocks),
        tuple(_members(text, "--group") for text in words.get("group", ())),
        tuple(_members(text, "--view") for text in words.get("view", ())),
        crashing,
        suspecting,
        replicas,
        parse_liars(words.get("twin", ()), words.get("liar", ())),
    )


def words_of(scope: Scope) -> dict[str, list[str]]:
    """Return the options that describe a scope, without those that say what holds anyhow."""
    words = {
        "processes": [str(scope.processes)],
        "message": [f"{cast.origin}:{_listed(cast.destinations)}" for cast in scope.casts],
        "replicas": [_listed([len(group) for group in scope.replicas])] if scope.replicas else [],
        "channels": [] if scope.fifo else ["reordering"],
        "any-order": ["yes"] if scope.any_order else [],
        "group": [_listed(group) for group in scope.groups],
        "view": [_listed(view) for view in scope.views],
        "crash": [str(process) for process in scope.crashing],
        "suspect": [f"{suspicious}:{suspect}" for suspicious, suspect in scope.suspecting],
        "twin": [str(process) for process, kind in scope.liars if kind == TWIN],
        "liar": in_words(tuple(liar for liar in scope.liars if liar[1] != TWIN)),
    }
    client = scope.processes
    for place, cast in enumerate(scope.casts):
        if cast.origin == client:  # a client of its own
            words["message"][place] = _listed(cast.destinations)
        client = max(client, cast.origin + 1)
    named = {"crashes": len(scope.crashing), "suspicions": len(scope.suspecting)}
    for name, most in asdict(scope.bounds).items():
        words[name] = [] if most == named.get(name, 0) else [str(most)]
    return {name: values for name, values in words.items() if values}


def command_of(stack: str, scope: Scope) -> str:
    """Return the command that explores a scope."""
    options = [
        f"--{name}" if name == "any-order" else f"--{name} {value}"
        for name, values in words_of(scope).items()
        for value in values
    ]
    return " ".join([f"flexgroup explore --protocol '{stack}'", *options])


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _last(words: ScopeWords, name: str, otherwise: str) -> str:
    values = words.get(name)
    return values[-1] if values else otherwise


def _number(text: str, option: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text):
        raise UsageError(f"{option} {text}: write a whole number")
    return int(text)


def _matching(text: str, option: str, form: str, example: str) -> Destinations:
    """The numbers in the value of an option that has to be of this form."""
    match = re.fullmatch(form, text)
    if match is None:
        raise UsageError(f"{option} {text}: write for example {option} {example}")
    return tuple(map(int, match.groups()))


def _replicas(text: str) -> Replicas:
    if not text:
        return ()
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        raise UsageError(f"--replicas {text}: write the sizes of the groups as 3,1")
    return replicas_of_sizes([int(word) for word in text.split(",")])


def _members(text: str, option: str) -> Destinations:
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise UsageError(f"{option} {text}: write its members as 0,1,2")
    return tuple(sorted({int(word) for word in text.split(",")}))
