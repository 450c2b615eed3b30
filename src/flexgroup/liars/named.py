"""Liars by name: who of a run lies, and in which way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flexgroup.core.errors import UsageError
from flexgroup.core.stack import BuildStack, Stack
from flexgroup.liars.attackers import (
    Equivocating,
    Forging,
    Impersonating,
    Reordering,
    Replaying,
    Silent,
    Skipping,
    Slow,
)
from flexgroup.liars.liar import Liar
from flexgroup.liars.twins import Twins

TWIN = "twin"

ATTACKERS: dict[str, type[Liar]] = {
    kind.KIND: kind
    for kind in (
        Silent,
        Slow,
        Skipping,
        Reordering,
        Forging,
        Equivocating,
        Replaying,
        Impersonating,
    )
}

KINDS = (TWIN, *ATTACKERS)

Liars = tuple[tuple[int, str], ...]
"""Who lies, in ascending order, and in which way."""


def parse_liars(twins: Sequence[str], attackers: Sequence[str]) -> Liars:
    """The liars that these texts name: `3` for a twin, `2:skip` for an attacker."""
    for text in twins:
        if not re.fullmatch("[0-9]+", text):
            raise UsageError(f"--twin {text}: write the number of a process, for example --twin 3")
    return liars_of([*[f"{text}:{TWIN}" for text in twins], *attackers])


def liars_of(texts: Iterable[str]) -> Liars:
    """The liars that texts such as `2:skip` name."""
    found: dict[int, str] = {}
    for text in texts:
        match = re.fullmatch(r"([0-9]+):([a-z]+)", text)
        if match is None or match[2] not in KINDS:
            raise UsageError(
                f"--liar {text}: write PROCESS:KIND, for example 2:skip; the kinds are "
                f"{', '.join(KINDS)}"
            )
        process = int(match[1])
        if process in found:
            raise UsageError(f"process {process} is made to lie twice; choose one kind")
        found[process] = match[2]
    return tuple(sorted(found.items()))


def in_words(liars: Liars) -> list[str]:
    """The texts that `liars_of` reads."""
    return [f"{process}:{kind}" for process, kind in liars]


def check_liars(liars: Liars, processes: int) -> None:
    """Raise UsageError unless all liars exist."""
    for process, kind in liars:
        if process >= processes:
            raise UsageError(
                f"process {process}, which is to be a liar ({kind}), does not exist; processes are "
                f"0 to {processes - 1}, and clients do not lie: 'impersonate' speaks in their name"
            )


def with_liars(build: BuildStack, liars: Liars) -> BuildStack:
    """What builds the stacks of a run in which these processes lie."""
    kinds = dict(liars)

    def build_any(process: int) -> Stack:
        kind = kinds.get(process)
        if kind is None:
            return build(process)
        stacks = [build(process) for _ in range(2 if kind == TWIN else 1)]
        liar = ATTACKERS.get(kind, Twins)(stacks[0].layers[0].context)
        liar.take_in(*stacks)
        return Stack([liar])

    return build_any if kinds else build
