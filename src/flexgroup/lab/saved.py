"""A run as files: a golden script, a picture, a trace set in an archive."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from pathlib import Path

from flexgroup.lab.stepping import Standing
from flexgroup.properties.verdict import Outcome
from flexgroup.testing.script import rewrite
from flexgroup.worlds.explorer.schedule import script, write_trace


def file_name(standing: Standing) -> str:
    """Return a name for the files of a run, without an ending."""
    words = [*re.split(r"\W+", standing.address.stack), *_broken(standing)[:1]]
    return "-".join(part for word in words for part in word.split())


def script_of(standing: Standing) -> str:
    """Return the run as a golden script, which ends with a verdict on whatever is violated."""
    address = standing.address
    broken = _broken(standing)
    state = f"{', '.join(broken)} violated" if broken else "no promise is broken"
    title = f"{address.stack}: {state} after {len(address.moves)} steps."
    return rewrite(
        script(address.stack, address.scope, address.moves, title, broken, standing.ended)
    )


def picture_of(standing: Standing) -> str:
    """Return the run as a picture that is a file of its own."""
    title = f"{standing.address.stack}, {len(standing.address.moves)} steps"
    drawn = standing.performed.diagram(standing.violated, title)
    return f"{drawn.standalone}\n"


def trace_of(standing: Standing) -> bytes:
    """Return the run as a trace set, in an archive that unpacks to a folder."""
    address = standing.address
    name = file_name(standing)
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        write_trace(standing.plan, address.scope, address.moves, Path(folder), name)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
                archive.write(file, Path(name) / file.relative_to(folder))
    return packed.getvalue()


def _broken(standing: Standing) -> list[str]:
    return [judged.name for judged in standing.judged if judged.outcome is Outcome.VIOLATED]
