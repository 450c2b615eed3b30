"""What messages of a long run are called where it comes from, and which message is called so."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexgroup.core.message import MessageId
from flexgroup.trace import schema
from flexgroup.trace.reader import messages, names_in, read_table
from flexgroup.trace.timeline import Timeline

COLUMNS = ("run", "origin", "seq", "name")


def message_names(timeline: Timeline, wanted: Collection[MessageId]) -> dict[MessageId, str]:
    """Return what these messages are called where the run comes from, as far as it tells."""
    found: dict[MessageId, str] = {}
    for rows in _naming(timeline):
        left = [message for message in wanted if message not in found]
        if not left:
            break
        flags = np.isin(messages(rows), left)
        found = {**names_in(rows.filter(pa.array(flags))), **found}
    return found


def messages_called(timeline: Timeline, name: str) -> list[MessageId]:
    """Return the messages that are called so where the run comes from."""
    found: dict[MessageId, None] = {}
    for rows in _naming(timeline):
        is_it = rows.filter(pc.equal(rows.column("name"), name))
        found |= dict.fromkeys(messages(is_it).tolist())
    return list(found)


def _naming(timeline: Timeline) -> Iterator[pa.Table]:
    """Yield the rows of the run that may tell a name, multicasts first."""
    for kind in reversed(schema.NAMED):
        for path in timeline.naming_files(kind):
            rows = read_table(path, schema.EVENT_COLUMNS, COLUMNS)
            own = pc.equal(rows.column("run").cast(pa.string()), timeline.run.run)
            yield rows.filter(own)
