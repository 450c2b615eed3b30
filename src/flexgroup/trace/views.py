"""Views as the detail of a view row tells them: a number, and who is in it."""

from __future__ import annotations

import json
from typing import NamedTuple

from flexgroup.core.errors import UsageError


class View(NamedTuple):
    """A view is told by its number and its members together: parts of a group that lost sight of
    each other may give the same number to different views."""

    number: int
    members: tuple[int, ...]


def parse_view(detail: str | None) -> View:
    """Return the view that a text such as `{"members":[0,1,2],"number":3}` describes."""
    try:
        told = json.loads(detail or "")
        number, members = told["number"], told["members"]
        integers = [number, *members]
    except (ValueError, KeyError, TypeError):
        integers = [None]
    if not all(type(value) is int for value in integers):
        raise UsageError(
            f"the detail of a view row is {detail!r}; it must have a number and members, "
            'as {"members":[0,1,2],"number":3}'
        )
    return View(number, tuple(sorted(set(members))))
