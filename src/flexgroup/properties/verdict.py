"""What a check says: a verdict of three values, with evidence a person can check by hand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from flexgroup.core.message import MessageId, name_of


class Outcome(StrEnum):
    """Unknown means that a longer recording could still decide either way."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a witness: the given step of a process's own history."""

    process: int
    step: int
    event: str
    message: MessageId
    node: str | None = None
    name: str | None = None
    """What the process and the message are called where the run comes from, if it tells."""

    def to_json(self) -> dict[str, object]:
        told = {
            "process": self.process,
            "step": self.step,
            "event": self.event,
            "message": name_of(self.message),
        }
        names = {"node": self.node, "name": self.name}
        return {**told, **{key: name for key, name in names.items() if name is not None}}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for one property of one run.

    `violations` counts in the unit that the property's file states; `witness` holds the
    events of one smallest violation, in the order in which the explanation tells them.
    """

    property: str
    outcome: Outcome
    violations: int
    witness: tuple[Step, ...] | None
    explanation: str

    def to_json(self) -> dict[str, object]:
        return {
            "property": self.property,
            "outcome": self.outcome.value,
            "violations": self.violations,
            "witness": None if self.witness is None else [step.to_json() for step in self.witness],
            "explanation": self.explanation,
        }

    def __str__(self) -> str:
        lines = [f"{self.property}: {self.outcome.value}", *self.explanation.splitlines()]
        return "\n  ".join(lines)
