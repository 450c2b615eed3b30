"""What the validator found: where, what, and how many more of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

LISTED = 100
"""So many errors, and as many warnings, are told; more are counted, lest they fill the memory."""

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True)
class Problem:
    """An error makes a file wrong; a warning is something that its reader should know."""

    severity: str
    file: str
    row_group: int | None
    reason: str

    def __str__(self) -> str:
        group = "" if self.row_group is None else f", row group {self.row_group}"
        return f"{self.severity}: {self.file}{group}: {self.reason}"


@dataclass
class Findings:
    """What was looked at, and the problems in the order in which they were met."""

    files: int = 0
    runs: int = 0
    rows: int = 0
    errors: int = 0
    warnings: int = 0
    problems: list[Problem] = field(default_factory=list)

    def add(self, problem: Problem) -> None:
        if problem.severity == ERROR:
            self.errors += 1
            listed = self.errors <= LISTED
        else:
            self.warnings += 1
            listed = self.warnings <= LISTED
        if listed:
            self.problems.append(problem)

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Place:
    """A row group of a file, or the file as a whole: where problems are reported."""

    findings: Findings
    file: str
    row_group: int | None = None

    def error(self, reason: str) -> None:
        self.findings.add(Problem(ERROR, self.file, self.row_group, reason))

    def warning(self, reason: str) -> None:
        self.findings.add(Problem(WARNING, self.file, self.row_group, reason))
