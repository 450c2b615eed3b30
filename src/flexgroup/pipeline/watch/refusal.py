"""Why a run cannot be followed any further."""

from __future__ import annotations


class RefusedError(Exception):
    """The rows of a run contradict what following it relies on; the text says which and why."""
