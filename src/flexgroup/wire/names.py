"""What may name a group, a process or a server."""

from __future__ import annotations

from flexgroup.core.errors import UsageError
from flexgroup.wire.requests import LONGEST_NAME


def name_of(what: str, text: str) -> str:
    """Return the text, provided that it can name a group or a process, or describe a stack."""
    if not isinstance(text, str) or not 1 <= len(text) <= LONGEST_NAME:
        raise UsageError(f"{what} is a text of 1 to {LONGEST_NAME} characters, not {text!r:.50}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        wrong = text[error.start]
        raise UsageError(
            f"{what} cannot be sent: {text!r:.50} holds {wrong!r}, which is half of a character or "
            "a byte that is no text; choose a name without it"
        ) from None
    return text
