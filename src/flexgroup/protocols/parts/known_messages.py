"""Which messages a process knows of each source, in no more memory than there are gaps.

`last` has how many messages of each source, from its first on, are known without a gap, and `ahead`
those that are known while an earlier one of the same source is not.
"""

from __future__ import annotations

from flexgroup.core.message import MessageId, message_id, origin_of, seq_of


def is_known(m: MessageId, last: dict[int, int], ahead: set[MessageId]) -> bool:
    return seq_of(m) < last.get(origin_of(m), 0) or m in ahead


def make_known(m: MessageId, last: dict[int, int], ahead: set[MessageId]) -> None:
    ahead.add(m)
    source = origin_of(m)
    turn = last.get(source, 0)
    while message_id(source, turn) in ahead:
        ahead.remove(message_id(source, turn))
        turn += 1
    last[source] = turn
