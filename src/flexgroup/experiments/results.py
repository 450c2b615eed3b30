"""What papers claim and what holds, on one page: the claims of many experiments, as last judged.

Each experiment leaves a table of its claims. A record, a file of comma-separated values, keeps the
last of each, so that one experiment that is run again replaces its own rows and no others.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.experiments.catalogue import EXPERIMENTS
from flexgroup.experiments.directory import Directory
from flexgroup.sweeps.folder import write_whole

YES, NO = "yes", "no"


@dataclass(frozen=True)
class Judged:
    """A claim, and what an experiment found of it."""

    experiment: str
    scale: str
    claim: str
    section: str
    words: str
    appears: str
    evidence: str


HEAD = tuple(field.name for field in fields(Judged))


def judged_in(path: Path) -> list[Judged]:
    """Return the claims of the experiment in this directory."""
    directory = Directory(path)
    try:
        told = json.loads(directory.description.read_text(encoding="utf-8"))
        name, scale = str(told["name"]), str(told["scale"])
        rows = pq.read_table(directory.tables / "claims").to_pylist()
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            f"'{path}' holds no experiment that has judged its claims; run "
            f"flexgroup experiment NAME --out {path} to its end"
        ) from None
    return [
        Judged(
            name, scale, row["claim"], row["section"], row["paper"],
            YES if row["holds"] else NO, row["evidence"],
        )
        for row in rows
    ]  # fmt: skip


def read_record(path: Path) -> list[Judged]:
    """Return what a record holds; nothing if there is none yet."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file)) or [[]]
    if tuple(head) != HEAD or any(len(row) != len(HEAD) for row in rows):
        raise UsageError(f"'{path}' is no record of claims: its columns must be {', '.join(HEAD)}")
    return [Judged(*row) for row in rows]


def write_record(path: Path, rows: Iterable[Judged]) -> None:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(astuple(row) for row in rows)
    write_whole(path, text.getvalue().encode())


def renewed(record: Sequence[Judged], news: Sequence[Judged]) -> list[Judged]:
    """Return the record with all rows of the experiments in the news replaced, in the order in
    which the catalogue has experiments."""
    again = {row.experiment for row in news}
    kept = [row for row in record if row.experiment not in again and row.experiment in EXPERIMENTS]
    order = list(EXPERIMENTS)
    return sorted((*kept, *news), key=lambda row: order.index(row.experiment))


INTRODUCTION = """
# Results: what papers claim, and what holds

Every claim of a paper that was put to measurements, with the verdict that the code of the
experiment reached, and the figures that decided it. Claims of our own, where papers leave a
question open, have *ours* for a section. Nothing here is typed: `flexgroup results` writes this
page from the tables that experiments leave, and keeps them in [results.csv](results.csv):

```sh
flexgroup experiment dcc-choices --out runs/dcc-choices
flexgroup results runs/dcc-choices --record docs/results.csv --out docs/results.md
```

**No** does not say that a paper is wrong: it says that the claim does not appear under our reading
of it, in a simulation. The pages behind the names of experiments tell why. A claim about systems
larger than those of a scale is judged at scale `paper` only, and missing where that was not run.
""".strip()


def page(record: Sequence[Judged], docs: Mapping[str, str]) -> str:
    """Return the page; `docs` has a link for each experiment that some page is about."""
    names = list(dict.fromkeys(row.experiment for row in record))
    lines = [INTRODUCTION, "", "## At a glance", ""]
    lines += ["| experiment | of | scale | claims | appear | do not |", "|" + " --- |" * 6]
    for name in names:
        rows = [row for row in record if row.experiment == name]
        failing = [row for row in rows if row.appears == NO]
        lines.append(
            f"| {_linked(name, docs)} | {EXPERIMENTS[name].source} | {rows[0].scale} | {len(rows)} "
            f"| {len(rows) - len(failing)} | {'; '.join(row.claim for row in failing) or '-'} |"
        )
    lines += ["", "## Claim by claim", ""]
    lines += ["| | section | the claim | appears | here | run |", "|" + " --- |" * 6]
    for row in record:
        verdict = row.appears if row.appears == YES else f"**{row.appears}**"
        cells = (row.claim, row.section, row.words, verdict, row.evidence)
        text = " | ".join(cell.replace("|", "\\|") for cell in cells)
        lines.append(f"| {text} | {_linked(row.experiment, docs)} |")
    return "\n".join(lines) + "\n"


def _linked(name: str, docs: Mapping[str, str]) -> str:
    return f"[{name}]({docs[name]})" if name in docs else name


def pages_beside(out: Path) -> dict[str, str]:
    """Return the page in the same folder that tells of each experiment: its own, or that of the
    family that its name begins with."""
    found = {}
    for name in EXPERIMENTS:
        for stem in (name, name.partition("-")[0]):
            file = out.parent / f"{stem}-results.md"
            if file.exists():
                has_claims = "\n## Claims\n" in file.read_text(encoding="utf-8")
                found[name] = file.name + ("#claims" if has_claims else "")
                break
    return found
