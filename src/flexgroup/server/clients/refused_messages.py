"""Messages of clients that are refused."""

from __future__ import annotations

from collections.abc import Iterable

from flexgroup.server.clients.session import Session


def refuse_message(session: Session, groups: Iterable[int], code: str, reason: str) -> None:
    """Refuse a message in all its groups: whoever reads any of them, or has what it sent there
    confirmed, finds out."""
    for group in dict.fromkeys(groups):
        session.refuse(None, code, reason, group)
